import { joinHostPort, parseAddress } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, readWith } from './tools.ts';

type ServicePorts = StoredBundle['cluster']['servicePorts'];

/** "address:port" or node port → "address:port" of the endpoints that serve. */
type ServingEndpoints = ReadonlyMap<string | number, ReadonlySet<string>>;

/**
 * Forgets UDP flows to a Service that go to a former endpoint, as kube-proxy does after each sync
 * (CleanStaleEntries in conntrack/cleanup.go): a client that keeps sending would be sent there for ever. Without any
 * serving endpoint it forgets the flows to a Service's addresses, but not those to its node port: other programs may have flows
 * to that number; before the behaviour forgotten-flows it forgets neither. Does nothing if there is no conntrack tool. Throws
 * a Failure where that cannot look.
 */
export async function forgetStaleFlows(host: Host, servicePorts: ServicePorts, behaviours: Behaviours): Promise<void> {
  for (const family of families) {
    const serving = indexServingEndpoints(servicePorts, family, behaviours);
    if (serving.size === 0) continue;
    // Flows of the same two ends go at once: clients may be many, and the tool looks through the whole table each time.
    for (const args of listStale(await listFlows(host, family), serving)) {
      // Finding none is no failure: they have ended.
      await host.run({ tool: 'conntrack', args: ['-D', '-f', family, '-p', 'udp', ...args.split(' ')] });
    }
  }
}

function indexServingEndpoints(servicePorts: ServicePorts, family: Family, behaviours: Behaviours): ServingEndpoints {
  const serving = new Map<string | number, ReadonlySet<string>>();
  for (const port of servicePorts) {
    if (port.protocol !== 'UDP' || port.family !== family) continue;
    const endpoints = new Set<string>();
    for (const endpoint of port.endpoints) if (endpoint.status.serving) endpoints.add(endpoint.label);
    if (endpoints.size === 0 && !behaviours.has('forgotten-flows')) continue;
    for (const address of [port.clusterIP, ...port.loadBalancerIPs, ...port.externalIPs]) {
      serving.set(joinHostPort(address.text, port.port), endpoints);
    }
    if (port.nodePort !== 0 && endpoints.size > 0) serving.set(port.nodePort, endpoints);
  }
  return serving;
}

async function listFlows(host: Host, family: Family): Promise<string> {
  try {
    return await readWith(host, { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'] }, faultOfFlows);
  } catch (error) {
    if (error instanceof Failure && error.code === 'tool-missing') return '';
    throw error;
  }
}

/**
 * What identifies stale flows to the tool: the same four things that kube-proxy takes (filterForIPPortNAT in conntrack/cleanup.go).
 * Who answers is the endpoint, where the flow was translated. Lines are like
 *
 *     udp 17 25 src=A dst=B sport=1 dport=2 [UNREPLIED] src=C dst=D sport=3 dport=4 mark=0 use=1
 */
function listStale(listing: string, serving: ServingEndpoints): ReadonlySet<string> {
  const stale = new Set<string>();
  for (const line of listing.split('\n')) {
    const [original, reply] = [...line.matchAll(/src=([^\s=]+) dst=([^\s=]+) sport=(\d+) dport=(\d+)/g)];
    if (!original || !reply) continue;
    const [to, toPort] = [canonical(original[2]), Number(original[4])];
    const [from, fromPort] = [canonical(reply[1]), Number(reply[3])];
    const endpoint = joinHostPort(from, fromPort);
    const isStale = [serving.get(joinHostPort(to, toPort)), serving.get(toPort)].some(
      (endpoints) => endpoints !== undefined && !endpoints.has(endpoint),
    );
    if (isStale) {
      stale.add(`--orig-dst ${to} --orig-port-dst ${toPort} --reply-src ${from} --reply-port-src ${fromPort}`);
    }
  }
  return stale;
}

function canonical(address = ''): string {
  return parseAddress(address)?.text ?? address;
}
