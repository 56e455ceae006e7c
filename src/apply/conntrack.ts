import { joinHostPort, parseAddress } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import type { Command, Host } from './host.ts';

type ServicePorts = StoredBundle['cluster']['servicePorts'];

/** One UDP flow that connection tracking remembers, as far as it matters here. */
interface UdpFlow {
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  /** Who answers: the endpoint, where the flow was translated. */
  readonly replySource: string;
  readonly replySourcePort: number;
}

/**
 * Forgets UDP flows to a Service that go where none of its endpoints is any more, as kube-proxy does after each sync
 * (CleanStaleEntries in conntrack/cleanup.go): a client that keeps sending would be sent there for ever. Services
 * without any serving endpoint are left alone. Gives how many flows went; undefined where there is no conntrack tool.
 */
export async function cleanStaleFlows(host: Host, servicePorts: ServicePorts): Promise<number | undefined> {
  let cleaned = 0;
  for (const family of families) {
    const serving = indexServingEndpoints(servicePorts, family);
    if (serving.byAddress.size === 0 && serving.byNodePort.size === 0) continue;
    const listing = await host.run(listFlows(family));
    if (listing.kind === 'missing') return undefined;
    for (const flow of parseFlows(listing.stdout)) {
      if (!isStale(flow, serving)) continue;
      await host.run(deleteFlow(family, flow));
      cleaned++;
    }
  }
  return cleaned;
}

/** "address:port" or node port → "address:port" of the endpoints that serve. */
interface ServingEndpoints {
  readonly byAddress: ReadonlyMap<string, ReadonlySet<string>>;
  readonly byNodePort: ReadonlyMap<number, ReadonlySet<string>>;
}

function indexServingEndpoints(servicePorts: ServicePorts, family: Family): ServingEndpoints {
  const byAddress = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const port of servicePorts) {
    if (port.protocol !== 'UDP' || port.family !== family) continue;
    const endpoints = new Set<string>();
    for (const endpoint of port.endpoints) if (endpoint.serving) endpoints.add(endpoint.label);
    if (endpoints.size === 0) continue;
    for (const address of [port.clusterIP, ...port.loadBalancerIPs, ...port.externalIPs]) {
      byAddress.set(joinHostPort(address.text, port.port), endpoints);
    }
    if (port.nodePort !== 0) byNodePort.set(port.nodePort, endpoints);
  }
  return { byAddress, byNodePort };
}

function isStale(flow: UdpFlow, serving: ServingEndpoints): boolean {
  const endpoint = joinHostPort(flow.replySource, flow.replySourcePort);
  return [
    serving.byAddress.get(joinHostPort(flow.destination, flow.destinationPort)),
    serving.byNodePort.get(flow.destinationPort),
  ].some((endpoints) => endpoints !== undefined && !endpoints.has(endpoint));
}

function listFlows(family: Family): Command {
  return { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'] };
}

function deleteFlow(family: Family, flow: UdpFlow): Command {
  const from = `--orig-src ${flow.source} --sport ${flow.sourcePort}`;
  const to = `--orig-dst ${flow.destination} --dport ${flow.destinationPort}`;
  return { tool: 'conntrack', args: `-D -f ${family} -p udp ${from} ${to}`.split(' ') };
}

/** Lines like "udp 17 25 src=A dst=B sport=1 dport=2 [UNREPLIED] src=C dst=D sport=3 dport=4 mark=0 use=1". */
function parseFlows(listing: string): readonly UdpFlow[] {
  const flows: UdpFlow[] = [];
  for (const line of listing.split('\n')) {
    const tuples = [...line.matchAll(/src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)/g)];
    const [original, reply] = tuples;
    if (!original || !reply) continue;
    const [, source = '', destination = '', sourcePort, destinationPort] = original;
    const [, replySource = '', , replySourcePort] = reply;
    flows.push({
      source: canonical(source),
      sourcePort: Number(sourcePort),
      destination: canonical(destination),
      destinationPort: Number(destinationPort),
      replySource: canonical(replySource),
      replySourcePort: Number(replySourcePort),
    });
  }
  return flows;
}

function canonical(address: string): string {
  return parseAddress(address)?.text ?? address;
}
