import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Manifest } from '../../bundle/manifest.ts';
import type { Family } from '../../kernel/family.ts';
import { describeError } from '../../bundle/errors.ts';

/** What a load balancer is told about one Service on this node. */
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

interface OpenPort {
  readonly servers: readonly Server[];
  answer: HealthAnswer;
}

/**
 * Answers health checks as kube-proxy does (healthcheck/service_health.go): for each port, 200 while the Service has
 * endpoints on this node and the rules are in place, else 503. `isHealthy` says whether they are.
 */
export function createHealthServers(isHealthy: () => boolean): HealthServers {
  const open = new Map<string, OpenPort>();

  return {
    async update(manifest, listenOn) {
      const failures: string[] = [];
      const wanted = indexPorts(manifest);
      for (const [key, port] of open) {
        if (wanted.has(key)) continue;
        open.delete(key);
        await Promise.all(port.servers.map(closeServer));
      }
      for (const [key, port] of wanted) {
        const existing = open.get(key);
        if (existing) {
          existing.answer = port.answer;
          continue;
        }
        const servers: Server[] = [];
        const opened: OpenPort = { servers, answer: port.answer };
        try {
          for (const address of listenOn[port.family]) {
            servers.push(await listen(address, port.port, (response) => respond(response, opened.answer, isHealthy())));
          }
          open.set(key, opened);
        } catch (error) {
          // As kube-proxy does: without all of its sockets the port stays closed, and the next update tries again.
          await Promise.all(servers.map(closeServer));
          failures.push(`cannot open health check port ${port.port} of ${key}: ${describeError(error)}`);
        }
      }
      return failures;
    },
    async close() {
      await Promise.all([...open.values()].flatMap((port) => port.servers.map(closeServer)));
      open.clear();
    },
  };
}

/** A port to answer on, of one family: kube-proxy runs a server for each. */
interface WantedPort {
  readonly family: Family;
  readonly port: number;
  readonly answer: HealthAnswer;
}

function indexPorts(manifest: Manifest): ReadonlyMap<string, WantedPort> {
  const wanted = new Map<string, WantedPort>();
  for (const check of manifest.healthChecks) {
    const slash = check.service.indexOf('/');
    const [namespace, name] = [check.service.slice(0, slash), check.service.slice(slash + 1)];
    for (const family of manifest.families) {
      const localEndpoints = check.localEndpoints[family];
      if (localEndpoints === undefined) continue;
      const answer = { namespace, name, localEndpoints };
      wanted.set(`${check.service} (${family}, ${check.port})`, { family, port: check.port, answer });
    }
  }
  return wanted;
}

/** Opens a port of an address. */
export function listen(
  address: string,
  port: number,
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => answer(response, request));
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

function respond(response: ServerResponse, answer: HealthAnswer, healthy: boolean): void {
  response.writeHead(answer.localEndpoints > 0 && healthy ? 200 : 503, {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    'X-Load-Balancing-Endpoint-Weight': `${answer.localEndpoints}`,
  });
  response.end(formatHealthAnswer(answer, healthy));
}

/** The body, byte for byte as kube-proxy writes it. */
function formatHealthAnswer(answer: HealthAnswer, healthy: boolean): string {
  const { namespace, name, localEndpoints } = answer;
  return JSON.stringify(
    { service: { namespace, name }, localEndpoints, serviceProxyHealthy: healthy },
    undefined,
    '\t',
  );
}
