import type { HostPort } from '../cluster/objects.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import type { Finding } from './finding.ts';
import { nameOfSelected, type LintInput } from './lint-input.ts';

/** Pods with host ports for what a Service sends them, where that seems to be the only way to them. */
export function findHostPorts({ services }: LintInput): readonly Finding[] {
  return services.flatMap(({ object: { spec }, name, selected, source }): readonly Finding[] => {
    const isRestricted = spec.type === 'LoadBalancer' && spec.loadBalancerSourceRanges.length > 0;
    if (spec.type !== 'ClusterIP' && !isRestricted) return [];
    const isTarget = (own: HostPort): boolean =>
      spec.ports.some(
        ({ targetPort, protocol }) => protocol === own.protocol && (targetPort === own.port || targetPort === own.name),
      );
    const open = selected.find(({ object }) => object.spec.hostPorts.some(isTarget));
    if (!open) return [];
    const ports = open.object.spec.hostPorts
      .filter(isTarget)
      .map(({ hostPort, protocol }) => `${hostPort}/${protocol}`);
    const beside = isRestricted ? 'source-ranges' : 'cluster-ip';
    const details = { service: name, owner: nameOfSelected(open.object), ports: [...new Set(ports)], beside } as const;
    return [{ diagnostic: diagnose('host-port', details, source.place(['spec', 'selector'])), service: name }];
  });
}
