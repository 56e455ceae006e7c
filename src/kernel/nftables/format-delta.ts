import type { NftChange, NftTableDelta } from './delta.ts';
import type { Element } from './element.ts';
import { formatElement, formatKey, formatRule, quote } from './format-expression.ts';
import { formatBaseChain, formatSetProperties, formatTables, nftFamily } from './format.ts';
import { isSameBase } from './meaning.ts';
import type { NftChain, NftCounter, NftMap, NftSet, NftTable } from './table.ts';

/**
 * The input of `nft -f` that makes the changes, all in one transaction: the kernel takes all of them or none, and no
 * packet meets some without the others. '' where there are none.
 */
export function formatNftDelta(deltas: readonly NftTableDelta[]): string {
  return deltas.map(formatTableDelta).join('');
}

function formatTableDelta(delta: NftTableDelta): string {
  switch (delta.kind) {
    case 'create-table':
      return formatNewTable(delta.table);
    case 'delete-table':
      return `delete table ${nftFamily[delta.table.family]} ${delta.table.name}\n`;
    case 'change-table':
      return new Script(`${nftFamily[delta.family]} ${delta.name}`).write(delta.changes);
    default:
      return delta satisfies never;
  }
}

/** A table with parts that kpc does not read is written as nft listed it. */
function formatNewTable(table: NftTable): string {
  if (!table.strange) return formatTables([table]);
  const name = `${nftFamily[table.family]} ${table.name}`;
  return `table ${name}\ndelete table ${name}\n${table.strange.text}`;
}

/** The steps in the order in which the kernel takes them: it deletes nothing that something else refers to. */
const steps = [
  /** Rules stop referring to chains, sets and counters. */
  'flush',
  /** Elements stop referring to chains. */
  'delete-elements',
  'delete-sets',
  'delete-chains',
  'delete-counters',
  'add-counters',
  'add-sets',
  'add-chains',
  'add-rules',
  'add-elements',
] as const;

type Step = (typeof steps)[number];

function formatCounterHead({ name, comment }: NftCounter): string {
  return comment === undefined ? name : `${name} { comment ${quote(comment)}; }`;
}

/** The lines that change one table. */
class Script {
  readonly #table: string;
  readonly #lines: { readonly [S in Step]: string[] } = {
    flush: [],
    'delete-elements': [],
    'delete-sets': [],
    'delete-chains': [],
    'delete-counters': [],
    'add-counters': [],
    'add-sets': [],
    'add-chains': [],
    'add-rules': [],
    'add-elements': [],
  };

  constructor(table: string) {
    this.#table = table;
  }

  write(changes: readonly NftChange[]): string {
    for (const change of changes) this.#writeChange(change);
    return steps.flatMap((step) => this.#lines[step]).join('');
  }

  #writeChange(change: NftChange): void {
    switch (change.kind) {
      case 'add-chain':
        return this.#addChain(change.chain);
      case 'delete-chain':
        return this.#deleteChain(change.chain);
      case 'replace-chain':
        if (isSameBase(change.from.base, change.to.base)) return this.#refillChain(change.to);
        this.#deleteChain(change.from);
        return this.#addChain(change.to);
      case 'refill-chain':
        return this.#refillChain(change.chain);
      case 'add-counter':
        return this.#put('add-counters', 'add counter', formatCounterHead(change.counter));
      case 'delete-counter':
        return this.#put('delete-counters', 'delete counter', change.counter.name);
      case 'add-set':
        return this.#addSet(change.set);
      case 'delete-set':
        return this.#put('delete-sets', `delete ${change.set.kind}`, change.set.name);
      case 'replace-set':
        this.#put('delete-sets', `delete ${change.from.kind}`, change.from.name);
        return this.#addSet(change.to);
      case 'change-elements':
        this.#putElements('delete-elements', change.set, change.removed);
        return this.#putElements('add-elements', change.set, change.added);
      default:
        return change satisfies never;
    }
  }

  #addChain(chain: NftChain): void {
    const properties: string[] = [];
    if (chain.base) properties.push(formatBaseChain(chain.base));
    if (chain.comment !== undefined) properties.push(`comment ${quote(chain.comment)};`);
    this.#put(
      'add-chains',
      'add chain',
      properties.length === 0 ? chain.name : `${chain.name} { ${properties.join(' ')} }`,
    );
    this.#addRules(chain);
  }

  #addRules({ name, rules }: NftChain): void {
    for (const rule of rules) this.#put('add-rules', 'add rule', `${name} ${formatRule(rule)}`);
  }

  #deleteChain({ name, rules }: NftChain): void {
    if (rules.length > 0) this.#put('flush', 'flush chain', name);
    this.#put('delete-chains', 'delete chain', name);
  }

  #refillChain(chain: NftChain): void {
    this.#put('flush', 'flush chain', chain.name);
    this.#addRules(chain);
  }

  #addSet(set: NftSet | NftMap): void {
    const properties = formatSetProperties(set).map((property) => `${property};`);
    this.#put('add-sets', `add ${set.kind}`, `${set.name} { ${properties.join(' ')} }`);
    this.#putElements('add-elements', set, set.elements);
  }

  #putElements(step: 'add-elements' | 'delete-elements', set: NftSet | NftMap, elements: readonly Element[]): void {
    // An element is deleted by its key alone.
    const adds = step === 'add-elements';
    for (const element of elements) {
      const text = adds ? formatElement(element) : formatKey(element.key);
      this.#put(step, adds ? 'add element' : 'delete element', `${set.name} { ${text} }`);
    }
  }

  #put(step: Step, command: string, what: string): void {
    this.#lines[step].push(`${command} ${this.#table} ${what}\n`);
  }
}
