import { parseAddress } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Element, NftVerdict, Value, Expression, Field, Selector, NftRule } from '../kernel/nftables/table.ts';
import { readExpression, readValue, readVerdict, type ValueType } from '../kernel/nftables/parse-rule-text.ts';
import { cutItems, unquote, Words } from '../kernel/nftables/tokens.ts';
import { parseNumber32, parsePort, parseSocketAddress } from '../kernel/ports-and-marks.ts';
import { flagsOf, type Flow } from './flow.ts';
import { findField, fieldNames } from './nft-fields.ts';
import type { Action, MarkChange, MarkHolder } from './step.ts';
import { circumstance, type Answer } from './reason.ts';

export type Elements = { readonly set: string } | { readonly elements: readonly Element[] };

/** One part of a rule. A rule runs its statements until one does not match, or decides. */
export type Statement =
  /** Whether the packet's values in these fields are (or are not) among the elements, or how a number compares. */
  | {
      readonly kind: 'match';
      readonly fields: Selector;
      /** 'is' compares a connection status as a whole; '==' tests for one of its bits. */
      readonly operator: '==' | '!=' | 'is' | '<' | '>' | '<=' | '>=';
      readonly among: Elements;
    }
  /** The verdict of the packet's element; without one, the rule ends. */
  | { readonly kind: 'verdict-map'; readonly fields: Selector; readonly among: Elements }
  | { readonly kind: 'question'; readonly ask: (flow: Flow) => Answer }
  | { readonly kind: 'chance'; readonly probability: number }
  | { readonly kind: 'random-verdict'; readonly verdicts: readonly NftVerdict[] }
  | { readonly kind: 'action'; readonly action: Action }
  /** Adds the packet's values in these fields to a set or removes them. No fields: kpc cannot read them. */
  | {
      readonly kind: 'write-set';
      readonly set: string;
      readonly fields: Selector | undefined;
      readonly isRemoval: boolean;
    }
  /** No effect on the first packet's rules, routes or receiver. */
  | { readonly kind: 'idle' };

/** The statements of a rule. Whatever follows an unreadable part is one statement of kind unknown. */
export function readStatements(rule: NftRule, family: Family): readonly Statement[] {
  return rule.expressions.flatMap((expression) => {
    // nft adds a match on TCP to such a rule and does not print it.
    if (expression.kind === 'reject' && expression.with === 'tcp reset') return [isTcp, statementOf(expression)];
    if (expression.kind !== 'unknown') return [statementOf(expression)];
    return readWords(wordsOf(expression.text), family);
  });
}

function wordsOf(text: string): Words {
  const [table] = cutItems(`table {\nchain {\n${text}\n}\n}\n`).items;
  return new Words(table?.items?.[0]?.items?.[0]?.words ?? []);
}

function readWords(words: Words, family: Family): readonly Statement[] {
  const statements: Statement[] = [];
  while (!words.done) {
    const start = words.position;
    const own = readOne(words, family);
    if (own) {
      statements.push(own);
      continue;
    }
    words.position = start;
    const known = readExpression(words, family);
    if (known) {
      if (known.kind === 'reject' && known.with === 'tcp reset') statements.push(isTcp);
      statements.push(statementOf(known));
      continue;
    }
    words.position = start;
    statements.push({ kind: 'action', action: { kind: 'unknown', text: words.takeRest().join(' ') } });
  }
  return statements;
}

function statementOf(expression: Expression): Statement {
  switch (expression.kind) {
    case 'match': {
      const { left, right, negated } = expression;
      const values = right.kind === 'value' ? [right.value] : right.kind === 'any-of' ? right.values : [];
      const among = right.kind === 'set' ? right : { elements: values.map((value) => ({ key: [value] })) };
      return { kind: 'match', fields: left, operator: negated ? '!=' : '==', among };
    }
    case 'verdict-map':
      return { kind: 'verdict-map', fields: expression.key, among: { set: expression.map } };
    case 'set-mark':
      return act({ kind: 'change-mark', of: 'packet', change: changeOf(expression) });
    case 'verdict':
      return act(expression.verdict);
    case 'write-set': {
      const { set, key, operation } = expression;
      return { kind: 'write-set', set, fields: key, isRemoval: operation === 'delete' };
    }
    case 'counter':
      return { kind: 'idle' };
    default:
      return act(expression);
  }
}

const isTcp: Statement = { kind: 'question', ask: ({ protocol }) => protocol === 'tcp' };

const allBits = 0xffffffff;

function changeOf({ operation, value }: Expression & { readonly kind: 'set-mark' }): MarkChange {
  switch (operation) {
    case 'or':
      return { stays: ~value >>> 0, flip: value };
    case 'xor':
      return { stays: allBits, flip: value };
    case 'set':
      return { stays: 0, flip: value };
    default:
      return operation satisfies never;
  }
}

function act(action: Action): Statement {
  return { kind: 'action', action };
}

const idle: Statement = { kind: 'idle' };

function readOne(words: Words, family: Family): Statement | undefined {
  const verdict = readVerdict(words);
  if (verdict) return act(verdict);
  const head = words.peek() ?? '';
  const known = statements.get(head);
  if (known) {
    const start = words.position;
    words.next();
    const read = known(words, family);
    if (read || head !== 'ct') return read;
    words.position = start;
  }
  return readChange(words) ?? readMatch(words);
}

type Reader = (words: Words, family: Family) => Statement | undefined;

const statements: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['counter', readCounter],
  ['log', readLog],
  ['limit', readLimit],
  ['quota', readLimit],
  ['notrack', () => act({ kind: 'notrack' })],
  ['ct', readZone],
  ['flow', (words) => idleIf((words.take('add') || words.take('offload')) && words.next().startsWith('@'))],
  ['dup', (words) => idleIf(words.take('to') && words.takeRest().length > 0)],
  ['masquerade', (words) => (readNatOptions(words), act({ kind: 'masquerade' }))],
  ['redirect', readRedirect],
  ['dnat', readDnat],
  ['snat', readSnat],
  ['numgen', readNumgen],
  ['meter', (words) => (words.takeRest().includes('over') ? ask('excess', 'meter') : ask('rate', 'meter'))],
  ['add', (words) => readSetWrite(words, false)],
  ['update', (words) => readSetWrite(words, false)],
  ['delete', (words) => readSetWrite(words, true)],
  ['xt', readXt],
]);

/** `counter packets 5 bytes 300`, `counter name "hits"`, `counter`. */
function readCounter(words: Words): Statement {
  if (words.take('packets')) words.position += 3;
  else if (words.take('name')) words.next();
  return idle;
}

function idleIf(isRead: boolean): Statement | undefined {
  return isRead ? idle : undefined;
}

function ask(of: 'rate' | 'excess', text: string): Statement {
  return { kind: 'question', ask: () => circumstance(of, text) };
}

const logOptions: ReadonlySet<string> = new Set(['prefix', 'level', 'group', 'snaplen', 'queue-threshold', 'flags']);

function readLog(words: Words): Statement {
  while (logOptions.has(words.peek() ?? '')) {
    const option = words.next();
    words.next();
    if (option !== 'flags') continue;
    // `flags tcp sequence,options`, `flags ip options`.
    while (words.take(',')) words.next();
    if (words.take('options') || words.take('sequence')) while (words.take(',')) words.next();
  }
  return idle;
}

/** `rate [over] 5/second [burst 5 packets]`, `rate 10 mbytes/second`, `over 25 mbytes`. */
function readLimit(words: Words): Statement {
  words.take('rate');
  const isOver = words.take('over');
  words.take('until');
  const amount = [words.next()];
  if (/bytes/.test(words.peek() ?? '')) amount.push(words.next());
  if (words.take('burst')) {
    words.next();
    if (/packets|bytes/.test(words.peek() ?? '')) words.next();
  }
  if (words.take('used')) words.position += 2;
  return ask(isOver ? 'excess' : 'rate', amount.join(' '));
}

/** Skips how ports and addresses are drawn: it does not matter here. */
function readNatOptions(words: Words): void {
  while (/^(?:random|fully-random|persistent|,)$/.test(words.peek() ?? '')) words.next();
}

function readRedirect(words: Words): Statement | undefined {
  let port: number | undefined;
  if (words.take('to')) {
    port = parsePort(words.next().replace(/^:/, ''));
    if (port === undefined) return undefined;
  }
  readNatOptions(words);
  return act({ kind: 'redirect', port });
}

function readDnat(words: Words, family: Family): Statement | undefined {
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  if (!words.take('to')) return undefined;
  const text = words.next();
  const socket = parseSocketAddress(text);
  const address = socket?.address ?? parseAddress(text);
  readNatOptions(words);
  return address?.family === family ? act({ kind: 'dnat', target: { address, port: socket?.port } }) : undefined;
}

function readSnat(words: Words, family: Family): Statement | undefined {
  if (words.peek() === 'ip' || words.peek() === 'ip6') words.next();
  if (!words.take('to')) return undefined;
  const text = words.next().replace(/(:\d+)-\d+$/, '$1');
  const address = parseAddress(text) ?? parseSocketAddress(text)?.address;
  readNatOptions(words);
  return address?.family === family ? act({ kind: 'snat', address }) : undefined;
}

/** `random mod 4 vmap { 0-1 : jump a, 2-3 : goto b }`. `inc` takes turns, which gives the same shares. */
function readNumgen(words: Words): Statement | undefined {
  if (!words.take('random') && !words.take('inc')) return undefined;
  if (!words.take('mod')) return undefined;
  const count = parseNumber32(words.next());
  if (words.take('offset')) return undefined;
  if (count === undefined || count > 10_000) return undefined;
  if (words.take('vmap')) {
    const elements = readElements(words, ['number']);
    const verdicts = elements && Array.from({ length: count }, (_, draw) => verdictOf(elements, draw));
    return verdicts?.every((verdict) => verdict !== undefined) ? { kind: 'random-verdict', verdicts } : undefined;
  }
  const isBelow = words.take('<');
  const value = parseNumber32(words.next());
  if (value === undefined || words.peek() === ',' || words.peek() === '-') return undefined;
  return { kind: 'chance', probability: isBelow ? value / count : value < count ? 1 / count : 0 };
}

function verdictOf(elements: readonly Element[], draw: number): NftVerdict | undefined {
  const found = elements.find(({ key: [value] }) =>
    value?.kind === 'number'
      ? value.value === draw
      : value?.kind === 'numbers' && value.first <= draw && draw <= value.last,
  )?.value;
  return found && found.kind !== 'data' ? found : undefined;
}

/** `@set { ip saddr timeout 5m limit rate over 10/second }`: what a rule remembers; a limit matches by rate. */
function readSetWrite(words: Words, isRemoval: boolean): Statement | undefined {
  const name = words.next();
  if (!name.startsWith('@') || !words.take('{')) return undefined;
  const start = words.position;
  const fields = readFields(words);
  words.position = start;
  const inside: string[] = [];
  for (let depth = 1; !words.done;) {
    const word = words.next();
    depth += word === '{' ? 1 : word === '}' ? -1 : 0;
    if (depth === 0) {
      if (!inside.includes('limit') && !(inside.includes('ct') && inside.includes('count')))
        return { kind: 'write-set', set: name.slice(1), fields, isRemoval };
      return ask(inside.includes('over') ? 'excess' : 'rate', inside.join(' '));
    }
    inside.push(word);
  }
  return undefined;
}

/** What iptables stores in nftables and nft cannot print: a comment has no effect, and iptables-save shows the rest. */
function readXt(words: Words): Statement | undefined {
  const [kind, name] = [words.next(), unquote(words.next())];
  if (kind === 'match' && name === 'comment') return idle;
  return act({ kind: 'unknown', text: `xt ${kind} ${name}` });
}

/** `meta mark set …`, `ct mark set …`, and changes that no rule matches on: `ip ttl set 64`, `meta priority set 1:2`. */
function readChange(words: Words): Statement | undefined {
  const start = words.position;
  const holder = readHolder(words);
  if (holder && words.take('set')) {
    const change = readMarkChange(words, holder);
    return change && act({ kind: 'change-mark', of: holder, change });
  }
  words.position = start;
  const field = readFieldName(words);
  if (field === undefined || !words.take('set') || !harmless.test(field)) {
    words.position = start;
    return undefined;
  }
  const value = words.next();
  // The kernel does not forward a packet without hops left.
  if (/^ip6? (?:ttl|hoplimit)$/.test(field) && !(Number(value) > 1)) {
    words.position = start;
    return undefined;
  }
  if (field.startsWith('tcp option')) words.take('mtu');
  return idle;
}

/** Packet fields that may be changed without affecting where it goes. */
const harmless =
  /^(?:meta (?:priority|nftrace|pkttype)|ip (?:ttl|dscp|ecn)|ip6 (?:hoplimit|dscp|ecn)|ct (?:label|helper)|tcp option maxseg size)$/;

/** `ct zone set 1`, `ct original zone set 1`. */
function readZone(words: Words): Statement | undefined {
  const direction = words.take('original') ? 'original' : words.take('reply') ? 'reply' : undefined;
  if (!words.take('zone', 'set')) return undefined;
  const zone = parseNumber32(words.next());
  return zone === undefined ? undefined : act({ kind: 'zone', zone, direction });
}

function readHolder(words: Words): MarkHolder | undefined {
  if (words.take('mark') || words.take('meta', 'mark')) return 'packet';
  return words.take('ct', 'mark') ? 'connection' : undefined;
}

/** A number, or one of the two marks with operations on it: `ct mark & 0xff | 0x100`, as nft prints it. */
function readMarkChange(words: Words, of: MarkHolder): MarkChange | undefined {
  const from = readHolder(words);
  if (!from) {
    const value = parseNumber32(words.next());
    return value === undefined ? undefined : { stays: 0, flip: value };
  }
  let [keep, flip] = [allBits, 0];
  for (;;) {
    const operator = operators.get(words.peek() ?? '');
    if (!operator) break;
    words.next();
    const value = parseNumber32(words.next());
    if (value === undefined) return undefined;
    if (operator === 'xor') flip = (flip ^ value) >>> 0;
    else {
      const mask = operator === 'and' ? value : ~value >>> 0;
      keep = (keep & mask) >>> 0;
      flip = ((flip & mask) | (operator === 'or' ? value : 0)) >>> 0;
    }
  }
  return from === of ? { stays: keep, flip } : { stays: 0, start: { from, keep }, flip };
}

const operators: ReadonlyMap<string, 'and' | 'or' | 'xor'> = new Map([
  ['&', 'and'],
  ['and', 'and'],
  ['|', 'or'],
  ['or', 'or'],
  ['^', 'xor'],
  ['xor', 'xor'],
]);

/** One field, or the several fields of a key, and what they are compared with. */
function readMatch(words: Words): Statement | undefined {
  if (words.take('meta', 'random', '&', '2147483647', '<')) {
    // iptables' random statistic in nft's words.
    const below = parseNumber32(words.next());
    return below === undefined ? undefined : { kind: 'chance', probability: below / 2 ** 31 };
  }
  if (words.take('tcp', 'flags')) return readFlags(words);
  if (words.take('ct', 'count')) {
    const isOver = words.take('over');
    return ask(isOver ? 'excess' : 'rate', `ct count ${words.next()}`);
  }
  const fields = readFields(words);
  const types = fields?.map(({ name }) => findField(name)?.type ?? 'word');
  if (!fields || !types) return undefined;
  if (words.take('vmap')) {
    const among = readAmong(words, types);
    return among && { kind: 'verdict-map', fields, among };
  }
  const isWhole = fields[0]?.name === 'ct status' && words.take('==');
  const operator = isWhole ? 'is' : readOperator(words);
  const among = readAmong(words, types) ?? readList(words, types);
  return among && { kind: 'match', fields, operator, among };
}

function readOperator(words: Words) {
  const found = (['==', '!=', '<=', '>=', '<', '>'] as const).find((each) => words.take(each));
  return found ?? '==';
}

function readAmong(words: Words, types: readonly ValueType[]): Elements | undefined {
  if (words.peek()?.startsWith('@')) return { set: words.next().slice(1) };
  if (words.peek() !== '{') return undefined;
  const elements = readElements(words, types);
  return elements && { elements };
}

function readList(words: Words, types: readonly ValueType[]): Elements | undefined {
  const elements: Element[] = [];
  do {
    const key = readKey(words, types);
    if (!key) return undefined;
    elements.push({ key });
  } while (words.take(','));
  return { elements };
}

/** `{ 10.0.0.1 . 80 : accept, 10.0.0.2 . 90-99 : jump a }`, with or without verdicts. */
function readElements(words: Words, types: readonly ValueType[]): readonly Element[] | undefined {
  if (!words.take('{')) return undefined;
  const elements: Element[] = [];
  while (!words.take('}')) {
    const key = readKey(words, types);
    if (!key) return undefined;
    if (words.take('counter', 'packets')) words.position += 3;
    const value = words.take(':') ? readVerdict(words) : undefined;
    elements.push({ key, value });
    if (!words.take(',') && words.peek() !== '}') return undefined;
  }
  return elements;
}

function readKey(words: Words, types: readonly ValueType[]): readonly Value[] | undefined {
  const key: Value[] = [];
  for (const [at, type] of types.entries()) {
    if (at > 0 && !words.take('.')) return undefined;
    const text = words.next();
    const value = text === '' ? undefined : readValue(unquote(text), type);
    if (!value) return undefined;
    key.push(value);
  }
  return key;
}

function readFields(words: Words): Selector | undefined {
  const fields: Field[] = [];
  do {
    const name = readFieldName(words);
    if (name === undefined) return undefined;
    if (!words.take('&') && !words.take('and')) fields.push({ name });
    else {
      const mask = parseNumber32(words.next());
      if (mask === undefined) return undefined;
      fields.push({ name, mask });
    }
  } while (words.take('.'));
  return fields;
}

const namesInWords: readonly (readonly string[])[] = [
  ...fieldNames.map((name) => name.split(' ')),
  ...['mark', 'iif', 'iifname', 'oif', 'oifname'].map((name) => ['meta', name]),
].toSorted((a, b) => b.length - a.length);

function readFieldName(words: Words): string | undefined {
  if (words.take('fib')) {
    let flags = words.next();
    while (words.take('.')) flags += ` . ${words.next()}`;
    const name = `fib ${flags} ${words.next()}`;
    return findField(name) && name;
  }
  const found = namesInWords.find((name) => words.take(...name));
  return found && (found[0] === 'meta' && !fieldNames.includes(found.join(' ')) ? found[1] : found.join(' '));
}

/** `syn / fin,syn,rst,ack`, `& (fin | syn) == syn`, `! syn`, `syn`: a connection's first packet has SYN alone. */
function readFlags(words: Words): Statement | undefined {
  const text: string[] = [];
  while (/^[!=&|,/()]|^(?:fin|syn|rst|psh|ack|urg|ecn|cwr)\b|^\(|^0x0$/.test(words.peek() ?? ''))
    text.push(words.next());
  const joined = text.join('');
  const operator = /==|!=|\//.exec(joined)?.[0] ?? '';
  const end = operator === '' ? joined.length : joined.indexOf(operator);
  const [first, second] = [joined.slice(0, end), joined.slice(end + operator.length)];
  const listed = (part: string): readonly string[] =>
    part
      .replaceAll(/[&()!]/g, '')
      .split(/[|,]/)
      .filter((each) => each !== '' && each !== '0x0');
  const found = (flow: Flow): boolean => {
    const own = flagsOf(flow).map((flag) => flag.toLowerCase());
    const hasAny = (flags: readonly string[]): boolean => flags.some((flag) => own.includes(flag));
    if (operator === '' && first.startsWith('!')) return !hasAny(listed(first));
    if (operator === '') return hasAny(listed(first));
    const [mask, wanted] =
      operator === '/' ? [second, first] : first.startsWith('&') ? [first, second] : [undefined, second];
    const masked = mask === undefined ? own : own.filter((flag) => listed(mask).includes(flag));
    const isSame = listed(wanted).toSorted().join() === masked.toSorted().join();
    return operator === '!=' ? !isSame : isSame;
  };
  if (text.length === 0) return undefined;
  return { kind: 'question', ask: (flow) => flow.protocol === 'tcp' && found(flow) };
}
