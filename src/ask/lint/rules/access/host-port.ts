import type { HostPort } from '../../../../cluster/objects.ts';
import { nameOfSelected } from '../../../../cluster/slices/slice-warnings.ts';
import { ofServices, type LintRule } from '../../rule.ts';

/** Finds Pods with host ports that bypass a Service which seems intended as the only access to these Pods. */
export const hostPort: LintRule<'host-port'> = ofServices(({ object: { spec }, name, selected, source }) => {
  const isRestricted = spec.type === 'LoadBalancer' && spec.loadBalancerSourceRanges.length > 0;
  if (spec.type !== 'ClusterIP' && !isRestricted) return undefined;
  const isTarget = (own: HostPort): boolean =>
    spec.ports.some(
      ({ targetPort, protocol }) => protocol === own.protocol && (targetPort === own.port || targetPort === own.name),
    );
  const open = selected.find(({ object }) => object.spec.hostPorts.some(isTarget));
  if (!open) return undefined;
  const ports = open.object.spec.hostPorts.filter(isTarget).map((own) => `${own.hostPort}/${own.protocol}`);
  return {
    details: {
      service: name,
      owner: nameOfSelected(open.object),
      ports: [...new Set(ports)],
      beside: isRestricted ? 'source-ranges' : 'cluster-ip',
    },
    place: source.place(['spec', 'selector']),
  };
});
