import { LongText } from '../long-text.ts';
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
  const [command, flag = '', name = ''] = words;
  if (command !== '-A' && command !== '-a') return 'not an ipvsadm line';
  if (flag === '-f') return 'a firewall-mark virtual server, which kube-proxy does not make';
  const { byKey, last } = services;
  if (command === '-a' && last && flag === last.flag && name === last.name) return addRealServer(last.draft, words);
  const protocol = protocolsByFlag.get(flag);
  if (protocol === undefined || name === '') return 'not an ipvsadm line';
  const at = parseSocketAddress(name);
  if (!at) return notNumeric;
  const key = `${protocol} ${at.address.text} ${at.port}`;
  const known = byKey.get(key);
  if (command === '-A' && known) return 'duplicate virtual server';
  const draft = command === '-A' ? readService({ ...at, family: at.address.family, protocol }, words) : known;
  if (!draft) return 'a real server without its virtual server';
  if (typeof draft === 'string') return draft;
  byKey.set(key, draft);
  services.last = { flag, name, draft };
  return command === '-A' ? undefined : addRealServer(draft, words);
}

const notNumeric = 'an address or port that is not numeric (save with ipvsadm -Sn)';

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

/** How many values an option takes; 'number' may be missing, as after `-p`. */
type Arity = 0 | 1 | 'number';

/**
 * The values of known options in the words after the virtual server's name. Other words stay as they are, and so does a
 * repeated option: two lines may have become one.
 */
function readOptions(words: readonly string[], known: Readonly<Record<string, Arity>>) {
  const values = new Map<string, string>();
  const others: string[] = [];
  for (let i = 3; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = words[i + 1] ?? '';
    const arity = Object.hasOwn(known, word) && !values.has(word) ? known[word] : undefined;
    const takesValue = arity === 1 || (arity === 'number' && isNumber(value));
    if (arity === undefined) others.push(word);
    else values.set(word, takesValue ? value : '');
    if (takesValue) i++;
  }
  return { values, others };
}

const serviceOptions = { '-s': 1, '-p': 'number', '-b': 1 } as const;

/** Returns the reason as a string if the options cannot be read. */
function readService(
  key: Pick<VirtualServer, 'family' | 'protocol' | 'address' | 'port'>,
  words: readonly string[],
): DraftServer | string {
  const { values, others } = readOptions(words, serviceOptions);
  // ipvsadm's default scheduler, and its default persistence of 300 seconds.
  const scheduler = values.get('-s') ?? 'wlc';
  const persistence = values.get('-p');
  const flags = values.get('-b');
  const schedulerFlags = flags === undefined ? [] : readSchedulerFlags(flags);
  if (scheduler === '') return 'a scheduler without a name';
  if (!schedulerFlags) return 'scheduler flags that kpc does not know';
  return {
    ...key,
    scheduler,
    persistentSeconds: persistence === undefined ? undefined : Number(persistence || '300'),
    schedulerFlags,
    realServers: [],
    options: others.length === 0 ? undefined : others,
  };
}

/** Scheduler flags as ipvsadm prints or takes them, with commas; undefined if one is unknown. */
function readSchedulerFlags(text: string): readonly SchedulerFlag[] | undefined {
  const flags = text
    .split(',')
    .map((name) => (Object.hasOwn(schedulerFlagNames, name) ? schedulerFlagNames[name] : undefined));
  return flags.every((flag) => flag !== undefined) ? [...new Set(flags)].sort() : undefined;
}

const realOptions = { '-r': 1, '-w': 1, '-m': 0, '-g': 0, '-i': 0 } as const;

/** Adds the real server that the words name. Returns the reason if they cannot be read. */
function addRealServer({ realServers }: DraftServer, words: readonly string[]): string | undefined {
  const { values, others } = readOptions(words, realOptions);
  const at = parseSocketAddress(values.get('-r') ?? '');
  const weight = values.get('-w') ?? '1';
  if (!isNumber(weight)) return 'a weight that is not a number';
  if (!at) return notNumeric;
  if (['-m', '-g', '-i'].filter((flag) => values.has(flag)).length > 1) return 'more than one way of forwarding';
  // ipvsadm's default is direct routing.
  const forwarding = values.has('-m') ? 'masquerade' : values.has('-i') ? 'tunnel' : 'direct';
  // -i already means ipip, but ipvsadm 1.31 prints it too.
  const tunnel = others.indexOf('--tun-type');
  if (tunnel >= 0 && others[tunnel + 1] === 'ipip') others.splice(tunnel, 2);
  realServers.push({ ...at, weight: Number(weight), forwarding, options: others.length === 0 ? undefined : others });
  return undefined;
}

function isNumber(text: string): boolean {
  return /^\d{1,10}$/.test(text);
}
