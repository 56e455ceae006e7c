import { families } from '../../kernel/family.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { isLearned, type NftTable } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import { parseNftName } from '../../kube-proxy/nftables.ts';
import type { Host } from './host.ts';
import { readServerName } from './ipvs-table.ts';
import { parseNodeTables } from './node-reading.ts';

/**
 * How many clients the rules and virtual servers of a node remember for session affinity, each with its Service port. Each
 * mode keeps them in its own place, so a change of mode forgets them. What cannot be read counts as none.
 */
export async function countLearnedClients(host: Host, state: KernelState): Promise<number> {
  const counts = await Promise.all([countRecent(host, state), countTemplates(host, state), countElements(host, state)]);
  return counts.reduce((sum, each) => sum + each, 0);
}

/** In iptables mode, xt_recent has a list for each endpoint: "src=10.1.0.1 ttl: 64 last_seen: …". */
async function countRecent(host: Host, { iptables }: KernelState): Promise<number> {
  const names = new Set<string>();
  for (const family of families) {
    for (const { rules } of iptables[family]?.nat?.values() ?? []) {
      for (const { args } of rules) for (const arg of args) if (arg.kind === 'recent') names.add(arg.name);
    }
  }
  const lists = await Promise.all([...names].map((name) => readIfAble(host, `/proc/net/xt_recent/${name}`)));
  return lists.reduce((sum, list) => sum + (list.match(/^src=/gm)?.length ?? 0), 0);
}

/**
 * In IPVS mode, a connection of client port 0 stands for all of a client:
 *
 *     TCP 0A010001 0000 0A600001 0050 0A010102 1F90 NONE       10780
 */
async function countTemplates(host: Host, { virtualServers }: KernelState): Promise<number> {
  const persistent = virtualServers.filter((server) => server.persistentSeconds !== undefined).map(virtualServerKey);
  if (persistent.length === 0) return 0;
  const keys = new Set(persistent);
  const lines = (await readIfAble(host, '/proc/net/ip_vs_conn')).matchAll(
    /^(TCP|UDP|SCTP) +\S+ 0000 (\S+) ([\dA-F]{4}) /gm,
  );
  return [...lines].filter(([, protocol, address = '', port]) => {
    const server = readServerName(`${protocol} ${address.includes(':') ? `[${address}]` : address}:${port}`);
    return server !== undefined && keys.has(virtualServerKey(server));
  }).length;
}

/** In nftables mode, elements of sets. Listed anew, because a table that has not changed need not have been read. */
async function countElements(host: Host, { nftables }: KernelState): Promise<number> {
  const learning = nftables.filter((table) => [...table.sets.values()].some(isLearned));
  const counts = await Promise.all(
    learning.map(async ({ family, name }) => {
      const result = await host.run({ tool: 'nft', args: ['-s', 'list', 'table', nftFamily[family], name] });
      return result.kind === 'ended' && result.status === 0 ? countInTables(parseNodeTables(result.stdout)) : 0;
    }),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

function countInTables(tables: readonly NftTable[]): number {
  const sets = tables.flatMap(({ sets: all }) => [...all.values()]);
  const clients = sets.filter((set) => isLearned(set) && parseNftName(set.name)?.kind === 'affinity');
  return clients.reduce((sum, { elements }) => sum + elements.length, 0);
}

function readIfAble(host: Host, path: string): Promise<string> {
  return host.readFile(path).then(
    (text) => text ?? '',
    () => '',
  );
}
