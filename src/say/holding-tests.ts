import { printable } from '../base/printable.ts';
import { joinHostPort } from '../kernel/address.ts';
import { isUnknownOwn, isArrival, type Fate } from '../packet/packet.ts';
import { seenSource, sharesOf } from '../ask/trace/expectation.ts';
import { traceMatrix } from '../ask/trace/matrix.ts';
import { nodeSocketText, type Sender } from '../ask/trace/question.ts';
import type { Scene } from '../ask/trace/scene.ts';

/** The head of a file for kpc test: everything but the tests. Undefined fields are left out. */
export interface TestFileHead {
  readonly inputs: readonly string[];
  readonly hostAddresses: string | undefined;
  readonly namespace: string | undefined;
  /** Undefined for compiled inputs. */
  readonly mode: string | undefined;
  readonly release: string | undefined;
  /** "all", or the only node; undefined if it has no name. */
  readonly node: string | undefined;
}

interface HoldingTest {
  readonly name: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly proto: string | undefined;
  readonly node: readonly string[];
  readonly expect: string | readonly string[] | Readonly<Record<string, number>>;
  readonly source?: string;
}

/**
 * A file for kpc test that expects what happens now to packets from every kind of sender to every address of a Service.
 */
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

/** Whether node ports are left out because a side does not show what becomes of packets to them. */
export function leavesOutNodePorts(scenes: readonly Scene[]): boolean {
  return scenes.some((scene) =>
    scene.side.ports.some((port) =>
      traceMatrix([port], scene).cells.some(
        ({ target, fate }) => isUnknownOwn(target.address) && fate.verdict === 'unknown',
      ),
    ),
  );
}

function oneOf(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? (values[0] ?? '') : values;
}

function testsOnNode(scene: Scene): readonly HoldingTest[] {
  const node = [scene.side.nodeName];
  return scene.side.ports.flatMap((port) =>
    // What is not known holds nothing.
    traceMatrix([port], scene)
      .cells.filter(({ fate }) => fate.verdict !== 'unknown')
      .map(({ from, kind, sender, target: { address, port: number, protocol }, fate }) => ({
        name: printable(`${port.label} ${kind}`),
        from: [from === 'itself' ? (sender.address?.text ?? from) : from],
        to: [isUnknownOwn(address) ? nodeSocketText({ port: number, protocol }) : joinHostPort(address.text, number)],
        proto: protocol === 'tcp' ? undefined : protocol,
        node,
        ...outcomeOf(fate, sender),
      })),
  );
}

function outcomeOf(fate: Fate, sender: Sender): Pick<HoldingTest, 'expect' | 'source'> {
  if (isArrival(fate.verdict) && fate.connection().kind === 'fails') return { expect: 'fails' };
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

/** Merges tests that differ in one field only, in order of first appearance. */
function merge(tests: readonly HoldingTest[], field: 'from' | 'to' | 'node'): readonly HoldingTest[] {
  const merged = new Map<string, HoldingTest>();
  for (const test of tests) {
    const key = JSON.stringify({ ...test, [field]: [] });
    const known = merged.get(key);
    merged.set(key, known ? { ...known, [field]: [...known[field], ...test[field]] } : test);
  }
  return [...merged.values()];
}
