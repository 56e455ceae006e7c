import { findNearest } from '../../base/find-nearest.ts';
import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { Selecting } from './services-and-pods.ts';

/** Target ports whose name no container of the selected Pods has: the Service port gets no endpoint then. */
export function describeTargetPorts(services: readonly Selecting[]): readonly Diagnostic[] {
  return services.flatMap(({ service: { object, source }, label, pods }) => {
    // kube-proxy programs nothing for a headless Service, whatever its ports are.
    if (pods.length === 0 || object.spec.clusterIP === 'None') return [];
    return object.spec.ports.flatMap((port, i): Diagnostic[] => {
      const { targetPort, protocol } = port;
      if (typeof targetPort === 'number') return [];
      const found = findTarget(targetPort, protocol, pods);
      if (found.kind === 'there') return [];
      const details = { service: label, targetPort, protocol, meant: found.meant };
      return [diagnose('unknown-target-port', details, source.place(['spec', 'ports', i, 'targetPort']))];
    });
  });
}

/** Whether a container has a port of that name, or what may be meant by it. */
type Target =
  | { readonly kind: 'there' }
  | { readonly kind: 'nowhere'; readonly meant: ArgumentsOf<'unknown-target-port'>['meant'] };

function findTarget(targetPort: string, protocol: string, pods: Selecting['pods']): Target {
  const others = new Set<string>();
  const names = new Set<string>();
  for (const { object } of pods) {
    for (const port of object.spec.ports) {
      if (port.protocol !== protocol) {
        if (port.name === targetPort) others.add(port.protocol);
      } else if (port.name === targetPort) return { kind: 'there' };
      else if (port.name !== '') names.add(port.name);
    }
  }
  const [other] = [...others].toSorted();
  if (other !== undefined) return { kind: 'nowhere', meant: { kind: 'protocol', value: other } };
  const sorted = [...names].toSorted();
  const near = findNearest(targetPort, sorted) ?? (sorted.length === 1 ? sorted[0] : undefined);
  return { kind: 'nowhere', meant: near === undefined ? undefined : { kind: 'name', value: near } };
}
