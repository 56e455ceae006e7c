import { groupBy } from '../../../../cluster/grouping.ts';
import { resolveTargetPort } from '../../../../cluster/slices/make-slices.ts';
import { fullName, type NetworkPolicy, type PolicyPort } from '../../../../cluster/objects.ts';
import { selectsLabels } from '../../../trace/scene.ts';
import { allowsPort } from '../../../trace/network-policies.ts';
import { nameOfSelected } from '../../../../cluster/slices/slice-warnings.ts';
import type { RuleFinding, LintRule } from '../../rule.ts';

/** Finds NetworkPolicies that allow a Service's port but not its target port, if no other policy allows the target port either. */
export const policyPort: LintRule<'policy-port'> = {
  check: ({ services, loaded: { inputs } }) => {
    const ofNamespaces = inputs.policies.filter(({ object }) => object.ingress);
    const byNamespace = groupBy(ofNamespaces, ({ object }) => object.metadata.namespace);
    return services.flatMap(({ object, name, selected: [pod] }) => {
      const all = byNamespace.get(object.metadata.namespace) ?? [];
      if (!pod || pod.object.spec.hostNetwork) return [];
      const labels = { labels: pod.object.metadata.labels, isWhole: true };
      const isolating = all.filter((policy) => selectsLabels(policy.object.subject, labels) === true);
      return object.spec.ports.flatMap((port): readonly RuleFinding<'policy-port'>[] => {
        const target = resolveTargetPort(port, pod.object.spec);
        if (target === undefined || target === port.port) return [];
        const allows = (policy: NetworkPolicy, number: number): boolean =>
          allowedPorts(policy).some((each) => {
            const asked = { port: number, protocol: port.protocol };
            return each === undefined || allowsPort(each, asked, pod.object.spec.ports) === true;
          });
        if (isolating.some((policy) => allows(policy.object, target))) return [];
        const meant = isolating.find((policy) => allows(policy.object, port.port));
        if (!meant) return [];
        const details = {
          service: name,
          policy: fullName(meant.object.metadata),
          owner: nameOfSelected(pod.object),
          port: port.port,
          target,
          protocol: port.protocol,
        };
        return [{ details, place: meant.source.place(['spec', 'ingress']) }];
      });
    });
  },
};

function allowedPorts({ ingress = [] }: NetworkPolicy): readonly (PolicyPort | undefined)[] {
  return ingress.flatMap(({ ports }): readonly (PolicyPort | undefined)[] =>
    ports.length === 0 ? [undefined] : ports,
  );
}
