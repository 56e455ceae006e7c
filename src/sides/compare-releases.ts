import { count } from '../base/format-count.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import { compileNode, prepareForBehaviours, prepareForRelease } from '../compile/compile-node.ts';
import type { IpFamilyChoice } from '../compile/choose-families.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import { diffSides, type SideDiff } from '../diff/diff-sides.ts';
import { differingBehaviours, explainByRelease } from '../diff/release-changes.ts';
import type { Side } from '../diff/compared-side.ts';
import { behaviourChanges, behavioursOf, type Behaviours, type Release } from '../kube-proxy/releases.ts';
import { sideOfManifests } from './stored-side.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { checkReleases, parseVersionChoice, releaseOfNode, type VersionChoice } from '../compile/kubernetes-version.ts';

/** As high as kube-proxy since 1.36 sets nf_conntrack_max by the number of cores. */
const defaultConntrackLimit = 1_048_576;

export interface ReleaseComparison {
  readonly loaded: LoadedInputs;
  readonly nodeName: string;
  readonly from: Release;
  readonly to: Release;
  readonly name: string;
}

export interface ComparedReleases {
  readonly from: Side;
  readonly to: Side;
  readonly diff: SideDiff;
  /** What was compared, for people. */
  readonly notes: readonly string[];
}

/** Compiles the same manifests by two releases, and tells the difference with the behaviour that makes it. */
export function compareReleases(
  { loaded, nodeName, name, ...pair }: ReleaseComparison,
  options: { readonly ipFamily: IpFamilyChoice; readonly foreign?: boolean | undefined },
): ComparedReleases {
  const { prepared, hostAddresses } = loaded;
  const compileOf = (release: Release, behaviours: Behaviours, ipFamily: IpFamilyChoice) => {
    const seen = prepareForBehaviours(prepared, release, behaviours);
    return sideOfManifests(
      `${name} by Kubernetes ${release}`,
      compileNode(seen, { nodeName, hostAddresses, ipFamily }),
    );
  };
  const ofRelease = (release: Release, ipFamily: IpFamilyChoice) => {
    const behaviours = behavioursOf(release, prepared.gates);
    return { release, behaviours, side: compileOf(release, behaviours, ipFamily) };
  };
  const isDual = new Set([pair.from, pair.to].flatMap((release) => ofRelease(release, options.ipFamily).side.families));
  // What one release programs for no Service of a family is no reason to leave the family out there.
  const ipFamily = isDual.size > 1 ? 'dual' : options.ipFamily;
  const [from, to] = [ofRelease(pair.from, ipFamily), ofRelease(pair.to, ipFamily)];
  const { node, settings } = from.side.services;
  const differing = differingBehaviours(from.behaviours, to.behaviours, settings.mode);
  const found = diffSides(from.side, to.side, { foreign: options.foreign === true });
  const diff = explainByRelease(found, from, to, differing, (behaviours) =>
    compileOf(from.release, behaviours, ipFamily),
  );
  const where = node.name === '' ? 'any node' : `node ${node.name}`;
  const families = from.side.families.join(' and ');
  const notes = [
    `${name}: manifests, compiled for ${where}, mode ${settings.mode}, ${families}, by Kubernetes ${from.release} and ${to.release}`,
    `the kube-proxies of the two releases differ in ${count(differing.length, 'behaviour')} that kpc knows of`,
    ...(differing.includes('conntrack-limit') ? describeConntrackLimit(settings) : []),
  ];
  return { from: from.side, to: to.side, diff, notes };
}

/** How many connections to track is decided on the node: it depends on the number of its cores. */
function describeConntrackLimit({ conntrack }: ProxySettings): readonly string[] {
  if (conntrack.maxPerCore <= 0) return [];
  const cores = Math.floor(defaultConntrackLimit / conntrack.maxPerCore);
  const { since, before, after } = behaviourChanges['conntrack-limit'];
  return [
    `on a node with more than ${count(cores, 'core')} kube-proxy before ${since} ${before}, and since then ${after}`,
  ];
}

/** The releases to compare; undefined where one cannot be told, which the diagnostics say. */
export interface ReleasePair {
  readonly from: Release | undefined;
  readonly to: Release | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads which releases are meant: the one that was loaded for, and the one that `toFlag` names. */
export function chooseReleases(
  { version, prepared }: LoadedInputs,
  nodeName: string,
  toVersion: string,
  toFlag: string,
): ReleasePair {
  const wanted = parseVersionChoice(toVersion, toFlag);
  if (wanted.diagnostics.length > 0) return { from: undefined, to: undefined, diagnostics: wanted.diagnostics };
  const diagnostics: Diagnostic[] = [];
  const settle = (choice: VersionChoice, flag: string): Release | undefined => {
    if (choice.kind === 'release') return choice.release;
    const found = releaseOfNode(prepared.nodes.get(nodeName), nodeName, flag);
    if (found.kind === 'release') return found.release;
    diagnostics.push(found.diagnostic);
    return undefined;
  };
  const from = settle(
    version,
    version.kind === 'auto' ? '--kubernetes-version auto' : '--kubernetes-version is not given',
  );
  const to = settle(wanted.choice, `${toFlag} auto`);
  const named = [...new Set([from, to])].filter((release) => release !== undefined);
  const seen = named.map((release) => prepareForRelease(prepared, release));
  diagnostics.push(...checkReleases(prepared, seen));
  return { from, to, diagnostics };
}
