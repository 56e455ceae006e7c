import { compareAddresses, type Address } from '../address.ts';
import { itemOf, pairUp, type Pair } from '../compare.ts';
import type { Origin } from '../place.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../ports-and-marks.ts';
import { readLines } from '../lines.ts';

export interface ProxyPort {
  readonly protocol: 'TCP' | 'UDP';
  readonly address: Address;
  readonly port: number;
  /** The balancer uses the endpoints in turn. Without endpoints, it accepts each connection and closes the connection at once. */
  readonly endpoints: readonly SocketAddress[];
  readonly affinity: boolean;
  /** Milliseconds without a packet after which a UDP client counts as a new client. */
  readonly udpIdle: number;
  readonly origin?: Origin | undefined;
}

export function proxyPortKey({ protocol, ...at }: Pick<ProxyPort, 'protocol' | 'address' | 'port'>): string {
  return `${protocol} ${formatSocketAddress(at)}`;
}

export function compareProxyPorts(a: ProxyPort, b: ProxyPort): number {
  return a.port - b.port || compareAddresses(a.address, b.address) || (a.protocol < b.protocol ? -1 : 1);
}

export function diffProxyPorts(from: readonly ProxyPort[], to: readonly ProxyPort[]): readonly Pair<ProxyPort>[] {
  return pairUp(from, to, proxyPortKey).filter(
    (pair) => !pair.from || !pair.to || formatPort(pair.from) !== formatPort(pair.to),
  );
}

/** Merges two lists of ports. A port in both lists is taken from `to`. The balancer must serve all ports before rules lead to new ports. */
export function withAdditions(from: readonly ProxyPort[], to: readonly ProxyPort[]): readonly ProxyPort[] {
  return pairUp(from, to, proxyPortKey).map(itemOf).toSorted(compareProxyPorts);
}

/**
 * The include patterns cover the folders where distributions put nginx modules; a pattern that matches nothing is not an error. kube-proxy
 * tries endpoints for 250 ms, 500 ms, 1 s and 2 s in turn and never times out idle TCP (proxysocket.go of userspace); nginx has one limit
 * for all tries. Like kube-proxy, nginx gets an open-file limit of 64000.
 */
const head = `pid /run/kpc-balancer.pid;
error_log stderr;
worker_processes 1;
worker_rlimit_nofile 64000;
include /etc/nginx/modules-enabled/*.conf;
include /usr/share/nginx/modules/*.conf;
events {
  worker_connections 60000;
}
stream {
  proxy_connect_timeout 1s;
  proxy_next_upstream_tries 4;
  proxy_next_upstream_timeout 3750ms;
  proxy_socket_keepalive on;
`;

/** Formats a complete configuration for nginx's stream module, for use with `nginx -c FILE`. */
export function formatBalancer(ports: readonly ProxyPort[]): readonly string[] {
  return [head, ...ports.map((port) => formatComment(port) + formatPort(port)), '}\n'];
}

/** Writes the Service port's name only if no character in it can end a comment. */
function formatComment({ origin }: ProxyPort): string {
  return origin && /^[\w./:-]+$/.test(origin.servicePort) ? `  # ${origin.servicePort}\n` : '';
}

function formatPort({ protocol, address, port, endpoints, affinity, udpIdle }: ProxyPort): string {
  const isUdp = protocol === 'UDP';
  const listen = `listen ${formatSocketAddress({ address, port })} ${isUdp ? 'udp' : 'so_keepalive=on'};`;
  if (endpoints.length === 0) return block('server', [listen, 'return "";']);
  const name = `${protocol}-${port}`;
  const servers = endpoints.map((endpoint) => `server ${formatSocketAddress(endpoint)} max_fails=0;`);
  const timeout = `proxy_timeout ${isUdp ? `${udpIdle}ms` : '24d'};`;
  return (
    block(`upstream ${name}`, affinity ? ['hash $remote_addr;', ...servers] : servers) +
    block('server', [listen, `proxy_pass ${name};`, timeout])
  );
}

function block(name: string, lines: readonly string[]): string {
  return `  ${name} {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}

interface Upstream {
  affinity: boolean;
  readonly endpoints: SocketAddress[];
}

const fixedLines: ReadonlySet<string> = new Set(
  [...head.split('\n'), 'return "";', '}', 'server {'].map((line) => line.trim()),
);

/** Reads the output of formatBalancer. Accepts any text; lines that formatBalancer does not write go to `unread`. */
export function parseBalancer(text: string) {
  const upstreams = new Map<string, Upstream>();
  const ports: { -readonly [K in keyof ProxyPort]: ProxyPort[K] }[] = [];
  let upstream: Upstream | undefined;
  let name: string | undefined;
  const unread = readLines(text, [], (line) => {
    if (line.startsWith('#')) {
      name = line.slice(1).trim();
      return undefined;
    }
    if (fixedLines.has(line)) return undefined;
    const [, word = '', rest = '', more = ''] = /^(\w+) ([^\s;]+)(?: ([^\s;]+))?(?:;| \{)?$/.exec(line) ?? [];
    const socket = parseSocketAddress(rest);
    const port = ports.at(-1);
    if (word === 'upstream') upstreams.set(rest, (upstream = { affinity: false, endpoints: [] }));
    else if (word === 'hash' && upstream) upstream.affinity = true;
    else if (word === 'server' && upstream && socket) upstream.endpoints.push(socket);
    else if (word === 'listen' && socket) {
      const protocol = more === 'udp' ? 'UDP' : 'TCP';
      const origin = name === undefined ? undefined : { servicePort: name, place: undefined };
      ports.push({ protocol, ...socket, endpoints: [], affinity: false, udpIdle: 0, origin });
      name = undefined;
    } else if (word === 'proxy_pass' && port && upstreams.has(rest)) Object.assign(port, upstreams.get(rest));
    else if (word === 'proxy_timeout' && port) port.udpIdle = port.protocol === 'UDP' ? Number.parseInt(rest, 10) : 0;
    else return 'other-line';
    return undefined;
  });
  return { proxyPorts: ports, unread };
}
