import type { Family } from '../kernel/family.ts';
import { isLeftToOther, skipReason } from './build-cluster.ts';
import { compareText } from '../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { leftOutReasons, type LeftOutReason } from '../diagnostics/empty-results.ts';
import type { Cluster } from './model.ts';
import type { Service, Sourced } from './objects.ts';

/**
 * What to say where there are Services, and nothing is programmed for any of them: such a bundle takes all Services off a
 * node, which is seldom what was meant.
 */
export function describeEmptyResult(
  services: readonly Sourced<Service>[],
  cluster: Cluster,
  families: readonly Family[],
  isRefused: boolean,
  assuming: string | undefined,
): readonly Diagnostic[] {
  const isProgrammed = cluster.servicePorts.some(({ family }) => families.includes(family));
  if (services.length === 0 || isProgrammed) return [];
  const seen = new Set(cluster.services.map(({ namespace, name }) => `${namespace}/${name}`));
  const leftOut = leftOutReasons.flatMap((reason) => {
    const names = services
      .filter(({ object }) => leftOutReason(object, seen) === reason)
      .map(({ object: { metadata } }) => `${metadata.namespace}/${metadata.name}`)
      .sort(compareText);
    return names.length === 0 ? [] : [{ reason, services: names }];
  });
  return [diagnose('nothing-programmed', { services: services.length, leftOut, isRefused, assuming })];
}

/** `seen`: "namespace/name" of the Services that kube-proxy watches. */
function leftOutReason(service: Service, seen: ReadonlySet<string>): LeftOutReason {
  const { namespace, name } = service.metadata;
  if (!seen.has(`${namespace}/${name}`)) return isLeftToOther(service) ? 'other-proxy' : 'headless-label';
  return skipReason(service) ?? (service.spec.ports.length === 0 ? 'no-ports' : 'other-family');
}
