import { withSlashes } from '../../base/system-paths.ts';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { dirname, isAbsolute, join } from 'node:path';
import type { Command } from 'commander';
import { TextFile } from '../../input/documents/text-file.ts';
import { loadFile } from '../../input/files/load-files.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { writeYaml } from '../../input/yaml/parse.ts';
import {
  readPacketTests,
  runPacketTest,
  type PacketResult,
  type PacketTest,
  type SceneSettings,
} from '../../trace/packet-tests.ts';
import type { Scene } from '../../trace/scene.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { holdingTests, leavesOutNodePorts } from '../../report/holding-tests.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow } from '../../settings/flag.ts';
import { formatResults, testOutputs } from '../../report/packet-tests.ts';
import { keyOf } from '../../library/scenes.ts';
import { addFlags, givenFlags, leaveOut, nodeFlag, outputFlag } from './flags.ts';
import { messageFlags, quieten, reportDiagnostics } from './messages.ts';
import { readScenes, type SceneOptions } from './read-scene.ts';

interface TestOptions extends SceneOptions {
  readonly init?: boolean;
  readonly output: (typeof testOutputs)[number];
}

const sceneSettings = [
  'file',
  'hostAddresses',
  'proxyMode',
  'kubernetesVersion',
  'node',
  'allNodes',
  'namespace',
] as const satisfies readonly (keyof SceneSettings)[];

export function addTestCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('test')
    .summary('Check what happens to packets against expectations.')
    .description(
      'Check what happens to packets against files of expectations: who sends what, and which endpoints get it, or that it ' +
        'is refused or dropped. If a packet fares differently, kpc test shows its trace, and the exit status is 1.',
    )
    .argument('[file...]', 'files of expectations; with --init, manifests, a bundle or a dump');
  addFlags(command, [
    flagRow('on', '--init', 'print a file of expectations that hold now: from every kind of sender to every address'),
    flagRow('on', '--all-nodes', 'on each node of the input, where a test names no node'),
    outputFlag(testOutputs, {
      idle: [{ beside: '--init', what: '--output is for results, and --init prints tests', help: leaveOut }],
    }),
    ...openFlags('programs'),
    nodeFlag('the node, where a test names none (default: hostnameOverride, or else the only Node in the input)'),
    ...messageFlags,
  ]).action(async (paths: readonly string[], options: TestOptions) => {
    const quiet = quieten(terminal, options);
    if (options.init) {
      const file = [...paths.map((path) => withSlashes(path)), ...(options.file ?? [])];
      if (file.length === 0) command.error('error: no input is named\nadd manifests, a bundle or a dump');
      done(await printHoldingTests({ ...options, file, given: givenFlags(command) }, quiet));
      return;
    }
    if (paths.length === 0)
      command.error('error: no tests are named\nname a file of expectations, or write one with --init');
    // What a test can name is compared with the input of each test: findMisfit.
    const strays = givenFlags(command).filter(({ key }) => key !== 'proxyMode' && key !== 'kubernetesVersion');
    done(await runTests(paths, { ...options, given: strays }, givenOn(command, options), quiet));
  });
}

/** The settings of a scene that the command line gives. */
function givenOn(command: Command, options: TestOptions): SceneSettings {
  const given = sceneSettings.filter((name) => command.getOptionValueSource(name) === 'cli');
  return Object.fromEntries(given.map((name) => [name, options[name]]));
}

async function printHoldingTests(options: TestOptions, terminal: Terminal): Promise<ExitStatus> {
  const scenes = await readScenes(options, terminal);
  if (!scenes) return exitStatus.badInput;
  const [first] = scenes;
  const settings = first?.side.kind === 'manifests' ? first.side.settings : undefined;
  const head = {
    inputs: [...(options.file ?? []), ...(options.config === undefined ? [] : [options.config])],
    hostAddresses: options.hostAddresses,
    namespace: options.namespace,
    mode: settings?.mode,
    // Each node has its own with auto.
    release: options.kubernetesVersion === 'auto' ? undefined : settings?.release,
    node: options.allNodes ? 'all' : settings && (first?.side.node?.name || undefined),
  };
  const lack = leavesOutNodePorts(scenes)
    ? "# Without node ports: the input does not show the node's addresses. Add what ip addr prints.\n"
    : '';
  await terminal.out(`# Written by kpc test --init: what holds now.\n${lack}${writeYaml(holdingTests(head, scenes))}`);
  return exitStatus.ok;
}

async function runTests(
  paths: readonly string[],
  options: TestOptions,
  given: SceneSettings,
  terminal: Terminal,
): Promise<ExitStatus> {
  const known = new Map<string, readonly Scene[] | undefined>();
  const quiet = once(terminal);
  const diagnostics = new Map<string, Diagnostic>();
  const found = (each: Diagnostic) => diagnostics.set(keyOf(each), each);
  const files = new Map<string, TextFile>();
  const tests: PacketTest[] = [];
  for (const path of paths) {
    const file = loadFile(path, path === '-' ? await terminal.readStdin() : undefined);
    if (file instanceof TextFile) {
      files.set(file.name, file);
      tests.push(...readPacketTests(file, { given, file: options.file, locate }, found));
    } else found(file);
  }
  const results: PacketResult[] = [];
  let isUsable = true;
  for (const test of tests) {
    for (const settings of test.settings) {
      const key = JSON.stringify(settings);
      if (isUsable && !known.has(key)) known.set(key, await readScenes({ ...options, ...settings }, quiet));
      isUsable &&= known.get(key) !== undefined;
      for (const scene of known.get(key) ?? []) results.push(...runPacketTest(test, settings, scene, found));
    }
  }
  if (diagnostics.size > 0 || !isUsable) {
    await reportDiagnostics(sortDiagnostics([...diagnostics.values()]), files, terminal);
    return exitStatus.badInput;
  }
  await terminal.out(formatResults(results, options.output, terminal.colour.out));
  return results.every(({ faults }) => faults.length === 0) ? exitStatus.ok : exitStatus.negative;
}

/** Paths in a file of tests count from its folder. */
function locate(testFile: string, path: string): string {
  return path === '-' || isAbsolute(path) ? path : join(dirname(testFile), path);
}

/** A terminal that prints each text once: wrong manifests are wrong in every mode. */
function once(terminal: Terminal): Terminal {
  const said = new Set<string>();
  const err = async (text: string): Promise<void> => {
    if (!said.has(text)) await terminal.err(text);
    said.add(text);
  };
  return { ...terminal, err };
}
