import { findUndeclaredPorts } from '../../../../cluster/slices/slice-warnings.ts';
import { ofServices, type LintRule } from '../../rule.ts';

export const undeclaredPort: LintRule<'undeclared-port'> = ofServices(({ object, name, selected, source }) =>
  findUndeclaredPorts({ service: { object, source }, label: name, pods: selected }),
);
