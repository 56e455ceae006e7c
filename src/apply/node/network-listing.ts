import { families, type Family } from '../../kernel/family.ts';
import { formatOwnChains, tableNames } from '../../kernel/iptables/iptables.ts';
import { formatIpAddrJson } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { forwardingSysctls, formatSysctls, sysctlOfLink, sysctlPath } from '../../kernel/sysctl.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-names.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { Room } from './output.ts';
import { faultOfLines, readWith } from './tools.ts';

/** Bytes of what each tool prints. A node that has all routes of the Internet prints more; none of those is a pod's. */
const mostListed = 8 * 2 ** 20;

/** How nft lists all tables; without the values of counters and quotas. */
const listRuleset = ['-s', 'list', 'ruleset'];

/** Listings of routing, by what to call them where one cannot be read. */
const listings = [
  ['routes of IPv4', ['route', 'show', 'table', 'all']],
  ['routes of IPv6', ['-6', 'route', 'show', 'table', 'all']],
  ['routing rules of IPv4', ['rule']],
  ['routing rules of IPv6', ['-6', 'rule']],
] as const;

const rulesCommands: { readonly [F in Family]: string } = { ipv4: 'iptables-save', ipv6: 'ip6tables-save' };

/** What decides of a node as a whole, and of each link, whether packets pass: those that the kernel asks when it routes. */
const sysctlsOfNode: readonly string[] = [
  ...Object.values(forwardingSysctls),
  'net.bridge.bridge-nf-call-iptables',
  'net.bridge.bridge-nf-call-ip6tables',
];
const sysctlsOfLink = [
  ...(['rp_filter', 'forwarding', 'route_localnet', 'accept_local', 'src_valid_mark'] as const),
  ...(['arp_ignore', 'arp_filter'] as const),
];

/**
 * The text of network.txt: what packets meet on this node besides what kube-proxy made, as prompts and what tools print there. Of links
 * it has what kpc reads and nothing else: an alias or the key of a tunnel may be a secret, as may a comment. `asksTables`: whether tables of nftables
 * that others made are listed.
 */
export async function listNetwork(
  host: Host,
  { links, iptables }: Pick<KernelState, 'links' | 'iptables'>,
  asksTables: boolean,
  onLeftOut: (what: string, failure: Failure) => void,
): Promise<string> {
  const rules = families.map((family) => {
    const text = formatOwnChains(iptables[family] ?? {}) ?? '';
    return text === '' ? '' : `$ ${rulesCommands[family]}\n${text}`;
  });
  const list = async (what: string, prompt: string, read: () => Promise<string>): Promise<string> => {
    try {
      return `$ ${prompt}\n${await read()}`;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      onLeftOut(what, error);
      return '';
    }
  };
  const tables = await Promise.all([
    ...listings.map(([what, args]) =>
      list(what, `ip ${args.join(' ')}`, () => readWith(host, { tool: 'ip', args, room: new Room(mostListed) })),
    ),
    ...(asksTables
      ? [list('tables of nftables of other programs', 'nft list ruleset', () => listOtherTables(host, iptables))]
      : []),
  ]);
  const sysctls = await readSysctls(host, [
    ...sysctlsOfNode,
    ...['all', ...links.map(({ name }) => name)].flatMap((link) => sysctlsOfLink.map((key) => sysctlOfLink(link, key))),
  ]);
  return [
    ...rules,
    ...tables,
    `$ ip -j -d addr\n${formatIpAddrJson(links)}\n`,
    `$ sysctl -a\n${formatSysctls(sysctls)}`,
  ].join('');
}

/** The tables of nftables that are neither kube-proxy's nor those that iptables-save lists. */
async function listOtherTables(host: Host, iptables: KernelState['iptables']): Promise<string> {
  const isListed = (word: string, name: string): boolean => {
    const family = families.find((each) => nftFamily[each] === word);
    const table = tableNames.find((each) => each === name);
    return family !== undefined && (isKubeProxyTable(name) || (table !== undefined && !!iptables[family]?.[table]));
  };
  let isKept = false;
  const keeps = (line: string): boolean => {
    const [, word, name] = /^table (\S+) (\S+) \{/.exec(line) ?? [];
    if (word !== undefined && name !== undefined) isKept = !isListed(word, name);
    return isKept;
  };
  const command = { tool: 'nft', args: listRuleset, room: new Room(mostListed), keeps };
  const text = await readWith(host, command, (printed) => faultOfLines(printed.split('\n'), linesOfTable));
  return text.replaceAll(/[ \t]*\bcomment "[^"\n]*"/g, '');
}

/** What nft prints of tables: no name of theirs begins a line of its own. */
const linesOfTable = /^(?:table (?:ip6?|inet|arp|bridge|netdev) \S+ \{.*|\t.*|\})?$/;

/** Those that this kernel has. */
async function readSysctls(host: Host, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const values = await Promise.all(names.map((name) => host.readFile(sysctlPath(name))));
  return new Map(
    names.flatMap((name, at) => {
      const value = values[at]?.trim() ?? '';
      return /^\d+$/.test(value) ? [[name, value] as const] : [];
    }),
  );
}
