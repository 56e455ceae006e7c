import { findNearest } from '../base/find-nearest.ts';
import { printable } from '../base/printable.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { ServicePortSpec } from '../cluster/objects.ts';
import type { Selecting } from './selecting.ts';

/** Target ports whose name no container of the selected Pods has: the Service port gets no endpoint then. */
export function describeTargetPorts(services: readonly Selecting[]): readonly Diagnostic[] {
  return services.flatMap(({ service: { object, source }, label, pods }) => {
    // kube-proxy programs nothing for a headless Service, whatever its ports are.
    if (pods.length === 0 || object.spec.clusterIP === 'None') return [];
    return object.spec.ports.flatMap((port, i): Diagnostic[] => {
      const hint = describeMissing(port, pods);
      if (hint === undefined) return [];
      const text = `no container of the Pods that ${label} selects has a ${port.protocol} port named ${printable(String(port.targetPort))}, so that this port has no endpoints${hint}`;
      const place = source.place(['spec', 'ports', i, 'targetPort']);
      return [{ severity: 'warning', code: 'unknown-target-port', text, place }];
    });
  });
}

/** What may be meant by a name that no container has; undefined where one has it, or where a number is given. */
function describeMissing({ targetPort, protocol }: ServicePortSpec, pods: Selecting['pods']): string | undefined {
  if (typeof targetPort === 'number') return undefined;
  const others = new Set<string>();
  const names = new Set<string>();
  for (const { object } of pods) {
    for (const port of object.spec.ports) {
      if (port.protocol !== protocol) {
        if (port.name === targetPort) others.add(port.protocol);
      } else if (port.name === targetPort) return undefined;
      else if (port.name !== '') names.add(port.name);
    }
  }
  const [other] = [...others].toSorted();
  if (other !== undefined) return `: the port of that name is ${other}`;
  const sorted = [...names].toSorted();
  const near = findNearest(targetPort, sorted) ?? (sorted.length === 1 ? sorted[0] : undefined);
  return near === undefined ? '' : `: did you mean ${printable(near)}?`;
}
