// Tests of packets: they are run, and files of tests that hold now are written.
import { diagnose, isError, type Finding } from '../base/findings/finding.ts';
import { nameSome } from '../base/printable.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { TextFile } from '../input/documents/text-file.ts';
import { writeYaml } from '../input/yaml/parse.ts';
import { holdingTests, resultJson } from '../say/packet-tests.ts';
import {
  readPacketTests,
  runPacketTest,
  type PacketResult,
  type PacketTest,
  type SceneSettings,
  type TestContext,
} from '../ask/trace/packet-tests.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { keyOf, checkPacketOptions, scenesOf, type PacketInput } from './open.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { tested } from '../say/outputs/trace.ts';
import { listOf, type Texts } from './inputs.ts';
import { diagnosticsOf } from './words.ts';

export type { SceneSettings };
export { testAnswer } from '../say/packet-tests.ts';

/** Files of expectations, to be run: what they need is opened by who knows how. */
export class TestRun {
  readonly #found = new Map<string, Finding>();
  readonly #tests: PacketTest[];
  readonly #scenes = new Map<string, readonly Scene[]>();

  constructor(files: readonly TextFile[], context: TestContext) {
    this.#tests = files.flatMap((file) => readPacketTests(file, context, this.report));
  }

  readonly report = (each: Finding): void => void this.#found.set(keyOf(each), each);

  /** The different inputs that the tests name, in order. */
  get settings(): readonly SceneSettings[] {
    const all = this.#tests.flatMap(({ settings }) => settings);
    return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
  }

  /** Takes the nodes of one of these inputs. */
  open(settings: SceneSettings, scenes: readonly Scene[]): void {
    this.#scenes.set(JSON.stringify(settings), scenes);
  }

  /** Reports a setting at each test that has it. */
  refuse(refuses: (settings: SceneSettings, test: PacketTest) => Finding | undefined): void {
    for (const test of this.#tests) {
      for (const settings of test.settings) {
        const wrong = refuses(settings, test);
        if (wrong) this.report(wrong);
      }
    }
  }

  /** Sends the packets to the nodes that were opened. */
  send(): readonly PacketResult[] {
    return this.#tests.flatMap((test) =>
      test.settings.flatMap((settings) =>
        (this.#scenes.get(JSON.stringify(settings)) ?? []).flatMap((scene) =>
          runPacketTest(test, settings, scene, this.report),
        ),
      ),
    );
  }

  /** What is wrong with the files and their tests. */
  get diagnostics(): readonly Finding[] {
    return sortDiagnostics([...this.#found.values()]);
  }
}

/**
 * A file of expectations that hold now, from every kind of sender to every address, and the addresses it leaves out. It is undefined
 * if there is nothing to expect.
 */
export function writeHoldingTests(
  {
    file = [],
    config,
    hostAddresses,
    namespace,
    kubernetesVersion,
    allNodes,
  }: Omit<SceneSettings, 'proxyMode' | 'node'> & { readonly config?: string | undefined },
  scenes: readonly Scene[],
): { readonly text: string | undefined; readonly leftOut: readonly string[] } {
  const [first] = scenes;
  const settings = first?.side.kind === 'manifests' ? first.side.settings : undefined;
  const head = {
    inputs: [...file, ...(config === undefined ? [] : [config])],
    hostAddresses,
    namespace,
    mode: settings?.mode,
    // Each node has its own with auto.
    release: kubernetesVersion === 'auto' ? undefined : settings?.release,
    node: allNodes ? 'all' : settings && (first?.side.node?.name || undefined),
  };
  const { file: tests, leftOut } = holdingTests(head, scenes);
  const lack =
    leftOut.length === 0
      ? ''
      : `# Left out, as the input does not show what becomes of all packets to them: ${nameSome(leftOut)}.\n`;
  const chosen = first?.side.assumed?.mode
    ? '# Nothing names a mode, and kpc takes this one: write that of your nodes.\n'
    : '';
  const text = `# Written by kpc test --init: what holds now.\n${chosen}${lack}${writeYaml(tests)}`;
  return { text: tests.tests.length === 0 ? undefined : text, leftOut };
}

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
