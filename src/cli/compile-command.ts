import type { Command } from 'commander';
import { Option } from 'commander';
import type { FolderProblem } from '../bundle/folder.ts';
import { replaceFolder } from '../bundle/folder.ts';
import type { Bundle, BundleContent } from '../bundle/make-bundle.ts';
import { formatFile, makeBundle } from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { checkBundle } from './check-bundle.ts';
import type { Prepared } from './compile-inputs.ts';
import { chooseNodeName, compileNode } from './compile-inputs.ts';
import type { PrintName } from './compile-output.ts';
import { formatAll, printNames, summarize } from './compile-output.ts';
import type { ExitStatus } from './exit-status.ts';
import { exitStatus } from './exit-status.ts';
import type { InputOptions } from './input-options.ts';
import { addInputOptions, loadInputs } from './input-options.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import type { Terminal } from './terminal.ts';

interface CompileOptions extends InputOptions {
  readonly node?: string;
  readonly out?: string;
  readonly print?: PrintName;
  readonly check?: string;
}

export function addCompileCommand(program: Command, terminal: Terminal, done: (status: ExitStatus) => void): void {
  const command = program
    .command('compile')
    .description('Compile Services and EndpointSlices to what kube-proxy would program on one node.');
  addInputOptions(command)
    .option('--node <name>', 'the node to compile for (default: hostnameOverride, else the only Node in the input)')
    .addOption(
      new Option('-o, --out <folder>', 'write the files to a folder, replacing it whole').conflicts(['print', 'check']),
    )
    .addOption(new Option('--print <file>', 'print one file').choices(Object.keys(printNames)).conflicts('check'))
    .option('--check <folder>', 'write nothing; print how the folder differs: exit status 1 where it does')
    .action(async (options: CompileOptions) => done(await runCompile(options, terminal)));
}

async function runCompile(options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  const loaded = await loadInputs(options, terminal);
  const nodeName = chooseNodeName(options.node, loaded.prepared);
  const failed = loaded.diagnostics.some(({ severity }) => severity === 'error');
  // What nothing is compiled for needs no word on what its bundle would lack.
  const missing = failed ? [] : describeMissing(nodeName, loaded.prepared, loaded.hostAddresses !== undefined);
  await reportDiagnostics([...missing, ...loaded.diagnostics], loaded.files, terminal);
  if (failed) return exitStatus.badInput;
  const { hostAddresses } = loaded;
  const content = compileNode(loaded.prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily });
  return output(content, options, terminal);
}

/** What is compiled all the same, but not as the user may think. */
function describeMissing(nodeName: string, { nodes }: Prepared, hostAddresses: boolean): readonly Diagnostic[] {
  if (nodes.has(nodeName)) return [];
  const note = (code: string, text: string): readonly Diagnostic[] => [{ severity: 'note', code, text }];
  if (nodeName === '') {
    const which = nodes.size === 0 ? 'no node' : `none of the ${nodes.size} nodes is named by --node`;
    return note(
      'no-node',
      `${which}: no endpoint counts as local, the hairpin set stays empty and NodePorts have no address to listen on; ` +
        'give the Node object (kubectl get nodes -o yaml) by -f and its name by --node',
    );
  }
  const ports = hostAddresses ? '' : ' and NodePorts have no address to listen on (or give --host-addresses)';
  return note(
    'no-node-object',
    `no Node object ${nodeName} in the input: its zone, pod CIDRs and addresses are unknown${ports}; ` +
      'give it by -f (kubectl get nodes -o yaml)',
  );
}

async function output(content: BundleContent, options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  if (options.print !== undefined) return print(options.print, content, terminal);
  const bundle = makeBundle(content);
  if (options.check !== undefined) return check(options.check, bundle, terminal);
  if (options.out !== undefined) return write(options.out, bundle, terminal);
  await terminal.out(formatAll(bundle.files));
  await terminal.err(
    `${summarize(bundle.manifest)}\nWrite them to a folder with -o, or see one with --print ipvsadm.\n`,
  );
  return exitStatus.ok;
}

async function write(folder: string, { manifest, files }: Bundle, terminal: Terminal): Promise<ExitStatus> {
  const problem = await replaceFolder(folder, files);
  if (problem) {
    await terminal.err(`kpc: error: ${describeFolderProblem(problem)}\n`);
    return exitStatus.badInput;
  }
  await terminal.err(`${summarize(manifest)}\nWritten to ${folder}.\n`);
  return exitStatus.ok;
}

function describeFolderProblem(problem: FolderProblem): string {
  switch (problem.kind) {
    case 'io':
      return `cannot write ${problem.folder}: ${problem.reason}`;
    case 'not-a-bundle': {
      const names = problem.strangers.slice(0, 3).join(', ');
      return `${problem.folder} holds what is not of a bundle (${names}) and would be replaced whole: name another folder`;
    }
  }
}

async function check(folder: string, { files }: Bundle, terminal: Terminal): Promise<ExitStatus> {
  const result = await checkBundle(folder, files);
  switch (result.kind) {
    case 'same':
      return exitStatus.ok;
    case 'unreadable':
      await terminal.err(`kpc: error: cannot read ${folder}: ${result.reason}\n`);
      return exitStatus.badInput;
    case 'differs':
      await terminal.out(result.diff);
      await terminal.err(`${folder} differs in ${result.files.join(', ')}: write it again with -o ${folder}\n`);
      return exitStatus.differs;
  }
}

async function print(name: PrintName, content: BundleContent, terminal: Terminal): Promise<ExitStatus> {
  const file = printNames[name];
  const text = file === 'manifest.json' ? makeBundle(content).files.get(file) : formatFile(file, content);
  if (text === undefined) {
    await terminal.err(
      `kpc: error: there is no ${file} in mode ${content.settings.mode} for ${content.families.join(' and ')}\n`,
    );
    return exitStatus.badInput;
  }
  await terminal.out(text);
  return exitStatus.ok;
}
