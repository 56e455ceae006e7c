import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Manifest } from '../../bundle/manifest.ts';
import type { Family } from '../../kernel/family.ts';
import { describeError } from '../../base/system-errors.ts';

/** What a load balancer learns about one Service on this node. */
interface HealthAnswer {
  readonly namespace: string;
  readonly name: string;
  readonly localEndpoints: number;
}

/** Where to answer, of each family: those of --nodeport-addresses; "0.0.0.0" and "::" are all addresses. */
export type ListenAddresses = { readonly [F in Family]: readonly string[] };

/** The health check ports of a bundle, open for as long as a watch runs. */
export interface HealthServers {
  /** Opens what is new, closes what has gone, and answers for the rest from this bundle on. Gives what would not open. */
  update(manifest: Manifest, listenOn: ListenAddresses): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** A port that is answered on, of one family: kube-proxy runs a server for each. */
interface HealthPort {
  readonly family: Family;
  readonly port: number;
  readonly answer: HealthAnswer;
}

/**
 * Answers health checks as kube-proxy does (healthcheck/service_health.go): for each port, 200 while the Service has
 * endpoints on this node and the rules are in place, else 503. `isHealthy` says whether they are.
 */
export function createHealthServers(isHealthy: () => boolean): HealthServers {
  const open = new Map<string, readonly Server[]>();
  let wanted: ReadonlyMap<string, HealthPort> = new Map();

  const closeAll = (servers: readonly Server[]) => Promise.all(servers.map(closeServer));

  /** As kube-proxy does: without all of its sockets the port stays closed, and the next update tries again. */
  async function openPort(key: string, { family, port }: HealthPort, listenOn: ListenAddresses): Promise<void> {
    const servers: Server[] = [];
    try {
      for (const address of listenOn[family]) {
        servers.push(
          await listen(address, port, (response) => respond(response, wanted.get(key)?.answer, isHealthy())),
        );
      }
      open.set(key, servers);
    } catch (error) {
      await closeAll(servers);
      throw error;
    }
  }

  return {
    async update(manifest, listenOn) {
      const failures: string[] = [];
      wanted = indexPorts(manifest);
      for (const [key, servers] of open) {
        if (wanted.has(key)) continue;
        open.delete(key);
        await closeAll(servers);
      }
      for (const [key, port] of wanted) {
        if (open.has(key)) continue;
        await openPort(key, port, listenOn).catch((error: unknown) =>
          failures.push(`cannot open health check port ${port.port} of ${key}: ${describeError(error)}`),
        );
      }
      return failures;
    },
    async close() {
      await closeAll([...open.values()].flat());
      open.clear();
    },
  };
}

function indexPorts(manifest: Manifest): ReadonlyMap<string, HealthPort> {
  const wanted = new Map<string, HealthPort>();
  for (const { service, port, localEndpoints: counts } of manifest.healthChecks) {
    const [namespace = '', name = ''] = service.split('/', 2);
    for (const family of manifest.families) {
      const localEndpoints = counts[family];
      if (localEndpoints === undefined) continue;
      wanted.set(`${service} (${family}, ${port})`, { family, port, answer: { namespace, name, localEndpoints } });
    }
  }
  return wanted;
}

/** More connections than this at once to a port are cut: no load balancer, probe or Prometheus has as many. */
const mostConnections = 100;

/** Each sends its request at once. Idle connections from anywhere would take all files that the tools need. */
const timeLimits = { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 5_000 };

/** Opens a port of an address. */
export function listen(
  address: string,
  port: number,
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(timeLimits, (request, response) => answer(response, request));
    server.maxConnections = mostConnections;
    // It stays: a connection that cannot be taken once the port is open (EMFILE) is said to it too, and ends nothing.
    server.on('error', reject);
    // One family a socket, so that both can have the port.
    server.listen({ host: address, port, ipv6Only: address.includes(':') }, () => resolve(server));
  });
}

/** Cuts what is connected, too. */
export function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** The body is byte for byte as kube-proxy writes it. Without an answer, the port is about to be closed. */
function respond(response: ServerResponse, answer: HealthAnswer | undefined, serviceProxyHealthy: boolean): void {
  const { namespace = '', name = '', localEndpoints = 0 } = answer ?? {};
  response.writeHead(localEndpoints > 0 && serviceProxyHealthy ? 200 : 503, {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    'X-Load-Balancing-Endpoint-Weight': `${localEndpoints}`,
  });
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy };
  response.end(JSON.stringify(body, undefined, '\t'));
}
