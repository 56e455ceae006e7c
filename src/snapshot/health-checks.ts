// What kube-proxy answers to a load balancer that asks whether a node can serve a Service.
import { serviceName, type ServiceHealthCheck } from '../cluster/model.ts';
import { planNodePorts } from '../cluster/node-context.ts';
import { families } from '../kernel/family.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import type { CompiledSnapshot, Snapshot } from './snapshot.ts';

export interface HealthAnswer {
  /** Either, if no node is named; `unknown`: the input lacks the endpoints of the Service. */
  readonly status: 200 | 503 | '200 or 503' | 'unknown';
  /** The Service's ready endpoints on the node. */
  readonly local: number;
}

/** 200 with ready endpoints on the node, else 503 (healthcheck/service_health.go). */
export function healthAnswerOf({ readyEndpoints, ...check }: ServiceHealthCheck, side: Snapshot): HealthAnswer {
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === side.nodeName).length;
  const isGiven = side.kind === 'dump' || side.info(serviceName(check))?.endpointsGiven !== false;
  if (!isGiven) return { status: 'unknown', local };
  // An unnamed node may be any, also one with endpoints.
  if (side.nodeName === '' && readyEndpoints.length > 0) return { status: '200 or 503', local };
  return { status: local > 0 ? 200 : 503, local };
}

/** Finds the health check behind a port of the node. kube-proxy listens on the addresses that serve node ports (newServiceHealthServer). */
export function healthCheckFinder(side: CompiledSnapshot): (at: SocketAddress) => ServiceHealthCheck | undefined {
  const keyOf = ({ family, port }: Pick<ServiceHealthCheck, 'family' | 'port'>): string => `${family} ${port}`;
  // Of several Services with one port, the first has it.
  const checks = new Map(side.cluster.healthChecks.toReversed().map((check) => [keyOf(check), check]));
  const [ipv4, ipv6] = families.map((family) => planNodePorts(side.settings, side.node, family).addresses);
  return ({ address: { family, text }, port }) => {
    const served = family === 'ipv4' ? ipv4 : ipv6;
    return !served || served.some((each) => each.text === text) ? checks.get(keyOf({ family, port })) : undefined;
  };
}

/** Whether load balancers hear the same, as far as it is known; undefined where nothing of kube-proxy answers. */
export function isSameAnswer(one: HealthAnswer | undefined, other: HealthAnswer | undefined): boolean {
  if (!one || !other) return one === other;
  return one.status === other.status || one.status === 'unknown' || other.status === 'unknown';
}
