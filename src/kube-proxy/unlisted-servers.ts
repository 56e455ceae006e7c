import { formatEntry, type SetEntry } from '../kernel/ipset/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import { nodePortProtocol, openSets, parseSetName, setFamily, type SetId } from './ipvs-sets.ts';
import { modeOfState } from './mode-of-state.ts';
import { programs } from './modes.ts';
import { socketOf } from './node-port-servers.ts';

/** What a set names of IPVS, and the list of virtual servers lacks. */
export interface UnlistedServer {
  readonly set: string;
  /** As ipset writes it: "10.96.0.1,tcp:80" or "30080". */
  readonly entry: string;
  readonly lacks: 'virtual server' | 'real server';
}

const addressSets: ReadonlySet<SetId> = new Set(openSets);

/**
 * Finds an entry of kube-proxy's sets without its virtual server: kube-proxy makes that before it adds the entry (syncProxyRules in
 * ipvs/proxier.go). `endsBare`: the list ends with a virtual server without a real server, and so may end before those that a set of
 * local endpoints names.
 */
export function findUnlistedServer(state: KernelState, endsBare: boolean): UnlistedServer | undefined {
  const mode = modeOfState(state);
  if (mode === undefined || !programs(mode, 'virtualServers')) return undefined;
  const sockets = new Set(state.virtualServers.map(socketOf));
  const ports = new Set(state.virtualServers.map(({ family, protocol, port }) => `${family} ${protocol} ${port}`));
  const real = new Set(
    state.virtualServers.flatMap(({ protocol, realServers }) =>
      realServers.map(({ address, port }) => socketOf({ address, port, protocol })),
    ),
  );
  for (const set of state.sets) {
    const id = parseSetName(set.name)?.set;
    if (id === undefined) continue;
    const protocol = nodePortProtocol(id);
    const isListed = (entry: SetEntry): boolean => {
      if (protocol) return ports.has(`${setFamily(set)} ${protocol} ${entry.port}`);
      if (addressSets.has(id)) return sockets.has(formatEntry(entry));
      return id !== 'loopBack' || !endsBare || real.has(formatEntry({ ...entry, source: undefined }));
    };
    const entry = set.entries.find((each) => each.other === undefined && !isListed(each));
    if (!entry) continue;
    const lacks = id === 'loopBack' ? 'real server' : 'virtual server';
    return { set: set.name, entry: formatEntry({ ...entry, source: undefined }), lacks };
  }
  return undefined;
}

/** A clause: "KUBE-CLUSTER-IP names 10.96.0.1,tcp:80, of which the dump lists no virtual server …". */
export function unlistedWords({ set, entry, lacks }: UnlistedServer): string {
  return `${set} names ${entry}, and the dump lists no ${lacks} of it: the list is cut off, or kube-proxy could not make all of them`;
}
