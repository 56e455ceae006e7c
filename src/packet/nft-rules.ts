import { singleAddress } from '../kernel/address-range.ts';
import type { Family } from '../kernel/family.ts';
import type {
  Element,
  Expression,
  Match,
  NftChain,
  NftRule,
  NftTable,
  Right,
  Selector,
  Value,
} from '../kernel/nftables/table.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import type { KernelState } from '../kernel/state.ts';
import { decide, hasTcpFlags, isDrawn, isInWritten, isTcpReset, writeSet, type Flow } from './flow.ts';
import { allOf, someOf, circumstance, negateIf, lacks, unreadRule, unreadValue, type Answer } from './reason.ts';
import { holdsReading, readPacketFields, type FieldValue, type KnownReading } from './nft-fields.ts';
import { unknown, type Decision } from './packet.ts';
import { hooks, type Action, type RuleStep } from './step.ts';
import type { Knowledge, SupposedJump } from './knowledge.ts';
import { carryOutAction, hasJump, meet, unshownPosition, type HookedChain, type RuleTable } from './run-chain.ts';

/** The tables of a family, ready for packets. Sets are hashed when first reached. */
export function nftTablesOf(
  state: KernelState,
  family: Family,
  { supposed }: Pick<Knowledge, 'supposed'>,
): readonly RuleTable[] {
  return state.nftables
    .filter((table) => table.family === family)
    .map((table) => {
      const isOfTable = (jump: SupposedJump): jump is NftJump =>
        jump.tool === 'nftables' && jump.family === family && jump.table === table.name;
      return prepareTable(table, supposed.filter(isOfTable));
    });
}

type NftJump = Extract<SupposedJump, { readonly tool: 'nftables' }>;

/** Puts supposed jumps before all other rules. */
function withJumps(given: NftTable['chains'], jumps: readonly NftJump[]): NftTable['chains'] {
  const chains = new Map(given);
  for (const jump of jumps.toReversed()) {
    const chain = chains.get(jump.from) ?? { ...jump.chain, rules: [] };
    chains.set(jump.from, { ...chain, rules: [jump.rule, ...chain.rules] });
  }
  return chains;
}

interface TableLookups {
  /** The table's name. */
  readonly nameOf: (set: string) => string;
  readonly find: (among: Right) => Lookup | undefined;
  /** Whether there may be unlisted elements. */
  readonly isPart: (among: Right) => boolean;
}

function prepareTable({ name, chains: given, sets, family }: NftTable, supposed: readonly NftJump[]): RuleTable {
  const chains = withJumps(given, supposed);
  const unshown = new Map(supposed.map((jump) => [jump.rule as unknown, jump]));
  const indexed = new Map<unknown, Lookup>();
  const lookups: TableLookups = {
    nameOf: (set) => `${family} ${name} ${set}`,
    find: (among) => {
      const elements = 'set' in among ? sets.get(among.set)?.elements : among.elements;
      let lookup = indexed.get(elements);
      if (!lookup && elements) indexed.set(elements, (lookup = indexElements(elements)));
      return lookup;
    },
    isPart: (among) => 'set' in among && sets.get(among.set)?.isPart === true,
  };
  const table: RuleTable = {
    tool: 'nftables',
    name,
    chains,
    bases: [...chains.values()].flatMap(baseOf),
    supposed: new Set(),
    runRules: (flow, chainName) => {
      const chain = chains.get(chainName) as NftChain;
      const before = chain.rules.filter((rule) => unshown.has(rule)).length;
      for (const [at, rule] of chain.rules.entries()) {
        const jump = unshown.get(rule);
        const pending = jump ? [() => hasJump(flow, jump)] : [];
        const decision = runRule({ flow, table, lookups, pending }, rule, (action, element) => ({
          kind: 'rule',
          hook: flow.hook,
          tool: 'nftables',
          table: name,
          chain: chain.name,
          position: jump ? unshownPosition : at + 1 - before,
          rule,
          element,
          origin: element?.origin ?? rule.origin ?? chain.origin,
          action,
        }));
        if (decision) return decision;
      }
      return undefined;
    },
  };
  return table;
}

function baseOf({ name: chain, base, rules }: NftChain): readonly HookedChain[] {
  const isAtDevices = base?.devices !== undefined;
  const hook = isAtDevices ? 'prerouting' : hooks.find((each) => each === base?.hook);
  if (!base || !hook) return [];
  const drops = base.policy === 'drop';
  // Such a chain also decides about ARP, without which no packet comes.
  if (isAtDevices && drops) return [];
  const isIdle = rules.length === 0 && !drops;
  return [
    {
      chain,
      hook,
      priority: isAtDevices ? base.priority + aheadOfHooks : base.priority,
      devices: base.devices,
      isNat: base.type === 'nat',
      reroutes: base.type === 'route',
      drops,
      isIdle,
    },
  ];
}

/** Puts chains at devices before all others, in their own order. */
const aheadOfHooks = -(2 ** 33);

type MakeStep = (action: Action, element?: Element) => RuleStep;

/** A packet's run through one rule. */
interface RuleRun {
  readonly flow: Flow;
  readonly table: RuleTable;
  readonly lookups: TableLookups;
  readonly stepOf: MakeStep;
  /** Unknown conditions, decided before the first expression with an effect. */
  pending: (() => Answer)[];
  last: Action;
}

/** Undefined if the packet goes on to the next rule. */
function runRule(
  start: Pick<RuleRun, 'flow' | 'table' | 'lookups' | 'pending'>,
  rule: NftRule,
  stepOf: MakeStep,
): Decision | undefined {
  const run: RuleRun = { ...start, stepOf, last: { kind: 'continue' } };
  const { flow } = run;
  for (const expression of rule.expressions) {
    const outcome = runExpression(run, expression);
    if (outcome !== 'next') return outcome;
  }
  // An effect-free rule makes no difference, even if it may not match.
  if (run.pending.length === 0) flow.steps.push(stepOf(run.last));
  return undefined;
}

function runExpression(run: RuleRun, expression: Expression): Decision | 'next' | undefined {
  const { flow, lookups, stepOf, last } = run;
  switch (expression.kind) {
    case 'counter':
    case 'idle':
      return 'next';
    case 'match':
      return meets(run, () => matchesStatement(flow, lookups, expression));
    case 'limit':
      return meets(run, () => circumstance(expression.isOver ? 'excess' : 'rate', expression.text));
    case 'tcp-flags':
      return meets(run, () => hasTcpFlags(flow, expression));
    case 'chance': {
      const step = stepOf(last);
      return passes(run, step) && decide(flow, () => isDrawn(flow, expression.probability), step) ? 'next' : undefined;
    }
    case 'write-set': {
      const { set, key, operation } = expression;
      // A rule ends at a field that the packet lacks.
      if ((key && !readPacketFields(flow, key)) || !passes(run, stepOf(last))) return undefined;
      const fields = key && writableFields(key);
      writeSet(flow, { set: lookups.nameOf(set), fields, isRemoval: operation === 'delete' });
      return 'next';
    }
    case 'verdict-map': {
      const found = findElement(flow, lookups, expression.left, expression.right);
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
      const { verdicts } = expression;
      const verdict = verdicts[flow.choices.draw(verdicts.map(() => 1 / verdicts.length))];
      return verdict ? applyAction(run, verdict) : 'next';
    }
    case 'reject':
      // nft adds a match on TCP to such a rule and does not print it.
      return isTcpReset(expression.with) && flow.protocol !== 'tcp' ? undefined : applyAction(run, expression);
    default:
      return applyAction(run, expression);
  }
}

function meets({ pending }: RuleRun, ask: () => Answer): 'next' | undefined {
  const answer = ask();
  if (answer === false) return undefined;
  if (answer !== true) pending.push(ask);
  return 'next';
}

function passes(run: RuleRun, step: RuleStep): boolean {
  if (!decide(run.flow, () => askAll(run), step)) return false;
  run.pending = [];
  return true;
}

function askAll({ pending }: RuleRun): Answer {
  return allOf(pending, (ask) => ask());
}

function applyAction(run: RuleRun, action: Action, element?: Element): Decision | 'next' | undefined {
  const { flow, table, stepOf } = run;
  if (action.kind === 'continue') return 'next';
  const step = stepOf(action, element);
  if (!goesOn.has(action.kind)) return meet(flow, table, () => askAll(run), step);
  if (!passes(run, step)) return undefined;
  carryOutAction(flow, table, step);
  run.last = action;
  return 'next';
}

const goesOn: ReadonlySet<Action['kind']> = new Set(['change-mark', 'notrack', 'zone']);

function unreadMap(among: Right): Action {
  return { kind: 'unknown', text: `vmap ${'set' in among ? `@${among.set}` : '{ … }'}` };
}

function matchesStatement(flow: Flow, lookups: TableLookups, { left: fields, operator, right: among }: Match): Answer {
  if (operator === undefined || operator === '==' || operator === '!=') {
    const readings = readPacketFields(flow, fields);
    // A rule ends at a field that the packet lacks, even if it negates the match.
    if (!readings) return false;
    if (operator && fields[0]?.name === 'ct status') return negateIf(operator === '!=', isWholeStatus(among));
    const lookup = lookups.find(among);
    if (!lookup) return unreadElements(among);
    const isHeld = lookup.holds(flow, readings);
    const isListed = isHeld === false && lookups.isPart(among) ? unreadElements(among) : isHeld;
    const isIn = 'set' in among ? isInWritten(flow, lookups.nameOf(among.set), nameFields(fields), isListed) : isListed;
    return negateIf(operator === '!=', isIn);
  }
  const [reading] = readPacketFields(flow, fields) ?? [];
  if (!reading) return false;
  const [limit] = 'elements' in among ? (among.elements[0]?.key ?? []) : [];
  if (limit?.kind !== 'number') return unreadRule(`${operator} of what is no number`);
  const { value } = limit;
  const [first, last] = operator.startsWith('<')
    ? [0, operator === '<' ? value - 1 : value]
    : [operator === '>' ? value + 1 : value, 0xffffffff];
  return first <= last && holdsReading({ kind: 'numbers', first, last }, reading);
}

function unreadElements(among: Right): Exclude<Answer, boolean> {
  return 'set' in among ? lacks({ kind: 'set', tool: 'nftables', set: among.set }) : unreadRule('an empty set');
}

/** Fields that change only if the packet's addresses or ports are rewritten. */
const lasting = /^(?:ip6? [sd]addr|(?:th|tcp|udp|sctp) dport|meta l4proto)$/;

/** The fields by which a later rule surely looks up what this one writes; undefined if they may change meanwhile. */
function writableFields(fields: Selector): string | undefined {
  return fields.every(({ name, mask }) => lasting.test(name) && mask === undefined) ? nameFields(fields) : undefined;
}

function nameFields(fields: Selector): string {
  return fields.map(({ name }) => name).join(' . ');
}

/**
 * Whether the connection's status is exactly one of these sets of bits. Never at the first packet: the kernel sets
 * IPS_DST_NAT and IPS_SRC_NAT with other bits (nf_nat_setup_info), the rest later.
 */
function isWholeStatus(among: Right): Answer {
  if ('set' in among) return unreadRule(`a set of whole statuses, ${among.set}`);
  const strange = among.elements.find(({ key: [value] }) => value?.kind !== 'word' || !statusBits.has(value.text));
  return strange ? unreadValue(formatKey(strange.key)) : false;
}

const statusBits: ReadonlySet<string> = new Set('expected seen-reply assured confirmed snat dnat dying'.split(' '));

function findElement(flow: Flow, lookups: TableLookups, fields: Selector, among: Right) {
  const readings = readPacketFields(flow, fields);
  if (!readings) return undefined;
  const lookup = lookups.find(among);
  if (!lookup) return unreadElements(among);
  const { candidates } = lookup;
  for (const element of candidates(readings)) {
    // One by one: each uncertain element may match.
    if (decide(flow, () => holdsKey(element, readings))) return element;
  }
  return lookups.isPart(among) ? unreadElements(among) : undefined;
}

/** An element with fewer parts than the key was not fully read. */
function holdsKey({ key }: Element, readings: readonly KnownReading[]): Answer {
  return allOf(readings.entries(), ([at, reading]) => {
    const part = key[at];
    return part ? holdsReading(part, reading) : unreadValue(formatKey(key));
  });
}

/** The elements of a set or map, hashed by the packet's fields that have exactly one value. */
interface Lookup {
  /** Right that may match. */
  readonly candidates: (readings: readonly KnownReading[]) => Iterable<Element>;
  readonly holds: (flow: Flow, readings: readonly KnownReading[]) => Answer;
}

/** Below this number of elements, try them one by one. */
const fewRight = 8;

function indexElements(elements: readonly Element[]): Lookup {
  const indexes = new Map<string, ReturnType<typeof hashRight>>();
  const candidates = (readings: readonly KnownReading[]): Iterable<Element> => {
    if (elements.length < fewRight) return elements;
    const positions = [...readings.keys()].filter((at) => readings[at]?.kind === 'value');
    const types = positions.map((at) => typeOf((readings[at] as KnownReading & { readonly kind: 'value' }).value));
    const name = `${positions.join()} ${types.join()}`;
    let index = indexes.get(name);
    if (!index) indexes.set(name, (index = hashRight(elements, positions, types)));
    const asked = positions
      .map((at) => textOfFieldValue((readings[at] as KnownReading & { readonly kind: 'value' }).value))
      .join(' . ');
    const same = index.exact.get(asked) ?? [];
    return index.ranges.length === 0 ? same : [...same, ...index.ranges];
  };
  return {
    candidates,
    holds: (_, readings) => someOf(candidates(readings), (element) => holdsKey(element, readings)),
  };
}

function hashRight(elements: readonly Element[], positions: readonly number[], types: readonly string[]) {
  const exact = new Map<string, Element[]>();
  const ranges: Element[] = [];
  for (const element of elements) {
    const texts = positions.map((at, i) => exactText(element.key[at], types[i] ?? ''));
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

function typeOf(value: FieldValue): string {
  return typeof value;
}

function textOfFieldValue(value: FieldValue): string {
  return typeof value === 'object' ? value.text : String(value);
}

/** The text of a constant that is a single value of that type; undefined for any other. */
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
