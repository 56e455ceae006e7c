import type { ServicePort } from '../cluster/model.ts';
import { compileNode, NodeMemo } from '../snapshot/open/compile-node.ts';
import type { IpFamilyChoice } from '../snapshot/open/choose-families.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import { isDeprecated } from '../kube-proxy/announced.ts';
import { usualSetSize } from '../kube-proxy/ipvs-sets.ts';
import { programs } from '../kube-proxy/modes.ts';
import { modeHistories } from '../kube-proxy/releases.ts';
import type { Finding } from './finding.ts';
import type { LintInput } from './lint-input.ts';

/** A configuration without a mode, whose default changes; and a mode that ends. */
export function findChangingModes({
  loaded: { modeNote, inputs },
  settings,
  namesMode,
}: LintInput): readonly Finding[] {
  const place = inputs.configs[0]?.source.place(['mode']);
  if (modeNote?.code === 'default-mode' && modeNote.arguments.named === 'configuration') {
    return [{ diagnostic: diagnose('unnamed-mode', {}, modeNote.place ?? place), service: undefined }];
  }
  const ends = modeHistories[settings.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', settings.release);
  if (!ends || !namesMode) return [];
  return [{ diagnostic: diagnose('ipvs-ends', {}, modeNote?.place), service: undefined }];
}

/** Kinds of objects that have load balancer addresses announced by ARP, with their programs. */
const announcers: Readonly<Record<string, string>> = {
  L2Advertisement: 'MetalLB (L2Advertisement)',
  CiliumL2AnnouncementPolicy: 'Cilium (CiliumL2AnnouncementPolicy)',
};

/** Load balancer addresses that all nodes answer ARP for, since they are on kube-ipvs0 of each. */
export function findLaxARP({ settings, loaded: { inputs } }: LintInput): readonly Finding[] {
  if (!programs(settings.mode, 'links') || settings.ipvs.strictARP) return [];
  const by = Object.keys(announcers).find((kind) => inputs.skipped.has(kind));
  if (by === undefined) return [];
  const place = inputs.configs[0]?.source.place(['ipvs', 'strictARP']);
  return [{ diagnostic: diagnose('lax-arp', { by: announcers[by] ?? by }, place), service: undefined }];
}

/** The schedulers that choose by the hash of the client's address: ip_vs_sh.c, and ip_vs_mh.c without the flag mh-port. */
const hashing: ReadonlySet<string> = new Set(['sh', 'mh']);

/** Session affinity that nothing, or another thing, takes care of. */
export function findIdleAffinity({ services, settings }: LintInput): readonly Finding[] {
  return services.flatMap(({ object, name, skipped, ports, source }): readonly Finding[] => {
    const { sessionAffinity, sessionAffinityTimeout: seconds } = object.spec;
    if (sessionAffinity === 'None') return [];
    const place = source.place(['spec', 'sessionAffinity']);
    if (skipped === 'headless') {
      return [{ diagnostic: diagnose('idle-affinity', { problem: 'headless', service: name }, place), service: name }];
    }
    const [port] = ports;
    if (!port || !programs(settings.mode, 'virtualServers')) return [];
    const scheduler = port.scheduler || settings.ipvs.scheduler;
    if (!hashing.has(scheduler)) return [];
    const details = { problem: 'scheduler', service: name, scheduler, seconds } as const;
    return [{ diagnostic: diagnose('idle-affinity', details, place), service: name }];
  });
}

/** Sets with more entries than kube-proxy makes room for, on the nodes that have them. */
export function findFullSets(
  { loaded, settings, nodes, preparedFor }: LintInput,
  ipFamily: IpFamilyChoice,
): readonly Finding[] {
  const { cluster } = loaded.prepared;
  // Mostly no set can be full, and nothing needs compiling.
  const most = cluster.servicePorts.reduce((sum, port) => sum + entriesOf(port), 0);
  if (!programs(settings.mode, 'sets') || most <= usualSetSize) return [];
  const memo = new NodeMemo();
  const full = new Map<string, { entries: number; readonly nodes: string[] }>();
  for (const name of nodes.length === 0 ? [''] : nodes.map((node) => node.name)) {
    const request = { nodeName: name, hostAddresses: loaded.hostAddresses, ipFamily };
    for (const { name: set, type, entries } of compileNode(preparedFor(name), request, memo).state.sets) {
      if (type === 'bitmap:port' || entries.length <= usualSetSize) continue;
      const known = full.get(set) ?? { entries: 0, nodes: [] };
      full.set(set, { entries: Math.max(known.entries, entries.length), nodes: [...known.nodes, name] });
    }
  }
  return [...full].map(([set, { entries, nodes: own }]) => {
    const details = { set, entries, limit: usualSetSize, nodes: own, of: nodes.length };
    return { diagnostic: diagnose('full-set', details), service: undefined };
  });
}

/** As many entries as a port can have in one set. */
function entriesOf({ externalIPs, loadBalancerIPs, sourceRanges, endpoints }: ServicePort): number {
  return 1 + externalIPs.length + loadBalancerIPs.length * Math.max(1, sourceRanges.length) + endpoints.length;
}
