import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
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
        const details = { servicePort: port.label, range: range.text, family: range.family };
        return [diagnose('unloadable-range', details, port.places?.sourceRange(index))];
      }),
    );
}
