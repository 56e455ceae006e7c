import type { Shaped } from '../base/json-shape.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { TextFile } from '../input/documents/text-file.ts';
import type { JsonDiagnostic } from '../report/json.ts';
import type { tested, traced } from '../report/outputs/trace.ts';
import { resultJson } from '../report/packet-tests.ts';
import { answerTrace, type TraceAnswer, type TraceQuestion } from '../report/trace-answer.ts';
import { readPacketTests, runPacketTest, type PacketResult, type SceneSettings } from '../trace/packet-tests.ts';
import { checkPacketOptions, keyOf, scenesOf, type PacketInput, type Scenes } from './scenes.ts';
import { listOf, type Texts } from './texts.ts';
import { diagnosticsOf } from './words.ts';

/** Options of trace: the flags of `kpc trace`. It needs from and to, or all. */
export type TraceOptions = PacketInput & TraceQuestion;

/** What a node does with a packet, as `kpc trace --output json` prints it; with allNodes, a list of nodes. */
export type Traced = Shaped<typeof traced>;

/** The answer, or why there is none. */
export interface TraceResult {
  /** Undefined if a diagnostic is an error. */
  readonly trace: Traced | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

const questionOptions = ['from', 'to', 'proto', 'inInterface', 'all', 'namespace'] as const;

/**
 * Traces the first packet of a connection through a node: who sends it, where to, and by which rules it ends how.
 *
 * ```ts
 * import { trace } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * // Without the EndpointSlices of web, nobody knows its endpoints.
 * const { trace: found } = trace({ manifests, proxyMode: 'nftables', from: 'pod', to: 'svc/web' });
 * console.log(found && 'verdict' in found ? found.verdict : undefined); // unknown
 * ```
 */
export function trace(options: TraceOptions): TraceResult {
  checkPacketOptions(options, questionOptions);
  const { from, to, all } = options;
  if (all === undefined && (from === undefined || to === undefined)) throw new TypeError('name from and to, or all');
  const { scenes, diagnostics } = scenesOf(inputOf(options));
  const wrong: Diagnostic[] = [];
  const answers: { readonly node: string; readonly trace: TraceAnswer['json'] }[] = [];
  for (const scene of scenes ?? []) {
    const answer = answerTrace(options, scene);
    if ('json' in answer) answers.push({ node: scene.side.nodeName, trace: answer.json });
    else wrong.push(...answer);
  }
  const said = diagnosticsOf([...wrong.slice(0, 1), ...diagnostics]);
  if (!scenes || wrong.length > 0) return { trace: undefined, diagnostics: said };
  return { trace: isOfAllNodes(options) ? answers : answers[0]?.trace, diagnostics: said };
}

function isOfAllNodes(options: PacketInput): boolean {
  return 'allNodes' in options && options.allNodes === true;
}

/** The input without the question, which the pipeline does not know. */
function inputOf(options: TraceOptions): PacketInput {
  if ('side' in options) return { side: options.side };
  const { from: _from, to: _to, proto: _proto, inInterface: _in, all: _all, ...input } = options;
  return input;
}

/** Options of test: the flags of `kpc test`, and the files of expectations. What the files name as inputs is not read. */
export type TestOptions = PacketInput & {
  /** Files of expectations, as kpc test reads them. */
  readonly tests: Texts;
  readonly namespace?: string | undefined;
};

/** What `kpc test --output json` prints. */
export type PacketTestResult = Shaped<typeof tested>[number];

/** How the packets fared, or why none was sent. */
export interface TestResult {
  /** Whether there are results, and all packets fare as expected. */
  readonly passed: boolean;
  /** Undefined if a diagnostic is an error. */
  readonly results: readonly PacketTestResult[] | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

const settingsOfTests = ['proxyMode', 'kubernetesVersion', 'node', 'allNodes', 'namespace'] as const;

/**
 * Checks what happens to packets against expectations.
 *
 * ```ts
 * import { test } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * const tests = { 'packets.yaml': 'tests: [{ from: pod, to: 10.96.0.99:80, expect: forwarded }]' };
 * console.log(test({ manifests, tests, proxyMode: 'nftables' }).passed); // true
 * ```
 */
export function test(options: TestOptions): TestResult {
  checkPacketOptions(options, ['tests', 'namespace']);
  const { tests: files, ...input } = options;
  const found = new Map<string, Diagnostic>();
  const report = (each: Diagnostic) => void found.set(keyOf(each), each);
  const context = { given: givenBy(input), file: undefined, locate: (_: string, path: string) => path };
  const known = new Map<string, Scenes>();
  const results: PacketResult[] = [];
  for (const { name, text } of listOf(files, 'tests')) {
    for (const each of readPacketTests(new TextFile(name, text), context, report)) {
      for (const settings of each.settings) {
        const key = JSON.stringify(settings);
        const scenes = known.get(key) ?? scenesFor(input, settings);
        if (!known.has(key)) scenes.diagnostics.forEach(report);
        known.set(key, scenes);
        if (settings.hostAddresses !== undefined) report(noFile(each.place('hostAddresses')));
        for (const scene of scenes.scenes ?? []) results.push(...runPacketTest(each, settings, scene, report));
      }
    }
  }
  const diagnostics = diagnosticsOf(sortDiagnostics([...found.values()]));
  if (diagnostics.some(({ severity }) => severity === 'error'))
    return { passed: false, results: undefined, diagnostics };
  const passed = results.length > 0 && results.every(({ faults }) => faults.length === 0);
  return { passed, results: results.map(resultJson), diagnostics };
}

function noFile(place: Diagnostic['place']): Diagnostic {
  const help = 'give it as the option hostAddresses, and leave this field out';
  const details = { problem: 'refused', field: 'hostAddresses', reason: 'the library reads no file', help } as const;
  return diagnose('bad-expectation', details, place);
}

/** The options that count more than what the files of expectations say. */
function givenBy(input: Omit<TestOptions, 'tests'>): SceneSettings {
  const given = settingsOfTests.filter((name) => (input as Readonly<Record<string, unknown>>)[name] !== undefined);
  const values = given.map((name) => [name, (input as Readonly<Record<string, unknown>>)[name]] as const);
  // A test needs an input by name; here there is one.
  return { ...Object.fromEntries(values), file: ['manifests'] };
}

function scenesFor(input: PacketInput, { file: _, hostAddresses: __, ...settings }: SceneSettings): Scenes {
  return scenesOf('side' in input ? input : ({ ...input, ...settings } as PacketInput));
}
