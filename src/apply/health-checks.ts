import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Manifest } from '../bundle/manifest.ts';
import { parseAddress, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { addressesIn, nodePortNetworks } from '../cluster/node-port-addresses.ts';
import { describeError } from './failure.ts';

/** What a load balancer is told about one Service on this node. */
interface HealthAnswer {
  readonly namespace: string;
  readonly name: string;
  readonly localEndpoints: number;
}

/** The health check ports of a bundle, open for as long as a watch runs. */
export interface HealthServers {
  /** Opens what is new, closes what has gone, and answers for the rest from this bundle on. Gives what would not open. */
  update(manifest: Manifest, hostAddresses: readonly string[]): Promise<readonly string[]>;
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
    async update(manifest, hostAddresses) {
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
          for (const address of listenAddresses(manifest, hostAddresses, port.family)) {
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

/** All addresses of a family, or those of the node that --nodeport-addresses names, as for node ports themselves. */
export function listenAddresses(
  manifest: Manifest,
  hostAddresses: readonly string[],
  family: Family,
): readonly string[] {
  const node = {
    hostAddresses: hostAddresses.flatMap((text) => parseAddress(text) ?? []),
    nodeIPs: { ipv4: readNodeIP(manifest, 'ipv4'), ipv6: readNodeIP(manifest, 'ipv6') },
  };
  const networks = nodePortNetworks(manifest.settings, node, family);
  if (networks.matchesAll) return [family === 'ipv4' ? '0.0.0.0' : '::'];
  return addressesIn(networks, node).map((address) => address.text);
}

function readNodeIP(manifest: Manifest, family: Family): Address {
  const loopback = family === 'ipv4' ? '127.0.0.1' : '::1';
  const address = parseAddress(manifest.node.nodeIPs[family]) ?? parseAddress(loopback);
  if (!address) throw new Error(`${loopback} is no address`);
  return address;
}

function listen(address: string, port: number, answer: (response: ServerResponse) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((_request, response) => answer(response));
    server.once('error', reject);
    // One family a socket, so that both can have the port.
    server.listen({ host: address, port, ipv6Only: address.includes(':') }, () => resolve(server));
  });
}

function closeServer(server: Server): Promise<void> {
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
export function formatHealthAnswer(answer: HealthAnswer, healthy: boolean): string {
  const { namespace, name, localEndpoints } = answer;
  return JSON.stringify(
    { service: { namespace, name }, localEndpoints, serviceProxyHealthy: healthy },
    undefined,
    '\t',
  );
}
