import type { Family } from '../kernel/family.ts';
import { isLeftToOther, skipReason } from './build-cluster.ts';
import { compareText } from './compare-text.ts';
import type { Diagnostic } from './diagnostic.ts';
import type { Cluster } from './model.ts';
import { nameSome } from './name-some.ts';
import type { Service, Sourced } from './objects.ts';

/** Why nothing is programmed for a Service. */
type LeftOutReason =
  NonNullable<ReturnType<typeof skipReason>> | 'other-proxy' | 'headless-label' | 'no-ports' | 'other-family';

const reasons: { readonly [R in LeftOutReason]: string } = {
  'no-cluster-ip':
    'without a cluster IP (--service-cluster-ip-range chooses some, or give the objects as the cluster has them)',
  headless: 'headless (clusterIP None)',
  'external-name': 'of type ExternalName',
  'other-proxy': 'left to another proxy (label service.kubernetes.io/service-proxy-name)',
  'headless-label': 'with the label service.kubernetes.io/headless, which this release leaves out',
  'no-ports': 'without ports',
  'other-family': 'of an address family that --ip-family leaves out',
};

/** These say that the input is not all that there is, or that the wrong part of it was asked for. */
const faulty: ReadonlySet<LeftOutReason> = new Set(['no-cluster-ip', 'other-family']);

/**
 * What to say where there are Services, and nothing is programmed for any of them: such a bundle takes all Services off a
 * node, which is seldom what was meant. It is an error where one of them would get rules in a cluster.
 */
export function describeEmptyResult(
  services: readonly Sourced<Service>[],
  cluster: Cluster,
  families: readonly Family[],
): readonly Diagnostic[] {
  const isProgrammed = cluster.servicePorts.some(({ family }) => families.includes(family));
  if (services.length === 0 || isProgrammed) return [];
  const seen = new Set(cluster.services.map(({ namespace, name }) => `${namespace}/${name}`));
  const groups = (Object.keys(reasons) as LeftOutReason[]).flatMap((reason) => {
    const names = services
      .filter(({ object }) => leftOutReason(object, seen) === reason)
      .map(({ object: { metadata } }) => `${metadata.namespace}/${metadata.name}`)
      .sort(compareText);
    return names.length === 0 ? [] : [`${names.length} ${reasons[reason]}: ${nameSome(names)}`];
  });
  const which = services.length === 1 ? 'the one Service' : `any of the ${services.length} Services`;
  const severity = services.some(({ object }) => faulty.has(leftOutReason(object, seen))) ? 'error' : 'warning';
  const [nothing, take] = severity === 'error' ? ['nothing would be', 'would remove'] : ['nothing is', 'removes'];
  const text = `${nothing} programmed for ${which}, and the result ${take} all Services from a node: ${groups.join('; ')} (if this is intended, add --allow-empty)`;
  return [{ severity, code: 'nothing-programmed', text }];
}

/** `seen`: "namespace/name" of the Services that kube-proxy watches. */
function leftOutReason(service: Service, seen: ReadonlySet<string>): LeftOutReason {
  const { namespace, name } = service.metadata;
  if (!seen.has(`${namespace}/${name}`)) return isLeftToOther(service) ? 'other-proxy' : 'headless-label';
  return skipReason(service) ?? (service.spec.ports.length === 0 ? 'no-ports' : 'other-family');
}
