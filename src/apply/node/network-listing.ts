import { families, type Family } from '../../kernel/family.ts';
import { formatOwnChains } from '../../kernel/iptables/iptables.ts';
import { formatIpAddrJson } from '../../kernel/link/link.ts';
import { forwardingSysctls, formatSysctls, sysctlOfLink, sysctlPath } from '../../kernel/sysctl.ts';
import type { KernelState } from '../../kernel/state.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { Room } from './output.ts';
import { readWith } from './tools.ts';

/** Bytes of what each tool prints. A node that has all routes of the Internet prints more; none of those is a pod's. */
const mostListed = 8 * 2 ** 20;

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
 * it has what kpc reads and nothing else: an alias or the key of a tunnel may be a secret.
 */
export async function listNetwork(
  host: Host,
  { links, iptables }: Pick<KernelState, 'links' | 'iptables'>,
  onLeftOut: (what: string, failure: Failure) => void,
): Promise<string> {
  const rules = families.map((family) => {
    const text = formatOwnChains(iptables[family] ?? {}) ?? '';
    return text === '' ? '' : `$ ${rulesCommands[family]}\n${text}`;
  });
  const tables = await Promise.all(
    listings.map(async ([what, args]) => {
      try {
        const text = await readWith(host, { tool: 'ip', args, room: new Room(mostListed) });
        return `$ ip ${args.join(' ')}\n${text}`;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        onLeftOut(what, error);
        return '';
      }
    }),
  );
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
