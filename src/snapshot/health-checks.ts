import { serviceName, type ServiceHealthCheck } from '../cluster/model.ts';
import { planNodePorts } from '../cluster/node-context.ts';
import { families } from '../kernel/address.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import type { CompiledSnapshot, Snapshot } from './snapshot.ts';

export interface HealthAnswer {
  /** '200 or 503' if no node is named. 'unknown' if the input lacks the Service's endpoints. */
  readonly status: 200 | 503 | '200 or 503' | 'unknown';
  readonly local: number;
}

/** Returns 200 if the node has ready endpoints, otherwise 503 (healthcheck/service_health.go). */
export function healthAnswerOf({ readyEndpoints, ...check }: ServiceHealthCheck, side: Snapshot): HealthAnswer {
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === side.nodeName).length;
  const isGiven = side.kind === 'dump' || side.info(serviceName(check))?.endpointsGiven !== false;
  if (!isGiven) return { status: 'unknown', local };
  // The unnamed node may have endpoints or not.
  if (side.nodeName === '' && readyEndpoints.length > 0) return { status: '200 or 503', local };
  return { status: local > 0 ? 200 : 503, local };
}

/** Returns a finder for health checks. kube-proxy listens for them where node ports are served (newServiceHealthServer). */
export function healthCheckFinder(side: CompiledSnapshot): (at: SocketAddress) => ServiceHealthCheck | undefined {
  const keyOf = ({ family, port }: Pick<ServiceHealthCheck, 'family' | 'port'>): string => `${family} ${port}`;
  // If several Services have the same port, the first of them gets it.
  const checks = new Map(side.cluster.healthChecks.toReversed().map((check) => [keyOf(check), check]));
  const [ipv4, ipv6] = families.map((family) => planNodePorts(side.settings, side.node, family).addresses);
  return ({ address: { family, text }, port }) => {
    const served = family === 'ipv4' ? ipv4 : ipv6;
    return !served || served.some((each) => each.text === text) ? checks.get(keyOf({ family, port })) : undefined;
  };
}

/** Reports whether load balancers get the same answer from both, as far as known. If kube-proxy does not listen, there is no answer. */
export function isSameAnswer(one: HealthAnswer | undefined, other: HealthAnswer | undefined): boolean {
  if (!one || !other) return one === other;
  return one.status === other.status || one.status === 'unknown' || other.status === 'unknown';
}
