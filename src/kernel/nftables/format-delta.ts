import { itemOf } from '../compare.ts';
import { remadeSets, usesAny, isSameBase, type NftChange, type NftTableDelta } from './nft-delta.ts';
import type { Element, NftChain, NftCounter, NftMap, NftSet } from './table.ts';
import {
  formatElement,
  formatKey,
  formatNftRule,
  quoteForNft,
  formatBaseChain,
  formatSetProperties,
  formatTables,
  nftFamily,
  formatChain,
  formatParts,
  type ChainlessTable,
} from './format.ts';

/** Formats the input of `nft -f` that makes all changes or none, in one transaction; '' for no changes. */
export function formatNftDelta(deltas: readonly NftTableDelta[]): string {
  return deltas.map(formatTableDelta).join('');
}

function formatTableDelta(delta: NftTableDelta): string {
  if (delta.kind === 'change-table') return formatChanges(`${nftFamily[delta.family]} ${delta.name}`, delta.changes);
  const { family, name, strange } = itemOf(delta);
  const table = `table ${nftFamily[family]} ${name}\n`;
  if (!delta.to) return `delete ${table}`;
  // A table with parts that kpc does not model is written back as nft listed it.
  return strange ? `${table}delete ${table}${strange.text}` : formatTables([delta.to]);
}

/** The order of commands. With this order, no command deletes an object that another object still refers to. */
const steps = [
  'flush chain',
  'delete element',
  'delete set',
  'delete chain',
  'delete counter',
  'add counter',
  'add set',
  'add chain',
  'add rule',
  'add element',
] as const;

function formatChanges(table: string, changes: readonly NftChange[]): string {
  const lines = new Map<string, string[]>(steps.map((step) => [step, []]));
  const put = (step: (typeof steps)[number], what: string, command: string = step): void => {
    lines.get(step)?.push(`${command} ${table} ${what}\n`);
  };
  const addRules = ({ name, rules }: NftChain): void =>
    rules.forEach((rule) => put('add rule', `${name} ${formatNftRule(rule)}`));
  const addChain = (chain: NftChain): void => {
    put('add chain', withProperties(chain.name, [chain.base ? formatBaseChain(chain.base) : '', commentOf(chain)]));
    addRules(chain);
  };
  const deleteChain = ({ name, rules }: NftChain): void => {
    if (rules.length > 0) put('flush chain', name);
    put('delete chain', name);
  };
  const refillChain = (chain: NftChain): void => {
    put('flush chain', chain.name);
    addRules(chain);
  };
  const addElements = (set: string, elements: readonly Element[]): void =>
    elements.forEach((element) => put('add element', `${set} { ${formatElement(element)} }`));
  const addSet = (set: NftSet | NftMap): void => {
    const properties = formatSetProperties(set).map((property) => `${property};`);
    put('add set', withProperties(set.name, properties), `add ${set.kind}`);
    addElements(set.name, set.elements);
  };
  const write = (change: NftChange): void => {
    switch (change.kind) {
      case 'chain': {
        const { from, to } = change;
        if (from && to && isSameBase(from.base, to.base)) return refillChain(to);
        if (from) deleteChain(from);
        if (to) addChain(to);
        return;
      }
      case 'counter': {
        const counter = itemOf(change);
        return change.to
          ? put('add counter', withProperties(counter.name, [commentOf(counter)]))
          : put('delete counter', counter.name);
      }
      case 'set':
        if (change.from) put('delete set', change.from.name, `delete ${change.from.kind}`);
        if (change.to) addSet(change.to);
        return;
      case 'elements':
        // Deleting an element needs only its key.
        for (const { key } of change.removed) put('delete element', `${change.set.name} { ${formatKey(key)} }`);
        return addElements(change.set.name, change.added);
      default:
        return change satisfies never;
    }
  };
  changes.forEach(write);
  return [...lines.values()].flat().join('');
}

function withProperties(name: string, properties: readonly string[]): string {
  const given = properties.filter((property) => property !== '');
  return given.length === 0 ? name : `${name} { ${given.join(' ')} }`;
}

function commentOf({ comment }: NftChain | NftCounter): string {
  return comment === undefined ? '' : `comment ${quoteForNft(comment)};`;
}

/** Limits on new chains and on characters of input, for each transaction but the last. */
interface StageLimits {
  readonly chains: number;
  readonly characters: number;
}

/**
 * Several small transactions are faster than a large one, because the kernel walks through the whole transaction to find a set, and each
 * Service port has an anonymous set. 10,000 Services take 29 s of kernel time in one transaction, 8 to 9 s in several with 200 to 3,000
 * chains each.
 */
const usualLimits: StageLimits = { chains: 1000, characters: 1 << 19 };

/**
 * Returns inputs of `nft -f`, one transaction each; none if nothing changes. Only the last one affects packets. The earlier ones add chains
 * and sets that no rule refers to yet, so it is safe to stop between them.
 */
export function formatNftStages(
  deltas: readonly NftTableDelta[],
  limits: StageLimits = usualLimits,
): readonly string[] {
  const staged = deltas.map((delta) => stageDelta(delta, limits));
  const ahead = staged.flatMap((stages) => stages.slice(0, -1));
  const last = staged.map((stages) => stages.at(-1) ?? '').join('');
  return [...ahead, last].filter((input) => input !== '');
}

function stageDelta(delta: NftTableDelta, limits: StageLimits): readonly string[] {
  const draft = draftOf(delta);
  if (!draft || draft.filled.length <= limits.chains) return [formatNftDelta([delta])];
  const { table, chains, filled, formatRest } = draft;
  const empty = [...table.sets].map(([name, set]) => [name, { ...set, elements: [] }] as const);
  const names = chains.map((chain) => formatChain({ ...chain, rules: [] }));
  return [
    formatParts({ ...table, sets: new Map(empty) }, names),
    ...cutChains(filled, limits).map((texts) => formatParts({ ...table, ...noObjects }, texts)),
    formatRest(),
  ];
}

const noObjects = { counters: new Map<string, NftCounter>(), sets: new Map<string, NftSet | NftMap>() };

/** The new parts of a change to one table that no packet reaches until the rest is added. */
interface Draft {
  readonly table: ChainlessTable;
  readonly chains: readonly NftChain[];
  readonly filled: readonly NftChain[];
  readonly formatRest: () => string;
}

function draftOf(delta: NftTableDelta): Draft | undefined {
  if (delta.kind === 'change-table') return draftChanges(delta);
  // A strange table is written as one text, which cannot be split because unknown parts may be anywhere in it.
  const { from, to: table } = delta;
  if (from || !table || table.strange) return undefined;
  const all = [...table.chains.values()];
  const chains = all.filter(({ base }) => !base);
  const hooked = all.filter(({ base }) => base).map(formatChain);
  const sets = new Map([...table.sets].filter(([, { elements }]) => elements.length > 0));
  const formatRest = (): string => formatParts({ ...table, ...noObjects, sets }, hooked);
  return { table, chains, filled: chains, formatRest };
}

function draftChanges(delta: NftTableDelta & { readonly kind: 'change-table' }): Draft {
  // A set must not be in use while it is replaced, so rules that look it up are written later.
  const remade = remadeSets(delta.changes);
  const counters = new Map<string, NftCounter>();
  const sets = new Map<string, NftSet | NftMap>();
  const chains: NftChain[] = [];
  const filled: NftChain[] = [];
  const rest: NftChange[] = [];
  for (const change of delta.changes) {
    const newChain = change.kind === 'chain' && !change.from && !change.to.base ? change.to : undefined;
    if (newChain) chains.push(newChain);
    if (change.kind === 'counter' && change.to) counters.set(change.to.name, change.to);
    else if (change.kind === 'set' && !change.from) {
      const set = change.to;
      sets.set(set.name, set);
      if (set.elements.length > 0) rest.push({ kind: 'elements', set, added: set.elements, removed: [] });
    } else if (newChain && !usesAny(newChain, remade)) filled.push(newChain);
    else rest.push(change);
  }
  const formatRest = (): string => formatNftDelta([{ ...delta, changes: rest }]);
  return { table: { family: delta.family, name: delta.name, counters, sets }, chains, filled, formatRest };
}

function cutChains(chains: readonly NftChain[], limits: StageLimits): readonly (readonly string[])[] {
  const pieces: string[][] = [];
  let characters = 0;
  for (const chain of chains) {
    if (chain.rules.length === 0) continue;
    const text = formatChain(chain);
    const piece = pieces.at(-1);
    characters += text.length;
    if (piece && piece.length < limits.chains && characters <= limits.characters) piece.push(text);
    else {
      pieces.push([text]);
      characters = text.length;
    }
  }
  return pieces;
}
