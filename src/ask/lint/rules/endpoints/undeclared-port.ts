import { findUndeclaredPorts } from '../../../../cluster/slices/slice-warnings.ts';
import { ofServices, type Rule } from '../../rule.ts';

export const undeclaredPort: Rule<'undeclared-port'> = ofServices(({ object, name, selected, source }) =>
  findUndeclaredPorts({ service: { object, source }, label: name, pods: selected }),
);
