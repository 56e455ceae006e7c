import { hostname } from 'node:os';
import { Option, type Command } from 'commander';
import { dumpNode } from '../../apply/change/dump-node.ts';
import { replaceFolder } from '../../bundle/folder.ts';
import { formatCount } from '../../base/format-count.ts';
import { makeBundle } from '../../bundle/make-bundle.ts';
import { Failure } from '../../apply/state/failure.ts';
import { openSession, type ApplyEnvironment, type NodeOptions } from './environment.ts';
import { addStateOption } from './options.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { version } from '../../base/version.ts';
import { describeFolderProblem } from '../../report/render-diagnostics.ts';

interface DumpOptions extends NodeOptions {
  readonly out: string;
  readonly node: string;
}

export function addDumpCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('dump')
    .description(
      "Write this node's state, made by kpc-apply or kube-proxy, to a folder that kpc diff and kpc describe read.",
    )
    .requiredOption('-o, --out <folder>', 'the folder to write', parseOutFolder)
    .addOption(new Option('--node <name>', 'the name to give the node').default(hostname(), "the machine's name"));
  addStateOption(command).action(async (options: DumpOptions) => done(await runDump(options, environment)));
}

async function runDump(options: DumpOptions, environment: ApplyEnvironment): Promise<ExitStatus> {
  const content = await dumpNode(openSession(environment, options), options.node);
  const { manifest, files } = makeBundle({ ...content, kpcVersion: version });
  const problem = await replaceFolder(options.out, files);
  if (problem) {
    const [text, help = 'name another folder'] = describeFolderProblem(problem);
    throw new Failure('bad-usage', text, help);
  }
  const { virtualServers = 0, chains = 0, sets = 0, addresses = 0 } = manifest.counts;
  const many = (count: number, one: string, more = `${one}s`) => `${formatCount(count)} ${count === 1 ? one : more}`;
  const parts = [many(virtualServers, 'virtual server'), many(sets, 'set'), many(chains, 'chain')];
  await environment.terminal.err(
    `${parts.join(', ')} and ${many(addresses, 'address', 'addresses')}, written to ${options.out}\n`,
  );
  return exitStatus.ok;
}
