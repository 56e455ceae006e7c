import { ofServices, type RuleFinding, type LintRule } from '../../rule.ts';

export const unusedSlicePort: LintRule<'unused-slice-port'> = ofServices(
  ({ object: { spec }, name, skipped, slices }) => {
    if (skipped) return undefined;
    const known = new Set(spec.ports.map((port) => `${port.name}/${port.protocol}`));
    const written = slices
      .filter(({ object }) => object.endpoints.length > 0)
      .flatMap(({ object, source }) =>
        object.ports.map((port, i) => ({
          port,
          key: `${port.name}/${port.protocol}`,
          place: source.place(['ports', i]),
        })),
      );
    // If a Service port has no matching slice port, unknown-port reports this better.
    if ([...known].some((port) => !written.some(({ key }) => key === port))) return undefined;
    const found = new Map<string, RuleFinding<'unused-slice-port'>>();
    for (const { port, key, place } of written) {
      if (known.has(key) || found.has(key)) continue;
      found.set(key, { details: { service: name, port: portWords(port), ports: spec.ports.map(portWords) }, place });
    }
    return [...found.values()];
  },
);

function portWords({ name, protocol }: { readonly name: string; readonly protocol: string }): string {
  return name === '' ? protocol : `${name}/${protocol}`;
}
