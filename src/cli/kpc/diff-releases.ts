import type { Diagnostic } from '../../cluster/diagnostic.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { count } from '../../changes/counts.ts';
import { oneLine } from '../../diff/one-line.ts';
import type { Behaviours, Release } from '../../kube-proxy/releases.ts';
import { behaviourChanges, behavioursOf } from '../../kube-proxy/releases.ts';
import { checkNodes } from '../../compile/check-node.ts';
import type { IpFamilyChoice } from '../../compile/compile-node.ts';
import { chooseNodeName, compileNode, prepareForBehaviours, prepareForRelease } from '../../compile/compile-node.ts';
import type { DiffOptions } from './diff-command.ts';
import { printFound } from './diff-command.ts';
import { readStoredSide, sideOfManifests } from '../../sides/read-side.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { exitStatus } from '../shared/exit-status.ts';
import type { LoadedInputs } from '../../compile/load-texts.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import type { VersionChoice } from '../../compile/kubernetes-version.ts';
import { checkReleases, parseVersionChoice, releaseOfNode } from '../../compile/kubernetes-version.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import type { Terminal } from '../shared/terminal.ts';

interface ReleaseDiffOptions extends DiffOptions {
  readonly toKubernetesVersion: string;
}

/** As high as kube-proxy since 1.36 sets nf_conntrack_max by the number of cores. */
const defaultConntrackLimit = 1_048_576;

const toFlag = '--to-kubernetes-version';

/** kpc diff --to-kubernetes-version: what another release of Kubernetes changes on a node, of the same manifests. */
export async function runReleaseDiff(
  paths: readonly (string | undefined)[],
  options: ReleaseDiffOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const [path, second] = paths;
  const wrongPath =
    second === undefined
      ? await describeNoManifests(path)
      : `${toFlag} compares the same manifests by two releases: leave out ${second}`;
  if (wrongPath !== undefined) {
    await terminal.err(`kpc: error: ${oneLine(wrongPath)}\n`);
    return exitStatus.badInput;
  }
  const loaded = await loadInputs(
    { ...options, file: [...(path === undefined ? [] : [path]), ...(options.file ?? [])] },
    terminal.readStdin,
  );
  const nodeName = chooseNodeName(options.node, loaded.prepared);
  const { from, to, diagnostics: wrong } = chooseReleases(loaded, nodeName, options);
  const hasErrors = loaded.diagnostics.some(isError);
  const node = hasErrors
    ? []
    : checkNodes([nodeName], options.node === undefined ? undefined : [options.node], loaded.prepared);
  const mode = loaded.modeNote && !hasErrors ? [loaded.modeNote] : [];
  const diagnostics = [...wrong, ...node, ...mode, ...loaded.diagnostics];
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (diagnostics.some(isError) || from === undefined || to === undefined) return exitStatus.badInput;
  return printReleases({ loaded, nodeName, from, to, name: path ?? '-f' }, options, terminal);
}

function isError({ severity }: Diagnostic): boolean {
  return severity === 'error';
}

/** Why an argument cannot be compiled for two releases. */
async function describeNoManifests(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const { kind } = await readStoredSide(path);
  switch (kind) {
    case 'manifests':
    case 'unreadable':
      return undefined;
    case 'bundle':
    case 'dump':
      return `${path} is a ${kind}, and ${toFlag} needs manifests: name those that are in the cluster`;
  }
}

/** The releases to compare; undefined where one cannot be told, which the diagnostics say. */
interface ReleasePair {
  readonly from: Release | undefined;
  readonly to: Release | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

function chooseReleases(
  { version, prepared }: LoadedInputs,
  nodeName: string,
  options: ReleaseDiffOptions,
): ReleasePair {
  const wanted = parseVersionChoice(options.toKubernetesVersion, toFlag);
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

interface ReleaseComparison {
  readonly loaded: LoadedInputs;
  readonly nodeName: string;
  readonly from: Release;
  readonly to: Release;
  readonly name: string;
}

async function printReleases(
  { loaded, nodeName, name, ...pair }: ReleaseComparison,
  options: ReleaseDiffOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { diffSides } = await import('../../diff/diff-sides.ts');
  const { differingBehaviours, explainByRelease } = await import('../../diff/release-changes.ts');
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
  for (const note of notes) await terminal.err(`kpc: note: ${oneLine(note)}\n`);
  return printFound(from.side, to.side, diff, options, terminal);
}

/** How many connections to track is decided on the node: it depends on the number of its cores. */
function describeConntrackLimit({ conntrack }: ProxySettings): readonly string[] {
  if (conntrack.maxPerCore <= 0) return [];
  const cores = Math.floor(defaultConntrackLimit / conntrack.maxPerCore);
  const { before, after } = behaviourChanges['conntrack-limit'];
  return [`on a node with more than ${count(cores, 'core')} kube-proxy before 1.36 ${before}, and since then ${after}`];
}
