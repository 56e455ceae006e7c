import { count } from '../../diff/changes/counts.ts';
import type { ServiceHealthCheck } from '../../cluster/model.ts';
import { planNodePorts } from '../../cluster/node-port-addresses.ts';
import type { Side } from '../../diff/side.ts';
import type { Address } from '../../kernel/address.ts';

/** What kube-proxy answers a load balancer on the node: 200 with ready endpoints here, else 503 (healthcheck/service_health.go). */
export function healthCheckWords(
  { namespace, service, port, readyEndpoints }: ServiceHealthCheck,
  { services }: Pick<Side, 'services'>,
): string {
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === services?.node.name).length;
  const status = local > 0 ? 200 : 503;
  return `health check of ${namespace}/${service} on port ${port}: kube-proxy answers ${status}, with ${count(local, 'ready endpoint')} on this node`;
}

/** The same of one address of the node: kube-proxy listens where it serves node ports (newServiceHealthServer). */
export function healthCheckNote(check: ServiceHealthCheck, address: Address, side: Pick<Side, 'services'>): string {
  const { services } = side;
  const served = services && planNodePorts(services.settings, services.node, address.family).addresses;
  if (!served || served.some(({ text }) => text === address.text))
    return `this is the ${healthCheckWords(check, side)}`;
  const { namespace, service, port } = check;
  return `port ${port} is for the health check of ${namespace}/${service}, but kube-proxy does not listen at ${address.text}: nodePortAddresses leaves it out`;
}
