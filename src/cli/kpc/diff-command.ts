import type { Command } from 'commander';
import { printable } from '../../base/printable.ts';
import { chooseNodeName } from '../../snapshot/open/compile-node.ts';
import { prepareChecked } from '../../snapshot/open/compile.ts';
import { compileSide } from '../../snapshot/files/open.ts';
import { loadInputs } from '../../snapshot/files/read-texts.ts';
import { flowChangeJson } from '../../describe/flow-change.ts';
import { flowsOfChange } from '../../describe/read-dumped.ts';
import { isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { openTrees } from '../../git/open-trees.ts';
import { revisionOf } from '../../git/revision-path.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { reportDiff, type ReportLimits } from '../../diff/diff-report.ts';
import { diffSides, isSame, type SideDiff } from '../../diff/diff-sides.ts';
import { describeGaps } from '../../diff/not-compared.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { painter } from '../../report/colours.ts';
import { formatJson } from '../../report/format-json.ts';
import { difference } from '../../report/outputs/diff.ts';
import { reportReview } from '../../report/diff-review.ts';
import { reportFlows } from '../../report/dump-text.ts';
import type { Tracing } from '../../report/equivalence.ts';
import { makeReview } from '../../report/make-review.ts';
import { formatReviewMarkdown } from '../../report/review-markdown.ts';
import { diffToJson } from '../../report/json.ts';
import { formatMarkdown, formatText, takenMarkdown } from '../../report/text-and-markdown.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import { chooseReleases, compareReleases } from '../../snapshot/open/compare-releases.ts';
import { readNames, readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import type { Reading, Recognised } from '../../snapshot/open/opened.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus, say } from '../shared/terminal.ts';
import { addFlags, givenFlags, leaveOut, limitFlag, nodeFlag, outputFlag } from './flags.ts';
import { describeStrays, traceSide } from './input-options.ts';
import { optionsInTree, takenWords, type KpcYaml } from './kpc-yaml.ts';
import { messageFlags, quieten, type MessageOptions, reportInput, refuse, refuseStored, sayTaken } from './messages.ts';

const outputs = ['text', 'json', 'markdown', 'unified'] as const;

interface DiffOptions extends SideOptions, MessageOptions {
  readonly toKubernetesVersion?: string;
  readonly output: (typeof outputs)[number];
  readonly foreign?: boolean;
  readonly rules?: boolean;
  readonly limit: number;
}

const moreManifests =
  'more manifests for each side that is manifests, such as Nodes: a file, a folder, or - for stdin (repeat for more)';

const diffFlags: readonly Flag[] = [
  ...openFlags('looks', { file: { help: moreManifests } }),
  nodeFlag('the node to compile manifests for (default: the node of a bundle on the other side)'),
  flagRow(
    'text',
    '--to-kubernetes-version <version>',
    'show what an upgrade of Kubernetes changes on a node: compile the manifests of -f (or of one argument) for ' +
      '--kubernetes-version and for this release, and compare the two',
  ),
  outputFlag(outputs),
  limitFlag,
  flagRow('on', '--rules', 'also show which rules, sets and virtual servers differ; always shown for a dump', {
    idle: [
      { beside: '--output unified', what: '--rules: unified output always has them', help: leaveOut },
      {
        beside: '--to-kubernetes-version',
        what: '--rules: two releases are always compared by their rules',
        help: leaveOut,
      },
    ],
  }),
  flagRow('on', '--foreign', "also compare what is not kube-proxy's"),
  ...messageFlags,
];

export function addDiffCommand(program: Command, terminal: Terminal, done: Done): void {
  const command: Command = program
    .command('diff')
    .summary('Show what differs between two sides, Service by Service.')
    .description(
      'Show what differs between two sides, Service by Service. Exit status 1 if anything differs, or if a dump has virtual ' +
        "servers that may or may not be kube-proxy's. kpc names what one side does not show, and does not compare it; if " +
        'nothing can be compared, the exit status is 2.\n' +
        'Each side is a bundle or a golden (a folder that kpc compile wrote), a dump of a node (a file or folder with the ' +
        'output of iptables-save, ip6tables-save, ipset save, ipvsadm -Sn, ip -j addr, sysctl -a or nft list ruleset, or ' +
        'a folder that kpc-apply dump wrote) or manifests (a file, a folder, or - for stdin). It may be REVISION:PATH of the ' +
        'git repository, such as main:deploy. Where no flag says how to compile manifests, kpc follows the bundle or dump on ' +
        'the other side.',
    )
    .argument('[from]', 'the old side')
    .argument('[to]', 'the new side');
  addFlags(command, diffFlags).action(
    async (first: string | undefined, second: string | undefined, given: DiffOptions) => {
      const quiet = quieten(terminal, given);
      const named = [first, second].filter((side) => side !== undefined);
      const { file: files = [], ...others } = given;
      if (given.toKubernetesVersion !== undefined) {
        done(await runReleaseDiff(named, { ...given, toKubernetesVersion: given.toKubernetesVersion }, quiet));
        return;
      }
      // Where too few sides are named, -f names them.
      const areInFiles = named.length < 2 && named.length + files.length === 2;
      const [from, to] = areInFiles ? [...named, ...files] : named;
      if (from === undefined || to === undefined) {
        const lacks = from === undefined ? 'two sides' : `a second side beside ${from}`;
        command.error(`error: diff needs ${lacks}\nkpc diff OLD NEW, such as "kpc diff main:services services"`);
      }
      const options = areInFiles ? others : given;
      const traceOf = tracer(command, [from, to], areInFiles ? [] : files);
      const optionsOf = async (path: string) => {
        const tree = (await openTrees([path])).trees.get(path);
        const found = tree && optionsInTree(command, program, tree);
        if (found) await sayTaken(takenWords(found), command, terminal);
        return found;
      };
      done(await runDiff([from, to], options, { flags: givenFlags(command), traceOf, optionsOf }, quiet));
    },
  );
}

function tracer(
  command: Command,
  [from, to]: readonly [string, string],
  more: readonly string[],
): SideWords['traceOf'] {
  return (before, after) => ({
    old: traceSide(command, before, [from, ...more]),
    new: traceSide(command, after, [to, ...more]),
  });
}

/** What the command line says of the sides. */
interface SideWords {
  /** The flags that shape what manifests compile to. */
  readonly flags: readonly Flag[];
  readonly traceOf: (from: Snapshot, to: Snapshot) => Tracing;
  /** The options of a side in a revision that has a kpc.yaml. */
  readonly optionsOf: (path: string) => Promise<ReturnType<typeof optionsInTree>>;
}

async function runDiff(
  paths: readonly [from: string, to: string],
  options: DiffOptions,
  { flags, traceOf, optionsOf }: SideWords,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { readStdin } = terminal;
  if (paths.every((path) => path === '-')) return refuse(terminal, 'only one side can be read from stdin');
  const context = { node: options.node, readStdin };
  const [from, to] = [await readStoredSide(paths[0], context), await readStoredSide(paths[1], context)];
  // What each side is, whatever flags say of how manifests are compiled.
  const isStored = [from, to].every(({ kind }) => kind === 'bundle' || kind === 'dump');
  const strays = isStored ? flags.filter((each) => !isUseful(each, paths, [from, to])) : [];
  if (strays.length > 0) return refuse(terminal, describeStrays(strays, paths));
  const taken = [...(options.taken ?? [])];
  const finish = async (path: string, side: Recognised, other: Recognised): Promise<Reading> => {
    if (side.kind !== 'manifests') return side;
    const own = await optionsOf(path);
    if (own && own.diagnostics.some(isError)) return failedSide(own);
    if (own) taken.push(...takenWords(own));
    return compileSide(path, other, { ...options, ...own?.options, into: 'kpc describe -' }, readStdin);
  };
  const readings = [await finish(paths[0], from, to), await finish(paths[1], to, from)] as const;
  const diagnostics = sortDiagnostics(joinDiagnostics(paths[0], ...readings));
  const files = new Map(readings.flatMap((reading) => [...reading.files]));
  const isRight = await reportInput({ diagnostics, files }, options, terminal);
  let [fromSide, toSide] = readings.map(({ side }) => side);
  if (!fromSide || !toSide || !isRight) return exitStatus.badInput;
  const made = readings[0].made === readings[1].made ? readings[0].made : undefined;
  const notes = made === undefined ? readings.flatMap((reading) => reading.notes) : [];
  for (const note of notes) await say(terminal, `note: ${printable(note)}\n`);
  if (options.file && isStored) {
    const { cluster, ...names } = await readNames(options, readStdin);
    if (!(await reportInput(names, options, terminal)) || !cluster) return exitStatus.badInput;
    const name = (side: Snapshot): Snapshot => (side.kind === 'dump' ? side.namedBy(cluster) : side);
    [fromSide, toSide] = [name(fromSide), name(toSide)];
  }
  const status = await compareSides(fromSide, toSide, traceOf(fromSide, toSide), { ...options, taken }, terminal);
  if (made !== undefined) await say(terminal, `Both sides: ${printable(made)}\n`);
  return status;
}

/** Those of both sides, without the warnings and notes of a revision that are still true of the new side. */
function joinDiagnostics(path: string, from: Reading, to: Reading): readonly Diagnostic[] {
  const revision = revisionOf(path);
  if (revision === undefined) return [...from.diagnostics, ...to.diagnostics];
  const words = ({ code, text, place }: Diagnostic): string =>
    JSON.stringify([code, text, place?.file]).replaceAll(`${revision}:`, '');
  const said = new Set(to.diagnostics.map(words));
  return [...from.diagnostics.filter((each) => isError(each) || !said.has(words(each))), ...to.diagnostics];
}

/** A side that cannot be compiled, because the kpc.yaml of its revision is wrong. */
function failedSide({ file, diagnostics }: KpcYaml): Reading {
  return { side: undefined, diagnostics, files: new Map([[file.name, file]]), notes: [] };
}

/** Whether a flag has an effect on sides without manifests: it gives a dump names, or selects a node of a fleet. */
function isUseful({ key, needs }: Flag, paths: readonly string[], sides: readonly Recognised[]): boolean {
  if (key === 'file') return sides.some(({ kind }) => kind === 'dump');
  // The bundle of a node was found inside the named folder.
  if (needs === 'nodes') return sides.some((side, i) => side.kind === 'bundle' && side.side.name !== paths[i]);
  return needs === undefined;
}

async function compareSides(
  from: Snapshot,
  to: Snapshot,
  trace: Tracing,
  options: DiffOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const [before, after] = [from.settings?.release, to.settings?.release];
  // If the sides follow two releases, the manifests do not show why they differ.
  if (before !== undefined && after !== undefined && before !== after) {
    const follows = `${from.name} follows Kubernetes ${before}, ${to.name} follows ${after}`;
    const command = `kpc diff --kubernetes-version ${before} --to-kubernetes-version ${after} -f MANIFESTS`;
    const note = `${follows}: a Service can differ though its manifest is the same; "${command}" says why`;
    await say(terminal, `note: ${printable(note)}\n`);
  }
  const diff = diffSides(from, to, { foreign: options.foreign === true, readsBack: true });
  // A dump is compared for its rules.
  const isReview = !options.rules && from.kind !== 'dump' && to.kind !== 'dump';
  return printFound({ from, to, diff, trace: isReview ? trace : undefined }, options, terminal);
}

/** kpc diff --to-kubernetes-version: what another Kubernetes release changes on a node, with the same manifests. */
async function runReleaseDiff(
  [path, second]: readonly string[],
  options: DiffOptions & { readonly toKubernetesVersion: string },
  terminal: Terminal,
): Promise<ExitStatus> {
  const toFlag = '--to-kubernetes-version';
  if (second !== undefined) {
    return refuse(terminal, `${toFlag} compares the same manifests by two releases`, `leave out ${second}`);
  }
  const help = 'name those that are in the cluster';
  const refused = path && (await refuseStored(path, `${toFlag} needs manifests`, help, terminal));
  if (refused) return refused;
  const file = [...(path === undefined ? [] : [path]), ...(options.file ?? [])];
  const loaded = await loadInputs({ ...options, file }, terminal.readStdin);
  const nodeName = chooseNodeName(options.node, loaded.prepared);
  const { from, to, diagnostics: wrong } = chooseReleases(loaded, nodeName, options.toKubernetesVersion, toFlag);
  // Both releases are known already, also with auto.
  const asRead = { ...loaded, version: undefined } as const;
  const named = options.node === undefined ? undefined : [options.node];
  const { diagnostics } = prepareChecked(asRead, { names: [nodeName], flag: named }, wrong);
  if (!(await reportInput({ diagnostics, files: loaded.files }, options, terminal))) return exitStatus.badInput;
  if (from === undefined || to === undefined) return exitStatus.badInput;
  const { notes, ...compared } = compareReleases(loaded, path ?? '-f', { nodeName, from, to }, options);
  for (const note of notes) await say(terminal, `note: ${printable(note)}\n`);
  return printFound({ ...compared, trace: undefined }, options, terminal);
}

interface Found {
  readonly from: Snapshot;
  readonly to: Snapshot;
  readonly diff: SideDiff;
  /** For a review without rules. */
  readonly trace: Tracing | undefined;
}

async function printFound(found: Found, options: DiffOptions, terminal: Terminal): Promise<ExitStatus> {
  const { from, to, diff } = found;
  const missed = describeGaps(diff.gaps).join(', ');
  if (missed !== '') await say(terminal, `note: not compared, because one side lacks them: ${missed}\n`);
  if (isSame(diff) && diff.extent === 'nothing') {
    return refuse(terminal, `${from.name} and ${to.name} have nothing in common that could be compared`);
  }
  await terminal.out(await formatDiff(found, options, terminal.colour.out));
  return isSame(diff) ? exitStatus.ok : exitStatus.negative;
}

async function formatDiff(found: Found, { output, limit, taken }: DiffOptions, colour: boolean): Promise<string> {
  const { from, to, diff, trace } = found;
  const limits: ReportLimits = { servicePorts: limit, lines: limit };
  const flows = flowsOfChange(from, to);
  const flowBlocks = flows ? reportFlows(flows, limit) : [];
  const review = trace && output !== 'unified' ? await makeReview(from, to, diff, trace) : undefined;
  switch (output) {
    case 'text':
      return formatText(
        [...flowBlocks, ...(review ? reportReview(review, limits) : reportDiff(diff, limits))],
        painter(colour),
      );
    case 'markdown':
      return (
        (review ? formatReviewMarkdown(review, limits) : formatMarkdown([...flowBlocks, ...reportDiff(diff, limits)])) +
        takenMarkdown(taken)
      );
    case 'json':
      return formatJson(difference, {
        ...diffToJson(from, to, diff, review),
        ...(flows ? { flows: flowChangeJson(flows) } : {}),
      });
    case 'unified': {
      const { formatSideDiffs } = await import('../../report/unified.ts');
      return formatSideDiffs(from, to);
    }
  }
}
