// Runs a packet through one rule of iptables or nft: first the conditions, from left to right, then the actions.
import type { RuleTerm } from '../kernel/iptables/rule-terms.ts';
import { singleAddress } from '../kernel/address-range.ts';
import type { Element, Expression, Match, Right, Selector, Value } from '../kernel/nftables/table.ts';
import { holdsReading, readPacketFields, textOfKey, type FieldValue, type KnownReading } from './fields.ts';
import { decide, drawOne, hasTcpFlags, isDrawn, isInWritten, isTcpReset, writeSet, type Flow } from './flow.ts';
import { unknown, type Decision } from './packet.ts';
import { allOf, circumstance, lacks, negateIf, someOf, unreadRule, unreadValue, type Answer } from './reason.ts';
import { carryOutAction, type RuleTable } from './run-chain.ts';
import type { Action, RuleStep } from './step.ts';

export interface Sets {
  readonly nameOf: (set: string) => string;
  readonly elementsOf: (set: string) => readonly Element[] | undefined;
  readonly holds?: (flow: Flow, set: string, fields: Selector) => Answer | undefined;
  readonly isPart: (set: string) => boolean;
}

export type Indexes = Map<readonly Element[], Map<string, ReturnType<typeof hashElements>>>;

interface RuleQuestion {
  readonly flow: Flow;
  readonly table: Pick<RuleTable, 'tool'>;
  readonly sets: Sets;
  readonly indexes: Indexes;
}

interface RuleRun extends RuleQuestion {
  readonly table: RuleTable;
  readonly stepOf: (action: Action, element?: Element) => RuleStep;
  /** Whether the kernel has a rule that no listing shows. */
  readonly isThere: () => Answer;
  /** Unknown conditions, decided before the first expression that has an effect. */
  pending: (() => Answer)[];
  last: Action;
}

export function runRule(run: RuleRun, expressions: Iterable<Expression | RuleTerm>): Decision | undefined {
  for (const expression of expressions) {
    const outcome = runExpression(run, expression);
    if (outcome !== 'next') return outcome;
  }
  // A rule that has no effect makes no difference, so its unknown conditions need no decision.
  if (run.pending.length === 0) run.flow.steps.push(run.stepOf(run.last));
  return undefined;
}

function runExpression(run: RuleRun, expression: Expression | RuleTerm): Decision | 'next' | undefined {
  const { flow, sets, stepOf, last } = run;
  switch (expression.kind) {
    case 'counter':
    case 'idle':
    case 'match':
    case 'limit':
    case 'tcp-flags':
    case 'unread': {
      const ask = () => meets(run, expression);
      const answer = ask();
      if (answer === false) return undefined;
      if (answer !== true) run.pending.push(ask);
      return 'next';
    }
    case 'chance': {
      const step = stepOf(last);
      return passes(run, step) && decide(flow, () => meets(run, expression), step) ? 'next' : undefined;
    }
    case 'write-set': {
      const { set, key, operation } = expression;
      if ((key && !readPacketFields(flow, key)) || !passes(run, stepOf(last))) return undefined;
      const fields = key && writableFields(key);
      writeSet(flow, { set: sets.nameOf(set), fields, isRemoval: operation === 'delete' });
      return 'next';
    }
    case 'verdict-map': {
      const found = findElement(run, expression.left, expression.right);
      if (!found) return undefined;
      if ('kind' in found) {
        const step = stepOf(unreadMap(expression.right));
        if (!passes(run, step)) return undefined;
        flow.steps.push(step);
        return unknown({ ...found, rule: step });
      }
      return found.value?.kind === 'data' ? undefined : found.value && applyAction(run, found.value, found);
    }
    case 'random-verdict': {
      if (!passes(run, stepOf(last))) return undefined;
      const verdict = drawOne(flow, expression.verdicts);
      return verdict ? applyAction(run, verdict) : 'next';
    }
    case 'reject':
      // nft adds a match on TCP, which it does not print, to a rule that rejects with a TCP reset.
      return isTcpReset(expression.with) && flow.protocol !== 'tcp' ? undefined : applyAction(run, expression);
    default:
      return applyAction(run, expression);
  }
}

export function meets(asking: RuleQuestion, asked: Expression | RuleTerm): Answer {
  const { flow } = asking;
  switch (asked.kind) {
    case 'match':
      return matches(asking, asked);
    case 'limit': {
      const of = asked.isOver ? 'excess' : 'rate';
      return circumstance(of, of);
    }
    case 'tcp-flags':
      return hasTcpFlags(flow, asked);
    case 'chance':
      return isDrawn(flow, asked.probability);
    case 'unread':
      return unreadRule(asked.text);
    default:
      return true;
  }
}

function passes(run: RuleRun, step: RuleStep): boolean {
  const asked = (): Answer => {
    const answer = allOf(run.pending, (ask) => ask());
    return answer === true ? run.isThere() : answer;
  };
  if (!decide(run.flow, asked, step)) return false;
  run.pending = [];
  return true;
}

function applyAction(run: RuleRun, action: Action, element?: Element): Decision | 'next' | undefined {
  const { flow, table, stepOf } = run;
  if (action.kind === 'continue') return 'next';
  const step = stepOf(action, element);
  if (!passes(run, step)) return undefined;
  if (goesOn.has(action.kind)) {
    carryOutAction(flow, table, step);
    run.last = action;
    return 'next';
  }
  flow.steps.push(step);
  return carryOutAction(flow, table, step);
}

const goesOn: ReadonlySet<Action['kind']> = new Set(['change-mark', 'notrack', 'zone']);

function unreadMap(among: Right): Action {
  return { kind: 'unknown', text: `vmap ${'set' in among ? `@${among.set}` : '{ … }'}` };
}

function matches(asking: RuleQuestion, { left: fields, operator, right: among }: Match): Answer {
  const readings = readPacketFields(asking.flow, fields);
  // A rule does not match a packet that lacks the field, even if the match is negated.
  if (!readings) return false;
  if (operator === undefined || operator === '==' || operator === '!=') {
    const isWhole = operator && fields[0]?.name === 'ct status';
    return negateIf(operator === '!=', isWhole ? isWholeStatus(among) : isAmong(asking, fields, readings, among));
  }
  const [reading] = readings;
  const [limit] = 'elements' in among ? (among.elements[0]?.key ?? []) : [];
  if (!reading) return false;
  if (limit?.kind !== 'number') return unreadRule(operator);
  const { value } = limit;
  const [first, last] = operator.startsWith('<')
    ? [0, operator === '<' ? value - 1 : value]
    : [operator === '>' ? value + 1 : value, 0xffffffff];
  return first <= last && holdsReading({ kind: 'numbers', first, last }, reading);
}

function isAmong(asking: RuleQuestion, fields: Selector, readings: readonly KnownReading[], among: Right): Answer {
  const { flow, sets, indexes } = asking;
  const hasOne = (elements: readonly Element[]): Answer =>
    someOf(candidatesOf(indexes, elements, readings), (element) => holdsKey(element, readings));
  if (!('set' in among)) return hasOne(among.elements);
  const { set } = among;
  const elements = sets.elementsOf(set);
  const isHeld = elements ? hasOne(elements) : sets.holds?.(flow, set, fields);
  const isListed = isHeld === undefined || (isHeld === false && sets.isPart(set)) ? unreadSet(asking, set) : isHeld;
  return isInWritten(flow, sets.nameOf(set), nameFields(fields), isListed);
}

function unreadSet({ table: { tool } }: RuleQuestion, set: string): Exclude<Answer, boolean> {
  return lacks({ kind: 'set', tool, set });
}

/** Fields that change only if NAT rewrites the packet's addresses or ports. */
const lasting = /^(?:ip6? [sd]addr|(?:th|tcp|udp|sctp) dport|meta l4proto|src|dst)$/;

/** Returns the names of fields whose values later rules certainly find unchanged; undefined if a field may change. */
function writableFields(fields: Selector): string | undefined {
  return fields.every(({ name, mask }) => lasting.test(name) && mask === undefined) ? nameFields(fields) : undefined;
}

function nameFields(fields: Selector): string {
  return fields.map(({ name }) => name).join(' . ');
}

/**
 * Reports whether the connection's status equals one of these sets of bits. A first packet's status equals none of them: the kernel sets
 * IPS_DST_NAT and IPS_SRC_NAT together with other bits (nf_nat_setup_info), and the rest later.
 */
function isWholeStatus(among: Right): Answer {
  if ('set' in among) return unreadRule(among.set);
  const strange = among.elements.find(({ key: [value] }) => value?.kind !== 'word' || !statusBits.has(value.text));
  return strange ? unreadValue(textOfKey(strange.key)) : false;
}

const statusBits: ReadonlySet<string> = new Set('expected seen-reply assured confirmed snat dnat dying'.split(' '));

function findElement(asking: RuleQuestion, fields: Selector, among: Right) {
  const { flow, sets, indexes } = asking;
  const readings = readPacketFields(flow, fields);
  if (!readings) return undefined;
  const set = 'set' in among ? among.set : undefined;
  const elements = 'set' in among ? sets.elementsOf(among.set) : among.elements;
  for (const element of elements ? candidatesOf(indexes, elements, readings) : []) {
    if (decide(flow, () => holdsKey(element, readings))) return element;
  }
  return set !== undefined && (!elements || sets.isPart(set)) ? unreadSet(asking, set) : undefined;
}

/** Reports whether an element's key matches. An element with fewer parts than the key was not fully read. */
function holdsKey({ key }: Element, readings: readonly KnownReading[]): Answer {
  return allOf(readings.entries(), ([at, reading]) => {
    const part = key[at];
    return part ? holdsReading(part, reading) : unreadValue(textOfKey(key));
  });
}

const fewElements = 8;

function candidatesOf(
  indexes: Indexes,
  elements: readonly Element[],
  readings: readonly KnownReading[],
): Iterable<Element> {
  if (elements.length < fewElements) return elements;
  const known = readings.flatMap((reading, at) => (reading.kind === 'value' ? [{ at, value: reading.value }] : []));
  const name = known.map(({ at, value }) => `${at} ${typeof value}`).join();
  const own = indexes.get(elements) ?? new Map<string, ReturnType<typeof hashElements>>();
  indexes.set(elements, own);
  const index = own.get(name) ?? hashElements(elements, known);
  own.set(name, index);
  const same = index.exact.get(known.map(({ value }) => textOfFieldValue(value)).join(' . ')) ?? [];
  return index.ranges.length === 0 ? same : [...same, ...index.ranges];
}

interface KnownValue {
  readonly at: number;
  readonly value: FieldValue;
}

function hashElements(elements: readonly Element[], known: readonly KnownValue[]) {
  const exact = new Map<string, Element[]>();
  const ranges: Element[] = [];
  for (const element of elements) {
    const texts = known.map(({ at, value }) => exactText(element.key[at], typeof value));
    if (texts.includes(undefined)) {
      ranges.push(element);
      continue;
    }
    const text = texts.join(' . ');
    const same = exact.get(text);
    if (same) same.push(element);
    else exact.set(text, [element]);
  }
  return { exact, ranges };
}

function textOfFieldValue(value: FieldValue): string {
  return typeof value === 'object' ? value.text : String(value);
}

function exactText(value: Value | undefined, type: string): string | undefined {
  switch (value?.kind) {
    case 'address':
      return type === 'object' ? value.address.text : undefined;
    case 'network':
      return type === 'object' ? singleAddress(value.network)?.text : undefined;
    case 'number':
      return type === 'number' ? String(value.value) : undefined;
    case 'word':
      return type === 'string' && !value.text.endsWith('*') ? value.text : undefined;
    default:
      return undefined;
  }
}
