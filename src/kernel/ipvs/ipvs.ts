import { compareAddresses, joinHostPort, type Address } from '../address.ts';
import { protocols, type Family, type Protocol } from '../family.ts';
import type { Origin } from '../place.ts';
import { parseSocketAddress } from '../socket-address.ts';
import { readLines, type UnreadLine } from '../unread-line.ts';

/** How a packet gets to a real server: NAT (ipvsadm -m), direct routing (-g) or an IP-in-IP tunnel (-i). */
export type ForwardingMethod = 'masquerade' | 'direct' | 'tunnel';

/** A virtual server: what ipvsadm calls a service. The key is family, protocol, address and port. */
export interface VirtualServer {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly address: Address;
  readonly port: number;
  readonly scheduler: string;
  /** Seconds of persistence (session affinity); undefined for none. */
  readonly persistentSeconds?: number | undefined;
  /** Scheduler flags by their number: flag-1, flag-2, flag-3 as ipvsadm's -b knows them. */
  readonly schedulerFlags: readonly SchedulerFlag[];
  /** Sorted by address, then port. */
  readonly realServers: readonly RealServer[];
  /** Further options of another program's virtual servers (-o, -M, --pe …), as ipvsadm's words. kube-proxy's have none. */
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/**
 * Kernel flags IP_VS_SVC_F_SCHED1..3. ipvsadm prints them by the scheduler's names: flag-1 is sh-fallback or
 * mh-fallback, flag-2 sh-port or mh-port.
 */
const numberedFlags = ['flag-1', 'flag-2', 'flag-3'] as const;
export type SchedulerFlag = (typeof numberedFlags)[number];

/** An endpoint of a virtual server. A weight of 0 takes no new connections. */
export interface RealServer {
  readonly address: Address;
  readonly port: number;
  readonly weight: number;
  readonly forwarding: ForwardingMethod;
  /** Further options of another program's real servers (tunnel types, thresholds), as ipvsadm's words. */
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/** Seconds; 0 leaves a timeout as it is, as `ipvsadm --set` has it. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}

/** The schedulers of the Linux kernel: kube-proxy takes each that the node's kernel has. */
export const schedulers: readonly string[] = 'rr wrr lc wlc lblc lblcr sh dh sed nq mh fo ovf twos'.split(' ');

/** The longest timeout that ipvsadm takes: 31 days. */
export const mostIpvsSeconds = 31 * 24 * 3600;

/** IPv4 before IPv6, then by address as a number, port and protocol (TCP, UDP, SCTP). */
export function compareVirtualServers(a: VirtualServer, b: VirtualServer): number {
  return (
    compareAddresses(a.address, b.address) ||
    a.port - b.port ||
    protocols.indexOf(a.protocol) - protocols.indexOf(b.protocol)
  );
}

/** By address as a number, then port. */
export function compareRealServers(
  a: Pick<RealServer, 'address' | 'port'>,
  b: Pick<RealServer, 'address' | 'port'>,
): number {
  return compareAddresses(a.address, b.address) || a.port - b.port;
}

/** The lines of one virtual server with its real servers. */
export function formatVirtualServer(server: VirtualServer): string {
  const name = formatServiceName(server);
  const lines = [`-A ${name}${formatServiceOptions(server)}\n`];
  for (const real of server.realServers) lines.push(`-a ${name}${formatRealServer(real)}\n`);
  return lines.join('');
}

/** ipvsadm's options that name virtual servers. */
export const serviceFlags: { readonly [P in Protocol]: string } = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

/** What names a virtual server on ipvsadm's command line: `-t 10.0.0.1:80`. */
export function formatServiceName(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${serviceFlags[server.protocol]} ${joinHostPort(server.address.text, server.port)}`;
}

/**
 * ` -s rr -p 10800 -b flag-2` and so on. ipvsadm's default netmask of persistence (255.255.255.255, or 128) is the one
 * that kube-proxy asks for, and it takes the flags by number with every scheduler and in every version that has -b.
 */
export function formatServiceOptions(server: VirtualServer): string {
  let text = ` -s ${server.scheduler}`;
  if (server.persistentSeconds !== undefined) text += ` -p ${server.persistentSeconds}`;
  if (server.schedulerFlags.length > 0) text += ` -b ${server.schedulerFlags.join(',')}`;
  return text + formatOptions(server);
}

function formatOptions({ options }: Pick<RealServer | VirtualServer, 'options'>): string {
  return options === undefined ? '' : options.map((option) => ` ${option}`).join('');
}

const forwardingFlags = { masquerade: '-m', direct: '-g', tunnel: '-i' } as const satisfies Record<
  ForwardingMethod,
  string
>;

/** What names a real server on ipvsadm's command line: `-r 10.1.1.1:80`. */
export function formatRealServerName(server: Pick<RealServer, 'address' | 'port'>): string {
  return `-r ${joinHostPort(server.address.text, server.port)}`;
}

/** ` -r 10.1.1.1:80 -m -w 1`. */
export function formatRealServer(server: RealServer): string {
  const flags = `${forwardingFlags[server.forwarding]} -w ${server.weight}${formatOptions(server)}`;
  return ` ${formatRealServerName(server)} ${flags}`;
}

/** A virtual server while its lines are read. */
interface DraftServer extends VirtualServer {
  readonly realServers: RealServer[];
}

/**
 * Reads what `ipvsadm -Sn` prints, and what formatVirtualServer writes. The result is sorted. Takes any text: lines it
 * cannot read, such as those of firewall marks, are in `unread`.
 */
export function parseIpvsadm(text: string): {
  readonly virtualServers: readonly VirtualServer[];
  readonly unread: readonly UnreadLine[];
} {
  const servers = new Map<string, DraftServer>();
  const unread = readLines(text, [], (line) => readServerLine(servers, line));
  for (const { realServers } of servers.values()) realServers.sort(compareRealServers);
  return { virtualServers: [...servers.values()].sort(compareVirtualServers), unread };
}

/** Reads a line into the virtual servers. Returns why it cannot be read. */
function readServerLine(servers: Map<string, DraftServer>, printed: string): string | undefined {
  const line = /\t| {2}/.test(printed) ? printed.replace(/[ \t]+/g, ' ') : printed;
  const [, command, flag = '', name = '', rest = ''] = /^-([Aa]) (\S+) (\S+)( .*|)$/s.exec(line) ?? [];
  if (flag === '-f') return 'a firewall-mark virtual server, which kube-proxy does not make';
  const protocol = protocolsByFlag.get(flag);
  if (protocol === undefined) return 'not an ipvsadm line';
  const at = parseSocketAddress(name);
  if (!at) return notNumeric;
  const key = `${protocol} ${at.address.text} ${at.port}`;
  const known = servers.get(key);
  if (command === 'a') return known ? addRealServer(known, rest) : 'a real server without its virtual server';
  if (known) return 'duplicate virtual server';
  const [, scheduler, others = ''] = /^ -s (\S+)( .*)?$/.exec(rest) ?? [];
  if (scheduler === undefined) return 'a virtual server without a scheduler';
  const seconds = / -p (\d{1,10})(?!\S)/.exec(others)?.[1];
  const flags = / -b (\S+)/.exec(others)?.[1];
  const schedulerFlags = flags === undefined ? [] : readSchedulerFlags(flags);
  if (!schedulerFlags) return 'scheduler flags that kpc does not know';
  servers.set(key, {
    family: at.address.family,
    protocol,
    ...at,
    scheduler,
    persistentSeconds: seconds === undefined ? undefined : Number(seconds),
    schedulerFlags,
    realServers: [],
    options: readOptions(others.replace(/ -p \d{1,10}(?!\S)/, '').replace(/ -b \S+/, '')),
  });
  return undefined;
}

const notNumeric = 'an address or port that is not numeric (save with ipvsadm -Sn)';

const protocolsByFlag: ReadonlyMap<string, Protocol> = new Map(protocols.map((name) => [serviceFlags[name], name]));

/** Scheduler flags as ipvsadm prints or takes them, with commas; undefined if one is unknown. */
function readSchedulerFlags(text: string): readonly SchedulerFlag[] | undefined {
  const numbered = text
    .replace(/\b[sm]h-fallback\b/g, 'flag-1')
    .replace(/\b[sm]h-port\b/g, 'flag-2')
    .split(',');
  const flags = numberedFlags.filter((flag) => numbered.includes(flag));
  return flags.length === new Set(numbered).size ? flags : undefined;
}

/** Adds the real server of a line, from the option -r on. Returns the reason if it cannot be read. */
function addRealServer({ realServers }: DraftServer, text: string): string | undefined {
  const [, name, flag, weight, others = ''] =
    /^ -r (\S+) (-[mgi]) -w (\d{1,10})( .*)?$/.exec(
      // -i already means ipip, but ipvsadm 1.31 prints it too.
      text.replace(' --tun-type ipip', ''),
    ) ?? [];
  if (name === undefined) return 'a real server without its way of forwarding, or its weight';
  const at = parseSocketAddress(name);
  if (!at) return notNumeric;
  const forwarding = flag === '-m' ? 'masquerade' : flag === '-i' ? 'tunnel' : 'direct';
  realServers.push({ ...at, weight: Number(weight), forwarding, options: readOptions(others) });
  return undefined;
}

/** The words of the options that kpc does not read. */
function readOptions(text: string): readonly string[] | undefined {
  return text.trim() === '' ? undefined : text.trim().split(' ');
}
