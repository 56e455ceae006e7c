import { readFlow } from '../../kernel/conntrack.ts';
import { families, type Family } from '../../kernel/family.ts';
import {
  deleteArguments,
  forgottenFlows,
  staleFlowFinder,
  type ServedPorts,
  type StaleFlowRules,
} from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, isFlow, readWith } from './tools.ts';

/** How many pairs of ends flows are forgotten of at once: whoever sends through the node chooses how many there are. */
const mostPairs = 10_000;

/**
 * Forgets the UDP flows that a kube-proxy of these behaviours forgets: those to a Service that go to a former endpoint, and those to
 * Service ports that are gone; see forgottenFlows. Does nothing if there is no conntrack tool. Throws a Failure where that cannot look,
 * or where more than mostPairs are to be forgotten: the first of them are then.
 */
export async function forgetStaleFlows(
  host: Host,
  { ports, gone = [] }: ServedPorts,
  behaviours: Behaviours,
): Promise<void> {
  const rules = { ...forgottenFlows(behaviours), isToNode: () => true };
  for (const family of families) {
    const isLooked = (port: ServedPorts['ports'][number]) => port.family === family && port.protocol === 'UDP';
    const served = { ports: ports.filter(isLooked), gone: gone.filter(isLooked) };
    if (served.ports.length + served.gone.length === 0) continue;
    const pairs = await listStalePairs(host, family, served, rules);
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
  served: Required<ServedPorts>,
  rules: StaleFlowRules,
): Promise<readonly (readonly string[])[]> {
  const findStale = staleFlowFinder(served, rules);
  // Most flows are to other ports. Where all those to a former cluster IP go, the port says nothing.
  const isAnyPort = rules.ofGone === 'to-cluster-ip' && served.gone.length > 0;
  const numbers = new Set(
    [...served.ports, ...served.gone].flatMap(({ port, nodePort }) => [`${port}`, `${nodePort}`]),
  );
  const pairs = new Map<string, readonly string[]>();
  let listed = 0;
  const keeps = (line: string): boolean => {
    if (isFlow(line)) listed++;
    const isMeant = isAnyPort || numbers.has(/ dport=(\d+) /.exec(line)?.[1] ?? '');
    const flow = isMeant && pairs.size <= mostPairs && readFlow(line);
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
