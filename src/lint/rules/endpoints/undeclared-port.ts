import { ofServices, type Found, type Rule } from '../../rule.ts';
import { nameOfSelected } from '../../lint-input.ts';

/** Target ports by number that no container lists, though the containers list others. */
export const undeclaredPort: Rule<'undeclared-port'> = ofServices(({ object: { spec }, name, selected, source }) => {
  const [first] = selected;
  // A container need not list its ports: only one that lists some seems to list all.
  const listsPorts = selected.every(({ object }) => object.spec.ports.length > 0 && !object.spec.isInjected);
  if (!first || !listsPorts) return [];
  return spec.ports.flatMap(({ targetPort, protocol }, i): readonly Found<'undeclared-port'>[] => {
    if (typeof targetPort !== 'number') return [];
    const isListed = selected.some(({ object }) =>
      object.spec.ports.some((own) => own.port === targetPort && own.protocol === protocol),
    );
    if (isListed) return [];
    const ports = first.object.spec.ports.map((own) => `${own.port}/${own.protocol}`);
    const details = {
      service: name,
      port: `${targetPort}/${protocol}`,
      owner: nameOfSelected(first.object),
      ports: [...new Set(ports)],
    };
    return [{ details, place: source.place(['spec', 'ports', i, 'targetPort']) }];
  });
});
