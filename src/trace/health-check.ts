import { count } from '../changes/counts.ts';
import type { ServiceHealthCheck } from '../cluster/model.ts';
import type { Side } from '../diff/side.ts';

/** What kube-proxy answers a load balancer on the node: 200 with ready endpoints here, else 503 (healthcheck/service_health.go). */
export function healthCheckWords(
  { namespace, service, port, readyEndpoints }: ServiceHealthCheck,
  { services }: Pick<Side, 'services'>,
): string {
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === services?.node.name).length;
  const status = local > 0 ? 200 : 503;
  return `health check of ${namespace}/${service} on port ${port}: kube-proxy answers ${status}, with ${count(local, 'ready endpoint')} on this node`;
}
