import { Option, type Command } from 'commander';
import { loadInputs } from '../../compile/read-texts.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { compareScenes } from '../../packet/equivalence/compare.ts';
import { Findings } from '../../packet/equivalence/findings.ts';
import { chooseStandIns } from '../../packet/equivalence/representatives.ts';
import { equivalenceOutputs, formatEquivalence } from '../../report/equivalence.ts';
import { type Done, type Terminal, exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { addInputOptions, namedInputs } from './input-options.ts';
import { preparationsFor, type Preparation } from '../../packet/equivalence/preparations.ts';
import { refuse, addMessageOptions, quieten, showProgress } from './messages.ts';
import { readPairs, type SceneOptions, type Pairs } from './read-scene.ts';

interface EquivalenceOptions extends SceneOptions {
  readonly output: (typeof equivalenceOutputs)[number];
}

export function addEquivalenceCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('equivalence')
    .summary('Prove which packets two sides treat differently, and why.')
    .description(
      'Send one packet of every class that either side can tell apart to both sides, and show for which the verdict, the ' +
        'endpoints or the source differ, by cause. Exit status 1 if any do. Each side is a mode (ipvs, iptables, nftables), a ' +
        'release (1.36) or a file with a configuration of kube-proxy, by which the manifests of -f are compiled; or a bundle, ' +
        'a dump of a node, or manifests.',
    )
    .argument('<from>', 'the old side')
    .argument('<to>', 'the new side');
  addInputOptions(command, 'looks')
    .option('--node <name>', 'the node (default: hostnameOverride, or else the only Node in the input)')
    .option('--all-nodes', 'on every node of the input, each class of nodes once')
    .addOption(new Option('--output <format>', 'how to print').choices(equivalenceOutputs).default('text'));
  addMessageOptions(command).action(async (from: string, to: string, options: EquivalenceOptions) => {
    const quiet = quieten(terminal, options);
    done(await report(await readPairs(from, to, options, quiet), undefined, from, to, options, quiet));
  });
}

/** Compares both sides on the nodes that represent all. `pairs` is undefined if a side cannot be used, which has been reported. */
async function report(
  pairs: Pairs | undefined,
  preparations: readonly Preparation[] | undefined,
  from: string,
  to: string,
  { output }: EquivalenceOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (!pairs) return exitStatus.badInput;
  const { nodes, loaded, read } = pairs;
  const standIns = loaded
    ? chooseStandIns(loaded.prepared.nodes, loaded.prepared.cluster, nodes)
    : nodes.map((node) => ({ node, only: undefined }));
  const gathered = new Findings();
  const counts = { classes: 0, unknown: 0 };
  const progress = showProgress(standIns.length, terminal);
  for (const { node, only } of standIns) {
    const scenes = await read(node);
    if (!scenes) return exitStatus.badInput;
    const { classes, unknown } = compareScenes(...scenes, gathered.collector(...scenes), only);
    counts.classes += classes;
    counts.unknown += unknown;
    await progress.step();
  }
  await progress.end();
  const findings = gathered.list();
  const compared = { from, to, nodes: nodes.length, asked: standIns.length, ...counts, findings };
  await terminal.out(formatEquivalence(compared, preparations, output, terminal.colour.out));
  return findings.length === 0 ? exitStatus.ok : exitStatus.differs;
}

interface MigrateOptions extends EquivalenceOptions {
  readonly from?: ProxyMode;
  readonly to: ProxyMode;
}

export function addMigrateCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('migrate')
    .summary('Show what a change to nftables mode needs and breaks, on all nodes.')
    .description(
      'Show what a cluster needs before kube-proxy changes its mode, and which packets end otherwise after it, on every node ' +
        'of the input. Exit status 1 if any packets do.',
    )
    .argument('[input...]', 'manifests of the cluster, as with -f: Services, EndpointSlices and Nodes')
    .addOption(
      new Option('--from <mode>', "the mode now (default: that of kube-proxy's configuration, or else ipvs)").choices([
        'ipvs',
        'iptables',
      ]),
    )
    .addOption(new Option('--to <mode>', 'the mode afterwards').choices(['nftables', 'iptables']).default('nftables'));
  addInputOptions(command, 'looks')
    .option('--node <name>', 'on one node only')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json', 'markdown']).default('text'));
  addMessageOptions(command).action(async (inputs: readonly string[], given: MigrateOptions) => {
    const options = { ...given, file: namedInputs(command, inputs, given.file) };
    if (options.file.length === 0) {
      command.error('error: no input is named\nadd the manifests of the cluster, with - for stdin');
    }
    done(await runMigrate(options, quieten(terminal, options)));
  });
}

async function runMigrate(options: MigrateOptions, terminal: Terminal): Promise<ExitStatus> {
  const { prepared } = await loadInputs(options, terminal.readStdin);
  const known = prepared.settings.mode;
  const from = options.from ?? (known === options.to ? 'ipvs' : known);
  if (from === options.to) return refuse(terminal, `--from and --to are both ${from}`, 'name two modes');
  const allNodes = options.node === undefined && prepared.nodes.size > 1;
  const pairs = await readPairs(from, options.to, { ...options, allNodes }, terminal);
  const scenes = await pairs?.read(pairs.nodes[0] ?? '');
  return report(scenes && pairs, scenes && preparationsFor(...scenes), from, options.to, options, terminal);
}
