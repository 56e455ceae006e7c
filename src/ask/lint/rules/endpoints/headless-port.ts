import { resolveTargetPort } from '../../../../cluster/slices/make-slices.ts';
import { nameOfSelected } from '../../../../cluster/slices/slice-warnings.ts';
import { ofServices, type RuleFinding, type LintRule } from '../../rule.ts';

/** Finds ports of headless Services that differ from their target ports. Clients connect directly to Pods, at the target port. */
export const headlessPort: LintRule<'headless-port'> = ofServices(
  ({ object: { spec }, name, skipped, selected, source }) => {
    const [first] = selected;
    if (skipped !== 'headless' || !first) return [];
    const pod = first.object.spec;
    return spec.ports.flatMap((port, i): readonly RuleFinding<'headless-port'>[] => {
      const target = resolveTargetPort(port, pod);
      const isServed = pod.ports.some((own) => own.port === port.port && own.protocol === port.protocol);
      if (target === undefined || target === port.port || isServed) return [];
      const details = { service: name, port: port.port, target, owner: nameOfSelected(first.object) };
      return [{ details, place: source.place(['spec', 'ports', i, 'port']) }];
    });
  },
);
