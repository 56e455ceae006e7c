import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { kpcYaml } from '../../base/file-names.ts';
import { joinWords } from '../../base/join-words.ts';
import { printable, printableJson, quotePrintable, shellWord } from '../../base/printable.ts';
import { describeError } from '../../base/system-errors.ts';
import { projectUrl, repository, version } from '../../base/version.ts';
import { replaceFolder, writeQuickly } from '../../bundle/folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import { makeBundle } from '../../bundle/make-bundle.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { chooseNodeName, compileState } from '../../snapshot/open/compile-node.ts';
import { compileLoaded } from '../../snapshot/open/compile.ts';
import { releaseRunBy, type LoadedInputs } from '../../snapshot/open/load-texts.ts';
import { loadInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import { openFlags } from '../../library/options.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { summarize } from '../../report/bundle-text.ts';
import { describeFolderProblem } from '../../report/render-diagnostics.ts';
import { flagRow } from '../../settings/flag.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { exitStatus, say, type Done, type ExitStatus, type Terminal } from '../shared/terminal.ts';
import { findRepository } from '../../input/files/disk-paths.ts';
import { findStrayTarget } from './kpc-yaml.ts';
import { addFlags, nodeFlag } from './flags.ts';
import { flagsToKeep, namedInputs, takesIptables } from './input-options.ts';
import { messageFlags, quieten, refuse, reportInput, type MessageOptions } from './messages.ts';

interface InitOptions extends FileOptions, MessageOptions {
  readonly node?: string;
  readonly golden: string;
  readonly github?: boolean;
}

const workflowFile = '.github/workflows/kpc.yaml';

export function addInitCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('init')
    .summary('Set up a repository: write kpc.yaml, the first golden and a workflow.')
    .description(
      'Set up a repository of manifests for reviews: write kpc.yaml with the flags that the manifests call for, the first golden, and ' +
        'with --github a workflow that compares each pull request with it. It asks nothing and replaces nothing but a golden.',
    )
    .argument('[input...]', 'manifests, as with -f (default: this folder)');
  addFlags(command, [
    ...openFlags('looks', takesIptables),
    nodeFlag('the node to compile for (default: the first Node in the input)'),
    flagRow('text', '--golden <folder>', 'the folder of the golden', { parse: parseOutFolder, usual: 'golden' }),
    flagRow('on', '--github', `also write ${workflowFile}`),
    ...messageFlags,
  ]).action(async (inputs: readonly string[], given: InitOptions) => {
    const named = namedInputs(command, inputs, given.file);
    const file = named.length === 0 ? ['.'] : named;
    done(await runInit({ ...given, file }, flagsToKeep(command), quieten(terminal, given)));
  });
}

async function runInit(
  options: InitOptions & { readonly file: readonly string[] },
  given: ReadonlyMap<string, string | readonly string[] | boolean>,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { file, golden, github } = options;
  const present = [kpcYaml, ...(github ? [workflowFile] : [])].filter((path) => existsSync(path));
  if (present.length > 0) {
    return refuse(
      terminal,
      `${joinWords(present)} ${present.length === 1 ? 'is' : 'are'} there already`,
      'edit or remove it',
    );
  }
  for (const path of [golden, ...(github ? [workflowFile] : [])]) {
    const stray = findStrayTarget(path, findRepository('.'));
    if (stray === 'replaces-git') return refuse(terminal, `${path} leads into .git`, 'name another folder');
    if (stray) return refuse(terminal, `${path} leads out of this repository`, 'name a folder in it, without a link');
  }
  const unsafe = github ? [...file, golden].find((path) => !isSafeInWorkflow(path)) : undefined;
  if (unsafe !== undefined)
    return refuse(
      terminal,
      `a workflow cannot hold the name ${quotePrintable(unsafe)}`,
      'rename it, or leave out --github',
    );
  if (file.includes('-')) return refuse(terminal, 'init needs files: kpc.yaml names them', 'name a file or folder');
  const setup = chooseSetup(await loadInputs(options, terminal.readStdin), options, given);
  const chosen = { ...options, ...setup.options, emptyResult: 'refused', into: 'kpc describe -' } as const;
  const loaded = await loadInputs(chosen, terminal.readStdin);
  const { snapshot, gaps, diagnostics } = compileLoaded(loaded, { node: setup.node, ipFamily: options.ipFamily });
  const isRight = await reportInput(
    { diagnostics: [...gaps(), ...diagnostics], files: loaded.files },
    options,
    terminal,
  );
  if (!snapshot || !isRight) return exitStatus.badInput;
  const problem = await replaceFolder(golden, makeGolden(snapshot, compileState), writeQuickly);
  if (problem) return refuse(terminal, ...describeFolderProblem(problem));
  try {
    writeFileSync(kpcYaml, kpcYamlText(file, setup, snapshot, given), { flag: 'wx' });
    if (github) {
      mkdirSync(dirname(workflowFile), { recursive: true });
      writeFileSync(workflowFile, workflowText(file, golden), { flag: 'wx' });
    }
  } catch (error) {
    return refuse(terminal, describeError(error));
  }
  await sayNext(snapshot, options, terminal);
  return exitStatus.ok;
}

async function sayNext(snapshot: CompiledSnapshot, { golden, github }: InitOptions, terminal: Terminal): Promise<void> {
  const wrote = [kpcYaml, golden, ...(github ? [workflowFile] : [])];
  await terminal.out(`Wrote ${printable(joinWords(wrote))}: ${printable(summarize(makeBundle(snapshot).manifest))}\n`);
  await say(
    terminal,
    `Commit ${wrote.length === 2 ? 'both' : 'all of it'}. After a change of manifests, this shows what it does, and how to accept it:\n` +
      `  kpc compile --check ${shellWord(golden)}\n`,
  );
}

/** What kpc.yaml says beside the flags of the command line, and why. */
interface Setup {
  readonly node: string | undefined;
  readonly lines: readonly string[];
  readonly options: Pick<FileOptions, 'proxyMode' | 'kubernetesVersion' | 'node'>;
}

/** The mode, release and node that the manifests tell, or else kube-proxy's defaults. */
function chooseSetup(
  { prepared, modeNote }: LoadedInputs,
  options: InitOptions,
  given: ReadonlyMap<string, unknown>,
): Setup {
  const nodes = [...prepared.nodes.keys()].toSorted();
  const node = options.node ?? nodes[0];
  const release = releaseRunBy(prepared.nodes.get(node ?? chooseNodeName(undefined, prepared)));
  // kube-proxy's own default; a configuration in the input says it itself.
  const proxyMode = modeNote?.code === 'default-mode' ? 'iptables' : undefined;
  const kubernetesVersion = options.kubernetesVersion ?? release ?? newestRelease;
  const reason = release === undefined ? 'the newest: write that of your nodes' : 'as the Node says';
  const others = nodes.length > 1 ? ` # one of ${nodes.length} Nodes: all that are alike have the same rules` : '';
  return {
    node,
    lines: [
      ...(proxyMode === undefined ? [] : ["proxy-mode: iptables # kube-proxy's default: nothing here names a mode"]),
      ...(given.has('kubernetes-version') ? [] : [`kubernetes-version: '${kubernetesVersion}' # ${reason}`]),
      ...(node === undefined ? [] : [`node: ${yamlWord(node)}${others}`]),
    ],
    options: {
      kubernetesVersion,
      ...(proxyMode === undefined ? {} : { proxyMode }),
      ...(node === undefined ? {} : { node }),
    },
  };
}

function kpcYamlText(
  file: readonly string[],
  { lines }: Setup,
  { assigned, assumedEndpoints = [], isNodeAssumed }: CompiledSnapshot,
  given: ReadonlyMap<string, string | readonly string[] | boolean>,
): string {
  const isAssumed = assigned.length + assumedEndpoints.length > 0 || isNodeAssumed === true;
  return [
    '# Flags of kpc for this repository, without their dashes. A flag on the command line wins.',
    `file: ${yamlValue(file)}`,
    ...(file.some((path) => /^\.\/*$/.test(path)) ? ['exclude: /.github'] : []),
    ...[...given].map(([flag, value]) => `${flag}: ${yamlValue(value)}`),
    ...lines,
    ...(isAssumed ? ['compile:', '  assume: true # the manifests lack addresses, endpoints or Nodes'] : []),
    '',
  ].join('\n');
}

function yamlValue(value: string | readonly string[] | boolean): string {
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return yamlWord(value);
  const [first = ''] = value;
  return value.length === 1 ? yamlWord(first) : `[${value.map(yamlWord).join(', ')}]`;
}

/** JSON is YAML; what is plainly a word needs no quotes. */
function yamlWord(text: string): string {
  return /^[A-Za-z./][\w./-]*$/.test(text) && !/^(?:true|false|yes|no|on|off|null|y|n)$/i.test(text)
    ? text
    : printableJson(JSON.stringify(text));
}

/** Whether a line of the workflow may hold the name: GitHub splits lines, trims them, and evaluates what stands in ${{ }}. */
function isSafeInWorkflow(path: string): boolean {
  return printable(path) === path && path.trim() === path && !path.includes('${{');
}

function workflowText(file: readonly string[], golden: string): string {
  return `# Compares the Services of a pull request with the golden, and writes what changes to the job's summary.
name: Services

on: pull_request

permissions:
  contents: read

jobs:
  kpc:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with:
          # The base of the pull request, too: the summary compares with it.
          fetch-depth: 2
          persist-credentials: false
      - uses: ${repository}@v${version}${projectUrl === undefined ? ' # write the repository that you have kpc from' : ''}
        with:
          files: |
${file.map((path) => `            ${path}\n`).join('')}          golden: ${yamlWord(golden)}
`;
}
