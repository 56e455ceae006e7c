import type { IpFamilyChoice } from './assumptions.ts';
import { groundsOf } from '../grounds.ts';
import { chooseNodeName, compileNode, prepareForRelease } from './compile-node.ts';
import { checkReleases, prepareChecked } from './compile.ts';
import { releaseOfNode, type VersionChoice, type LoadedInputs } from './load-texts.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { isError, type Finding } from '../../base/findings/finding.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot.ts';
import { diffSides, type SideDiff } from '../../ask/diff/diff-sides.ts';
import {
  behaviourReason,
  behavioursOf,
  stepsBetween,
  type Behaviour,
  type Behaviours,
  type Release,
} from '../../kube-proxy/releases.ts';

interface ReleaseSide {
  readonly release: Release;
  readonly does: Behaviours;
  readonly side: CompiledSnapshot;
}

/** Compares two releases. Reports each difference with the behaviour that causes it, and states what was compared. */
export function compareReleases(
  loaded: LoadedInputs,
  name: string,
  pair: { readonly nodeName: string; readonly from: Release; readonly to: Release },
  options: { readonly ipFamily: IpFamilyChoice; readonly foreign?: boolean | undefined },
) {
  const { nodeName } = pair;
  const compileWith = (release: Release, does: Behaviours, ipFamily: IpFamilyChoice): ReleaseSide => {
    const asked = { ipFamily, name: `${name} by Kubernetes ${release}` };
    return { release, does, side: compileNode(prepareForRelease(loaded, release, does), nodeName, asked) };
  };
  const compileBy = (release: Release, ipFamily: IpFamilyChoice) =>
    compileWith(release, behavioursOf(release, loaded.gates), ipFamily);
  const isDual = new Set([pair.from, pair.to].flatMap((each) => compileBy(each, options.ipFamily).side.families));
  // If only one of the releases has rules in a family, kpc compiles both releases for that family.
  const ipFamily = isDual.size > 1 ? 'dual' : options.ipFamily;
  const [from, to] = [compileBy(pair.from, ipFamily), compileBy(pair.to, ipFamily)];
  const { settings } = from.side;
  const steps = stepsBetween(from.does, to.does, [settings.mode]);
  const diff = diffSides(from.side, to.side, { foreign: options.foreign === true });
  const causes = findCauses(diff, from, steps, (does) => compileWith(from.release, does, ipFamily).side);
  const servicePorts = diff.servicePorts.map((port) => {
    const own = steps.filter(({ behaviour }) => causes.get(port.label)?.has(behaviour));
    const reasons = own.map(({ behaviour }) => behaviourReason(behaviour, pair.from, pair.to, to.does));
    return { ...port, reasons: [...reasons, ...port.reasons] };
  });
  const what = { as: 'two-releases', grounds: groundsOf(from.side), from: from.release, to: to.release } as const;
  // The limit on tracked connections depends on the number of the node's cores, which the input does not show.
  const isLimitChanged =
    steps.some(({ behaviour }) => behaviour === 'conntrack-limit') && settings.conntrack.maxPerCore > 0;
  const notes: readonly ArgumentsOf<'reading'>[] = [
    { problem: 'read-as', name, what },
    { problem: 'releases-differ', behaviours: steps.length },
    ...(isLimitChanged ? [{ problem: 'conntrack-limit' } as const] : []),
  ];
  return { from: from.side, to: to.side, diff: { ...diff, servicePorts }, notes };
}

function findCauses(
  { servicePorts }: SideDiff,
  from: ReleaseSide,
  steps: ReturnType<typeof stepsBetween>,
  compileWith: (does: Behaviours) => Snapshot,
): ReadonlyMap<string, ReadonlySet<Behaviour>> {
  const causes = new Map(servicePorts.map(({ label }): [string, Set<Behaviour>] => [label, new Set()]));
  let before: Snapshot = from.side;
  for (const { behaviour, does } of causes.size > 0 ? steps : []) {
    const after = compileWith(does);
    for (const { label } of diffSides(before, after, { foreign: false }).servicePorts)
      causes.get(label)?.add(behaviour);
    before = after;
  }
  return causes;
}

export function openReleases(
  loaded: LoadedInputs,
  options: { readonly node?: string | undefined },
  wanted: VersionChoice,
  toFlag: string,
) {
  const nodeName = chooseNodeName(options.node, loaded);
  const { from, to, diagnostics: wrong } = chooseReleases(loaded, nodeName, wanted, toFlag);
  const asRead = { ...loaded, version: from ?? loaded.settings.release };
  const named = options.node === undefined ? undefined : [options.node];
  const { diagnostics } = prepareChecked(asRead, { names: [nodeName], flag: named }, wrong);
  return { diagnostics, pair: from && to && { nodeName, from, to } };
}

function chooseReleases(loaded: LoadedInputs, nodeName: string, wanted: VersionChoice, toFlag: string) {
  const { version } = loaded;
  const diagnostics: Finding[] = [];
  const releaseFor = (choice: VersionChoice, flag: string): Release | undefined => {
    if (choice !== undefined && choice !== 'auto') return choice;
    const release = releaseOfNode(loaded.nodes.get(nodeName), nodeName, flag);
    if (typeof release === 'string') return release;
    // An object that cannot be read may be the Node that names the release.
    if (!loaded.diagnostics.some(isError)) diagnostics.push(release);
    return undefined;
  };
  const [from, to] = [releaseFor(version, '--kubernetes-version'), releaseFor(wanted, `${toFlag} auto`)];
  const named = [...new Set([from, to])].filter((release) => release !== undefined);
  const seen = named.map((release) => prepareForRelease(loaded, release));
  return { from, to, diagnostics: [...diagnostics, ...checkReleases(loaded, seen)] };
}
