import type { ShownPort } from '../cluster/model.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import type { Evaluator } from '../packet/evaluate.ts';
import { lacks, type Reason } from '../packet/reason.ts';
import { portAt } from './port-at.ts';
import { stopOf } from './stop.ts';

type Named = Pick<ShownPort, 'namespace' | 'service'>;

/** Whether the input shows the endpoints of a Service: its EndpointSlices, Endpoints or Pods. */
export function knowsEndpoints({ cluster }: CompiledSnapshot, { namespace, service }: Named): boolean {
  const info = cluster.services.find((each) => each.namespace === namespace && each.name === service);
  return info?.endpointsGiven !== false;
}

/**
 * Evaluates packets to Services whose endpoints the input lacks: what the rules refuse for want of an endpoint, the node may deliver. A
 * Service with a selector has an EndpointSlice in every cluster, if an empty one.
 */
export function withUngivenEndpoints(side: Snapshot, evaluate: Evaluator): Evaluator {
  if (side.kind === 'dump' || side.cluster.services.every(({ endpointsGiven }) => endpointsGiven !== false))
    return evaluate;
  const ungiven = new Map(
    side.cluster.servicePorts.flatMap((port) =>
      knowsEndpoints(side, port) ? [] : [[port.label, `${port.namespace}/${port.service}`] as const],
    ),
  );
  return (packet) => {
    const fate = evaluate(packet);
    const stop = stopOf(fate);
    const service = stop && 'servicePort' in stop ? ungiven.get(stop.servicePort ?? '') : undefined;
    return service === undefined
      ? fate
      : { ...fate, verdict: 'unknown', reasons: [lacks({ kind: 'endpoint-slices', service })] };
  };
}

/**
 * Evaluates packets to the Services that a dump shows, of which it may lack what takes packets to them: that no rule of a Service takes
 * these is then no answer.
 */
export function withoutBlindAnswers(ports: readonly ShownPort[], evaluate: Evaluator): Evaluator {
  return (packet) => {
    const fate = evaluate(packet);
    const isUntaken = fate.otherwise?.verdict === 'local' || fate.otherwise?.verdict === 'forwarded';
    if (!isUntaken || !fate.reasons.some(lacksTranslation)) return fate;
    const { destination: address, port, protocol } = packet;
    return portAt({ address, port, protocol }, ports) ? { ...fate, otherwise: undefined } : fate;
  };
}

/** Whether rules or virtual servers are missing that may send packets to endpoints. */
function lacksTranslation(reason: Reason): boolean {
  if (reason.kind !== 'missing-listing') return false;
  const { missing } = reason;
  switch (missing.kind) {
    case 'iptables':
      return missing.tables.includes('nat');
    case 'nftables':
    case 'virtual-servers':
      return true;
    default:
      return false;
  }
}
