import type { Protocol } from '../kernel/family.ts';
import {
  compareRealServers,
  readSchedulerFlags,
  compareVirtualServers,
  type DraftServer,
  type ForwardingMethod,
  type RealServer,
  type SchedulerFlag,
  type VirtualServer,
} from '../kernel/ipvs/ipvs.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';

/** What `ipvsadm -Sn` prints and the columns of a list leave out. */
export type ListGap = 'forwarding';

/**
 * Reads what `ipvsadm -Ln` prints, with `--persistent-conn` or without. The result is sorted. Takes any text: lines it cannot
 * read, firewall-mark services among them, are in `unread`. `lacks` names what the columns do not show of the real servers;
 * kpc then takes what kube-proxy asks for.
 */
export function parseIpvsadmList(text: string): {
  readonly virtualServers: readonly VirtualServer[];
  readonly unread: readonly UnreadLine[];
  readonly lacks: ReadonlySet<ListGap>;
} {
  const drafts = new Map<string, DraftServer>();
  const unread: UnreadLine[] = [];
  const lacks = new Set<ListGap>();
  let current: DraftServer | undefined;
  /** Why kpc could not read the service of the next real servers. */
  let skipped: string | undefined;
  let columns: Columns = 'forward';
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const words = raw.trim().split(/[ \t]+/);
    const [first = '', name = ''] = words;
    let reason: string | undefined;
    if (first === '' || first === 'IP' || name === 'RemoteAddress:Port') continue;
    if (first === 'Prot') {
      columns = words.includes('PersistConn') ? 'persistent' : 'forward';
    } else if (first === '->') {
      const server = skipped ?? readListedReal(name, words.slice(2), columns);
      if (typeof server === 'string') reason = server;
      else if (!current) reason = 'a real server without its virtual server';
      else current.realServers.push(server);
      if (columns === 'persistent') lacks.add('forwarding');
    } else {
      current = undefined;
      const draft = readListedServer(first, name, words.slice(2));
      skipped = typeof draft === 'string' ? draft : undefined;
      if (typeof draft === 'string') reason = draft;
      else {
        const key = `${draft.protocol} ${draft.address.text} ${draft.port}`;
        if (drafts.has(key)) reason = 'duplicate virtual server';
        else drafts.set(key, draft);
        current = draft;
      }
    }
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  for (const server of drafts.values()) server.realServers.sort(compareRealServers);
  return { virtualServers: [...drafts.values()].sort(compareVirtualServers), unread, lacks };
}

/** What stands after the address of a real server: how packets are forwarded and a weight, or a weight alone. */
type Columns = 'forward' | 'persistent';

const fwmarkReason = 'a firewall-mark virtual server, which kube-proxy does not make';
const namesReason = 'a name instead of an address or a port: print it with -n, as in ipvsadm -Ln';

const protocolNames: ReadonlyMap<string, Protocol> = new Map(
  (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => [protocol, protocol]),
);

/** Reads a service's line; a text is why it cannot be read. */
function readListedServer(first: string, name: string, words: readonly string[]): DraftServer | string {
  if (first === 'FWM') return fwmarkReason;
  const protocol = protocolNames.get(first);
  if (!protocol) return 'not an ipvsadm line';
  const at = parseSocketAddress(name);
  if (!at) return /:[\w-]+$/.test(name) ? namesReason : 'cut off: a virtual server without a port';
  const [scheduler, ...rest] = words;
  if (scheduler === undefined || !/^[a-z_]{1,16}$/.test(scheduler)) return 'a virtual server without a scheduler';
  let schedulerFlags: readonly SchedulerFlag[] = [];
  let persistentSeconds: number | undefined;
  const options: string[] = [];
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i] ?? '';
    const value = rest[i + 1];
    if (word.startsWith('(') && word.endsWith(')')) {
      const flags = readSchedulerFlags(word.slice(1, -1));
      if (!flags) return 'scheduler flags that kpc does not know';
      schedulerFlags = flags;
    } else if (word === 'ops') options.push('-o');
    else if (word === 'persistent' && value !== undefined && /^\d{1,10}$/.test(value)) {
      persistentSeconds = Number(value);
      i++;
    } else if ((word === 'mask' || word === 'pe') && value !== undefined) {
      options.push(word === 'mask' ? '-M' : '--pe', value);
      i++;
    } else return 'a virtual server with words that ipvsadm -Ln does not print';
  }
  return {
    family: at.address.family,
    protocol,
    address: at.address,
    port: at.port,
    scheduler,
    ...(persistentSeconds === undefined ? {} : { persistentSeconds }),
    schedulerFlags,
    realServers: [],
    ...(options.length === 0 ? {} : { options }),
  };
}

/** A real server that is the node itself is forwarded to as with direct routing. */
const forwardingNames: ReadonlyMap<string, ForwardingMethod> = new Map([
  ['Masq', 'masquerade'],
  ['Route', 'direct'],
  ['Local', 'direct'],
  ['Tunnel', 'tunnel'],
]);

/** Reads the words after "->"; a text is why they cannot be read. */
function readListedReal(name: string, words: readonly string[], columns: Columns): RealServer | string {
  const at = parseSocketAddress(name);
  if (!at) return /:[\w-]+$/.test(name) ? namesReason : 'a real server without a port';
  const isTold = columns === 'forward';
  const forwarding = isTold ? forwardingNames.get(words[0] ?? '') : 'masquerade';
  const weight = words[isTold ? 1 : 0] ?? '';
  if (!forwarding || !/^\d{1,10}$/.test(weight)) return 'a real server without all of its columns';
  return { address: at.address, port: at.port, weight: Number(weight), forwarding };
}
