import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { cite } from '../../base/findings/finding.ts';
import { nearest } from '../../base/names.ts';
import { type Address, type Family, joinHostPort, parseAddress } from '../../kernel/address.ts';
import { formatSocketAddress, parseSocketAddress } from '../../kernel/ports-and-marks.ts';
import {
  failingShare,
  isArrival,
  lostShare,
  otherwiseShare,
  sourceText,
  sumChances,
  verdicts,
  type Fate,
} from '../../packet/packet.ts';
import { findNamedPods } from './named-pods.ts';
import { otherServiceOf } from './service-ends.ts';
import { wrong, type Read, type Sender, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

export interface WrittenExpectation {
  /** A verdict, "fails", a list of endpoints, or endpoints with the share of connections that each gets. */
  readonly expect: string | readonly string[] | Readonly<Record<string, number>>;
  /** "kept", "masqueraded", "mixed" or an address. */
  readonly source: string | undefined;
}

/**
 * The ends that a test can expect, other than endpoints. A packet that is expected to arrive must also get a working connection. `fails`:
 * the connection must not work, whatever happens to its first packet.
 */
const expectedEnds = [...verdicts, 'fails'] as const;

interface Expectation {
  readonly verdict: (typeof expectedEnds)[number];
  readonly endpoints: readonly ExpectedEndpoint[] | undefined;
  readonly source: string | undefined;
}

interface ExpectedEndpoint {
  readonly words: string;
  readonly address: Address;
  readonly port: number | undefined;
  readonly share: number | undefined;
}

const sourceWords = ['kept', 'masqueraded', 'mixed'] as const;

interface ExpectationFault {
  readonly field: 'expect' | 'source';
  readonly details: ArgumentsOf<'bad-expectation'>;
}

export function readExpectation(
  { expect, source }: WrittenExpectation,
  family: Family | undefined,
  namespace: string | undefined,
  scene: Scene,
):
  | { readonly kind: 'read'; readonly value: Expectation }
  | { readonly kind: 'wrong'; readonly faults: readonly ExpectationFault[] } {
  const faults: ExpectationFault[] = [];
  const seen = sourceWords.find((word) => word === source) ?? parseAddress(source ?? '')?.text;
  if (source !== undefined && seen === undefined) {
    faults.push({ field: 'source', details: { problem: 'unknown-source', value: source, known: sourceWords } });
  }
  const verdict = typeof expect === 'string' ? expectedEnds.find((each) => each === expect) : 'delivered';
  if (!verdict) {
    const [near] = nearest(String(expect), expectedEnds);
    const details = { problem: 'unknown-verdict', value: String(expect), known: expectedEnds, near } as const;
    faults.push({ field: 'expect', details });
  } else if (verdict !== 'delivered' && seen !== undefined) {
    faults.push({ field: 'source', details: { problem: 'idle-source' } });
  }
  const isList = (value: unknown): value is readonly string[] => Array.isArray(value);
  const written = isList(expect)
    ? expect.map((words) => [words, undefined] as const)
    : typeof expect === 'string'
      ? []
      : Object.entries(expect);
  const endpoints = written.flatMap(([words, share]): readonly ExpectedEndpoint[] => {
    const found = findEndpoint(words, family, namespace, scene);
    if (found.kind === 'read') return [{ words, share, ...found.value }];
    faults.push({ field: 'expect', details: { problem: 'refused', field: 'expect', error: cite(found.diagnostic) } });
    return [];
  });
  if (typeof expect === 'object' && written.length === 0) {
    faults.push({ field: 'expect', details: { problem: 'no-endpoints' } });
  }
  if (!verdict || faults.length > 0) return { kind: 'wrong', faults };
  const expected = typeof expect === 'string' ? undefined : endpoints;
  return { kind: 'read', value: { verdict, endpoints: expected, source: seen } };
}

function findEndpoint(
  words: string,
  family: Family | undefined,
  namespace: string | undefined,
  { side }: Scene,
): Read<Pick<ExpectedEndpoint, 'address' | 'port'>> {
  const socket = parseSocketAddress(words);
  if (socket) return { kind: 'read', value: socket };
  const asked = parseAddress(words);
  if (asked) {
    const [{ port } = { port: 80 }] = side.endpoints.at(asked.text);
    return wrong({ problem: 'which-port', to: words, ports: [], example: joinHostPort(words, port) });
  }
  const [, name = '', port] = /^([^:]*)(?::(\d{1,5}))?$/.exec(words) ?? [];
  const found = findNamedPods(name, namespace, side);
  if (found.kind === 'wrong') return found;
  const { name: full, pods, near } = found.value;
  const [pod, ...others] = pods;
  if (!pod || others.length > 0) return wrong({ problem: 'no-endpoint', name: words, near });
  const address = pod.status?.addresses.find((each) => family === undefined || each.family === family);
  if (!address) return wrong({ problem: 'no-address-of-pod', pod: full, family: family ?? 'ipv4' });
  return { kind: 'read', value: { address, port: port === undefined ? undefined : Number(port) } };
}

export type Unexpected =
  /**
   * `works`: the connection works, although it should fail. `verdict`: the packet ends differently. `fails`: the packet ends as expected,
   * but the connection fails.
   */
  | { readonly kind: 'works' | 'fails' }
  /** The packet is delivered to another Service than the test names. */
  | { readonly kind: 'other-service' }
  | { readonly kind: 'verdict'; readonly expected: string }
  /** `lost`: a share of the connections ends differently. `failing`: a share of them ends as expected but then fails. */
  | { readonly kind: 'lost' | 'failing'; readonly share: number }
  | { readonly kind: 'endpoints'; readonly reached: readonly string[]; readonly missed: readonly string[] }
  | { readonly kind: 'share'; readonly endpoint: string; readonly share: number; readonly wanted: number }
  | { readonly kind: 'source'; readonly expected: string; readonly seen: ReturnType<typeof seenSource> };

/** How far a share in a test may differ from the computed share. People write rounded shares. */
const tolerance = 0.005;

export function compareFate(
  { fate, sender, target }: Trace,
  expected: Expectation,
  { side }: Pick<Scene, 'side'>,
): readonly Unexpected[] {
  const { verdict, endpoints, source } = expected;
  if (verdict === 'fails')
    return fate.verdict !== 'unknown' && fate.connection().kind === 'fails' ? [] : [{ kind: 'works' }];
  if (fate.verdict !== verdict)
    return [{ kind: 'verdict', expected: endpoints?.map(({ words }) => words).join(', ') ?? verdict }];
  if (verdict === 'unknown') return [];
  const failing = isArrival(verdict) ? failingShare(fate) : 0;
  if (failing > 1 - tolerance) return [{ kind: 'fails' }];
  const faults: Unexpected[] = [];
  const lost = isArrival(verdict) ? otherwiseShare(fate) : lostShare(fate);
  // If the expected shares sum to less than 1, the remaining connections are expected to fail.
  const hasShares = endpoints?.some(({ share }) => share !== undefined) === true;
  if (lost > tolerance && !hasShares) faults.push({ kind: 'lost', share: lost });
  if (failing > tolerance && !hasShares) faults.push({ kind: 'failing', share: failing });
  if (endpoints) faults.push(...compareReached(sharesOf(fate), endpoints));
  else if (otherServiceOf(fate, target, side)) faults.push({ kind: 'other-service' });
  const seen = seenSource(fate, sender);
  const isSeen = seen === source || fate.endpoints.every((each) => sourceText(each.source) === source);
  if (source !== undefined && !isSeen) faults.push({ kind: 'source', expected: source, seen });
  return faults;
}

/** Returns each endpoint's share of connections, by "address:port". Connections that fail do not count. */
export function sharesOf(fate: Fate): ReadonlyMap<string, number> {
  const reached = fate
    .connection()
    .ways.flatMap(({ way: { endpoint, probability }, outcome }) =>
      endpoint ? [{ endpoint, probability: outcome.kind === 'fails' ? 0 : probability }] : [],
    );
  return sumChances(reached, ({ endpoint }) => formatSocketAddress(endpoint));
}

function compareReached(
  reached: ReadonlyMap<string, number>,
  expected: readonly ExpectedEndpoint[],
): readonly Unexpected[] {
  const faults: Unexpected[] = [];
  const missed: string[] = [];
  // If shares are given, the remaining connections are expected to fail. A test then need not list an endpoint without working connections.
  const hasShares = expected.some(({ share }) => share !== undefined);
  const others = new Set([...reached].flatMap(([at, share]) => (hasShares && share <= tolerance ? [] : [at])));
  for (const { words, address, port, share: wanted } of expected) {
    const own = [...reached].filter(([at]) => {
      const socket = parseSocketAddress(at);
      return socket?.address.text === address.text && (port ?? socket.port) === socket.port;
    });
    for (const [at] of own) others.delete(at);
    const share = own.reduce((sum, [, each]) => sum + each, 0);
    if (own.length === 0 && wanted !== 0) missed.push(words);
    else if (wanted !== undefined && Math.abs(share - wanted) > tolerance) {
      faults.push({ kind: 'share', endpoint: words, share, wanted });
    }
  }
  if (others.size === 0 && missed.length === 0) return faults;
  return [{ kind: 'endpoints', reached: [...others], missed }, ...faults];
}

export function seenSource({ endpoints }: Fate, { address }: Sender): (typeof sourceWords)[number] | 'changed' {
  const [first = 'kept', ...others] = new Set(
    endpoints.map(({ source }) => {
      if (source === 'masqueraded') return source;
      return address === undefined || source.text === address.text ? 'kept' : 'changed';
    }),
  );
  return others.length > 0 ? 'mixed' : first;
}
