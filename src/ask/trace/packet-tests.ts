  const refuse = (field: string, details: ArgumentsOf<'bad-expectation'>, index?: number): void => {
    if (!test.isDoubtful(field, index)) found(diagnose('bad-expectation', details, place(field, index)));
  };
  const misfit = findMisfit(settings, given);
  if (misfit) {
    refuse(misfit.field, misfit);
    return [];
  }
  const isNodeNamed = settings.node !== undefined || settings.allNodes === true;
  return to.flatMap((target, i) =>
    from.flatMap((source, j): readonly PacketResult[] => {
      const scene = isNodeNamed ? given : sceneOfSender({ from: source, namespace }, given);
      const read = ask({ from: source, to: target, protocol, inInterface: undefined, namespace }, scene);
      const trace = read.kind === 'read' ? read.value : undefined;
      const expected = readExpectation(test, trace?.target.address.family, namespace, scene);
      for (const { field, details } of expected.kind === 'wrong' ? expected.faults : []) refuse(field, details);
      for (const { end, diagnostic } of read.kind === 'wrong' ? read.faults : []) {
        refuse(end, { problem: 'refused', field: end, error: cite(diagnostic) }, end === 'from' ? j : i);
      }
      if (!trace || expected.kind === 'wrong') return [];
      const packet = `${name === undefined ? '' : `${name}: `}${trace.target.protocol} from ${source} to ${target}`;
      const where = [scene.side.node?.name, scene.side.mode].filter(Boolean).join(', ');
      return [
        {
          title: printable(`${packet}${where === '' ? '' : ` (${where})`}`),
          place: place().locate(),
          trace,
          scene,
          faults: compareFate(trace, expected.value, scene),
        },
      ];
    }),
  );
}

/** A requirement that a bundle or dump cannot meet because it has a single node, mode and release. */
function findMisfit(
  { node, proxyMode, kubernetesVersion }: SceneSettings,
  { side }: Scene,
): Extract<ArgumentsOf<'bad-expectation'>, { readonly problem: 'other-input' }> | undefined {
  const { kind, mode: own } = side;
  if (kind === 'manifests') return undefined;
  const rows = [
    ['mode', proxyMode, own],
    ['release', kubernetesVersion, side.settings?.release],
    ['node', side.node && node, side.node?.name],
  ] as const;
  const [field, , known] = rows.find(([, asked, has]) => asked !== undefined && asked !== has) ?? [];
  return field && { problem: 'other-input', field, kind, known };
}
