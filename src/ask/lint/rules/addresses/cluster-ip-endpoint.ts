import { parseAddress } from '../../../../kernel/address.ts';
import type { LintRule } from '../../rule.ts';

export const clusterIPEndpoint: LintRule<'cluster-ip-endpoint'> = {
  check: ({ services }) => {
    const holders = new Map(
      services.flatMap(({ name, written }) =>
        written.spec.clusterIPs.map((text) => [parseAddress(text)?.text ?? '', name] as const),
      ),
    );
    return services.flatMap(({ name, ports }) => {
      const held = ports.flatMap(({ endpoints }) => endpoints.filter(({ address }) => holders.has(address.text)));
      return [...new Map(held.map((each) => [each.address.text, each]))].map(([address, { place }]) => {
        return { details: { service: name, address, holder: holders.get(address) ?? '' }, place };
      });
    });
  },
};
