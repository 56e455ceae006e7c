import { joinHostPort, parseAddress } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { excerptOf, formatCommand, type Command, type Host } from './host.ts';
import { assertWhole } from './node-reading.ts';
import { faultOfFlows } from './cut-off-output.ts';

type ServicePorts = StoredBundle['cluster']['servicePorts'];

/** One UDP flow that connection tracking remembers, as far as it matters here: whose it is does not. */
interface UdpFlow {
  readonly destination: string;
  readonly destinationPort: number;
  /** Who answers: the endpoint, where the flow was translated. */
  readonly replySource: string;
  readonly replySourcePort: number;
}

/**
 * Forgets UDP flows to a Service that go where none of its endpoints is any more, as kube-proxy does after each sync
 * (CleanStaleEntries in conntrack/cleanup.go): a client that keeps sending would be sent there for ever. Without any
 * serving endpoint it forgets the flows to a Service's addresses, but not those to its node port: other programs may have flows
 * to that number; before the behaviour forgotten-flows it forgets neither. Gives how many flows were seen to be so; undefined where there is no
 * conntrack tool. Throws where that cannot look.
 */
export async function cleanStaleFlows(
  host: Host,
  servicePorts: ServicePorts,
  behaviours: Behaviours,
): Promise<number | undefined> {
  let stale = 0;
  for (const family of families) {
    const serving = indexServingEndpoints(servicePorts, family, behaviours);
    if (serving.byAddress.size === 0 && serving.byNodePort.size === 0) continue;
    const listing = await listFlows(host, family);
    if (listing === undefined) return undefined;
    const flows = parseFlows(listing).filter((flow) => isStale(flow, serving));
    stale += flows.length;
    // Flows of the same two ends go at once: clients may be many, and the tool looks through the whole table each time.
    for (const command of new Set(flows.map((flow) => deleteFlowsLike(family, flow)))) {
      // That it finds none any more is no failure: they have ended.
      await host.run({ tool: 'conntrack', args: command.split(' ') });
    }
  }
  return stale;
}

/** "address:port" or node port → "address:port" of the endpoints that serve. */
interface ServingEndpoints {
  readonly byAddress: ReadonlyMap<string, ReadonlySet<string>>;
  readonly byNodePort: ReadonlyMap<number, ReadonlySet<string>>;
}

function indexServingEndpoints(servicePorts: ServicePorts, family: Family, behaviours: Behaviours): ServingEndpoints {
  const byAddress = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const port of servicePorts) {
    if (port.protocol !== 'UDP' || port.family !== family) continue;
    const endpoints = new Set<string>();
    for (const endpoint of port.endpoints) if (endpoint.status.serving) endpoints.add(endpoint.label);
    if (endpoints.size === 0 && !behaviours.has('forgotten-flows')) continue;
    for (const address of [port.clusterIP, ...port.loadBalancerIPs, ...port.externalIPs]) {
      byAddress.set(joinHostPort(address.text, port.port), endpoints);
    }
    if (port.nodePort !== 0 && endpoints.size > 0) byNodePort.set(port.nodePort, endpoints);
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

async function listFlows(host: Host, family: Family): Promise<string | undefined> {
  const command: Command = { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'] };
  const result = await host.run(command);
  if (result.kind === 'missing') return undefined;
  if (result.status === 0) return assertWhole(command, result.stdout, () => faultOfFlows(result));
  throw new Error([`"${formatCommand(command)}" failed`, excerptOf(result.stderr)].filter(Boolean).join(': '));
}

/** kube-proxy takes the same four things to tell them by (filterForIPPortNAT in conntrack/cleanup.go). */
function deleteFlowsLike(family: Family, flow: UdpFlow): string {
  const to = `--orig-dst ${flow.destination} --orig-port-dst ${flow.destinationPort}`;
  const from = `--reply-src ${flow.replySource} --reply-port-src ${flow.replySourcePort}`;
  return `-D -f ${family} -p udp ${to} ${from}`;
}

/** Lines like "udp 17 25 src=A dst=B sport=1 dport=2 [UNREPLIED] src=C dst=D sport=3 dport=4 mark=0 use=1". */
function parseFlows(listing: string): readonly UdpFlow[] {
  const flows: UdpFlow[] = [];
  for (const line of listing.split('\n')) {
    const tuples = [...line.matchAll(/src=([^\s=]+) dst=([^\s=]+) sport=(\d+) dport=(\d+)/g)];
    const [original, reply] = tuples;
    if (!original || !reply) continue;
    const [, , destination = '', , destinationPort] = original;
    const [, replySource = '', , replySourcePort] = reply;
    flows.push({
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
