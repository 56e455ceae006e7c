import type { Diagnostic } from './diagnostic.ts';
import type { Cluster } from './model.ts';

/**
 * Source ranges of length zero, which IPVS mode puts into an ipset up to v1.33 of kube-proxy (open-source-range in the
 * table of releases). The kernel's hash sets take no such range: kube-proxy logs that and goes on without it, and
 * `ipset restore` stops there.
 */
export function findUnloadableRanges({ servicePorts }: Cluster): readonly Diagnostic[] {
  return servicePorts
    .filter(({ loadBalancerIPs }) => loadBalancerIPs.length > 0)
    .flatMap((port) =>
      port.sourceRanges.flatMap((range, index): readonly Diagnostic[] => {
        if (range.prefixLength > 0) return [];
        const halves = range.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1';
        const text =
          `${port.label}: no ipset takes the source range ${range.text}: kube-proxy of this release goes on without it and lets ` +
          `no client in, and ipset.restore does not load; write ${halves}`;
        return [{ severity: 'warning', code: 'unloadable-range', text, place: port.places?.sourceRange(index) }];
      }),
    );
}
