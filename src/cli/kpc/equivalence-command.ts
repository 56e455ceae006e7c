import { Option, type Command } from 'commander';
import { compareScenes } from '../../packet/equivalence/compare.ts';
import { Findings } from '../../packet/equivalence/findings.ts';
import { chooseStandIns, type StandIn } from '../../packet/equivalence/representatives.ts';
import { equivalenceOutputs, formatEquivalence, type EquivalenceReport } from '../../report/equivalence.ts';
import { type Done, type Terminal, exitStatus } from '../shared/terminal.ts';
import { addInputOptions } from './input-options.ts';
import { addMessageOptions, quieten, showProgress } from './messages.ts';
import { readPairs, type PairOptions, type Pairs } from './read-pair.ts';

export interface EquivalenceOptions extends PairOptions {
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
    const pairs = await readPairs(from, to, options, quiet);
    const report = pairs && (await comparePairs(pairs, from, to, quiet));
    if (!report) return done(exitStatus.badInput);
    await quiet.out(formatEquivalence(report, undefined, options.output, quiet.colour.out));
    done(report.findings.length === 0 ? exitStatus.ok : exitStatus.differs);
  });
}

/** Compares both sides on the nodes that represent all. Undefined if a side cannot be used, which has been reported. */
export async function comparePairs(
  pairs: Pairs,
  from: string,
  to: string,
  terminal: Terminal,
): Promise<EquivalenceReport | undefined> {
  const { nodes, loaded, read } = pairs;
  const prepared = loaded?.prepared;
  const standIns: readonly StandIn[] =
    nodes.length > 1 && prepared
      ? chooseStandIns(prepared.nodes, prepared.cluster, nodes)
      : nodes.map((node) => ({ node, only: undefined }));
  const findings = new Findings();
  const counts = { classes: 0, unknown: 0 };
  const progress = showProgress(standIns.length, terminal);
  for (const { node, only } of standIns) {
    const scenes = await read(node);
    if (!scenes) return undefined;
    const { classes, unknown } = compareScenes(...scenes, findings.collector(...scenes), only);
    counts.classes += classes;
    counts.unknown += unknown;
    await progress.step();
  }
  await progress.end();
  return { from, to, nodes: nodes.length, asked: standIns.length, ...counts, findings: findings.list() };
}
