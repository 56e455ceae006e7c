import type { Family } from '../address.ts';
import { parseNumber32, parsePort, parseTarget } from '../ports-and-marks.ts';
import {
  readFieldName,
  readSelector,
  readDraws,
  readMatch,
  readModulus,
  readSetName,
  readVerdict,
} from './parse-match.ts';
import type { OtherExpression } from './table.ts';
import { unquote, type Words } from './tokens.ts';

type Reader = (words: Words, family: Family) => OtherExpression | undefined;

const idle: OtherExpression = { kind: 'idle' };

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['counter', readCounter],
  ['log', readLog],
  ['limit', readLimit],
  ['quota', readLimit],
  ['notrack', () => ({ kind: 'notrack' })],
  ['ct', (words) => (words.take('count') ? readLimit(words) : readZone(words))],
  ['flow', (words) => idleIf((words.take('add') || words.take('offload')) && words.next().startsWith('@'))],
  ['dup', (words) => idleIf(words.take('to') && words.takeRest().length > 0)],
  ['redirect', readRedirect],
  ['snat', readSnat],
  ['numgen', readNumgen],
  ['meter', readMeter],
  ['add', (words) => readSetWrite(words, 'add')],
  ['update', (words) => readSetWrite(words, 'update')],
  ['delete', (words) => readSetWrite(words, 'delete')],
  ['meta', readRandom],
  ['tcp', (words) => (words.take('flags') ? readTcpFlags(words) : undefined)],
  ['xt', readXt],
  // These options say how the preceding NAT statement chooses a port or address, which has no effect here.
  ...['random', 'fully-random', 'persistent', ','].map((option) => [option, () => idle] as const),
]);

/** Reads an expression that kpc never writes. Returns undefined if the expression is unknown; any number of words may then be consumed. */
export function readOther(words: Words, family: Family): OtherExpression | undefined {
  const start = words.position;
  const read = readers.get(words.next())?.(words, family);
  if (read) return read;
  words.position = start;
  if (changesNothing(words)) return idle;
  words.position = start;
  return readMatch(words, false);
}

function readCounter(words: Words): OtherExpression {
  if (words.take('packets')) words.position += 3;
  return idle;
}

function idleIf(isRead: boolean): OtherExpression | undefined {
  return isRead ? idle : undefined;
}

const logOptions: ReadonlySet<string> = new Set(['prefix', 'level', 'group', 'snaplen', 'queue-threshold', 'flags']);

function readLog(words: Words): OtherExpression {
  while (logOptions.has(words.peek() ?? '')) {
    const option = words.next();
    words.next();
    if (option !== 'flags') continue;
    while (words.take(',')) words.next();
    if (words.take('options') || words.take('sequence')) while (words.take(',')) words.next();
  }
  return idle;
}

/** Reads `rate [over] 5/second [burst 5 packets]`, `rate 10 mbytes/second`, `over 25 mbytes` or `over 10`. */
function readLimit(words: Words): OtherExpression {
  words.take('rate');
  const isOver = words.take('over');
  words.take('until');
  words.next();
  if (/bytes/.test(words.peek() ?? '')) words.next();
  if (words.take('burst')) {
    words.next();
    if (/packets|bytes/.test(words.peek() ?? '')) words.next();
  }
  if (words.take('used')) words.position += 2;
  return { kind: 'limit', isOver };
}

function readZone(words: Words): OtherExpression | undefined {
  const direction = words.take('original') ? 'original' : words.take('reply') ? 'reply' : undefined;
  const zone = words.take('zone', 'set') ? parseNumber32(words.next()) : undefined;
  return zone === undefined ? undefined : { kind: 'zone', zone, direction };
}

function readRedirect(words: Words): OtherExpression | undefined {
  if (!words.take('to')) return { kind: 'redirect', port: undefined };
  const port = parsePort(words.next().replace(/^:/, ''));
  return port === undefined ? undefined : { kind: 'redirect', port };
}

function readSnat(words: Words, family: Family): OtherExpression | undefined {
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  if (!words.take('to')) return undefined;
  const text = words.next().replace(/(:\d+)-\d+$/, '$1');
  const address = parseTarget(text)?.address;
  return address?.family === family ? { kind: 'snat', address } : undefined;
}

/**
 * Reads `random mod 4 vmap { 0-1 : jump a, … }` or `random mod 4 < 1`. Also reads `inc` for `random`: it counts upwards, which gives the
 * same shares.
 */
function readNumgen(words: Words): OtherExpression | undefined {
  if (!words.take('random') && !words.take('inc')) return undefined;
  const start = words.position;
  const verdicts = readDraws(words, 'vmap', () => readVerdict(words));
  if (verdicts) return { kind: 'random-verdict', verdicts };
  words.position = start;
  const count = readModulus(words);
  const isBelow = words.take('<');
  const value = parseNumber32(words.next());
  if (count === undefined || value === undefined || words.peek() === ',' || words.peek() === '-') return undefined;
  return { kind: 'chance', probability: isBelow ? value / count : value < count ? 1 / count : 0 };
}

/** Reads `random & 2147483647 < N`, which is iptables' random statistic in nft's words. */
function readRandom(words: Words): OtherExpression | undefined {
  if (!words.take('random', '&', '2147483647', '<')) return undefined;
  const below = parseNumber32(words.next());
  return below === undefined ? undefined : { kind: 'chance', probability: below / 2 ** 31 };
}

function readMeter(words: Words): OtherExpression | undefined {
  while (!words.done && words.peek() !== '{') words.next();
  const inside = readBlock(words);
  return inside && { kind: 'limit', isOver: inside.includes('over') };
}

/** Reads `@set { ip saddr timeout 5m limit rate over 10/second }`, which stores a key. With a limit, the statement also matches by rate. */
function readSetWrite(words: Words, operation: 'add' | 'update' | 'delete'): OtherExpression | undefined {
  const set = readSetName(words);
  const start = words.position;
  const key = words.take('{') ? readSelector(words) : undefined;
  words.position = start;
  const inside = readBlock(words);
  if (set === undefined || !inside) return undefined;
  const isLimit = inside.includes('limit') || (inside.includes('ct') && inside.includes('count'));
  return isLimit ? { kind: 'limit', isOver: inside.includes('over') } : { kind: 'write-set', operation, set, key };
}

function readBlock(words: Words): readonly string[] | undefined {
  const inside: string[] = [];
  if (!words.take('{')) return undefined;
  for (let depth = 1; !words.done;) {
    const word = words.next();
    depth += word === '{' ? 1 : word === '}' ? -1 : 0;
    if (depth === 0) return inside;
    inside.push(word);
  }
  return undefined;
}

/** Reads a part that iptables stores in nftables but nft cannot print. A comment has no effect. iptables-save shows any other such part. */
function readXt(words: Words): OtherExpression {
  const [kind, name] = [words.next(), unquote(words.next())];
  return kind === 'match' && name === 'comment' ? idle : { kind: 'unknown', text: `xt ${kind} ${name}` };
}

const harmless =
  /^(?:meta (?:priority|nftrace|pkttype)|ip (?:ttl|dscp|ecn)|ip6 (?:hoplimit|dscp|ecn)|ct (?:label|helper)|tcp option maxseg size)$/;

function changesNothing(words: Words): boolean {
  const field = readFieldName(words);
  if (field === undefined || !words.take('set') || !harmless.test(field)) return false;
  const value = words.next();
  if (field.startsWith('tcp option')) words.take('mtu');
  // The kernel does not forward a packet without hops left.
  return !/^ip6? (?:ttl|hoplimit)$/.test(field) || Number(value) > 1;
}

const flagWord = /^[!=&|,/()]|^(?:fin|syn|rst|psh|ack|urg|ecn|cwr)\b|^0x0$/;

/** Reads `syn / fin,syn,rst,ack`, `& (fin | syn) == syn`, `! syn` or `syn`. A connection's first packet has only SYN. */
function readTcpFlags(words: Words): OtherExpression | undefined {
  const kind = 'tcp-flags';
  let text = '';
  while (flagWord.test(words.peek() ?? '')) text += words.next();
  const operator = /==|!=|\//.exec(text)?.[0];
  const [first = '', second = '', third = first] = text.split(/==|!=|\//);
  if (text === '') return undefined;
  const list = (part: string): readonly string[] => part.match(/[a-z]{3}/g) ?? [];
  if (operator === undefined)
    return { kind, mask: undefined, operator: first.startsWith('!') ? 'none' : 'any', flags: list(first) };
  const [wanted, mask] = operator === '/' ? [first, second] : [second, third];
  const isSame = operator === '!=' ? '!=' : '==';
  return { kind, mask: mask === '' ? undefined : list(mask), operator: isSame, flags: list(wanted) };
}
