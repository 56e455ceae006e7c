import { parseConntrack } from '../../kernel/conntrack.ts';
import { families, type Family } from '../../kernel/family.ts';
import { deleteArguments, findStaleFlows, forgottenFlows, type ServedPorts } from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, readWith } from './tools.ts';

/**
 * Forgets the UDP flows that a kube-proxy of these behaviours forgets: those to a Service that go to a former endpoint, and those to
 * Service ports that are gone; see forgottenFlows. Does nothing if there is no conntrack tool. Throws a Failure where that cannot look.
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
    const { flows } = parseConntrack(await listFlows(host, family));
    const stale = findStaleFlows(flows, served, rules);
    // Flows of the same two ends go at once: clients may be many, and the tool looks through the whole table each time.
    for (const args of new Map(
      stale.map(({ flow }) => [deleteArguments(flow).join(' '), deleteArguments(flow)]),
    ).values()) {
      // Finding none is no failure: they have ended.
      await host.run({ tool: 'conntrack', args });
    }
  }
}

async function listFlows(host: Host, family: Family): Promise<string> {
  try {
    return await readWith(host, { tool: 'conntrack', args: ['-L', '-f', family, '-p', 'udp'] }, faultOfFlows);
  } catch (error) {
    if (error instanceof Failure && error.code === 'tool-missing') return '';
    throw error;
  }
}
