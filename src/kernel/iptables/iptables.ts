import { LongText } from '../lines.ts';
import type { Origin } from '../place.ts';
import { assertWritable, formatArg, isWritable, formatWord, type RuleArg } from './rule-args.ts';

export type { RuleArg, RuleTarget } from './rule-args.ts';

export type TableName = 'nat' | 'filter' | 'mangle' | 'raw' | 'security';

/** A variant of iptables. Packets meet the rules of both variants, but each variant shows only its own. */
export type IptablesVariant = 'legacy' | 'nft';

export type Tables = { readonly [T in TableName]?: ReadonlyMap<string, Chain> };

export interface Chain {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** All rules of a built-in chain, in order. If set, `rules` has only the owned rules. */
  readonly whole?: readonly Rule[] | undefined;
  readonly policy?: 'ACCEPT' | 'DROP' | undefined;
  readonly origin?: Origin | undefined;
}

export interface RuleMaker<Subject> {
  makeRules(subject: Subject): readonly Rule[];
  originOf(subject: Subject): Origin;
}

/** A chain that makes its rules on demand, because keeping the rules of every endpoint's chain would take more memory than compiling. */
export class LazyChain<Subject> implements Chain {
  readonly name: string;
  readonly #maker: RuleMaker<Subject>;
  readonly #subject: Subject;
  #rules: readonly Rule[] | undefined;

  constructor(name: string, maker: RuleMaker<Subject>, subject: Subject) {
    this.name = name;
    this.#maker = maker;
    this.#subject = subject;
  }

  get origin(): Origin {
    return this.#maker.originOf(this.#subject);
  }

  get rules(): readonly Rule[] {
    return (this.#rules ??= this.makeRules());
  }

  makeRules(): readonly Rule[] {
    return this.#rules ?? this.#maker.makeRules(this.#subject);
  }
}

export function passingRules(chain: Chain): readonly Rule[] {
  return chain instanceof LazyChain ? chain.makeRules() : chain.rules;
}

/** A rule with arguments as written. Equality compares ruleMeaning and ignores origins. */
export interface Rule {
  readonly args: readonly RuleArg[];
  readonly origin?: Origin | undefined;
  /** Set for a rule that goes after other programs' rules in a built-in chain. */
  readonly isLast?: true;
}

/** In output order: nat before filter, as in kube-proxy's input for iptables-restore. */
export const tableNames: readonly TableName[] = ['nat', 'filter', 'mangle', 'raw', 'security'];

type HookPriorities = Readonly<Partial<Record<'prerouting' | 'input' | 'forward' | 'output' | 'postrouting', number>>>;

/** The hooks and priorities of each table's built-in chains. */
export const iptablesPriorities: { readonly [T in TableName]: HookPriorities } = {
  nat: { prerouting: -100, input: 100, output: -100, postrouting: 100 },
  filter: { input: 0, forward: 0, output: 0 },
  mangle: { prerouting: -150, input: -150, forward: -150, output: -150, postrouting: -150 },
  raw: { prerouting: -300, output: -300 },
  security: { input: 50, forward: 50, output: 50 },
};

const builtInChains = new Map(
  tableNames.map((table) => [table, new Set(Object.keys(iptablesPriorities[table]).map((hook) => hook.toUpperCase()))]),
);

/** A built-in chain cannot be deleted, and may hold other programs' rules. */
export function isBuiltInChain(table: TableName, chain: string): boolean {
  return builtInChains.get(table)?.has(chain) === true;
}

/**
 * Formats the input of `iptables-restore --noflush` for a node without these chains, in pieces. Built-in chains are not declared, because a
 * declaration would flush them. Their rules are inserted at the head in this order, or appended, as kube-proxy does. `formatOwn` is
 * formatAppends or a cache of it.
 */
export function writeIptablesTables(tables: Tables, formatOwn: (chain: Chain) => string): readonly string[] {
  const text = new LongText();
  for (const table of tableNames) {
    const chains = tables[table];
    if (!chains) continue;
    text.add(`*${table}\n`);
    for (const { name } of chains.values()) if (!isBuiltInChain(table, name)) text.add(`${formatDeclaration(name)}\n`);
    for (const chain of chains.values()) {
      if (isBuiltInChain(table, chain.name)) {
        const [first, last] = [chain.rules.filter(({ isLast }) => !isLast), chain.rules.filter(({ isLast }) => isLast)];
        first.forEach((rule, i) => text.add(`${formatInsert(chain.name, i + 1, rule)}\n`));
        text.add(formatAppends({ name: chain.name, rules: last }));
      } else text.add(formatOwn(chain));
    }
    text.add('COMMIT\n');
  }
  return text.pieces();
}

/** Formats `-A CHAIN …` for each rule. Throws for a rule with a line break, as the next three functions do. */
export function formatAppends(chain: Chain): string {
  const start = `-A ${formatWord(chain.name)}`;
  let text = '';
  for (const rule of passingRules(chain)) text += `${start}${assertWritable(formatArgs(rule))}\n`;
  return text;
}

/**
 * Formats the chains that `isShown` selects like iptables-save. Keeps a rule's comment only if `isTold`, because comments may say anything.
 * For a rule that no restore file can hold, writes a line that is not a rule.
 */
export function formatChains(
  tables: Tables,
  isShown: (table: TableName, chain: Chain) => boolean,
  isTold: (table: TableName, chain: string, rule: Rule) => boolean,
): string {
  let text = '';
  for (const table of tableNames) {
    const chains = [...(tables[table]?.values() ?? [])].filter(
      (chain) => isWritable(formatWord(chain.name)) && isShown(table, chain),
    );
    if (chains.length === 0) continue;
    text += `*${table}\n`;
    for (const { name, policy = '-' } of chains) text += `:${formatWord(name)} ${policy} [0:0]\n`;
    for (const { name, rules } of chains) {
      for (const rule of rules) {
        const args = isTold(table, name, rule) ? rule.args : rule.args.filter(({ kind }) => kind !== 'comment');
        const plain = { ...rule, args };
        text += isWritable(formatArgs(plain))
          ? formatAppends({ name, rules: [plain] })
          : `-A ${formatWord(name)} ...\n`;
      }
    }
    text += 'COMMIT\n';
  }
  return text;
}

export function formatDeclaration(chain: string): string {
  return `:${assertWritable(formatWord(chain))} - [0:0]`;
}

export function formatInsert(chain: string, position: number, rule: Rule): string {
  return assertWritable(`-I ${formatWord(chain)} ${position}${formatArgs(rule)}`);
}

export function formatDelete(chain: string, rule: Rule): string {
  return assertWritable(`-D ${formatWord(chain)}${formatArgs(rule)}`);
}

export function formatRule(rule: Rule): string {
  return formatArgs(rule).slice(1);
}

/** Drops rules that no restore file can hold. Only other programs have such rules, and kpc can only delete them. */
export function withoutUnwritable(tables: Tables): Tables {
  return mapTables(
    tables,
    (chains) =>
      new Map(
        [...chains].map(([name, chain]) => {
          const rules = chain.rules.filter((rule) => isWritable(formatArgs(rule)));
          return [name, rules.length === chain.rules.length ? chain : { ...chain, rules }];
        }),
      ),
  );
}

export function mapTables(
  tables: Tables,
  change: (chains: ReadonlyMap<string, Chain>, table: TableName) => ReadonlyMap<string, Chain>,
): Tables {
  const changed: { [T in TableName]?: ReadonlyMap<string, Chain> } = {};
  for (const table of tableNames) {
    const chains = tables[table];
    if (chains) changed[table] = change(chains, table);
  }
  return changed;
}

function formatArgs(rule: Rule): string {
  let text = '';
  for (const arg of rule.args) text += ` ${formatArg(arg)}`;
  return text;
}
