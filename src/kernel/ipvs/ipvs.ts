import { LongText } from '../long-text.ts';
import { compareAddresses, joinHostPort, type Address } from '../address.ts';
import { protocols, type Family, type Protocol } from '../family.ts';
import type { Origin } from '../place.ts';
import { parseSocketAddress, type SocketAddress } from '../socket-address.ts';
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
export type SchedulerFlag = 'flag-1' | 'flag-2' | 'flag-3';

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

/**
 * The input of `ipvsadm -R` that makes these virtual servers if none of them exists, in pieces. `format` is formatVirtualServer,
 * or gives what that has given before.
 */
export function writeVirtualServers(
  virtualServers: readonly VirtualServer[],
  format: (server: VirtualServer) => string,
): readonly string[] {
  const text = new LongText();
  for (const server of virtualServers) text.add(format(server));
  return text.pieces();
}

/** The lines of one virtual server with its real servers. */
export function formatVirtualServer(server: VirtualServer): string {
  const name = formatServiceName(server);
  const lines = [`-A ${name}${formatServiceOptions(server)}\n`];
  for (const real of server.realServers) lines.push(`-a ${name}${formatRealServer(real)}\n`);
  return lines.join('');
}

/** The options by which ipvsadm names virtual servers. */
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
const forwardingByFlag = { '-m': 'masquerade', '-g': 'direct', '-i': 'tunnel' } as const;

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
 * Reads what `ipvsadm -Sn` prints, and what formatVirtualServers writes. The result is sorted. Takes any text: lines it
 * cannot read, such as those of firewall marks, are in `unread`.
 */
export function parseIpvsadm(text: string): {
  readonly virtualServers: readonly VirtualServer[];
  readonly unread: readonly UnreadLine[];
} {
  const services: ReadServices = { byKey: new Map(), last: undefined };
  const unread = readLines(text, [], (line) => readServerLine(services, splitLine(line)));
  const drafts = [...services.byKey.values()];
  for (const server of drafts) server.realServers.sort(compareRealServers);
  return { virtualServers: drafts.sort(compareVirtualServers), unread };
}

/** The words of a line, which has one blank between two of them wherever kpc or ipvsadm wrote it. */
function splitLine(line: string): readonly string[] {
  return /\t| {2}/.test(line) ? line.split(/[ \t]+/) : line.split(' ');
}

/** The virtual servers read so far. A real server's line most often names the virtual server of the line before it. */
interface ReadServices {
  readonly byKey: Map<string, DraftServer>;
  last: { readonly flag: string; readonly name: string; readonly draft: DraftServer } | undefined;
}

/** Reads a line into the virtual servers. Returns why it cannot be read. */
function readServerLine(services: ReadServices, words: readonly string[]): string | undefined {
  const [command, flag, name, ...options] = words;
  if (command !== '-A' && command !== '-a') return 'not an ipvsadm line';
  if (flag === '-f') return 'a firewall-mark virtual server, which kube-proxy does not make';
  const { byKey, last } = services;
  if (command === '-a' && last && flag === last.flag && name === last.name) return addRealServer(last.draft, options);
  const protocol = flag === undefined ? undefined : protocolsByFlag.get(flag);
  if (flag === undefined || protocol === undefined || name === undefined) return 'not an ipvsadm line';
  const at = parseSocketAddress(name);
  if (!at) return 'an address or port that is not numeric (save with ipvsadm -Sn)';
  const key = `${protocol} ${at.address.text} ${at.port}`;
  const draft = byKey.get(key);
  if (command === '-A') {
    if (draft) return 'duplicate virtual server';
    const made = readServiceOptions({ ...at, family: at.address.family, protocol }, options);
    if (typeof made === 'string') return made;
    byKey.set(key, made);
    services.last = { flag, name, draft: made };
    return undefined;
  }
  if (!draft) return 'a real server without its virtual server';
  services.last = { flag, name, draft };
  return addRealServer(draft, options);
}

function addRealServer(draft: DraftServer, options: readonly string[]): string | undefined {
  const server = readRealServer(options);
  if (typeof server === 'string') return server;
  draft.realServers.push(server);
  return undefined;
}

const protocolsByFlag: ReadonlyMap<string, Protocol> = new Map(protocols.map((name) => [serviceFlags[name], name]));

const schedulerFlagNames: Readonly<Record<string, SchedulerFlag>> = {
  'flag-1': 'flag-1',
  'flag-2': 'flag-2',
  'flag-3': 'flag-3',
  'sh-fallback': 'flag-1',
  'sh-port': 'flag-2',
  'mh-fallback': 'flag-1',
  'mh-port': 'flag-2',
};

/** Reads the words after the virtual server's name; a text is why they cannot be read. */
function readServiceOptions(
  key: Pick<VirtualServer, 'family' | 'protocol' | 'address' | 'port'>,
  words: readonly string[],
): DraftServer | string {
  let scheduler = 'wlc';
  let persistentSeconds: number | undefined;
  let schedulerFlags: readonly SchedulerFlag[] = [];
  const options: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = words[i + 1];
    switch (word) {
      case '-s':
        if (value === undefined) return 'a scheduler without a name';
        scheduler = value;
        i++;
        break;
      case '-p':
        // ipvsadm's default is 300 seconds.
        persistentSeconds = value !== undefined && isNumber(value) ? Number(words[++i]) : 300;
        break;
      case '-b': {
        const flags = readSchedulerFlags(value ?? '');
        if (!flags) return 'scheduler flags that kpc does not know';
        schedulerFlags = flags;
        i++;
        break;
      }
      default:
        options.push(word);
    }
  }
  return {
    ...key,
    scheduler,
    persistentSeconds,
    schedulerFlags,
    realServers: [],
    options: options.length === 0 ? undefined : options,
  };
}

/** Scheduler flags as ipvsadm prints or takes them, with commas; undefined if one is unknown. */
function readSchedulerFlags(text: string): readonly SchedulerFlag[] | undefined {
  const flags = text
    .split(',')
    .map((name) => (Object.hasOwn(schedulerFlagNames, name) ? schedulerFlagNames[name] : undefined));
  return flags.every((flag) => flag !== undefined) ? [...new Set(flags)].sort() : undefined;
}

/** Reads the words after the service's name; a text is why they cannot be read. */
function readRealServer(words: readonly string[]): RealServer | string {
  let at: SocketAddress | undefined;
  // ipvsadm's defaults: direct routing, weight 1.
  let forwarding: ForwardingMethod = 'direct';
  let weight = 1;
  const options: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = words[i + 1] ?? '';
    switch (word) {
      case '-r':
        at = parseSocketAddress(value);
        i++;
        break;
      case '-m':
      case '-g':
      case '-i':
        forwarding = forwardingByFlag[word];
        break;
      case '-w':
        if (!isNumber(value)) return 'a weight that is not a number';
        weight = Number(value);
        i++;
        break;
      case '--tun-type':
        // -i already means ipip, but ipvsadm 1.31 prints it too.
        if (value !== 'ipip') options.push(word, value);
        i++;
        break;
      default:
        options.push(word);
    }
  }
  if (!at) return 'an address or port that is not numeric (save with ipvsadm -Sn)';
  return { ...at, weight, forwarding, options: options.length === 0 ? undefined : options };
}

function isNumber(text: string): boolean {
  return /^\d{1,10}$/.test(text);
}
