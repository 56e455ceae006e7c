import { printableJson } from '../base/printable.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Fate } from '../packet/packet.ts';
import { seenSource, sharesOf } from '../packet/trace/expectation.ts';
import { traceMatrix } from '../packet/trace/matrix.ts';
import type { Sender } from '../packet/trace/question.ts';
import type { Scene } from '../packet/trace/scene.ts';

/** The head of a file for kpc test: all but its tests. */
export interface TestFileHead {
  readonly inputs: readonly string[];
  readonly hostAddresses: string | undefined;
  readonly namespace: string | undefined;
  /** Undefined for inputs that were compiled before. */
  readonly mode: string | undefined;
  readonly release: string | undefined;
  /** "all", or the only node; undefined if it has no name. */
  readonly nodes: string | undefined;
}

/** Packets from several senders, on several nodes, of which the same holds. */
interface HoldingTest {
  readonly name: string;
  readonly to: readonly string[];
  readonly protocol: string;
  readonly from: readonly string[];
  readonly nodes: readonly string[];
  /** Lines of YAML. */
  readonly outcome: readonly string[];
}

/** Writes a file of kpc test: what becomes of packets from every kind of sender to every address of a Service. */
export function writeHoldingTests(head: TestFileHead, scenes: readonly Scene[]): string {
  const tests = (['from', 'to', 'nodes'] as const).reduce<readonly HoldingTest[]>(merge, scenes.flatMap(testsOnNode));
  const { inputs, nodes, ...settings } = head;
  return [
    '# Written by kpc test --init: what holds now.',
    ...fieldLines('inputs', inputs),
    ...Object.entries(settings).flatMap(([key, value]) => fieldLines(key, value)),
    ...fieldLines(nodes === 'all' ? 'nodes' : 'node', nodes),
    tests.length === 0 ? 'tests: []' : 'tests:',
    ...tests.flatMap((test) => testLines(test, scenes.length)),
    '',
  ].join('\n');
}

function testsOnNode(scene: Scene): readonly HoldingTest[] {
  const node = scene.side.services?.node.name ?? '';
  return scene.ports.flatMap((port) => {
    const { senders, rows } = traceMatrix([port], scene);
    return rows.flatMap(({ kind, address, port: number, protocol, cells }) =>
      cells.flatMap((cell, i): readonly HoldingTest[] => {
        const from = senders[i];
        if (!cell || from === undefined) return [];
        return [
          {
            name: `${port.label} ${kind}`,
            to: [joinHostPort(address.text, number)],
            protocol,
            from: [from === 'itself' ? (cell.sender.address?.text ?? from) : from],
            nodes: [node],
            outcome: outcomeLines(cell.fate, cell.sender),
          },
        ];
      }),
    );
  });
}

function outcomeLines(fate: Fate, sender: Sender): readonly string[] {
  if (fate.verdict !== 'delivered') return [`expect: ${fate.verdict}`];
  const shares = [...sharesOf(fate)];
  const [, first = 1] = shares[0] ?? [];
  const isEven = shares.every(([, share]) => Math.abs(share - first) < evenness);
  const isWhole = shares.reduce((sum, [, share]) => sum + share, 0) > 1 - evenness;
  const source = seenSource(fate, sender);
  const seen = source === 'changed' && fate.source !== 'masqueraded' ? fate.source.text : source;
  return [
    ...(isEven && isWhole
      ? fieldLines(
          'expect',
          shares.map(([at]) => at),
        )
      : ['expect:', ...shares.map(([at, share]) => `  ${yaml(at)}: ${Number(share.toFixed(4))}`)]),
    `source: ${yaml(seen)}`,
  ];
}

/** kube-proxy rounds the shares that it writes. */
const evenness = 1e-4;

/** Joins tests that differ in one field only, in the order of the first of each. */
function merge(tests: readonly HoldingTest[], field: 'from' | 'to' | 'nodes'): readonly HoldingTest[] {
  const merged = new Map<string, HoldingTest>();
  for (const test of tests) {
    const key = JSON.stringify({ ...test, [field]: [] });
    const known = merged.get(key);
    merged.set(key, known ? { ...known, [field]: [...known[field], ...test[field]] } : test);
  }
  return [...merged.values()];
}

function testLines({ name, from, to, protocol, nodes, outcome }: HoldingTest, allNodes: number): readonly string[] {
  const lines = [
    ...fieldLines('name', name),
    ...fieldLines('from', oneOf(from)),
    ...fieldLines('to', oneOf(to)),
    ...fieldLines('proto', protocol === 'tcp' ? undefined : protocol),
    ...fieldLines(nodes.length === 1 ? 'node' : 'nodes', nodes.length === allNodes ? undefined : oneOf(nodes)),
    ...outcome,
  ];
  return lines.map((line, i) => `${i === 0 ? '  - ' : '    '}${line}`);
}

function oneOf(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? (values[0] ?? '') : values;
}

/** A field, unless it is left out; a list on one line if it is short. */
function fieldLines(key: string, value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [`${key}: ${yaml(value)}`];
  const words = value.map(yaml);
  if (words.join(', ').length <= 80) return [`${key}: [${words.join(', ')}]`];
  return [`${key}:`, ...words.map((word) => `  - ${word}`)];
}

/** A text as YAML has it, in quotes if it could mean something else. */
function yaml(text: string): string {
  const isName = /^(?:[a-z/]|\.{1,2}\/)/i.test(text) && /^[\w./ :-]+$/.test(text) && !/: |[: ]$/.test(text);
  const isPlain = isName || /^(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?$/.test(text);
  const isWord = /^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain && !isWord ? text : printableJson(JSON.stringify(text));
}
