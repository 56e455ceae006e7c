import { parseNamedSocket, portNumber, formatSocketAddress, parseSocketAddress } from '../ports-and-marks.ts';
import { readLines } from '../lines.ts';
import { readOptions, ServerDrafts, serviceFlags, type ForwardingMethod, type PrintedName } from './ipvs.ts';

const serverFlags: ReadonlyMap<string, string> = new Map(Object.entries({ ...serviceFlags, FWM: '-f' }));

/** ipvsadm shows Local for a real server on the node itself; IPVS forwards to it as with direct routing. */
const forwardingMethods: ReadonlyMap<string, ForwardingMethod> = new Map([
  ['Masq', 'masquerade'],
  ['Route', 'direct'],
  ['Local', 'direct'],
  ['Tunnel', 'tunnel'],
]);

/** Reads `ipvsadm -Ln`, with the same result as parseIpvsadm. Accepts any text. */
export function parseIpvsadmList(text: string) {
  const servers = new ServerDrafts();
  let current: PrintedName | undefined;
  const seen = new Set<string>();
  const unread = readLines(text, [], (line) => {
    const [first = '', name = '', ...rest] = line.split(/[ \t]+/);
    if (first === 'IP' || first === 'Prot' || name === 'RemoteAddress:Port') return undefined;
    if (first === '->') {
      const [method = '', weight = ''] = rest;
      const forwarding = forwardingMethods.get(method);
      if (!current) return 'no-head';
      if (!forwarding || !/^\d{1,10}$/.test(weight)) return 'short-server';
      return servers.addRealServer(current, () => ({ name, weight: Number(weight), forwarding, options: undefined }));
    }
    const server = { flag: serverFlags.get(first) ?? '', name };
    const key = `${server.flag} ${name}`;
    current = seen.has(key) ? undefined : server;
    seen.add(key);
    return servers.addServer({ ...server, ...readServerColumns(rest) });
  });
  return { ...servers.finish(), unread };
}

function readServerColumns([scheduler = '', ...words]: readonly string[]) {
  const columns = ` ${words.join(' ')}`;
  const flags = / \(([^ ()]+)\)/;
  const persistence = / persistent (\d{1,10})(?= |$)/;
  const others = columns
    .replace(flags, '')
    .replace(persistence, '')
    .replace(/ ops(?= |$)/, ' -o')
    .replace(/ mask (\S+)/, ' -M $1')
    .replace(/ pe (\S+)/, ' --pe $1');
  return {
    scheduler: /^[a-z_]{1,16}$/.test(scheduler) ? scheduler : undefined,
    seconds: persistence.exec(columns)?.[1],
    schedulerFlags: flags.exec(columns)?.[1],
    options: readOptions(others),
  };
}

/**
 * Replaces host names in `ipvsadm --save` output with the addresses from `ipvsadm -Ln` output taken at the same moment. Returns undefined
 * unless both list the same servers in the same order, as far as the names show.
 */
export function withAddresses(saved: string, list: string): string | undefined {
  const listed = [...list.matchAll(/^[ \t]*(TCP|UDP|SCTP|->)[ \t]+(\S+:\d+)[ \t]/gm)];
  let [at, server, isSame] = [0, '', true];
  const lines = saved.split('\n').map((line) => {
    const [whole = '', flag, name, real] = /^-(?:A (-\S+) (\S+)|a -\S+ \S+ -r (\S+))/.exec(line) ?? [];
    const printed = name ?? real;
    if (printed === undefined) return line;
    const [, kind = '', address = ''] = listed[at++] ?? [];
    isSame &&= (flag ?? '->') === (serverFlags.get(kind) ?? kind) && mayBe(printed, address);
    if (flag === undefined) return `-a ${server} -r ${address}${line.slice(whole.length)}`;
    server = `${flag} ${address}`;
    return `-A ${server}${line.slice(whole.length)}`;
  });
  return isSame && at === listed.length ? lines.join('\n') : undefined;
}

/** Reports whether `name`, a host and port as names or numbers, can stand for this address and port. */
function mayBe(name: string, address: string): boolean {
  const known = parseNamedSocket(name);
  const socket = parseSocketAddress(address);
  if (!socket || known)
    return known !== undefined && socket !== undefined && formatSocketAddress(known) === formatSocketAddress(socket);
  const port = portNumber(name.slice(name.lastIndexOf(':') + 1));
  return port === undefined || port === socket.port;
}
