import type { ServicePort } from '../../../cluster/model.ts';
import { isDeprecated } from '../../../kube-proxy/announced.ts';
import { usualSetSize } from '../../../kube-proxy/ipvs-objects.ts';
import { programs } from '../../../kube-proxy/modes.ts';
import { modeHistories } from '../../../kube-proxy/releases.ts';
import { namesMode } from '../lint-input.ts';
import { type LintRule, claimRefused, ofServices } from '../rule.ts';

/** Finds ipsets that need more entries than kube-proxy gives them room for, and the nodes with such sets. */
export const fullSet: LintRule<'full-set'> = {
  check: ({ loaded, nodes, snapshots }) => {
    const { settings, cluster } = loaded;
    const { servicePorts } = cluster;
    if (!programs(settings.mode, 'sets')) return [];
    // Usually no set can be full, so the node is not compiled.
    const serviceEntries = servicePorts.reduce((sum, port) => sum + countSetEntries(port), 0);
    const endpointEntries = countByNode(servicePorts);
    const full = new Map<string, { entries: number; readonly nodes: string[] }>();
    for (const snapshot of snapshots) {
      const name = snapshot.nodeName;
      if (Math.max(serviceEntries, endpointEntries.get(name) ?? 0) <= usualSetSize) continue;
      // Compiles the node again, so that only one node's state is in memory at a time.
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

/** Returns the most entries that a port can have in any one set, except the set of the node's endpoints. */
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

/** The scheduler that hashes only the client's address (ip_vs_sh.c). For mh, kube-proxy sets mh-port, so the client's port counts too. */
const hashing = 'sh';

/** Finds session affinity without effect, or in addition to a scheduler that already provides it. */
export const idleAffinity: LintRule<'idle-affinity'> = ofServices(
  ({ object, name, skipped, ports: [port], source }, { loaded: { settings } }) => {
    const { sessionAffinity, sessionAffinityTimeout: seconds } = object.spec;
    if (sessionAffinity === 'None') return undefined;
    const place = source.place(['spec', 'sessionAffinity']);
    if (skipped === 'headless') return { details: { problem: 'headless', service: name }, place };
    if (!port || !programs(settings.mode, 'virtualServers')) return undefined;
    const scheduler = port.scheduler || settings.ipvs.scheduler;
    return scheduler === hashing
      ? { details: { problem: 'scheduler', service: name, scheduler, seconds }, place }
      : undefined;
  },
);

export const ipvsEnds: LintRule<'ipvs-ends'> = {
  check: ({ loaded }) => {
    const { settings, modeNote } = loaded;
    const ends = modeHistories[settings.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', settings.release);
    return ends && namesMode(loaded) ? [{ details: {}, place: modeNote?.place }] : [];
  },
};

/** The kinds of objects by which a program announces load balancer addresses by ARP. */
const announcers: Readonly<Record<string, string>> = {
  L2Advertisement: 'MetalLB (L2Advertisement)',
  CiliumL2AnnouncementPolicy: 'Cilium (CiliumL2AnnouncementPolicy)',
};

/** Finds load balancer addresses for which every node answers ARP, because every node has them on kube-ipvs0. */
export const laxARP: LintRule<'lax-arp'> = {
  check: ({ loaded: { settings, inputs } }) => {
    if (!programs(settings.mode, 'links') || settings.ipvs.strictARP) return [];
    const [, by] = Object.entries(announcers).find(([kind]) => inputs.skipped.has(kind)) ?? [];
    return by === undefined ? [] : [{ details: { by }, place: inputs.configs[0]?.source.place(['ipvs', 'strictARP']) }];
  },
};

/** Returns a packet to the Service without endpoints whose comment kpc cut because it was too long for nft. */
export const longComment: LintRule<'long-comment'> = {
  show: ({ servicePort }, input, service) => {
    const port = service?.ports.find((each) => each.label === servicePort);
    return port && claimRefused(port, input);
  },
};

export const unnamedMode: LintRule<'unnamed-mode'> = {
  check: ({ loaded: { modeNote, inputs } }) => {
    if (modeNote?.code !== 'default-mode' || modeNote.arguments.named !== 'configuration') return [];
    return [{ details: {}, place: modeNote.place ?? inputs.configs[0]?.source.place(['mode']) }];
  },
};
