import { usesAny, type NftChange, type NftTableDelta } from './delta.ts';
import { formatNftDelta } from './format-delta.ts';
import { formatChain, formatTableParts } from './format.ts';
import type { NftChain, NftCounter, NftMap, NftSet, NftTable } from './table.ts';

/** How much one transaction makes of what no packet meets yet. */
export interface StageLimits {
  readonly chains: number;
  readonly characters: number;
}

/**
 * In each transaction the kernel finds a set by going through all that the transaction holds, and each Service port has
 * a set of its own. 10,000 Services take 29 s of its time in one transaction; in several of 200 to 3,000 chains, 8 to 9 s.
 */
const usualLimits: StageLimits = { chains: 1000, characters: 1 << 19 };

/**
 * The inputs of `nft -f` that make the changes, one transaction each. The last one changes what packets meet, all at once.
 * Where much is new, transactions before it make chains that nothing leads to yet, and the sets that these look up: so
 * wherever that ends early, packets meet what they met before. None where there is nothing to change.
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
  if (!draft || draft.chains.length <= limits.chains) return [formatNftDelta([delta])];
  const { table, counters, sets, newChains, chains } = draft;
  const names = newChains.map((chain) => ({ ...chain, rules: [] }));
  const empty = sets.map((set) => ({ ...set, elements: [] }));
  return [
    formatTableParts(table, { counters, sets: empty }, names.map(formatChain)),
    ...cutChains(chains, limits).map((texts) => formatTableParts(table, { counters: [], sets: [] }, texts)),
    draft.formatRest(),
  ];
}

/** What of a change to one table is new and stands apart: no packet meets it before the rest is there. */
interface Draft {
  readonly table: Pick<NftTable, 'family' | 'name' | 'comment'>;
  readonly counters: readonly NftCounter[];
  readonly sets: readonly (NftSet | NftMap)[];
  readonly newChains: readonly NftChain[];
  /** Those of them that have their rules before the rest is there. */
  readonly chains: readonly NftChain[];
  readonly formatRest: () => string;
}

/** Undefined for a change that must be made at once. */
function draftOf(delta: NftTableDelta): Draft | undefined {
  switch (delta.kind) {
    case 'create-table':
      // What kpc does not read stands in its table, wherever it stood.
      return delta.replaced || delta.table.strange ? undefined : draftTable(delta.table);
    case 'change-table':
      return draftChanges(delta);
    case 'delete-table':
      return undefined;
    default:
      return delta satisfies never;
  }
}

function draftTable(table: NftTable): Draft {
  const all = [...table.chains.values()];
  const sets = [...table.sets.values()];
  const newChains = all.filter(({ base }) => !base);
  return {
    table,
    counters: [...table.counters.values()],
    sets,
    newChains,
    chains: newChains,
    formatRest: () =>
      formatTableParts(
        table,
        { counters: [], sets: sets.filter(({ elements }) => elements.length > 0) },
        all.filter(({ base }) => base).map(formatChain),
      ),
  };
}

function draftChanges(delta: NftTableDelta & { readonly kind: 'change-table' }): Draft {
  // A set that is made anew must not be in use, so rules that look it up come after it.
  const remade = new Set(delta.changes.flatMap((change) => (change.kind === 'replace-set' ? [change.to.name] : [])));
  const newChains = delta.changes.flatMap((change) =>
    change.kind === 'add-chain' && !change.chain.base ? [change.chain] : [],
  );
  const chains = newChains.filter((chain) => !usesAny(chain, remade));
  const ahead = new Set(chains);
  const rest = delta.changes.flatMap((change): readonly NftChange[] => {
    if (change.kind === 'add-chain' && ahead.has(change.chain)) return [];
    if (change.kind === 'add-counter') return [];
    if (change.kind !== 'add-set') return [change];
    const { set } = change;
    return set.elements.length === 0 ? [] : [{ kind: 'change-elements', set, added: set.elements, removed: [] }];
  });
  return {
    table: delta,
    counters: delta.changes.flatMap((change) => (change.kind === 'add-counter' ? [change.counter] : [])),
    sets: delta.changes.flatMap((change) => (change.kind === 'add-set' ? [change.set] : [])),
    newChains,
    chains,
    formatRest: () => formatNftDelta([{ ...delta, changes: rest }]),
  };
}

/** The texts of the chains that have rules, in pieces that keep to the limits. */
function cutChains(chains: readonly NftChain[], limits: StageLimits): readonly (readonly string[])[] {
  const pieces: string[][] = [];
  let piece: string[] = [];
  let characters = 0;
  for (const chain of chains) {
    if (chain.rules.length === 0) continue;
    const text = formatChain(chain);
    const isFull = piece.length === limits.chains || characters + text.length > limits.characters;
    if (isFull || pieces.length === 0) {
      piece = [];
      characters = 0;
      pieces.push(piece);
    }
    piece.push(text);
    characters += text.length;
  }
  return pieces;
}
