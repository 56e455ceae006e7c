import { joinHostPort } from '../address.ts';
import type { Element, ElementValue, Value, Verdict } from './element.ts';
import type { Expression, Field, Right, Selector, Target } from './expression.ts';
import { isBareInterfaceName } from './interface-names.ts';
import type { NftRule } from './table.ts';

/** A rule as kube-proxy writes it, on one line. */
export function formatRule(rule: NftRule): string {
  let text = '';
  for (let i = 0; i < rule.expressions.length; i++) {
    if (i > 0) text += ' ';
    text += formatExpression(rule.expressions[i] as Expression);
  }
  return rule.comment === undefined ? text : `${text} comment ${quote(rule.comment)}`;
}

/** An element as nft takes it: `KEY comment "TEXT" : VALUE`. */
export function formatElement({ key, value, comment }: Element): string {
  let text = formatKey(key);
  if (comment !== undefined) text += ` comment ${quote(comment)}`;
  return value === undefined ? text : `${text} : ${formatElementValue(value)}`;
}

/** The key of an element. */
export function formatKey(key: readonly Value[]): string {
  let text = key[0] ? formatValue(key[0]) : '';
  for (let i = 1; i < key.length; i++) text += ` . ${formatValue(key[i] as Value)}`;
  return text;
}

/** What a key of a map maps to. */
export function formatElementValue(value: ElementValue): string {
  return value.kind === 'data' ? formatKey(value.values) : formatVerdict(value);
}

/**
 * A string in double quotes. nft knows no way to write a quote or a line break inside: both must have been refused long
 * before.
 */
export function quote(text: string): string {
  if (/["\n\r\0]/.test(text)) throw new Error(`not a string for nft: ${JSON.stringify(text)}`);
  return `"${text}"`;
}

function formatExpression(expression: Expression): string {
  switch (expression.kind) {
    case 'match':
      return `${formatSelector(expression.left)} ${formatOperator(expression)}${formatRight(expression.left, expression.right)}`;
    case 'verdict':
      return formatVerdict(expression.verdict);
    case 'verdict-map':
      return `${formatSelector(expression.key)} vmap @${expression.map}`;
    case 'goto-random':
      return `numgen random mod ${expression.chains.length} vmap { ${formatChances(expression.chains)} }`;
    case 'dnat':
      return `dnat to ${joinHostPort(expression.target.address.text, expression.target.port)}`;
    case 'dnat-random':
      return formatRandomDnat(expression.targets);
    case 'set-mark':
      return `mark set ${expression.operation === 'set' ? '' : `mark ${expression.operation} `}${formatMark(expression.value)}`;
    case 'masquerade':
      return expression.fullyRandom ? 'masquerade fully-random' : 'masquerade';
    case 'reject':
      return expression.with === undefined ? 'reject' : `reject with ${expression.with}`;
    case 'write-set':
      return `${expression.operation} @${expression.set} { ${formatSelector(expression.key)} }`;
    case 'counter':
      return `counter name ${quote(expression.counter)}`;
    case 'unknown':
      return expression.text;
    default:
      return expression satisfies never;
  }
}

/** Equality goes without saying, but not after bits: what follows would be read as one of them. */
function formatOperator({ left, negated }: Expression & { readonly kind: 'match' }): string {
  if (negated) return '!= ';
  return left[0]?.kind === 'masked' ? '== ' : '';
}

function formatRandomDnat(targets: readonly Target[]): string {
  const family = targets[0]?.address.family === 'ipv6' ? 'ip6' : 'ip';
  const chances = targets.map(({ address, port }, i) => `${i} : ${address.text} . ${port}`).join(', ');
  return `dnat ${family} addr . port to numgen random mod ${targets.length} map { ${chances} }`;
}

function formatChances(chains: readonly string[]): string {
  return chains.map((chain, index) => `${index} : goto ${chain}`).join(', ');
}

/** Fields that stand together make one key. */
function formatSelector(selector: Selector): string {
  return selector.map(formatField).join(' . ');
}

/** The names of metadata that nft takes without the word meta before them, as kube-proxy writes them. */
const bareMeta = new Set(['mark', 'iifname', 'oifname', 'iif', 'oif']);

function formatField(field: Field): string {
  switch (field.kind) {
    case 'payload':
      return `${field.protocol} ${field.field}`;
    case 'meta':
      return bareMeta.has(field.key) ? field.key : `meta ${field.key}`;
    case 'ct':
      return `ct ${field.key}`;
    case 'fib':
      return `fib ${field.flags.join(' . ')} ${field.result}`;
    case 'masked':
      return `${formatField(field.field)} and ${formatMark(field.mask)}`;
    default:
      return field satisfies never;
  }
}

function formatRight(left: Selector, right: Right): string {
  switch (right.kind) {
    case 'value':
      return isMark(left) ? formatMarkValue(right.value) : formatValueOf(left, right.value);
    case 'any-of':
      return `{ ${right.values.map((value) => formatValueOf(left, value)).join(', ')} }`;
    case 'set':
      return `@${right.set}`;
    default:
      return right satisfies never;
  }
}

/** Whether the selector is the mark itself, not some bits of it. */
function isMark(selector: Selector): boolean {
  const first = selector[0];
  return first?.kind === 'meta' && first.key === 'mark';
}

/** The metadata that are names of interfaces. */
const interfaceKeys = new Set(['iifname', 'oifname', 'iif', 'oif', 'sdifname', 'ibrname', 'obrname']);

/** A name of an interface is quoted where nft has a meaning of its own for the word; other words are those meanings. */
function formatValueOf(selector: Selector, value: Value): string {
  const first = selector[0];
  const isInterface = first?.kind === 'meta' && interfaceKeys.has(first.key);
  if (!isInterface || value.kind !== 'word') return formatValue(value);
  return isBareInterfaceName(value.text) ? value.text : quote(value.text);
}

function formatMarkValue(value: Value): string {
  return value.kind === 'number' ? formatMark(value.value) : formatValue(value);
}

function formatVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'accept':
    case 'drop':
    case 'return':
    case 'continue':
      return verdict.kind;
    case 'jump':
    case 'goto':
      return `${verdict.kind} ${verdict.chain}`;
    default:
      return verdict satisfies never;
  }
}

function formatValue(value: Value): string {
  switch (value.kind) {
    case 'address':
      return value.address.text;
    case 'network':
      return value.network.text;
    case 'range':
      return `${value.first.text}-${value.last.text}`;
    case 'number':
      return String(value.value);
    case 'word':
      return formatWord(value.text);
    default:
      return value satisfies never;
  }
}

/** What nft reads as one word: a name, perhaps with `*` at its end, or digits. */
const plainWord = /^(?:[A-Za-z_.][\w./-]*\*?|\d+)$/;

/** Words of nft's own that it does not take for the name of an interface: `iifname bridge` is a syntax error. */
const reservedWords = new Set(
  'add all and arp bridge chain comment counter create ct delete destroy devgroup drop element fib flow flush goto inet insert jump limit list log map mark meta netdev not or quota redirect reject replace reset return rt rule set socket table to tproxy update vmap xor'.split(
    ' ',
  ),
);

/** A name: in quotes where nft would not read it as one word. */
function formatWord(text: string): string {
  return plainWord.test(text) && !reservedWords.has(text) ? text : quote(text);
}

/** A mark or mask as kube-proxy writes it: eight hex digits. */
function formatMark(value: number): string {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}
