import { printable } from '../base/printable.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Fate } from '../packet/packet.ts';
import { seenSource, sharesOf } from '../packet/trace/expectation.ts';
import { traceMatrix } from '../packet/trace/matrix.ts';
import type { Sender } from '../packet/trace/question.ts';
import type { Scene } from '../packet/trace/scene.ts';

/** The head of a file for kpc test: all but its tests. What is undefined is left out. */
export interface TestFileHead {
  readonly inputs: readonly string[];
  readonly hostAddresses: string | undefined;
  readonly namespace: string | undefined;
  /** Undefined for inputs that were compiled before. */
  readonly mode: string | undefined;
  readonly release: string | undefined;
  /** "all", or the only node; undefined if it has no name. */
  readonly node: string | undefined;
}

/** Packets from several senders, on several nodes, of which the same holds. */
interface HoldingTest {
  readonly name: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly proto: string | undefined;
  readonly node: readonly string[];
  readonly expect: string | readonly string[] | Readonly<Record<string, number>>;
  readonly source?: string;
}

/** A file of kpc test: what becomes of packets from every kind of sender to every address of a Service. */
export function holdingTests(head: TestFileHead, scenes: readonly Scene[]): unknown {
  const merged = (['from', 'to', 'node'] as const).reduce<readonly HoldingTest[]>(merge, scenes.flatMap(testsOnNode));
  const tests = merged.map((test) => ({
    ...test,
    from: oneOf(test.from),
    to: oneOf(test.to),
    node: test.node.length === scenes.length ? undefined : oneOf(test.node),
  }));
  return { ...head, inputs: oneOf(head.inputs), tests };
}

function oneOf(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? (values[0] ?? '') : values;
}

function testsOnNode(scene: Scene): readonly HoldingTest[] {
  const node = [scene.side.services?.node.name ?? ''];
  return scene.ports.flatMap((port) =>
    traceMatrix([port], scene).cells.map(
      ({ from, kind, sender, target: { address, port: number, protocol }, fate }) => ({
        name: printable(`${port.name} ${kind}`),
        from: [from === 'itself' ? (sender.address?.text ?? from) : from],
        to: [joinHostPort(address.text, number)],
        proto: protocol === 'tcp' ? undefined : protocol,
        node,
        ...outcomeOf(fate, sender),
      }),
    ),
  );
}

function outcomeOf(fate: Fate, sender: Sender): Pick<HoldingTest, 'expect' | 'source'> {
  if (fate.verdict !== 'delivered') return { expect: fate.verdict };
  const shares = [...sharesOf(fate)];
  const [, first = 1] = shares[0] ?? [];
  const isEven = shares.every(([, share]) => Math.abs(share - first) < evenness);
  const isWhole = shares.reduce((sum, [, share]) => sum + share, 0) > 1 - evenness;
  const seen = seenSource(fate, sender);
  return {
    expect:
      isEven && isWhole
        ? shares.map(([at]) => at)
        : Object.fromEntries(shares.map(([at, share]) => [at, Number(share.toFixed(4))])),
    source: seen === 'changed' && fate.source !== 'masqueraded' ? fate.source.text : seen,
  };
}

/** kube-proxy rounds the shares that it writes. */
const evenness = 1e-4;

/** Joins tests that differ in one field only, in the order of the first of each. */
function merge(tests: readonly HoldingTest[], field: 'from' | 'to' | 'node'): readonly HoldingTest[] {
  const merged = new Map<string, HoldingTest>();
  for (const test of tests) {
    const key = JSON.stringify({ ...test, [field]: [] });
    const known = merged.get(key);
    merged.set(key, known ? { ...known, [field]: [...known[field], ...test[field]] } : test);
  }
  return [...merged.values()];
}
