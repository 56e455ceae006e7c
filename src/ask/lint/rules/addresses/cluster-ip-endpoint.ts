import { parseAddress } from '../../../../kernel/address.ts';
import type { Rule } from '../../rule.ts';

/** Endpoints that are cluster IPs of the input, but for those that kpc chose. */
export const clusterIPEndpoint: Rule<'cluster-ip-endpoint'> = {
  check: ({ services }) => {
    const holders = new Map(
      services.flatMap(({ name, written }) =>
        written.spec.clusterIPs.map((text) => [parseAddress(text)?.text ?? '', name] as const),
      ),
    );
    return services.flatMap(({ name, ports }) => {
      const endpoints = new Map(ports.flatMap((port) => port.endpoints.map((each) => [each.address.text, each])));
      return [...endpoints].flatMap(([address, { place }]) => {
        const holder = holders.get(address);
        return holder === undefined ? [] : [{ details: { service: name, address, holder }, place }];
      });
    });
  },
};
