import { diagnose, isError, type Finding } from '../base/findings/finding.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { TextFile } from '../input/documents/text-file.ts';
import { writeYaml } from '../input/yaml/parse.ts';
import { holdingTests, resultJson, testComments } from '../say/packet-tests.ts';
import {
  flagPlacesOf,
  readPacketTests,
  runPacketTest,
  sceneOfTest,
  type PacketResult,
  type PacketTest,
  type SceneSettings,
  type TestContext,
} from '../ask/trace/packet-tests.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { keyOfFinding, checkPacketOptions, scenesOf, withoutUnnamedNode, type PacketInput } from './open.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { tested } from '../say/outputs/trace.ts';
import { listTexts, type Texts } from './inputs.ts';
import { answerInOptions, diagnosticsOf } from './words.ts';

export type { SceneSettings };
export { testAnswer } from '../say/packet-tests.ts';

export class TestRun {
  readonly #found = new Map<string, Finding>();
  readonly #tests: PacketTest[];
  readonly #scenes = new Map<string, readonly Scene[]>();

  constructor(files: readonly TextFile[], context: TestContext) {
    this.#tests = files.flatMap((file) => readPacketTests(file, context, this.report));
  }

  readonly report = (each: Finding): void => void this.#found.set(keyOfFinding(each), each);

  get settings(): readonly SceneSettings[] {
    // A test that names no input is reported separately.
    const all = this.#tests.flatMap(({ settings }) => settings.filter(({ file = [] }) => file.length > 0));
    return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
  }

  /** Returns the places of the flags' values in the first test that has these settings. */
  flagPlaces(settings: SceneSettings): ReturnType<typeof flagPlacesOf> {
    const key = JSON.stringify(settings);
    const test = this.#tests.find((each) => each.settings.some((own) => JSON.stringify(own) === key));
    return test ? flagPlacesOf(test) : new Map();
  }

  open(settings: SceneSettings, scenes: readonly Scene[]): void {
    this.#scenes.set(JSON.stringify(settings), scenes);
  }

  sidesFor(settings: SceneSettings, scene: Scene): readonly Snapshot[] {
    const key = JSON.stringify(settings);
    const tests = this.#tests.filter((test) => test.settings.some((own) => JSON.stringify(own) === key));
    return tests.flatMap(({ from, namespace }) =>
      from.map((each) => sceneOfTest({ from: each, namespace }, settings, scene).side),
    );
  }

  refuse(refuses: (settings: SceneSettings, test: PacketTest) => Finding | undefined): void {
    for (const test of this.#tests) {
      for (const settings of test.settings) {
        const wrong = refuses(settings, test);
        if (wrong) this.report(wrong);
      }
    }
  }

  send(): readonly PacketResult[] {
    return this.#tests.flatMap((test) =>
      test.settings.flatMap((settings) =>
        (this.#scenes.get(JSON.stringify(settings)) ?? []).flatMap((scene) =>
          runPacketTest(test, settings, scene, this.report),
        ),
      ),
    );
  }

  /** Whether the tests are wrong, so that no result counts. If only a packet's sender has no address, all other results still count. */
  get isRefused(): boolean {
    return this.diagnostics.some(
      (each) => isError(each) && !(each.code === 'bad-expectation' && each.arguments.problem === 'unsent'),
    );
  }

  get diagnostics(): readonly Finding[] {
    return sortDiagnostics([...this.#found.values()]);
  }
}

/** `flags`: the names of flags that the file cannot hold. */
export function writeHoldingTests(
  {
    file = [],
    config,
    hostAddresses,
    namespace,
    allNodes,
  }: Omit<SceneSettings, 'proxyMode' | 'kubernetesVersion' | 'node'> & { readonly config?: string | undefined },
  scenes: readonly Scene[],
  flags: readonly string[],
) {
  const [first] = scenes;
  const settings = scenes.flatMap(({ side }) => (side.kind === 'manifests' ? side.settings : []));
  const head = {
    inputs: [...file, ...(config === undefined ? [] : [config])],
    hostAddresses,
    namespace,
    mode: sharedBy(settings.map(({ mode }) => mode)),
    release: sharedBy(settings.map(({ release }) => release)),
    node: allNodes ? 'all' : settings.length > 0 ? first?.side.node?.name || undefined : undefined,
  };
  const { file: tests, untested, skipped } = holdingTests(head, scenes);
  const isModeAssumed = first?.side.assumed?.mode === true;
  const text = `${testComments(flags, isModeAssumed, untested.leftOut)}${writeYaml(tests)}`;
  return { text: tests.tests.length === 0 ? undefined : text, untested, skipped };
}

/** Returns the value that all nodes have. */
function sharedBy<T>(values: readonly T[]): T | undefined {
  return values.every((each) => each === values[0]) ? values[0] : undefined;
}

/** The flags of `kpc test`, and the files with expectations. The inputs that these files name are not read. */
export type TestOptions = PacketInput & {
  readonly tests: Texts;
  readonly namespace?: string | undefined;
};

/** A result of `kpc test --output json`. */
export type PacketTestResult = Shaped<typeof tested>['tests'][number];

export interface TestResult {
  /** Whether there are results, and all packets end as expected. */
  readonly passed: boolean;
  /** Undefined if a diagnostic is an error. */
  readonly results: readonly PacketTestResult[] | undefined;
  readonly diagnostics: readonly SaidFinding[];
}

const settingsOfTests = ['proxyMode', 'kubernetesVersion', 'node', 'allNodes', 'namespace'] as const;

/**
 * Checks whether packets end as expected.
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
  const files = listTexts(tests, 'tests').map(({ name, text }) => new TextFile(name, text));
  if (files.length === 0)
    return {
      passed: false,
      results: undefined,
      diagnostics: diagnosticsOf([diagnose('bad-call', { problem: 'no-tests' })]),
    };
  const run = new TestRun(files, { given: givenBy(input), file: undefined, locate: (_, path) => path });
  for (const settings of run.settings) {
    const { file: _, hostAddresses: __, ...own } = settings;
    const { scenes = [], diagnostics } = scenesOf('side' in input ? input : ({ ...input, ...own } as PacketInput));
    withoutUnnamedNode(
      diagnostics,
      scenes.flatMap((scene) => run.sidesFor(settings, scene)),
    ).forEach(run.report);
    run.open(settings, scenes);
  }
  run.refuse(({ hostAddresses }, { place }) =>
    hostAddresses === undefined ? undefined : noFile(place('hostAddresses')),
  );
  const results = run.send();
  const diagnostics = diagnosticsOf(run.diagnostics);
  if (run.isRefused) return { passed: false, results: undefined, diagnostics };
  const isSent = results.length > 0 && !run.diagnostics.some(isError);
  const passed = isSent && results.every(({ faults }) => faults.length === 0);
  return { passed, results: answerInOptions(results.map(resultJson)), diagnostics };
}

function noFile(place: Finding['place']): Finding {
  const details = { problem: 'no-file', field: 'hostAddresses', option: 'hostAddresses' } as const;
  return diagnose('bad-expectation', details, place);
}

function givenBy(input: Omit<TestOptions, 'tests'>): SceneSettings {
  const values = settingsOfTests.map((name) => [name, (input as Readonly<Record<string, unknown>>)[name]] as const);
  // A test must name an input. Here, the manifests are the only input.
  return { ...Object.fromEntries(values.filter(([, value]) => value !== undefined)), file: ['manifests'] };
}
