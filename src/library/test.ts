import type { Shaped } from '../base/json/schema.ts';
import { diagnose, isError, type Finding } from '../base/findings/finding.ts';
import { TextFile } from '../input/documents/text-file.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { tested } from '../say/outputs/trace.ts';
import { resultJson } from '../say/packet-tests.ts';
import type { SceneSettings } from '../ask/trace/packet-tests.ts';
import { checkPacketOptions, scenesOf, type PacketInput } from './open.ts';
import { TestRun } from './test-run.ts';
import { listOf, type Texts } from './texts.ts';
import { diagnosticsOf } from './words.ts';

/** Options of test: the flags of `kpc test`, and the files of expectations. What the files name as inputs is not read. */
export type TestOptions = PacketInput & {
  /** Files of expectations, as kpc test reads them. */
  readonly tests: Texts;
  readonly namespace?: string | undefined;
};

/** A result, as `kpc test --output json` prints it. */
export type PacketTestResult = Shaped<typeof tested>['tests'][number];

/** How the packets fared, or why none was sent. */
export interface TestResult {
  /** Whether there are results, and all packets fare as expected. */
  readonly passed: boolean;
  /** Undefined if a diagnostic is an error. */
  readonly results: readonly PacketTestResult[] | undefined;
  readonly diagnostics: readonly SaidFinding[];
}

const settingsOfTests = ['proxyMode', 'kubernetesVersion', 'node', 'allNodes', 'namespace'] as const;

/**
 * Checks what happens to packets against expectations.
 *
 * ```ts
 * import { testPackets } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * const tests = { 'packets.yaml': 'tests: [{ from: pod, to: 10.96.0.99:80, expect: forwarded }]' };
 * console.log(testPackets({ manifests, tests, proxyMode: 'nftables' }).passed); // true
 * ```
 */
export function testPackets(options: TestOptions): TestResult {
  checkPacketOptions(options, ['tests', 'namespace']);
  const { tests, ...input } = options;
  const files = listOf(tests, 'tests').map(({ name, text }) => new TextFile(name, text));
  const run = new TestRun(files, { given: givenBy(input), file: undefined, locate: (_, path) => path });
  for (const settings of run.settings) {
    const { file: _, hostAddresses: __, ...own } = settings;
    const { scenes = [], diagnostics } = scenesOf('side' in input ? input : ({ ...input, ...own } as PacketInput));
    diagnostics.forEach(run.report);
    run.open(settings, scenes);
  }
  run.refuse(({ hostAddresses }, { place }) =>
    hostAddresses === undefined ? undefined : noFile(place('hostAddresses')),
  );
  const results = run.send();
  const diagnostics = diagnosticsOf(run.diagnostics);
  if (run.diagnostics.some(isError)) return { passed: false, results: undefined, diagnostics };
  const passed = results.length > 0 && results.every(({ faults }) => faults.length === 0);
  return { passed, results: results.map(resultJson), diagnostics };
}

function noFile(place: Finding['place']): Finding {
  const details = { problem: 'no-file', field: 'hostAddresses', option: 'hostAddresses' } as const;
  return diagnose('bad-expectation', details, place);
}

/** The options that count more than what the files of expectations say. */
function givenBy(input: Omit<TestOptions, 'tests'>): SceneSettings {
  const values = settingsOfTests.map((name) => [name, (input as Readonly<Record<string, unknown>>)[name]] as const);
  // A test needs an input by name; here there is one.
  return { ...Object.fromEntries(values.filter(([, value]) => value !== undefined)), file: ['manifests'] };
}
