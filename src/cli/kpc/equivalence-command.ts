import { pathWord, printable, quotePrintable } from '../../base/printable.ts';
import type { Command } from 'commander';
import { loadInputs } from '../../snapshot/files/read-texts.ts';
import { modeFacts, unnamedMode, type ProxyMode } from '../../kube-proxy/modes.ts';
import { planChange, sortPreparations } from '../../equivalence/change.ts';
import {
  equivalenceOutputs,
  formatEquivalence,
  needsWork,
  type EquivalenceReport,
  type Tracing,
} from '../../report/equivalence.ts';
import { type Done, type Terminal, exitStatus, say, type ExitStatus } from '../shared/terminal.ts';
import { addFlags, givenFlags, nodeFlag, outputFlag } from './flags.ts';
import { describeStrays, namedInputs, namesOf, traceSide, traceWords } from './input-options.ts';
import { NodeComparison } from '../../library/compare-nodes.ts';
import type { Opened } from '../../snapshot/open/opened.ts';
import { preparationsFor, type Preparation } from '../../equivalence/preparations.ts';
import { lastAnnounced } from '../../kube-proxy/announced.ts';
import { lastRelease } from '../../kube-proxy/releases.ts';
import { readStoredSide } from '../../snapshot/files/read-side.ts';
import { flagWords, openFlags } from '../../library/options.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import type { Scene } from '../../trace/scene.ts';
import { refuse, refuseStored, messageFlags, quieten, showProgress } from './messages.ts';
import { findMeant, openPair, readSpec, reportReading, type SceneOptions, type Spec } from './read-scene.ts';

interface EquivalenceOptions extends SceneOptions {
  readonly output: (typeof equivalenceOutputs)[number];
}

export function addEquivalenceCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('equivalence')
    .summary('Prove which packets two sides treat differently, and why.')
    .description(
      'Trace packets through both sides, one of every class that either side distinguishes, and show by cause where the ' +
        'verdict, the endpoints or the source differ. Exit status 1 if any do. Each side is a mode (ipvs, iptables, nftables), a ' +
        "release (1.36) or a file with kube-proxy's configuration, for which the manifests of -f are compiled; or a bundle, " +
        'a dump of a node, or manifests.',
    )
    .argument('<from>', 'the old side')
    .argument('<to>', 'the new side');
  addFlags(command, [
    ...openFlags('looks'),
    nodeFlag('the node (default: hostnameOverride, or else the only Node in the input)'),
    flagRow('on', '--all-nodes', 'on every node of the input; nodes that are alike count as one'),
    outputFlag(equivalenceOutputs),
    ...messageFlags,
  ]).action(async (from: string, to: string, options: EquivalenceOptions) => {
    const quiet = quieten(terminal, options);
    const [old, fresh] = [readSpec(from, options), readSpec(to, options)];
    const wrong = [old, fresh].filter((spec) => findMeant(spec) !== undefined);
    const [first] = wrong;
    if (first) {
      const names = wrong.map(({ name }) => quotePrintable(name)).join(' and ');
      const what = `no mode, release, file or folder is called ${names}`;
      done(await refuse(quiet, what, `did you mean ${findMeant(first)}?`));
      return;
    }
    const idle = await findIdle(givenFlags(command), [old, fresh], quiet);
    if (idle !== undefined) {
      done(await refuse(quiet, idle));
      return;
    }
    const sides = await openPair(old, fresh, options, quiet);
    const traceOf = ([before, after]: readonly [Scene, Scene]): Tracing => {
      const words = ({ side }: Scene, { name, adds }: Spec) =>
        traceSide(command, side, adds ? (options.file ?? []) : [name], adds);
      return { old: words(before, old), new: words(after, fresh) };
    };
    done(await report(sides, { from, to, traceOf, announced: undefined }, options, quiet));
  });
}

/** Why flags of the command line would do nothing for these sides; undefined if none would. */
async function findIdle(
  given: readonly Flag[],
  specs: readonly [Spec, Spec],
  { readStdin }: Terminal,
): Promise<string | undefined> {
  const flags = given.filter(({ needs }) => needs !== undefined);
  const named = flags.filter(({ name }) => specs.every(({ adds }) => adds && name in adds));
  if (named.length > 0) return `${namesOf(named)}: both sides name their own`;
  if (flags.length === 0 || specs.some((spec) => spec.flags)) return undefined;
  const sides = await Promise.all(specs.map(({ name }) => readStoredSide(name, { readStdin })));
  if (sides.every(({ kind }) => kind !== 'manifests')) return describeStrays(flags, [specs[0].name, specs[1].name]);
  return flags.some(({ key }) => key === 'file')
    ? '-f: only for a side that is a mode, a release or a configuration, and both sides are files'
    : undefined;
}

interface Asked extends Pick<EquivalenceReport, 'from' | 'to'> {
  /** The commands that show both sides of a node; those of all nodes differ in the node alone. */
  readonly traceOf: (scenes: readonly [Scene, Scene]) => Tracing;
  /** What a change of mode or release asks for; undefined for any other comparison. */
  readonly announced: readonly Preparation[] | undefined;
}

/** Compares both sides on the nodes that represent all. `sides` is undefined if one is unusable; that has been reported. */
async function report(
  sides: readonly [Opened, Opened] | undefined,
  { traceOf, announced, ...asked }: Asked,
  options: EquivalenceOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (!sides) return exitStatus.badInput;
  const comparison = new NodeComparison(...sides);
  let trace: Tracing = { old: [], new: [] };
  let sharedMode: string | undefined;
  let preparations: readonly Preparation[] | undefined;
  const progress = showProgress(comparison.counts.standIns, terminal);
  for (const { readings, scenes, notes } of comparison.run()) {
    for (const reading of readings) {
      if (!(await reportReading(reading, options, terminal))) return exitStatus.badInput;
    }
    if (!scenes) return exitStatus.badInput;
    for (const note of notes) await say(terminal, `note: ${printable(note)}\n`);
    trace = traceOf(scenes);
    sharedMode = announced ? undefined : sharedModeOf(scenes);
    preparations ??= announced && sortPreparations([...announced, ...preparationsFor(...scenes)]);
    await progress.step();
  }
  await progress.end();
  const compared = { ...asked, preparations, trace, sharedMode, ...comparison.counts, ...comparison.result() };
  await terminal.out(formatEquivalence(compared, options.output, terminal.colour.out));
  // A change of mode is judged by what it costs; two sides that are to be equal, by any difference.
  const isWorse = announced ? needsWork(compared) : compared.findings.length > 0;
  return isWorse ? exitStatus.negative : exitStatus.ok;
}

/** In words; undefined if the sides differ in it, or one does not show its settings. */
function sharedModeOf([{ side: old }, { side: fresh }]: readonly [Scene, Scene]): string | undefined {
  const mode = fresh.settings?.mode;
  if (mode === undefined || mode !== old.settings?.mode) return undefined;
  return `${modeFacts[mode].title}${fresh.assumed?.mode ? ` ${unnamedMode}` : ''}`;
}

interface MigrateOptions extends EquivalenceOptions {
  readonly from?: ProxyMode;
  readonly to?: ProxyMode;
  readonly toKubernetesVersion?: string;
}

export function addMigrateCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('migrate')
    .summary('Show what a change of mode or an upgrade needs and breaks, on all nodes.')
    .description(
      "Show what a cluster needs before kube-proxy's mode or release changes, and which packets are treated differently after it, on every " +
        'node of the input. Exit status 1 if something breaks, or has to be set first.',
    )
    .argument('[input...]', 'manifests of the cluster, as with -f: Services, EndpointSlices and Nodes');
  const twice = {
    beside: '--from',
    what: '--proxy-mode and --from both name the mode now',
    help: 'leave out one of the two',
  };
  addFlags(command, [
    flagRow('text', '--from <mode>', "the mode now (default: that of kube-proxy's configuration, or else ipvs)", {
      choices: ['ipvs', 'iptables', 'userspace'],
    }),
    flagRow(
      'text',
      '--to <mode>',
      'the mode afterwards (default: nftables; in an upgrade, the mode that results from it)',
      {
        choices: ['nftables', 'iptables'],
      },
    ),
    flagRow(
      'text',
      '--to-kubernetes-version <version>',
      `upgrade to this release, up to 1.${lastAnnounced}: beyond ${lastRelease}, with the changes announced for it`,
    ),
    ...openFlags('looks', { proxyMode: { idle: [twice] } }),
    nodeFlag('on one node only'),
    outputFlag(['text', 'json', 'markdown']),
    ...messageFlags,
  ]).action(async (inputs: readonly string[], given: MigrateOptions) => {
    const options = { ...given, file: namedInputs(command, inputs, given.file) };
    if (options.file.length === 0) {
      command.error('error: no input is named\nadd the manifests of the cluster, with - for stdin');
    }
    done(await runMigrate(command, options, quieten(terminal, options)));
  });
}

async function runMigrate(
  command: Command,
  options: MigrateOptions & { readonly file: readonly string[] },
  terminal: Terminal,
): Promise<ExitStatus> {
  for (const path of options.file) {
    const help = 'name what kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml prints';
    const refused = await refuseStored(path, 'kpc migrate compiles manifests', help, terminal);
    if (refused !== undefined) return refused;
  }
  const loaded = await loadInputs(options, terminal.readStdin);
  const change = planChange(options, loaded);
  if (change.kind === 'refused') return refuse(terminal, change.what, change.help);
  const { from, to } = change;
  const allNodes = options.node === undefined && loaded.prepared.nodes.size > 1;
  const common: SceneOptions = { ...options, allNodes };
  const specs = [from, to].map(({ words, options: own }): Spec => {
    return { name: words, adds: flagWords(own), flags: { ...common, ...own } };
  });
  const [old, fresh] = specs as [Spec, Spec];
  const sides = await openPair(old, fresh, common, terminal);
  const traceOf = (): Tracing => ({
    old: traceWords(command, options.file.map(pathWord), old.adds),
    new: traceWords(command, options.file.map(pathWord), fresh.adds),
  });
  return report(sides, { from: from.words, to: to.words, traceOf, announced: change.announced }, options, terminal);
}
