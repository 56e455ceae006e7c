import { pathWord, quotePrintable } from '../../base/printable.ts';
import { Option, type Command } from 'commander';
import { loadInputs } from '../../compile/read-texts.ts';
import { modeFacts, unnamedMode, type ProxyMode } from '../../kube-proxy/modes.ts';
import { planChange, sortPreparations, type Change, type ChangedSide } from '../../equivalence/change.ts';
import { Comparison } from '../../equivalence/comparison.ts';
import { chooseStandIns } from '../../equivalence/representatives.ts';
import {
  equivalenceOutputs,
  formatEquivalence,
  needsWork,
  type EquivalenceReport,
  type Tracing,
} from '../../report/equivalence.ts';
import { type Done, type Terminal, exitStatus, type ExitStatus } from '../shared/terminal.ts';
import {
  addInputOptions,
  describeStrays,
  flagsOfManifests,
  namedInputs,
  traceSide,
  traceWords,
} from './input-options.ts';
import { preparationsFor } from '../../equivalence/preparations.ts';
import { lastAnnounced } from '../../kube-proxy/announced.ts';
import { lastRelease } from '../../kube-proxy/releases.ts';
import { readStoredSide } from '../../sides/read-side.ts';
import { splitList } from '../../settings/setting.ts';
import type { LoadedInputs } from '../../compile/load-texts.ts';
import type { Scene } from '../../trace/scene.ts';
import { refuse, refuseStored, addMessageOptions, quieten, showProgress } from './messages.ts';
import { findMeant, readPairs, readSpec, type Pairs, type SceneOptions, type Spec } from './read-scene.ts';

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
  addInputOptions(command, 'looks')
    .option('--node <name>', 'the node (default: hostnameOverride, or else the only Node in the input)')
    .option('--all-nodes', 'on every node of the input; nodes that are alike count as one')
    .addOption(new Option('--output <format>', 'how to print').choices(equivalenceOutputs).default('text'));
  addMessageOptions(command).action(async (from: string, to: string, options: EquivalenceOptions) => {
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
    const idle = await findIdle(flagsOfManifests(command), [old, fresh], quiet);
    if (idle !== undefined) {
      done(await refuse(quiet, idle));
      return;
    }
    const pairs = await readPairs(old, fresh, options, quiet);
    const traceOf = ([before, after]: readonly [Scene, Scene]): Tracing => {
      const words = ({ side }: Scene, { name, adds }: Spec) =>
        traceSide(command, side, adds ? (options.file ?? []) : [name], adds);
      return { old: words(before, old), new: words(after, fresh) };
    };
    done(await report(pairs, { from, to, traceOf, preparations: undefined }, options, quiet));
  });
}

/** Why flags of the command line would do nothing for these sides; undefined if none would. */
async function findIdle(
  flags: readonly string[],
  specs: readonly [Spec, Spec],
  { readStdin }: Terminal,
): Promise<string | undefined> {
  const named = flags.filter((flag) => specs.every(({ adds }) => adds && flag in adds));
  if (named.length > 0) return `${named.join(', ')}: both sides name their own`;
  if (flags.length === 0 || specs.some((spec) => spec.flags)) return undefined;
  const sides = await Promise.all(specs.map(({ name }) => readStoredSide(name, { readStdin })));
  if (sides.every(({ kind }) => kind !== 'manifests')) return describeStrays(flags, [specs[0].name, specs[1].name]);
  return flags.includes('--file')
    ? '-f: only for a side that is a mode, a release or a configuration, and both sides are files'
    : undefined;
}

interface Asked extends Pick<EquivalenceReport, 'from' | 'to' | 'preparations'> {
  /** The commands that show both sides of a node; those of all nodes differ in the node alone. */
  readonly traceOf: (scenes: readonly [Scene, Scene]) => Tracing;
}

/**
 * Compares both sides on the nodes that represent all. `pairs` is undefined if a side is unusable; that has been
 * reported.
 */
async function report(
  pairs: Pairs | undefined,
  { traceOf, ...asked }: Asked,
  { output }: EquivalenceOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (!pairs) return exitStatus.badInput;
  const { nodes, loaded, read } = pairs;
  const standIns = loaded
    ? chooseStandIns(loaded.prepared.nodes, loaded.prepared.cluster, nodes)
    : nodes.map((node) => ({ node, only: undefined }));
  const comparison = new Comparison();
  let trace: Tracing = { old: [], new: [] };
  let sharedMode: string | undefined;
  const progress = showProgress(standIns.length, terminal);
  for (const { node, only } of standIns) {
    const scenes = await read(node);
    if (!scenes) return exitStatus.badInput;
    trace = traceOf(scenes);
    sharedMode = asked.preparations ? undefined : sharedModeOf(scenes);
    comparison.add(scenes, only);
    await progress.step();
  }
  await progress.end();
  const compared = {
    ...asked,
    trace,
    sharedMode,
    nodes: nodes.length,
    standIns: standIns.length,
    ...comparison.result(),
  };
  await terminal.out(formatEquivalence(compared, output, terminal.colour.out));
  // A change of mode is judged by what it costs; two sides that are to be equal, by any difference.
  const isWorse = asked.preparations ? needsWork(compared) : compared.findings.length > 0;
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
    .argument('[input...]', 'manifests of the cluster, as with -f: Services, EndpointSlices and Nodes')
    .addOption(
      new Option('--from <mode>', "the mode now (default: that of kube-proxy's configuration, or else ipvs)").choices([
        'ipvs',
        'iptables',
        'userspace',
      ]),
    )
    .addOption(
      new Option(
        '--to <mode>',
        'the mode afterwards (default: nftables; in an upgrade, the mode that results from it)',
      ).choices(['nftables', 'iptables']),
    )
    .option(
      '--to-kubernetes-version <version>',
      `upgrade to this release, up to 1.${lastAnnounced}: beyond ${lastRelease}, with the changes announced for it`,
    );
  addInputOptions(command, 'looks')
    .option('--node <name>', 'on one node only')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json', 'markdown']).default('text'));
  addMessageOptions(command).action(async (inputs: readonly string[], given: MigrateOptions) => {
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
  const change = planOf(options, loaded);
  if (change.kind === 'refused') return refuse(terminal, change.what, change.help);
  const { from, to } = change;
  const allNodes = options.node === undefined && loaded.prepared.nodes.size > 1;
  const common: SceneOptions = { ...options, allNodes };
  const specs = [from, to].map((side): Spec => {
    const flags = flagsOfSide(side, options);
    return { name: side.words, adds: flagWords(flags), flags: { ...common, ...flags } };
  });
  const [old, fresh] = specs as [Spec, Spec];
  const pairs = await readPairs(old, fresh, common, terminal);
  const scenes = await pairs?.read(pairs.nodes[0] ?? '');
  const traceOf = (): Tracing => ({
    old: traceWords(command, options.file.map(pathWord), old.adds),
    new: traceWords(command, options.file.map(pathWord), fresh.adds),
  });
  const preparations = scenes && sortPreparations([...change.announced, ...preparationsFor(...scenes)]);
  return report(scenes && pairs, { from: from.words, to: to.words, traceOf, preparations }, options, terminal);
}

function planOf(options: MigrateOptions, { prepared, modeNote, version }: LoadedInputs): Change {
  return planChange(options, {
    mode: prepared.settings.mode,
    isModeNamed: modeNote?.code !== 'default-mode',
    gates: prepared.gates,
    version,
    servicePorts: prepared.cluster.servicePorts,
  });
}

/** The flags of a side, with the user's feature gates. */
function flagsOfSide(
  { proxyMode, kubernetesVersion, gates }: ChangedSide,
  { featureGates }: MigrateOptions,
): SideFlags {
  return {
    proxyMode,
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
    ...(gates === undefined ? {} : { featureGates: [...splitList(featureGates ?? []), ...gates] }),
  };
}

type SideFlags = Pick<SceneOptions, 'proxyMode' | 'kubernetesVersion' | 'featureGates'>;

function flagWords({ proxyMode, kubernetesVersion, featureGates }: SideFlags): Spec['adds'] {
  return {
    ...(proxyMode === undefined ? {} : { '--proxy-mode': proxyMode }),
    ...(kubernetesVersion === undefined ? {} : { '--kubernetes-version': kubernetesVersion }),
    ...(featureGates === undefined ? {} : { '--feature-gates': [featureGates].flat().join(',') }),
  };
}
