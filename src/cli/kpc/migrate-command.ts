import { Option, type Command } from 'commander';
import { preparationsFor } from '../../packet/equivalence/preparations.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { formatEquivalence } from '../../report/equivalence.ts';
import { comparePairs, type EquivalenceOptions } from './equivalence-command.ts';
import { addInputOptions, namedInputs } from './input-options.ts';
import { addMessageOptions, quieten, refuse } from './messages.ts';
import { readPairs } from './read-pair.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';

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
  const stdin = options.file?.includes('-') ? await terminal.readStdin() : '';
  const reader = { ...terminal, readStdin: async () => stdin };
  const { prepared } = await loadInputs(options, reader.readStdin);
  const known = prepared.settings.mode;
  const from = options.from ?? (known === options.to ? 'ipvs' : known);
  if (from === options.to) {
    return refuse(terminal, `--from and --to are both ${from}`, 'name two modes');
  }
  const allNodes = options.node === undefined && prepared.nodes.size > 1;
  const pairs = await readPairs(from, options.to, { ...options, allNodes }, reader);
  const [first = ''] = pairs?.nodes ?? [];
  const scenes = await pairs?.read(first);
  if (!pairs || !scenes) return exitStatus.badInput;
  const preparations = preparationsFor(...scenes);
  const report = await comparePairs(pairs, from, options.to, reader);
  if (!report) return exitStatus.badInput;
  await terminal.out(formatEquivalence(report, preparations, options.output, terminal.colour.out));
  return report.findings.length === 0 ? exitStatus.ok : exitStatus.differs;
}
