import { type Address, compareAddresses, type Family, joinHostPort, type Protocol, protocols } from '../address.ts';
import type { Origin } from '../place.ts';
import { parseNamedSocket } from '../ports-and-marks.ts';
import { readLines, type LineFault } from '../lines.ts';

/** How a packet reaches a real server: NAT (ipvsadm -m), direct routing (-g) or an IP-in-IP tunnel (-i). */
export type ForwardingMethod = 'masquerade' | 'direct' | 'tunnel';

export interface VirtualServer {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly address: Address;
  readonly port: number;
  readonly scheduler: string;
  /** Seconds that a client keeps its real server; undefined without persistence. */
  readonly persistentSeconds?: number | undefined;
  readonly schedulerFlags: readonly SchedulerFlag[];
  /** Sorted by address, then port. */
  readonly realServers: readonly RealServer[];
  /** Options that only other programs use (-o, -M, --pe …), as ipvsadm prints them. */
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/** The kernel's IP_VS_SVC_F_SCHED1 to 3. ipvsadm prints flag-1 as sh-fallback or mh-fallback, and flag-2 as sh-port or mh-port. */
const numberedFlags = ['flag-1', 'flag-2', 'flag-3'] as const;
export type SchedulerFlag = (typeof numberedFlags)[number];

/** A real server. With weight 0, it gets no new connections. */
export interface RealServer {
  readonly address: Address;
  readonly port: number;
  readonly weight: number;
  readonly forwarding: ForwardingMethod;
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/** Seconds; 0 leaves a timeout unchanged, as in `ipvsadm --set`. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}

export interface SchedulerFacts {
  /** Whether weights count; 'most': only real servers with the highest weight are used. */
  readonly weight: 'ignored' | 'counts' | 'most';
  /**
   * How the real server is chosen: in turn, by load, by a hash of the client or of the destination, or by the kernel's list. kpc does not
   * know the order of that list, because it depends on when each real server was added (__ip_vs_update_dest). 'first' always takes the
   * first real server in the list; 'fill' takes the next one once the active connections exceed the weight (ip_vs_fo.c, ip_vs_ovf.c).
   */
  readonly by: 'turn' | 'load' | 'client' | 'destination' | 'first' | 'fill';
}

/** The schedulers in Linux. kube-proxy accepts any that the node's kernel has. */
export const schedulerFacts: ReadonlyMap<string, SchedulerFacts> = new Map(
  Object.entries({
    rr: { weight: 'ignored', by: 'turn' },
    wrr: { weight: 'counts', by: 'turn' },
    lc: { weight: 'ignored', by: 'load' },
    wlc: { weight: 'counts', by: 'load' },
    lblc: { weight: 'counts', by: 'destination' },
    lblcr: { weight: 'counts', by: 'destination' },
    sh: { weight: 'counts', by: 'client' },
    dh: { weight: 'ignored', by: 'destination' },
    sed: { weight: 'counts', by: 'load' },
    nq: { weight: 'counts', by: 'load' },
    mh: { weight: 'counts', by: 'client' },
    fo: { weight: 'most', by: 'first' },
    ovf: { weight: 'most', by: 'fill' },
    twos: { weight: 'counts', by: 'load' },
  } satisfies Readonly<Record<string, SchedulerFacts>>),
);

export const schedulers: readonly string[] = [...schedulerFacts.keys()];

/** The longest timeout that ipvsadm accepts: 31 days. */
export const mostIpvsSeconds = 31 * 24 * 3600;

/** An object that one listing in a dump names and another lacks. */
export interface Unlisted {
  readonly by: string;
  readonly entry: string;
  /** 'node port': the node port may have virtual servers, but none at an address of the node. */
  readonly lacks: 'virtual server' | 'node port' | 'real server' | 'address' | 'set';
  /** For missing addresses: the listing and entry that name each address. */
  readonly naming?: ReadonlyMap<string, Pick<Unlisted, 'by' | 'entry'>> | undefined;
  /** For missing addresses: the families in which the node has none of the addresses where rules serve node ports. */
  readonly apart?: ReadonlySet<Family> | undefined;
  /** The last virtual server in each ipvsadm listing. If the listing is cut off, some of its real servers may be missing. */
  readonly ends?: readonly VirtualServer[] | undefined;
  /** The last set in each listing. If the listing is cut off, some entries of this set may be missing. */
  readonly endsOfSets?: readonly string[] | undefined;
}

/** The values of `lacks` that may be caused by addresses missing from `ip addr`. */
export const lacksAddresses: ReadonlySet<Unlisted['lacks']> = new Set<Unlisted['lacks']>(['address', 'node port']);

export function compareVirtualServers(a: VirtualServer, b: VirtualServer): number {
  return (
    compareAddresses(a.address, b.address) ||
    a.port - b.port ||
    protocols.indexOf(a.protocol) - protocols.indexOf(b.protocol)
  );
}

export function compareRealServers(
  a: Pick<RealServer, 'address' | 'port'>,
  b: Pick<RealServer, 'address' | 'port'>,
): number {
  return compareAddresses(a.address, b.address) || a.port - b.port;
}

export function formatVirtualServer(server: VirtualServer): string {
  const name = formatServiceName(server);
  const add = `-a ${name} -r `;
  const parts = [`-A ${name}${formatServiceOptions(server)}\n`];
  // Join all parts at once, because V8 would keep a concatenated line in memory as a tree.
  for (const real of server.realServers) {
    parts.push(add, joinHostPort(real.address.text, real.port), formatRealServerOptions(real), '\n');
  }
  return parts.join('');
}

export const serviceFlags: { readonly [P in Protocol]: string } = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

export function formatServiceName(server: Pick<VirtualServer, 'protocol' | 'address' | 'port'>): string {
  return `${serviceFlags[server.protocol]} ${joinHostPort(server.address.text, server.port)}`;
}

/**
 * Formats options such as ` -s rr -p 10800 -b flag-2`. Leaves the netmask at ipvsadm's default, which kube-proxy also uses
 * (255.255.255.255, or 128). Flags are numbered, because every ipvsadm with -b accepts numbers for any scheduler.
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

export function formatRealServerName(server: Pick<RealServer, 'address' | 'port'>): string {
  return `-r ${joinHostPort(server.address.text, server.port)}`;
}

export function formatRealServer(server: RealServer): string {
  return ` ${formatRealServerName(server)}${formatRealServerOptions(server)}`;
}

function formatRealServerOptions(server: RealServer): string {
  return ` ${forwardingFlags[server.forwarding]} -w ${server.weight}${formatOptions(server)}`;
}

export interface PrintedName {
  readonly flag: string;
  readonly name: string;
}

export interface PrintedServer extends PrintedName {
  readonly scheduler: string | undefined;
  readonly seconds: string | undefined;
  readonly schedulerFlags: string | undefined;
  readonly options: readonly string[] | undefined;
}

export class ServerDrafts {
  readonly #servers = new Map<
    string,
    VirtualServer & {
      readonly realServers: RealServer[];
    }
  >();

  addServer({
    scheduler,
    seconds,
    schedulerFlags: printed,
    options,
    ...printedName
  }: PrintedServer): LineFault | undefined {
    const named = readPrintedName(printedName);
    if (typeof named === 'string') return named;
    const { key, ...at } = named;
    if (this.#servers.has(key)) return 'duplicate';
    if (scheduler === undefined) return 'no-scheduler';
    const schedulerFlags = printed === undefined ? [] : readSchedulerFlags(printed);
    if (!schedulerFlags) return 'scheduler-flags';
    const persistentSeconds = seconds === undefined ? undefined : Number(seconds);
    this.#servers.set(key, { ...at, scheduler, persistentSeconds, schedulerFlags, realServers: [], options });
    return undefined;
  }

  addRealServer(of: PrintedName, read: () => PrintedRealServer | LineFault): LineFault | undefined {
    const named = readPrintedName(of);
    if (typeof named === 'string') return named;
    const server = this.#servers.get(named.key);
    if (!server) return 'no-head';
    const printed = read();
    if (typeof printed === 'string') return printed;
    const { name, ...real } = printed;
    const at = parseNamedSocket(name);
    if (!at) return 'not-numeric';
    server.realServers.push({ ...at, ...real });
    return undefined;
  }

  finish(): { readonly virtualServers: readonly VirtualServer[]; readonly last: VirtualServer | undefined } {
    const listed = [...this.#servers.values()];
    for (const { realServers } of listed) realServers.sort(compareRealServers);
    return { virtualServers: listed.toSorted(compareVirtualServers), last: listed.at(-1) };
  }
}

type PrintedRealServer = Pick<RealServer, 'weight' | 'forwarding' | 'options'> & { readonly name: string };

function readPrintedName({ flag, name }: PrintedName) {
  if (flag === '-f') return 'mark-server';
  const protocol = protocolsByFlag.get(flag);
  if (protocol === undefined) return 'other-line';
  const at = parseNamedSocket(name);
  if (!at) return 'not-numeric';
  return { family: at.address.family, protocol, ...at, key: `${protocol} ${at.address.text} ${at.port}` };
}

/** Reads `ipvsadm -Sn` and formatVirtualServer's text, and sorts both. Unreadable lines, such as firewall marks, go to `unread`. */
export function parseIpvsadm(text: string) {
  const servers = new ServerDrafts();
  const unread = readLines(text, [], (line) => readServerLine(servers, line));
  return { ...servers.finish(), unread };
}

function readServerLine(servers: ServerDrafts, printed: string): LineFault | undefined {
  const line = /\t| {2}/.test(printed) ? printed.replace(/[ \t]+/g, ' ') : printed;
  const [, command, flag = '', name = '', rest = ''] = /^-([Aa]) (\S+) (\S+)( .*|)$/s.exec(line) ?? [];
  if (command === 'a') return servers.addRealServer({ flag, name }, () => readRealServer(rest));
  const [, scheduler, others = ''] = /^ -s (\S+)( .*)?$/.exec(rest) ?? [];
  return servers.addServer({
    flag,
    name,
    scheduler,
    seconds: / -p (\d{1,10})(?!\S)/.exec(others)?.[1],
    schedulerFlags: / -b (\S+)/.exec(others)?.[1],
    options: readOptions(others.replace(/ -p \d{1,10}(?!\S)/, '').replace(/ -b \S+/, '')),
  });
}

function readRealServer(text: string): PrintedRealServer | LineFault {
  const [, name, flag, weight, others = ''] =
    /^ -r (\S+) (-[mgi]) -w (\d{1,10})( .*)?$/.exec(
      // ipvsadm 1.31 prints the tunnel type ipip, which -i already means.
      text.replace(' --tun-type ipip', ''),
    ) ?? [];
  if (name === undefined) return 'short-server';
  const forwarding = flag === '-m' ? 'masquerade' : flag === '-i' ? 'tunnel' : 'direct';
  return { name, weight: Number(weight), forwarding, options: readOptions(others) };
}

const protocolsByFlag: ReadonlyMap<string, Protocol> = new Map(protocols.map((name) => [serviceFlags[name], name]));

function readSchedulerFlags(text: string): readonly SchedulerFlag[] | undefined {
  const numbered = text
    .replace(/\b[sm]h-fallback\b/g, 'flag-1')
    .replace(/\b[sm]h-port\b/g, 'flag-2')
    .split(',');
  const flags = numberedFlags.filter((flag) => numbered.includes(flag));
  return flags.length === new Set(numbered).size ? flags : undefined;
}

export function readOptions(text: string): readonly string[] | undefined {
  return text.trim() === '' ? undefined : text.trim().split(' ');
}
