import type { Unused } from '../../../../base/findings/lint.ts';
import { isServed, refused, ofServices, type Rule } from '../../rule.ts';
import { nameOfSelected } from '../../../../cluster/slices/slice-warnings.ts';
import type { LintedService } from '../../lint-input.ts';

/** Services whose slices or Pods are known, or that select only what is scaled to 0, and have no endpoint that takes connections. */
export const noReadyEndpoint: Rule<'no-ready-endpoint'> = ofServices((service, input) => {
  const { name, object, ports, slices, selected, isScaledToZero, knowsEndpoints, source } = service;
  const [first] = ports;
  if (!first || !(knowsEndpoints || isScaledToZero) || ports.some(isServed)) return undefined;
  const endpoints = Math.max(...ports.map((port) => port.endpoints.length));
  const filled = slices.filter((slice) => slice.object.endpoints.length > 0);
  const unused = endpoints === 0 && filled.length > 0 ? whyUnused(service, filled) : undefined;
  // Ports that do not fit, and selectors, have messages of their own.
  if (endpoints === 0 && !unused && (filled.length > 0 || (slices.length === 0 && selected.length === 0)))
    return undefined;
  const publishes = object.spec.publishNotReadyAddresses;
  const [pod] = endpoints === 0 ? selected : [];
  const owner = pod && nameOfSelected(pod.object);
  return {
    details: { service: name, endpoints, publishes, owner, isScaledToZero, unused },
    place: source.place(['metadata', 'name']),
    packet: refused(first, input),
  };
});

/** Why kube-proxy skips all of these slices; undefined if their ports have other names. */
function whyUnused({ object: { spec }, ports }: LintedService, slices: LintedService['slices']): Unused | undefined {
  const types = [...new Set(slices.map(({ object }) => object.addressType))];
  const families = new Set<string>(ports.map(({ family }) => family));
  const usable = slices.filter(({ object }) => families.has(object.addressType.toLowerCase()));
  if (usable.length === 0) return { by: 'address-type', types };
  const ofName = usable
    .flatMap(({ object }) => object.ports)
    .filter((port) => spec.ports.some((own) => own.name === port.name && own.protocol === port.protocol));
  return ofName.length > 0 && ofName.every(({ port }) => !port) ? { by: 'port' } : undefined;
}
