import type { FieldPath } from '../../../../cluster/objects.ts';
import { ofServices, type RuleFinding, type LintRule } from '../../rule.ts';

const usualRange = { first: 30000, last: 32767 } as const;

export const nodePortRange: LintRule<'node-port-range'> = ofServices(({ written: { spec }, source }, { loaded }) => {
  const { nodePorts } = loaded.ranges;
  const { first, last } = nodePorts ?? usualRange;
  const check = (
    what: 'nodePort' | 'healthCheckNodePort',
    nodePort: number,
    path: FieldPath,
  ): readonly RuleFinding<'node-port-range'>[] => {
    if (nodePort === 0 || (nodePort >= first && nodePort <= last)) return [];
    const details = { what, nodePort, range: `${first}-${last}`, isUsual: nodePorts === undefined };
    return [{ details, place: source.place(path) }];
  };
  return [
    ...spec.ports.flatMap(({ nodePort }, i) => check('nodePort', nodePort, ['spec', 'ports', i, 'nodePort'])),
    ...check('healthCheckNodePort', spec.healthCheckNodePort, ['spec', 'healthCheckNodePort']),
  ];
});
