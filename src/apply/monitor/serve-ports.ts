import type { Server } from 'node:net';
import { nodeOfBundle, type Manifest } from '../../bundle/manifest.ts';
import { addressesIn, nodePortNetworks } from '../../cluster/node-context.ts';
import type { Family } from '../../kernel/family.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import type { Host } from '../node/host.ts';
import { readAddresses } from '../node/node-reading.ts';
import { describeError } from '../../base/system-errors.ts';
import { HttpConnections, type Answer, type AnswerPath } from './http-connections.ts';

/** A port to open on each of these addresses. */
export interface ServedPort {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly answer: AnswerPath;
}

/** Ports by human-readable name. */
export type ServedPorts = ReadonlyMap<string, ServedPort>;

/** Keeps ports open for as long as a watch runs. */
export function createPorts() {
  const connections = new HttpConnections();
  const open = new Map<string, readonly Server[]>();
  let wanted: ServedPorts = new Map();

  /** As in kube-proxy, a port opens on all of its addresses or none, and the next update tries again. */
  async function openPort(name: string, { addresses, port }: ServedPort): Promise<void> {
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

  /** Opens new ports, closes removed ones and updates the answers of the rest. Returns messages about failed ports. */
  async function update(ports: ServedPorts): Promise<readonly string[]> {
    const failures: string[] = [];
    wanted = ports;
    for (const [name, servers] of open) {
      if (wanted.has(name)) continue;
      open.delete(name);
      await Promise.all(servers.map((server) => connections.close(server)));
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

/** The addresses to listen on, by family, from --nodeport-addresses; "0.0.0.0" and "::" mean all. */
export type ListenAddresses = { readonly [F in Family]: readonly string[] };

/** All addresses of a family, or those of the node that --nodeport-addresses names, as for node ports themselves. */
export async function chooseListenAddresses(host: Host, manifest: Manifest): Promise<ListenAddresses> {
  const node = nodeOfBundle(manifest);
  const choose = async (family: Family, everywhere: string): Promise<readonly string[]> => {
    const networks = nodePortNetworks(manifest.settings, node, family);
    if (networks.matchesAll) return [everywhere];
    const { links } = parseIpAddrJson(await readAddresses(host));
    const hostAddresses = links.flatMap((link) => link.addresses).map(({ address }) => address);
    return addressesIn(networks, { hostAddresses }).map((address) => address.text);
  };
  return { ipv4: await choose('ipv4', '0.0.0.0'), ipv6: await choose('ipv6', '::') };
}

/**
 * The health check ports of a bundle, one family each. They answer like kube-proxy's (healthcheck/service_health.go):
 * 200 while the Service has endpoints on this node and the rules are in place (`isHealthy`), else 503.
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

/** The body matches kube-proxy's byte for byte. */
function answerHealthCheck(service: string, localEndpoints: number, serviceProxyHealthy: boolean): Answer {
  const [namespace = '', name = ''] = service.split('/', 2);
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy };
  return {
    status: localEndpoints > 0 && serviceProxyHealthy ? 200 : 503,
    headers: { 'Content-Type': 'application/json', 'X-Load-Balancing-Endpoint-Weight': `${localEndpoints}` },
    body: JSON.stringify(body, undefined, '\t'),
  };
}
