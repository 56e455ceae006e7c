import { readTrackedFlow } from '../../kernel/conntrack.ts';
import { families, type Family } from '../../kernel/family.ts';
import {
  deleteArguments,
  forgottenFlows,
  staleFlowFinder,
  type PresentPorts,
  type StaleFlowRules,
} from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, isFlow, readWith } from './tools.ts';

/** How many pairs of ends to delete at once: anyone who sends through the node can add flows. */
const mostPairs = 10_000;

/**
 * Deletes the UDP flows that a kube-proxy of these behaviours deletes: see forgottenFlows. Does nothing without conntrack. Throws a Failure
 * if it cannot list flows, or if there are more than mostPairs; then it has deleted the first.
 */
export async function forgetStaleFlows(
  host: Host,
  { ports, gone = [] }: PresentPorts,
  behaviours: Behaviours,
): Promise<void> {
  const rules = { ...forgottenFlows(behaviours), isToNode: () => true };
  for (const family of families) {
    const isLooked = (port: PresentPorts['ports'][number]) => port.family === family && port.protocol === 'UDP';
    const served = { ports: ports.filter(isLooked), gone: gone.filter(isLooked) };
    if (served.ports.length + served.gone.length === 0) continue;
    const pairs = await listStalePairs(host, family, served, rules);
    for (const args of pairs.slice(0, mostPairs)) {
      // Finding none is no failure: the flows have ended. It prints each one deleted.
      await host.run({ tool: 'conntrack', args, keeps: () => false });
    }
    if (pairs.length <= mostPairs) continue;
    throw new Failure('node-too-large', { problem: 'flows', most: mostPairs, tool: 'conntrack' });
  }
}

/** conntrack's arguments: one call for flows of the same two ends, because each scans the whole table. */
async function listStalePairs(
  host: Host,
  family: Family,
  served: Required<PresentPorts>,
  rules: StaleFlowRules,
): Promise<readonly (readonly string[])[]> {
  const findStale = staleFlowFinder(served, rules);
  // Most flows are to other ports. If all flows to a former cluster IP go, the port does not matter.
  const isAnyPort = rules.ofGone === 'to-cluster-ip' && served.gone.length > 0;
  const numbers = new Set(
    [...served.ports, ...served.gone].flatMap(({ port, nodePort }) => [`${port}`, `${nodePort}`]),
  );
  const pairs = new Map<string, readonly string[]>();
  let listed = 0;
  const keeps = (line: string): boolean => {
    if (isFlow(line)) listed++;
    const isMeant = isAnyPort || numbers.has(/ dport=(\d+) /.exec(line)?.[1] ?? '');
    const flow = isMeant && pairs.size <= mostPairs && readTrackedFlow(line);
    if (typeof flow !== 'object' || !findStale(flow)) return false;
    const args = deleteArguments(flow);
    pairs.set(args.join(' '), args);
    return false;
  };
  const command = { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'], keeps };
  try {
    await readWith(host, command, (rest, stderr) => (rest === '' ? faultOfFlows(listed, stderr) : { kind: 'no-end' }));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'tool-missing') throw error;
  }
  return [...pairs.values()];
}
