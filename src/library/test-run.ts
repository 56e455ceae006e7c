import type { Finding } from '../base/findings/finding.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import { writeYaml } from '../input/yaml/parse.ts';
import { holdingTests, leavesOutNodePorts } from '../say/packet-tests.ts';
import {
  readPacketTests,
  runPacketTest,
  type PacketResult,
  type PacketTest,
  type SceneSettings,
  type TestContext,
} from '../ask/trace/packet-tests.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { keyOf } from './open.ts';

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

/** A file of expectations that hold now: from every kind of sender to every address. */
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
): string {
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
  const lack = leavesOutNodePorts(scenes)
    ? '# Without some node ports: the input does not show what becomes of packets to them. Add what ip addr prints.\n'
    : '';
  const chosen = first?.side.assumed?.mode
    ? '# Nothing names a mode, and kpc takes this one: write that of your nodes.\n'
    : '';
  return `# Written by kpc test --init: what holds now.\n${chosen}${lack}${writeYaml(holdingTests(head, scenes))}`;
}
