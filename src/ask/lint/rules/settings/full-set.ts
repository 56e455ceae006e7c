import type { ServicePort } from '../../../../cluster/model.ts';
import { usualSetSize } from '../../../../kube-proxy/ipvs-objects.ts';
import { programs } from '../../../../kube-proxy/modes.ts';
import type { LintRule } from '../../rule.ts';

/** Finds sets with more entries than kube-proxy creates them for, and the nodes with such sets. */
export const fullSet: LintRule<'full-set'> = {
  check: ({ loaded, nodes, snapshots }) => {
    const { settings, cluster } = loaded;
    const { servicePorts } = cluster;
    if (!programs(settings.mode, 'sets')) return [];
    // Usually no set can be full, so compiling is skipped.
    const ofServices = servicePorts.reduce((sum, port) => sum + countSetEntries(port), 0);
    const ofEndpoints = countByNode(servicePorts);
    const full = new Map<string, { entries: number; readonly nodes: string[] }>();
    for (const snapshot of snapshots) {
      const name = snapshot.nodeName;
      if (Math.max(ofServices, ofEndpoints.get(name) ?? 0) <= usualSetSize) continue;
      // Compile the node again, so that only one state is in memory at a time.
      const { state } = snapshot.onNode(name) ?? snapshot;
      for (const { name: set, type, entries } of state.sets) {
        if (type === 'bitmap:port' || entries.length <= usualSetSize) continue;
        const known = full.get(set) ?? { entries: 0, nodes: [] };
        full.set(set, { entries: Math.max(known.entries, entries.length), nodes: [...known.nodes, name] });
      }
    }
    return [...full].map(([set, { entries, nodes: own }]) => ({
      details: { set, entries, limit: usualSetSize, nodes: own, of: nodes.length },
    }));
  },
};

/** Returns the most entries that a port can have in one set, except in the set of the node's endpoints. */
function countSetEntries({ externalIPs, loadBalancerIPs, sourceRanges }: ServicePort): number {
  return 1 + externalIPs.length + loadBalancerIPs.length * Math.max(1, sourceRanges.length);
}

function countByNode(ports: readonly ServicePort[]): ReadonlyMap<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  for (const endpoint of ports.flatMap(({ endpoints }) => endpoints)) {
    for (const { status } of [endpoint, ...(endpoint.rivals ?? [])])
      counts.set(status.nodeName, (counts.get(status.nodeName) ?? 0) + 1);
  }
  return counts;
}
