import { sharesPort } from '../../../../cluster/assign-addresses.ts';
import { isDefaultCidr, serviceRanges } from '../../../../cluster/service-ranges.ts';
import { contains, parseAddress } from '../../../../kernel/address.ts';
import type { LintedService } from '../../lint-input.ts';
import type { RuleFinding, LintRule } from '../../rule.ts';

/** Finds cluster IPs that the API server refuses, because another Service has them or they are outside its ranges. */
export const refusedClusterIP: LintRule<'refused-cluster-ip'> = {
  check: ({ services, loaded }) => {
    const { ranges, inputs } = loaded;
    // If the API server's own ServiceCIDR is missing from the input, others may be missing too.
    const areKnown =
      inputs.serviceCidrs.length === 0 || inputs.serviceCidrs.some(({ object }) => isDefaultCidr(object));
    const known = areKnown ? serviceRanges(inputs.serviceCidrs, ranges.clusterIPs).map(({ network }) => network) : [];
    const holders = new Map<string, LintedService>();
    return services.flatMap((service) =>
      service.written.spec.clusterIPs.flatMap((text, i): readonly RuleFinding<'refused-cluster-ip'>[] => {
        const address = parseAddress(text);
        if (!address) return [];
        const { name, source } = service;
        const place = source.place(i === 0 ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', i]);
        const about = { service: name, address: address.text };
        const holder = holders.get(address.text);
        holders.set(address.text, holder ?? service);
        // If the two Services share a port, address-conflict reports them.
        if (holder && !sharesPort(holder.object, service.object)) {
          return [{ details: { problem: 'taken', ...about, holder: holder.name }, place }];
        }
        const own = known.filter(({ family }) => family === address.family);
        if (own.length === 0 || own.some((network) => contains(network, address))) return [];
        return [
          { details: { problem: 'out-of-range', ...about, networks: own.map((network) => network.text) }, place },
        ];
      }),
    );
  },
};
