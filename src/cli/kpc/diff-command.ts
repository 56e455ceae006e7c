import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ReportBlock, ReportLimits } from '../../diff/diff-report.ts';
import type { SideDiff } from '../../diff/diff-sides.ts';
import { printable } from '../../base/printable.ts';
import type { Side } from '../../diff/compared-side.ts';
import type { SideOptions } from '../../sides/read-side.ts';
import type { SideReading, StoredSide } from '../../sides/stored-side.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { formatJson } from '../../report/format-json.ts';
import { addInputOptions } from './input-options.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { addMessageOptions, quieten, type MessageOptions, reportInput } from './messages.ts';
import { tuneForShortRun } from './v8-flags.ts';
import { refuse } from '../shared/refuse.ts';

const outputs = ['text', 'json', 'markdown', 'unified'] as const;

export interface DiffOptions extends SideOptions, MessageOptions {
  readonly toKubernetesVersion?: string;
  readonly output: (typeof outputs)[number];
  readonly foreign?: boolean;
  readonly rules?: boolean;
  readonly limit: number;
}

const moreManifests =
  'more manifests for each side that is manifests, such as Nodes: a file, a folder, or - for stdin (repeat for more)';

export function addDiffCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('diff')
    .summary('Show what differs between two sides, Service by Service.')
    .description(
      'Show what differs between two sides, Service by Service. Exit status 1 if anything differs, or if a dump has virtual ' +
        "servers that may or may not be kube-proxy's. kpc names what one side does not show, and does not compare it; if " +
        'nothing can be compared, the exit status is 2.\n' +
        'Each side is a bundle or a golden (a folder that kpc compile wrote), a dump of a node (a file or folder with the ' +
        'output of iptables-save, ip6tables-save, ipset save, ipvsadm -Sn, ip -j addr, sysctl -a or nft list ruleset, or ' +
        'a folder that kpc-apply dump wrote) or manifests (a file, a folder, or - for stdin). Where no flag says how to ' +
        'compile manifests, kpc follows the bundle or dump on the other side.',
    )
    .argument('[from]', 'the old side')
    .argument('[to]', 'the new side');
  addInputOptions(command, 'looks');
  for (const option of command.options) if (option.attributeName() === 'file') option.description = moreManifests;
  command.option(
    '--node <name>',
    'the node to compile manifests for (default: the node of a bundle on the other side)',
  );
  const ofManifests = [...command.options];
  /** The flags that were given and say what manifests compile to. */
  const givenFlags = (): readonly string[] =>
    ofManifests
      .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
      .map(({ long }) => long ?? '');
  command
    .option(
      '--to-kubernetes-version <version>',
      'show what an upgrade of Kubernetes changes on a node: compile the manifests of -f (or of one argument) for ' +
        '--kubernetes-version and for this release, and compare the two',
    )
    .addOption(new Option('--output <format>', 'how to print').choices(outputs).default('text'))
    .addOption(addLimit())
    .option('--rules', 'also show which rules, sets and virtual servers differ; always shown for a dump')
    .option('--foreign', "also compare what is not kube-proxy's");
  addMessageOptions(command).action(
    async (first: string | undefined, second: string | undefined, given: DiffOptions) => {
      const named = [first, second].filter((side) => side !== undefined);
      const { file: files = [], ...others } = given;
      // Where too few sides are named, -f names them.
      const areInFiles =
        given.toKubernetesVersion === undefined && named.length < 2 && named.length + files.length === 2;
      const [from, to] = areInFiles ? [...named, ...files] : named;
      const options: DiffOptions = areInFiles ? others : given;
      const quiet = quieten(terminal, options);
      if (options.toKubernetesVersion !== undefined) {
        const { runReleaseDiff } = await import('./diff-releases.ts');
        done(await runReleaseDiff(named, { ...options, toKubernetesVersion: options.toKubernetesVersion }, quiet));
      } else if (from === undefined || to === undefined) {
        command.error(`error: missing required argument '${from === undefined ? 'from' : 'to'}'`);
      } else done(await runDiff([from, to], options, givenFlags(), quiet));
    },
  );
}

/** --limit: how much of a list is shown. */
export function addLimit(): Option {
  return new Option('--limit <count>', 'lines of a list to show before "and 230 more"; 0 for all')
    .argParser((text) => {
      if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a number.');
      return Number(text) === 0 ? Number.POSITIVE_INFINITY : Number(text);
    })
    .default(20);
}

async function runDiff(
  paths: readonly [from: string, to: string],
  options: DiffOptions,
  flags: readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  tuneForShortRun();
  const { compileSide, readNames, readStoredSide } = await import('../../sides/read-side.ts');
  if (paths.every((path) => path === '-')) return refuse(terminal, 'only one side can be read from stdin');
  const stdin = paths.includes('-') ? await terminal.readStdin() : undefined;
  const context = { node: options.node, stdin };
  const [from, to] = [await readStoredSide(paths[0], context), await readStoredSide(paths[1], context)];
  // What each side is, whatever flags say of how manifests are compiled.
  const isStored = [from, to].every(({ kind }) => kind === 'bundle' || kind === 'dump');
  const strays = flags.filter((flag) => !isUseful(flag, paths, [from, to]));
  if (strays.length > 0 && isStored) {
    const sides = paths.join(' nor ');
    return refuse(terminal, `${strays.join(', ')}: only for manifests, and neither ${sides} is manifests`);
  }
  const finish = async (path: string, side: StoredSide, other: StoredSide): Promise<SideReading> =>
    side.kind === 'manifests'
      ? compileSide(path, other, { ...options, into: 'kpc describe -' }, terminal.readStdin)
      : side.reading;
  const readings = [await finish(paths[0], from, to), await finish(paths[1], to, from)] as const;
  const diagnostics = sortDiagnostics(readings.flatMap((reading) => reading.diagnostics));
  const files = new Map(readings.flatMap((reading) => [...reading.files]));
  const isRight = await reportInput({ diagnostics, files }, options, terminal);
  let [fromSide, toSide] = readings.map(({ side }) => side);
  if (!fromSide || !toSide || !isRight) return exitStatus.badInput;
  for (const note of readings.flatMap(({ notes }) => notes)) await say(terminal, `note: ${printable(note)}\n`);
  if (options.file && isStored) {
    const { nameServers } = await import('../../diff/virtual-servers.ts');
    const { cluster, ...names } = await readNames(options, terminal.readStdin);
    if (!(await reportInput(names, options, terminal)) || !cluster) return exitStatus.badInput;
    const name = (side: Side): Side =>
      side.kind === 'dump' ? { ...side, labels: nameServers(side.state, cluster) } : side;
    [fromSide, toSide] = [name(fromSide), name(toSide)];
  }
  return compareSides(fromSide, toSide, options, terminal);
}

/** Whether a flag says something of sides that are no manifests: names for a dump, or which node of a fleet is meant. */
function isUseful(flag: string, paths: readonly string[], sides: readonly StoredSide[]): boolean {
  if (flag === '--file') return sides.some(({ kind }) => kind === 'dump');
  // The bundle of a node was found inside the named folder.
  return flag === '--node' && sides.some((side, i) => side.kind === 'bundle' && side.reading.side?.name !== paths[i]);
}

async function compareSides(from: Side, to: Side, options: DiffOptions, terminal: Terminal): Promise<ExitStatus> {
  const [before, after] = [from.services?.settings.release, to.services?.settings.release];
  // If the sides follow two releases, the manifests do not show why they differ.
  if (before !== undefined && after !== undefined && before !== after) {
    const follows = `${from.name} follows Kubernetes ${before}, ${to.name} follows ${after}`;
    const command = `kpc diff --kubernetes-version ${before} --to-kubernetes-version ${after} -f MANIFESTS`;
    const note = `${follows}: a Service can differ though its manifest is the same; "${command}" says why`;
    await say(terminal, `note: ${printable(note)}\n`);
  }
  const { diffSides } = await import('../../diff/diff-sides.ts');
  const { diffDecompiled: readServices } = await import('../../describe/decompile.ts');
  const diff = diffSides(from, to, { foreign: options.foreign === true, readServices });
  // A dump is compared for its rules.
  const isReview = !options.rules && from.services !== undefined && to.services !== undefined;
  return printFound(from, to, diff, options, terminal, isReview);
}

/** Prints how two sides differ. */
export async function printFound(
  from: Side,
  to: Side,
  diff: SideDiff,
  options: DiffOptions,
  terminal: Terminal,
  isReview = false,
): Promise<ExitStatus> {
  const { isSame } = await import('../../diff/diff-sides.ts');
  const { describeGaps } = await import('../../diff/not-compared.ts');
  const missed = describeGaps(diff.gaps).join(', ');
  if (missed !== '') await say(terminal, `note: not compared, because one side lacks them: ${missed}\n`);
  if (isSame(diff) && diff.extent === 'nothing') {
    return refuse(terminal, `${from.name} and ${to.name} have nothing in common that could be compared`);
  }
  await terminal.out(await formatDiff(from, to, diff, options, terminal, isReview));
  return isSame(diff) ? exitStatus.ok : exitStatus.differs;
}

async function formatDiff(
  from: Side,
  to: Side,
  diff: SideDiff,
  options: DiffOptions,
  terminal: Terminal,
  isReview: boolean,
): Promise<string> {
  const { reportDiff } = await import('../../diff/diff-report.ts');
  const limits: ReportLimits = { servicePorts: options.limit, lines: options.limit };
  switch (options.output) {
    case 'text': {
      const { formatText } = await import('../../report/text-and-markdown.ts');
      const { reportPainter } = await import('../../report/colours.ts');
      const report = isReview ? await reviewOf(from, to, diff, limits) : reportDiff(diff, limits);
      return formatText(report, reportPainter(terminal.colour.out));
    }
    case 'markdown': {
      const { formatMarkdown } = await import('../../report/text-and-markdown.ts');
      return formatMarkdown(reportDiff(diff, limits));
    }
    case 'json': {
      const { diffToJson } = await import('../../report/json.ts');
      return formatJson(diffToJson(from, to, diff));
    }
    case 'unified': {
      const { formatSideDiffs } = await import('../../report/unified.ts');
      return formatSideDiffs(from, to);
    }
  }
}

/** So many Service ports are asked about at most: each may be reached in many ways. */
const mostAsked = 400;

async function reviewOf(from: Side, to: Side, diff: SideDiff, limits: ReportLimits): Promise<readonly ReportBlock[]> {
  const { reportReview } = await import('../../report/diff-review.ts');
  const ports = [from, to].map(({ services }) => services?.cluster.servicePorts.length ?? 0);
  if (diff.servicePorts.length === 0 || Math.max(...ports) > mostAsked) {
    return reportReview({ from, to, diff, packets: undefined }, limits);
  }
  const { effectsByService } = await import('../../packet/equivalence/findings.ts');
  const { findOwners } = await import('../../diff/changes/owners.ts');
  const { onOneNode, sceneOf } = await import('../../packet/trace/scene.ts');
  const [old, fresh] = [from, to].map((side) => {
    const { state, labels, services } = side;
    return sceneOf(side, findOwners(labels ? [labels, state] : [state]), services?.settings.mode, []);
  });
  if (!old || !fresh) return [];
  return reportReview({ from, to, diff, packets: effectsByService(...onOneNode(old, fresh)) }, limits);
}
