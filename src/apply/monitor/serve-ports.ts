import { createServer, type Server } from 'node:http';
import type { Manifest } from '../../bundle/manifest.ts';
import type { Family } from '../../kernel/family.ts';
import { describeError } from '../../base/system-errors.ts';

/** What a program gets that asks. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A port that is to be open on each of these addresses. */
export interface ServedPort {
  readonly addresses: readonly string[];
  readonly port: number;
  /** The answer to a path, such as "/metrics"; undefined if there is no such page. */
  readonly answer: (path: string) => Answer | undefined;
}

/** Ports by their names for people. */
export type ServedPorts = ReadonlyMap<string, ServedPort>;

/** Keeps ports open for as long as a watch runs. */
export function createPorts() {
  const open = new Map<string, readonly Server[]>();
  let wanted: ServedPorts = new Map();

  /** As kube-proxy does: without all of its sockets the port stays closed, and the next update tries again. */
  async function openPort(name: string, { addresses, port }: ServedPort): Promise<void> {
    const servers: Server[] = [];
    try {
      for (const address of addresses) {
        servers.push(await listen(address, port, (path) => wanted.get(name)?.answer(path)));
      }
      open.set(name, servers);
    } catch (error) {
      await Promise.all(servers.map(closeServer));
      throw error;
    }
  }

  /** Opens what is new, closes what has gone, and answers for the rest as it is said here. Gives what would not open. */
  async function update(ports: ServedPorts): Promise<readonly string[]> {
    const failures: string[] = [];
    wanted = ports;
    for (const [name, servers] of open) {
      if (wanted.has(name)) continue;
      open.delete(name);
      await Promise.all(servers.map(closeServer));
    }
    for (const [name, port] of wanted) {
      if (open.has(name)) continue;
      await openPort(name, port).catch((error: unknown) =>
        failures.push(`cannot open ${name}: ${describeError(error)}`),
      );
    }
    return failures;
  }

  return { update, close: () => update(new Map()) };
}

/** More connections than this at once to a port are cut: no load balancer, probe or Prometheus has as many. */
const mostConnections = 100;

/** Each sends its request at once. Idle connections from anywhere would take all files that the tools need. */
const timeLimits = { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 5_000 };

const notFound: Answer = { status: 404, headers: { 'Content-Type': 'text/plain' }, body: 'not found\n' };

/** Opens a port of an address. */
function listen(address: string, port: number, answer: ServedPort['answer']): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(timeLimits, (request, response) => {
      const { status, headers, body } = answer(request.url?.replace(/\?.*/s, '') ?? '') ?? notFound;
      response.writeHead(status, { 'X-Content-Type-Options': 'nosniff', ...headers });
      response.end(body);
    });
    server.maxConnections = mostConnections;
    // It stays: a connection that cannot be taken once the port is open (EMFILE) is said to it too, and ends nothing.
    server.on('error', reject);
    // One family a socket, so that both can have the port.
    server.listen({ host: address, port, ipv6Only: address.includes(':') }, () => resolve(server));
  });
}

/** Cuts what is connected, too. */
function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** Where to answer, of each family: those of --nodeport-addresses; "0.0.0.0" and "::" are all addresses. */
export type ListenAddresses = { readonly [F in Family]: readonly string[] };

/**
 * The health check ports of a bundle, which answer as kube-proxy's do (healthcheck/service_health.go): each of a family, 200 while
 * the Service has endpoints on this node and the rules are in place, else 503. `isHealthy` says whether they are.
 */
export function healthCheckPorts(manifest: Manifest, listenOn: ListenAddresses, isHealthy: () => boolean): ServedPorts {
  const ports = new Map<string, ServedPort>();
  for (const { service, port, localEndpoints: counts } of manifest.healthChecks) {
    for (const family of manifest.families) {
      const count = counts[family];
      if (count === undefined) continue;
      const answer = () => answerHealthCheck(service, count, isHealthy());
      ports.set(`health check port ${port} of ${service} (${family})`, { addresses: listenOn[family], port, answer });
    }
  }
  return ports;
}

/** The body is byte for byte as kube-proxy writes it. */
function answerHealthCheck(service: string, localEndpoints: number, serviceProxyHealthy: boolean): Answer {
  const [namespace = '', name = ''] = service.split('/', 2);
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy };
  return {
    status: localEndpoints > 0 && serviceProxyHealthy ? 200 : 503,
    headers: { 'Content-Type': 'application/json', 'X-Load-Balancing-Endpoint-Weight': `${localEndpoints}` },
    body: JSON.stringify(body, undefined, '\t'),
  };
}
