import { readFlow } from '../../kernel/conntrack.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { deleteArguments, staleFlowFinder } from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, isFlow, readWith } from './tools.ts';

/** How many pairs of ends flows are forgotten of at once: whoever sends through the node chooses how many there are. */
const mostPairs = 10_000;

/**
 * Forgets UDP flows to a Service that go to a former endpoint, as kube-proxy does after each sync. Without any
 * serving endpoint it forgets the flows to a Service's addresses, but not those to its node port: other programs may have flows
 * to that number; before the behaviour forgotten-flows it forgets neither. Does nothing if there is no conntrack tool. Throws
 * a Failure where that cannot look, or where more than mostPairs are to be forgotten: the first of them are then.
 */
export async function forgetStaleFlows(
  host: Host,
  servicePorts: readonly ServicePort[],
  behaviours: Behaviours,
): Promise<void> {
  const withoutEndpoints = behaviours.has('forgotten-flows');
  for (const family of families) {
    const ports = servicePorts.filter((port) => port.family === family && port.protocol === 'UDP');
    if (ports.length === 0) continue;
    const pairs = await listStalePairs(host, family, ports, withoutEndpoints);
    for (const args of pairs.slice(0, mostPairs)) {
      // Finding none is no failure: they have ended. It prints each that it has deleted.
      await host.run({ tool: 'conntrack', args, keeps: () => false });
    }
    if (pairs.length <= mostPairs) continue;
    const advice = 'apply again after the next change, or delete them by hand: conntrack -D';
    throw new Failure('node-too-large', `there are flows of more than ${mostPairs} pairs of ends`, advice, 'conntrack');
  }
}

/**
 * The words by which conntrack deletes them: flows of the same two ends go at once, since clients may be many, and the tool looks
 * through the whole table each time. Holds one flow at a time.
 */
async function listStalePairs(
  host: Host,
  family: Family,
  ports: readonly ServicePort[],
  withoutEndpoints: boolean,
): Promise<readonly (readonly string[])[]> {
  const findStale = staleFlowFinder(ports, { withoutEndpoints, isToNode: () => true });
  const numbers = new Set(ports.flatMap(({ port, nodePort }) => [`${port}`, `${nodePort}`]));
  const pairs = new Map<string, readonly string[]>();
  let listed = 0;
  const keeps = (line: string): boolean => {
    if (isFlow(line)) listed++;
    const flow = numbers.has(/ dport=(\d+) /.exec(line)?.[1] ?? '') && pairs.size <= mostPairs && readFlow(line);
    if (typeof flow !== 'object' || !findStale(flow)) return false;
    const args = deleteArguments(flow);
    pairs.set(args.join(' '), args);
    return false;
  };
  const command = { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'], keeps };
  try {
    await readWith(host, command, (rest, stderr) =>
      rest === '' ? faultOfFlows(listed, stderr) : 'its last line has no end',
    );
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'tool-missing') throw error;
  }
  return [...pairs.values()];
}
