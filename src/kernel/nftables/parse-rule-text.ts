import {
  allBits,
  type PlainAction,
  type MarkChange,
  type MarkHolder,
  parseNumber32,
  parsePort,
  parseTarget,
  type SocketAddress,
} from '../ports-and-marks.ts';
import { type Family, parseAddress } from '../address.ts';
import { readSelector, readDraws, readMatch, readSetName, readVerdict } from './parse-match.ts';
import { readOther } from './parse-other.ts';
import type { Expression, NftRule } from './table.ts';
import { unquote, type Words } from './tokens.ts';

export function readRule(words: Words, family: Family): NftRule {
  const comment = words.takeComment();
  const expressions: Expression[] = [];
  while (!words.done) expressions.push(readExpression(words, family));
  return comment === undefined ? { expressions } : { expressions, comment };
}

/** Reads one expression. An unknown expression takes all the remaining words, because its end is unknown. */
function readExpression(words: Words, family: Family): Expression {
  const start = words.position;
  const own = readOwn(words, family);
  if (own) return own;
  words.position = start;
  const other = readOther(words, family);
  if (other) return { ...other, text: words.since(start) };
  words.position = start;
  return { kind: 'unknown', text: words.takeRest().join(' ') };
}

/** Reads an expression that kpc can write back. Returns undefined for any other; any number of words may then be consumed. */
function readOwn(words: Words, family: Family): Expression | undefined {
  const verdict = readVerdict(words);
  if (verdict) return verdict;
  const start = words.position;
  const head = words.next();
  switch (head) {
    case 'reject':
      return readReject(words, family);
    case 'masquerade':
      return { kind: 'masquerade', fullyRandom: words.take('fully-random') };
    case 'dnat':
      return readDnat(words, family);
    case 'numgen':
      return words.take('random') ? readGotos(words) : undefined;
    case 'counter':
      return words.take('name') && !words.done ? { kind: 'counter', counter: unquote(words.next()) } : undefined;
    case 'add':
    case 'update':
    case 'delete': {
      const [set, key] = [readSetName(words), words.take('{') ? readSelector(words) : undefined];
      return set !== undefined && key && words.take('}') ? { kind: 'write-set', operation: head, set, key } : undefined;
    }
    default: {
      words.position = start;
      const change = readChange(words);
      if (change) return change;
      words.position = start;
      return readMatch(words, true);
    }
  }
}

/** nft's spellings of a plain `reject`; `nft -n` prints the code as a number. */
const defaultReject: { readonly [F in Family]: readonly string[] } = {
  ipv4: ['icmp port-unreachable', 'icmp 3'],
  ipv6: ['icmpv6 port-unreachable', 'icmpv6 4'],
};

/** Reads the rest of a `reject`. Newer versions of nft omit the word `type` before the code. */
function readReject(words: Words, family: Family): PlainAction {
  if (!words.take('with')) return { kind: 'reject' };
  const answer = words
    .takeRest()
    .filter((word) => word !== 'type')
    .join(' ');
  return defaultReject[family].includes(answer) ? { kind: 'reject' } : { kind: 'reject', with: answer };
}

function readDnat(words: Words, family: Family): Expression | undefined {
  // Some versions print "dnat ip to" for "dnat ip addr . port to".
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  words.take('addr', '.', 'port');
  if (!words.take('to')) return undefined;
  if (words.take('numgen', 'random')) {
    const targets = readDraws(words, 'map', () => readSocket(words, family));
    return targets && { kind: 'dnat-random', targets };
  }
  const start = words.position;
  const target = readSocket(words, family);
  if (target) return { kind: 'dnat', target };
  words.position = start;
  const alone = parseTarget(words.next());
  return alone?.address.family === family ? { kind: 'dnat', target: alone } : undefined;
}

function readSocket(words: Words, family: Family): SocketAddress | undefined {
  const address = parseAddress(words.next());
  const port = words.take('.') ? parsePort(words.next()) : undefined;
  return address?.family === family && port !== undefined ? { address, port } : undefined;
}

function readGotos(words: Words): Expression | undefined {
  const verdicts = readDraws(words, 'vmap', () => readVerdict(words)) ?? [];
  const chains = verdicts.flatMap((each) => (each.kind === 'goto' ? [each.chain] : []));
  const isOwn = chains.length > 0 && chains.length === new Set(verdicts).size;
  return isOwn && chains.length === verdicts.length ? { kind: 'goto-random', chains } : undefined;
}

function readChange(words: Words): PlainAction | undefined {
  const of = readHolder(words);
  const change = of && words.take('set') ? readMarkChange(words, of) : undefined;
  return of && change && { kind: 'change-mark', of, change };
}

function readHolder(words: Words): MarkHolder | undefined {
  if (words.take('mark') || words.take('meta', 'mark')) return 'packet';
  return words.take('ct', 'mark') ? 'connection' : undefined;
}

const operations: ReadonlyMap<string, 'and' | 'or' | 'xor'> = new Map([
  ['&', 'and'],
  ['and', 'and'],
  ['|', 'or'],
  ['or', 'or'],
  ['^', 'xor'],
  ['xor', 'xor'],
]);

function readMarkChange(words: Words, of: MarkHolder): MarkChange | undefined {
  const from = readHolder(words);
  if (!from) {
    const value = parseNumber32(words.next());
    return value === undefined ? undefined : { stays: 0, flip: value };
  }
  let [keep, flip] = [allBits, 0];
  for (;;) {
    const operation = operations.get(words.peek() ?? '');
    if (!operation) break;
    words.next();
    const value = parseNumber32(words.next());
    if (value === undefined) return undefined;
    if (operation === 'xor') flip = (flip ^ value) >>> 0;
    else {
      const mask = operation === 'and' ? value : ~value >>> 0;
      keep = (keep & mask) >>> 0;
      flip = ((flip & mask) | (operation === 'or' ? value : 0)) >>> 0;
    }
  }
  return from === of ? { stays: keep, flip } : { stays: 0, start: { from, keep }, flip };
}
