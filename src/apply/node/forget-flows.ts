import { parseConntrack } from '../../kernel/conntrack.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { deleteArguments, findStaleFlows } from '../../cluster/stale-flows.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { faultOfFlows, readWith } from './tools.ts';

/**
 * Forgets UDP flows to a Service that go to a former endpoint, as kube-proxy does after each sync. Without any
 * serving endpoint it forgets the flows to a Service's addresses, but not those to its node port: other programs may have flows
 * to that number; before the behaviour forgotten-flows it forgets neither. Does nothing if there is no conntrack tool. Throws
 * a Failure where that cannot look.
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
    const { flows } = parseConntrack(await listFlows(host, family));
    const stale = findStaleFlows(flows, ports, { withoutEndpoints, isToNode: () => true });
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
