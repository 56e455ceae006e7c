import { dirname, isAbsolute, join } from 'node:path';
import { Option, type Command } from 'commander';
import { findNearest } from '../../base/find-nearest.ts';
import { isObject } from '../../base/json-shape.ts';
import { printable } from '../../base/printable.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import type { InputDocument } from '../../input/documents/document.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { loadFile } from '../../input/files/load-files.ts';
import { Report } from '../../input/objects/report.ts';
import type { RawPacketTest, RawPacketTests } from '../../input/objects/schemas/packet-tests.ts';
import { Validator } from '../../input/objects/validate.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { writeYaml } from '../../input/yaml/parse.ts';
import { proxyModeNames, proxyModes } from '../../kube-proxy/modes.ts';
import { parseRelease } from '../../kube-proxy/releases.ts';
import type { PacketProtocol } from '../../packet/packet.ts';
import { compareFate, readExpectation, type WrittenExpectation } from '../../packet/trace/expectation.ts';
import { ask } from '../../packet/trace/question.ts';
import type { Scene } from '../../packet/trace/scene.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { holdingTests } from '../../report/holding-tests.ts';
import { formatResults, testOutputs, type PacketResult } from '../../report/packet-tests.ts';
import { addInputOptions } from './input-options.ts';
import { addMessageOptions, quieten, reportDiagnostics } from './messages.ts';
import { readScenes, type SceneOptions } from './read-scene.ts';

/** The options of kpc test. */
interface TestOptions extends SceneOptions {
  readonly init?: boolean;
  readonly output: (typeof testOutputs)[number];
}

/** One test of a file: packets that share an expectation, and where they are sent. */
interface PacketTest extends WrittenExpectation {
  readonly name: string | undefined;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly protocol: PacketProtocol | undefined;
  readonly namespace: string | undefined;
  readonly settings: readonly SceneSettings[];
  /** Where the file has the test, one of its fields, or an item of it. */
  readonly place: (field?: string, index?: number) => NonNullable<Diagnostic['place']>;
}

/** What a test sets of a scene, as flags do, and counts more than those. */
type SceneSettings = Partial<
  Pick<SceneOptions, 'file' | 'hostAddresses' | 'proxyMode' | 'kubernetesVersion' | 'node' | 'allNodes'>
>;

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
  const known = new Map<string, readonly Scene[] | undefined>();
  const quiet = once(terminal);
  const diagnostics = new Map<string, Diagnostic>();
  const found = (each: Diagnostic) => diagnostics.set(JSON.stringify([each.text, each.place?.locate()]), each);
  const files = new Map<string, TextFile>();
  const tests: PacketTest[] = [];
  for (const path of paths) {
    const file = loadFile(path, path === '-' ? await terminal.readStdin() : undefined);
    if (file instanceof TextFile) {
      files.set(file.name, file);
      tests.push(...readTests(file, options, isFileGiven, found));
    } else found(file);
  }
  const results: PacketResult[] = [];
  let isUsable = true;
  for (const test of tests) {
    for (const settings of test.settings) {
      const key = JSON.stringify(settings);
      if (isUsable && !known.has(key)) known.set(key, await readScenes({ ...options, ...settings }, quiet));
      isUsable &&= known.get(key) !== undefined;
      for (const scene of known.get(key) ?? []) results.push(...runTest(test, settings, scene, found));
    }
  }
  if (diagnostics.size > 0 || !isUsable) {
    await reportDiagnostics(sortDiagnostics([...diagnostics.values()]), files, terminal);
    return exitStatus.badInput;
  }
  await terminal.out(formatResults(results, options.output, terminal.colour.out));
  return results.every(({ faults }) => faults.length === 0) ? exitStatus.ok : exitStatus.differs;
}

/** Reads the tests of a file. What is wrong with them is `found`. */
function readTests(
  file: TextFile,
  options: TestOptions,
  isFileGiven: boolean,
  found: (diagnostic: Diagnostic) => void,
): readonly PacketTest[] {
  const { documents, diagnostics } = readDocuments(file);
  diagnostics.forEach(found);
  const [first] = documents;
  if (!first && diagnostics.length === 0) {
    const place = { file: file.name, locate: () => file.locationAt(0) };
    found(diagnose('bad-expectation', { problem: 'nothing' }, place));
  }
  const fields = first && isObject(first.value) ? Object.keys(first.value) : [];
  if (first && fields.length > 0 && !fields.includes('tests') && !fields.includes('inputs')) {
    found(diagnose('bad-expectation', { problem: 'not-tests', fields }, first.source.place([])));
    return [];
  }
  return documents.flatMap((document) => {
    const report = new Report(document.source);
    const tests = readDocument(document, options, isFileGiven, report);
    report.diagnostics.forEach(found);
    return tests;
  });
}

/** The inputs that the command line gives count more than the file's, and those of kpc.yaml less. */
function readDocument(
  document: InputDocument,
  options: TestOptions,
  isFileGiven: boolean,
  report: Report,
): readonly PacketTest[] {
  const raw = new Validator().validate('PacketTests', document.value, report);
  if (!raw) return [];
  const locate = (path: string): string =>
    path === '-' || isAbsolute(path) ? path : join(dirname(document.file.name), path);
  const tests = raw.tests ?? [];
  if (tests.length === 0) report.add([], 'bad-expectation', { problem: 'nothing' });
  const file = (isFileGiven ? undefined : givenList(raw.inputs)?.map(locate)) ?? options.file ?? [];
  if (file.length === 0) report.add([], 'bad-expectation', { problem: 'missing', field: 'inputs' });
  const common = readChoices(raw, [], report);
  const always = { file, ...(raw.hostAddresses ? { hostAddresses: locate(raw.hostAddresses) } : {}) };
  return tests.map((test, i): PacketTest => {
    const path = ['tests', i];
    for (const field of ['from', 'to', 'expect'] as const) {
      const value = test[field];
      const isMissing = value === undefined || value === null || (field !== 'expect' && value.length === 0);
      if (isMissing) report.add([...path, field], 'bad-expectation', { problem: 'missing', field });
    }
    const own = readChoices(test, path, report);
    const settings = (own.modes ?? common.modes ?? [{}]).flatMap((mode) =>
      (own.releases ?? common.releases ?? [{}]).flatMap((release) =>
        (own.nodes ?? common.nodes ?? [{}]).map((node) => ({ ...always, ...mode, ...release, ...node })),
      ),
    );
    return {
      name: test.name ?? undefined,
      from: givenList(test.from) ?? [],
      to: givenList(test.to) ?? [],
      protocol: test.proto ?? undefined,
      namespace: raw.namespace ?? undefined,
      expect: test.expect ?? 'delivered',
      source: test.source ?? undefined,
      settings,
      place: (field, index) => {
        const isList = index !== undefined && Array.isArray((test as Readonly<Record<string, unknown>>)[field ?? '']);
        return report.source.place([...path, ...(field === undefined ? [] : [field]), ...(isList ? [index] : [])]);
      },
    };
  });
}

/** What a test, or the whole file, says of where its packets are sent; undefined for what it leaves open. */
function readChoices(raw: RawPacketTest | RawPacketTests, path: readonly (string | number)[], report: Report) {
  if (givenList(raw.node) && givenList(raw.nodes))
    report.add([...path, 'nodes'], 'bad-expectation', { problem: 'rivals' });
  const refuse = (field: 'mode' | 'release', value: string, expected: string): readonly [] => {
    report.add([...path, field], 'bad-value', { field, found: findingOf(value), expected });
    return [];
  };
  const modes = givenList(raw.mode)?.flatMap((mode): readonly SceneSettings[] => {
    if (proxyModes.some((each) => each === mode)) return [{ proxyMode: mode }];
    return refuse('mode', mode, findNearest(mode, proxyModes) ?? proxyModeNames);
  });
  const releases = givenList(raw.release)?.flatMap((release): readonly SceneSettings[] =>
    parseRelease(release) ? [{ kubernetesVersion: release }] : refuse('release', release, 'a release such as "1.36"'),
  );
  const nodes = givenList(raw.nodes ?? raw.node)?.map((node): SceneSettings => {
    return node === 'all' ? { allNodes: true } : { node, allNodes: false };
  });
  return { modes, releases, nodes };
}

function givenList(value: string | readonly string[] | null | undefined): readonly string[] | undefined {
  return typeof value === 'string' ? [value] : (value ?? undefined);
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
  { node, proxyMode, kubernetesVersion }: SceneSettings,
  { side: { kind, services }, mode: own }: Scene,
): readonly [field: string, reason: string] | undefined {
  if (kind === 'manifests') return undefined;
  const rows = [
    ['mode', proxyMode, own],
    ['release', kubernetesVersion, services?.settings.release],
    ['node', services && node, services?.node.name],
  ] as const;
  const [field, , known] = rows.find(([, asked, has]) => asked !== undefined && asked !== has) ?? [];
  if (!field) return undefined;
  const of = known === undefined ? '' : ` of ${known}`;
  return [field, `the input is a ${kind}${of}, and only manifests can be compiled for another`];
}
