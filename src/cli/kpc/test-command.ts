import { Option, type Command } from 'commander';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { printable } from '../../base/printable.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { writeYaml } from '../../input/yaml/parse.ts';
import { holdingTests } from '../../report/holding-tests.ts';
import { formatResults, testOutputs, type PacketResult } from '../../report/packet-tests.ts';
import { compareFate, readExpectation } from '../../packet/trace/expectation.ts';
import { ask } from '../../packet/trace/question.ts';
import type { Scene } from '../../packet/trace/scene.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import type { Terminal } from '../shared/terminal.ts';
import { addInputOptions } from './input-options.ts';
import { addMessageOptions, quieten, reportDiagnostics } from './messages.ts';
import { readPacketTests, type PacketTest, type SceneSettings } from './read-packet-tests.ts';
import { readScenes, type SceneOptions } from './read-scene.ts';

/** The options of kpc test. */
interface TestOptions extends SceneOptions {
  readonly init?: boolean;
  readonly output: (typeof testOutputs)[number];
}

export function addTestCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('test')
    .summary('Check what happens to packets against expectations.')
    .description(
      'Check what becomes of packets against files of expectations: who sends what, and which endpoints get it, or that it ' +
        'is refused or dropped. Where a packet ends otherwise, kpc test shows its trace, and the exit status is 1.',
    )
    .argument('[file...]', 'files of expectations; with --init, manifests, a bundle or a dump')
    .option('--init', 'print a file of expectations that hold now: from every kind of sender to every address')
    .option('--all-nodes', 'on each node of the input, where a test names no node')
    .addOption(new Option('--output <format>', 'how to print').choices(testOutputs).default('text'));
  addInputOptions(command).option(
    '--node <name>',
    'the node, where a test names none (default: hostnameOverride, or else the only Node in the input)',
  );
  addMessageOptions(command).action(async (paths: readonly string[], options: TestOptions) => {
    const quiet = quieten(terminal, options);
    if (options.init) {
      const file = [...paths, ...(options.file ?? [])];
      if (file.length === 0) command.error('error: no input is named\nadd manifests, a bundle or a dump');
      done(await printHoldingTests({ ...options, file }, quiet));
      return;
    }
    if (paths.length === 0)
      command.error('error: no tests are named\nname a file of expectations, or write one with --init');
    const isFileGiven = command.getOptionValueSource('file') === 'cli';
    done(await runTests(paths, options, isFileGiven, quiet));
  });
}

async function printHoldingTests(options: TestOptions, terminal: Terminal): Promise<ExitStatus> {
  const scenes = await readScenes(options, terminal);
  if (!scenes) return exitStatus.badInput;
  const [first] = scenes;
  const settings = first?.side.kind === 'manifests' ? first.side.services?.settings : undefined;
  const head = {
    inputs: [...(options.file ?? []), ...(options.config === undefined ? [] : [options.config])],
    hostAddresses: options.hostAddresses,
    namespace: options.namespace,
    mode: settings?.mode,
    // Each node has its own with auto.
    release: options.kubernetesVersion === 'auto' ? undefined : settings?.release,
    node: options.allNodes ? 'all' : settings && (first?.side.services?.node.name || undefined),
  };
  await terminal.out(`# Written by kpc test --init: what holds now.\n${writeYaml(holdingTests(head, scenes))}`);
  return exitStatus.ok;
}

async function runTests(
  paths: readonly string[],
  options: TestOptions,
  isFileGiven: boolean,
  terminal: Terminal,
): Promise<ExitStatus> {
  const stdin = paths.includes('-') ? await terminal.readStdin() : undefined;
  const read = readPacketTests(paths, { given: isFileGiven ? options.file : undefined, usual: options.file }, stdin);
  const known = new Map<string, readonly Scene[] | undefined>();
  const quiet = once(terminal);
  const diagnostics = new Map<string, Diagnostic>();
  const found = (each: Diagnostic) => diagnostics.set(JSON.stringify([each.text, each.place?.locate()]), each);
  read.diagnostics.forEach(found);
  const results: PacketResult[] = [];
  let isUsable = true;
  for (const test of read.tests) {
    for (const settings of test.settings) {
      const key = JSON.stringify(settings);
      if (isUsable && !known.has(key)) known.set(key, await readScenes(optionsFor(settings, options), quiet));
      isUsable &&= known.get(key) !== undefined;
      for (const scene of known.get(key) ?? []) results.push(...runTest(test, settings, scene, found));
    }
  }
  if (diagnostics.size > 0 || !isUsable) {
    await reportDiagnostics(sortDiagnostics([...diagnostics.values()]), read.files, terminal);
    return exitStatus.badInput;
  }
  await terminal.out(formatResults(results, options.output, terminal.colour.out));
  return results.every(({ faults }) => faults.length === 0) ? exitStatus.ok : exitStatus.differs;
}

/** What a test sets counts more than the command line. */
function optionsFor({ inputs, hostAddresses, node, mode, release }: SceneSettings, options: TestOptions): TestOptions {
  return {
    ...options,
    file: inputs,
    ...(hostAddresses === undefined ? {} : { hostAddresses }),
    ...(mode === undefined ? {} : { proxyMode: mode }),
    ...(release === undefined ? {} : { kubernetesVersion: release }),
    ...(node === undefined ? {} : { allNodes: node === 'all', ...(node === 'all' ? {} : { node }) }),
  };
}

/** A terminal that prints the same text once: wrong manifests are wrong in each mode. */
function once(terminal: Terminal): Terminal {
  const said = new Set<string>();
  const err = async (text: string): Promise<void> => {
    if (!said.has(text)) await terminal.err(text);
    said.add(text);
  };
  return { ...terminal, err };
}

/** Sends all packets of a test on one node. */
function runTest(
  test: PacketTest,
  settings: SceneSettings,
  scene: Scene,
  found: (diagnostic: Diagnostic) => void,
): readonly PacketResult[] {
  const { from, to, protocol, namespace, name, place } = test;
  const refuse = (field: string, reason: string, help?: string, index?: number): void =>
    found(diagnose('bad-expectation', { problem: 'refused', field, reason, help }, place(field, index)));
  const misfit = findMisfit(settings, scene);
  if (misfit) {
    refuse(...misfit);
    return [];
  }
  return to.flatMap((target, i) =>
    from.flatMap((source, j): readonly PacketResult[] => {
      const read = ask({ from: source, to: target, protocol, inInterface: undefined, namespace }, scene);
      const trace = read.kind === 'read' ? read.value : undefined;
      const expected = readExpectation(test, trace?.target.address.family, namespace, scene);
      for (const { field, text, help } of expected.kind === 'wrong' ? expected.faults : []) refuse(field, text, help);
      for (const { end, diagnostic } of read.kind === 'wrong' ? read.faults : []) {
        refuse(end, diagnostic.text, diagnostic.help, end === 'from' ? j : i);
      }
      if (!trace || expected.kind === 'wrong') return [];
      const packet = `${name === undefined ? '' : `${name}: `}${trace.target.protocol} from ${source} to ${target}`;
      const where = [scene.side.services?.node.name, scene.mode].filter(Boolean).join(', ');
      return [
        {
          title: printable(`${packet}${where === '' ? '' : ` (${where})`}`),
          place: place().locate(),
          trace,
          scene,
          faults: compareFate(trace.fate, expected.value, trace.sender),
        },
      ];
    }),
  );
}

/** What a test asks of a bundle or a dump, which has one node, mode and release. */
function findMisfit(
  { node, mode, release }: SceneSettings,
  { side: { kind, services }, mode: own }: Scene,
): readonly [field: string, reason: string] | undefined {
  if (kind === 'manifests') return undefined;
  const rows = [
    ['mode', mode, own],
    ['release', release, services?.settings.release],
    ['node', node === 'all' ? undefined : services && node, services?.node.name],
  ] as const;
  const [field, , known] = rows.find(([, asked, has]) => asked !== undefined && asked !== has) ?? [];
  if (!field) return undefined;
  const of = known === undefined ? '' : ` of ${known}`;
  return [field, `the input is a ${kind}${of}, and only manifests can be compiled for another`];
}
