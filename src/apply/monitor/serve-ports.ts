import { remarkOf, type PortUse, type Remark } from '../../base/findings/node-checks.ts';
import { causeOf } from '../state/failure.ts';
import { createServer, type Server, type Socket } from 'node:net';
import { nodeOfBundle, type Manifest } from '../../bundle/manifest.ts';
import { addressesIn, nodePortNetworks } from '../../cluster/node-context.ts';
import type { Family } from '../../kernel/address.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import type { Host } from '../node/host.ts';
import { readAddressList } from '../node/node-reading.ts';

export interface HttpAnswer {
  readonly status: 200 | 404 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type AnswerPath = (path: string) => HttpAnswer | undefined;

/** Limits that keep descriptors and memory from running out. */
const limits = {
  connections: 256,
  /** Bytes in the head of a request. */
  request: 8192,
  /** Milliseconds a connection may last. */
  time: 10_000,
  /** Milliseconds to wait for connections when a port closes. */
  closing: 1000,
};

/**
 * The open connections of several servers. Each connection gets one answer. When there are too many connections, the client with the most
 * loses one, the oldest unanswered one first, so no client can shut out others. Test: apply/health-checks.test.ts.
 */
class HttpConnections {
  readonly #open = new Map<
    Socket,
    {
      readonly server: Server;
      readonly client: string;
      isSilent: boolean;
    }
  >();

  async listen(address: string, port: number, answer: AnswerPath): Promise<Server> {
    // Half open, because a client may close its sending side after the request and must still get the answer.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#admit(socket, server);
      this.#serve(socket, answer);
    });
    await new Promise<void>((resolve, reject) => {
      // Keep this handler: failed accepts (EMFILE) also arrive here, and must not crash watch. Test: apply/health-checks.test.ts.
      server.on('error', reject);
      // Use one socket per family, so that both families can use the port.
      server.listen({ host: address, port, ipv6Only: address.includes(':') }, resolve);
    });
    return server;
  }

  async close(server: Server): Promise<void> {
    for (const [socket, connection] of this.#open) if (connection.server === server) socket.destroy();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      // Do not wait forever, because an error may have left a connection unlisted.
      setTimeout(resolve, limits.closing).unref();
    });
  }

  #admit(socket: Socket, server: Server): void {
    this.#open.set(socket, { server, client: socket.remoteAddress ?? '', isSilent: true });
    this.#makeRoom();
    const timer = setTimeout(() => socket.destroy(), limits.time);
    // Without this handler, a broken connection would end the process.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      this.#open.delete(socket);
    });
  }

  #makeRoom(): void {
    const open = [...this.#open].filter(([socket]) => !socket.destroyed);
    if (open.length <= limits.connections) return;
    const counts = new Map<string, number>();
    for (const [, { client }] of open) counts.set(client, (counts.get(client) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const crowded = open.filter(([, { client }]) => counts.get(client) === most);
    const [socket] = crowded.find(([, { isSilent }]) => isSilent) ?? crowded[0] ?? [];
    socket?.destroy();
  }

  #serve(socket: Socket, answer: AnswerPath): void {
    let head = '';
    const reply = (response: string): void => {
      socket.removeAllListeners('data').pause();
      const connection = this.#open.get(socket);
      if (connection) connection.isSilent = false;
      // Destroying the socket loses nothing, because the kernel still sends the bytes it has accepted.
      socket.end(response, () => socket.destroy());
    };
    socket.on('end', () => {
      if (this.#open.get(socket)?.isSilent) socket.destroy();
    });
    socket.on('data', (chunk) => {
      // A client may send byte by byte, so search only the new part.
      const from = Math.max(0, head.length - 3);
      head += chunk.toString('latin1');
      const end = head.slice(from).search(/\r?\n\r?\n/);
      if (end >= 0 && from + end <= limits.request) reply(respond(head, answer));
      else if (head.length > limits.request) reply(format(431, {}, ''));
    });
  }
}

const notFound: HttpAnswer = { status: 404, headers: { 'Content-Type': 'text/plain' }, body: 'not found\n' };

/** Matches a line such as "GET /healthz?verbose HTTP/1.1", or with a whole URL, as a proxy sends it. */
const requestLine = /^([A-Z]+) (?:https?:\/\/[^/?# ]*)?(\/[^?# ]*)?(?:[?#]\S*)? HTTP\/1\.[01]\r?\n/;

function respond(head: string, answer: AnswerPath): string {
  const [line, method, path = '/'] = requestLine.exec(head) ?? [];
  if (line === undefined) return format(400, {}, '');
  const { status, headers, body } = answer(path) ?? notFound;
  return format(status, headers, body, method !== 'HEAD');
}

const reasons = {
  200: 'OK',
  400: 'Bad Request',
  404: 'Not Found',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
};

function format(
  status: keyof typeof reasons,
  headers: Readonly<Record<string, string>>,
  body: string,
  hasBody = true,
): string {
  const lines = Object.entries({
    'X-Content-Type-Options': 'nosniff',
    ...headers,
    Date: new Date().toUTCString(),
    'Content-Length': `${Buffer.byteLength(body)}`,
    Connection: 'close',
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${status} ${reasons[status]}\r\n${head}\r\n${hasBody ? body : ''}`;
}

export interface ServedPort {
  readonly use: PortUse;
  readonly addresses: readonly string[];
  readonly answer: AnswerPath;
}

export function createPorts() {
  const connections = new HttpConnections();
  const open = new Map<string, readonly Server[]>();
  let wanted: ReadonlyMap<string, ServedPort> = new Map();

  /** Opens a port on all of its addresses or none, as kube-proxy does. The next update retries a failed port. */
  async function openPort(name: string, { addresses, use: { port } }: ServedPort): Promise<void> {
    const servers: Server[] = [];
    try {
      for (const address of addresses) {
        servers.push(await connections.listen(address, port, (path) => wanted.get(name)?.answer(path)));
      }
      open.set(name, servers);
    } catch (error) {
      await Promise.all(servers.map((server) => connections.close(server)));
      throw error;
    }
  }

  /** Opens new ports, closes removed ones and updates the answers of the rest. Returns a remark for each port that could not be opened. */
  async function update(ports: readonly ServedPort[]): Promise<readonly Remark[]> {
    const failures: Remark[] = [];
    wanted = new Map(ports.map((port) => [JSON.stringify(port.use), port]));
    for (const [name, servers] of open) {
      if (wanted.has(name)) continue;
      open.delete(name);
      await Promise.all(servers.map((server) => connections.close(server)));
    }
    for (const [name, port] of wanted) {
      if (open.has(name)) continue;
      await openPort(name, port).catch((error: unknown) =>
        failures.push(remarkOf('port-not-opened', { ...port.use, cause: causeOf(error) })),
      );
    }
    return failures;
  }

  return { update, close: () => update([]) };
}

/** The addresses to listen on, by family. "0.0.0.0" and "::" mean all. */
export type ListenAddresses = { readonly [F in Family]: readonly string[] };

export async function chooseListenAddresses(host: Host, manifest: Manifest): Promise<ListenAddresses> {
  const node = nodeOfBundle(manifest);
  const choose = async (family: Family, everywhere: string): Promise<readonly string[]> => {
    const networks = nodePortNetworks(manifest.settings, node, family);
    if (networks.matchesAll) return [everywhere];
    const { links } = parseIpAddrJson(await readAddressList(host));
    const hostAddresses = links.flatMap((link) => link.addresses).map(({ address }) => address);
    return addressesIn(networks, { hostAddresses }).map((address) => address.text);
  };
  return { ipv4: await choose('ipv4', '0.0.0.0'), ipv6: await choose('ipv6', '::') };
}

/** Answers like kube-proxy (healthcheck/service_health.go): 200 if this node has an endpoint and `isHealthy`, otherwise 503. */
export function healthCheckPorts(
  manifest: Manifest,
  listenOn: ListenAddresses,
  isHealthy: () => boolean,
): readonly ServedPort[] {
  return manifest.healthChecks.flatMap(({ service, port, localEndpoints: counts }) =>
    manifest.families.flatMap((family): readonly ServedPort[] => {
      const count = counts[family];
      if (count === undefined) return [];
      const answer = () => answerHealthCheck(service, count, isHealthy());
      return [{ use: { use: 'health check', of: service, port, family }, addresses: listenOn[family], answer }];
    }),
  );
}

/** Formats the same body as kube-proxy, byte for byte. */
function answerHealthCheck(service: string, localEndpoints: number, serviceProxyHealthy: boolean): HttpAnswer {
  const [namespace = '', name = ''] = service.split('/', 2);
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy };
  return {
    status: localEndpoints > 0 && serviceProxyHealthy ? 200 : 503,
    headers: { 'Content-Type': 'application/json', 'X-Load-Balancing-Endpoint-Weight': `${localEndpoints}` },
    body: JSON.stringify(body, undefined, '\t'),
  };
}
