import { type Family, families } from '../family.ts';
import type { UnreadLine } from '../unread-line.ts';
import type { Element, ElementValue, Value } from './element.ts';
import { nftFamily } from './format.ts';
import { readNumber, readRule, readValue, readVerdict, valueTypeOf } from './parse-rule-text.ts';
import type { BaseChain, NftChain, NftCounter, NftMap, NftRule, NftSet, NftTable } from './table.ts';
import { type Token, isQuoted, scan, unquote, Words } from './tokens.ts';

/** What was read of nft's output. */
interface ParsedTables {
  /** In the order of the text. */
  readonly tables: readonly NftTable[];
  readonly unread: readonly UnreadLine[];
}

/** Which tables are asked for; the others are passed over. */
type WantsTable = (family: Family, name: string) => boolean;

/**
 * Reads what `nft list ruleset` and `nft list table` print (versions 1.0.1 to 1.1), and what formatTables writes. Tables
 * of the families inet, arp, bridge and netdev are passed over. Lines that cannot be read are in `unread`.
 */
export function parseNftText(text: string, wants: WantsTable = () => true): ParsedTables {
  return new Parser(text, wants).read();
}

interface DraftTable extends NftTable {
  comment?: string | undefined;
  readonly counters: Map<string, NftCounter>;
  readonly chains: Map<string, NftChain>;
  readonly sets: Map<string, NftSet | NftMap>;
}

class Parser {
  readonly #text: string;
  #lines: readonly string[] | undefined;
  readonly #tokens: readonly Token[];
  readonly #wants: WantsTable;
  readonly #tables = new Map<string, DraftTable>();
  readonly #unread: UnreadLine[] = [];
  #at = 0;

  constructor(text: string, wants: WantsTable) {
    this.#text = text;
    this.#tokens = scan(text);
    this.#wants = wants;
  }

  read(): ParsedTables {
    for (this.#skipBlank(); this.#at < this.#tokens.length; this.#skipBlank()) this.#readCommand();
    return { tables: [...this.#tables.values()], unread: this.#unread };
  }

  #readCommand(): void {
    const start = this.#at;
    const words = this.#readHead();
    const deletes = words[0] === 'delete';
    const [kind, family, name, ...rest] = deletes ? words.slice(1) : words;
    if (kind !== 'table' || name === undefined || rest.length > 0) return this.#leave(start, 'not a table');
    const known = families.find((candidate) => nftFamily[candidate] === family);
    if (!known || !this.#wants(known, name)) return this.#skipBlock();
    const key = `${known} ${name}`;
    if (deletes) {
      this.#tables.delete(key);
      return;
    }
    const table = this.#tables.get(key) ?? {
      family: known,
      name,
      counters: new Map(),
      chains: new Map(),
      sets: new Map(),
    };
    this.#tables.set(key, table);
    this.#readBlock(() => this.#readTableItem(table));
  }

  #readTableItem(table: DraftTable): void {
    const start = this.#at;
    const [kind, name, ...rest] = this.#readHead();
    if (kind === 'comment' && isQuoted(name)) {
      table.comment = unquote(name);
      return;
    }
    if (name === undefined || rest.length > 0) return this.#leave(start, 'not a part of a table');
    if (kind === 'chain') table.chains.set(name, this.#readChain(name, table.family));
    else if (kind === 'set' || kind === 'map') table.sets.set(name, this.#readSet(kind, name));
    else if (kind === 'counter') table.counters.set(name, this.#readCounter(name));
    else this.#leave(start, 'neither a chain, a set, a map nor a counter');
  }

  /** What it has counted is passed over. */
  #readCounter(name: string): NftCounter {
    let comment: string | undefined;
    this.#readBlock(() => {
      const [first, second] = this.#readStatement();
      if (first === 'comment' && isQuoted(second)) comment = unquote(second);
    });
    return { name, comment };
  }

  #readChain(name: string, family: Family): NftChain {
    const rules: NftRule[] = [];
    let base: BaseChain | undefined;
    let policy: BaseChain['policy'];
    let comment: string | undefined;
    this.#readBlock(() => {
      const start = this.#at;
      const words = this.#readStatement();
      const [first, second, third] = words;
      if (first === 'type' && third === 'hook') {
        base = readBaseChain(words);
        if (!base) this.#note(start, 'a hook or priority that is not known');
      } else if (first === 'policy') policy = second === 'drop' ? 'drop' : undefined;
      else if (first === 'comment' && words.length === 2 && isQuoted(second)) comment = unquote(second);
      else rules.push(readRule(new Words(words), family));
    });
    return { name, base: base && { ...base, policy }, comment, rules };
  }

  #readSet(kind: 'set' | 'map', name: string): NftSet | NftMap {
    let [keyType, valueType, flags]: (readonly string[])[] = [];
    let timeoutSeconds: number | undefined;
    let size: number | undefined;
    let comment: string | undefined;
    let elements: readonly Element[] = [];
    this.#readBlock(() => {
      const start = this.#at;
      const words = new Words(this.#readStatement());
      const property = words.next();
      if (property === 'type') [keyType, valueType] = readTypes(words);
      else if (property === 'flags') flags = words.takeRest().filter((word) => word !== ',');
      else if (property === 'comment') comment = unquote(words.next());
      else if (property === 'size') size = readNumber(words.next()) ?? 0;
      else if (property === 'timeout') timeoutSeconds = readSeconds(words.next()) ?? 0;
      else if (property === 'elements' && words.take('=', '{'))
        elements = readElements(words, keyType ?? [], valueType ?? []);
      else this.#note(start, 'a property that is not known');
    });
    const read = {
      name,
      keyType: keyType ?? [],
      flags: (flags ?? []).toSorted(),
      timeoutSeconds,
      size,
      comment,
      elements,
    };
    return kind === 'map' ? { kind, ...read, valueType: valueType ?? [] } : { kind, ...read };
  }

  /** The words up to a brace, or the end of a statement. */
  #readHead(): readonly string[] {
    const words: string[] = [];
    for (let token = this.#peek(); token && !isEnd(token) && token.text !== '{'; token = this.#peek()) {
      words.push(token.text);
      this.#at++;
    }
    return words;
  }

  /** The words up to the end of a statement. Within braces, the end of a line is a blank. */
  #readStatement(): readonly string[] {
    const words: string[] = [];
    let depth = 0;
    for (let token = this.#peek(); token && (depth > 0 || !isEnd(token)); token = this.#peek()) {
      if (token.text === '{') depth++;
      else if (token.text === '}') depth--;
      if (token.text !== '\n') words.push(token.text);
      this.#at++;
    }
    return words;
  }

  /** Calls `readItem` at the start of each statement of a block in braces; it must take at least a word. */
  #readBlock(readItem: () => void): void {
    if (this.#peek()?.text !== '{') return;
    this.#at++;
    for (this.#skipBlank(); this.#at < this.#tokens.length; this.#skipBlank()) {
      if (this.#peek()?.text === '}') {
        this.#at++;
        return;
      }
      readItem();
    }
    this.#note(this.#tokens.length - 1, 'a brace is not closed');
  }

  #skipBlock(): void {
    this.#readBlock(() => {
      this.#readStatement();
    });
  }

  #skipBlank(): void {
    for (let token = this.#peek(); token?.text === '\n' || token?.text === ';'; token = this.#peek()) this.#at++;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  /** Passes over what is here, up to the end of its statement or block. */
  #leave(start: number, reason: string): void {
    this.#note(start, reason);
    this.#skipBlock();
    if (this.#at === start) this.#at++;
  }

  #note(at: number, reason: string): void {
    const line = this.#tokens[at]?.line ?? 1;
    this.#lines ??= this.#text.split('\n');
    this.#unread.push({ line, text: this.#lines[line - 1] ?? '', reason });
  }
}

function isEnd({ text }: Token): boolean {
  return text === '\n' || text === ';' || text === '}';
}

/** `ipv4_addr . inet_service : verdict`: the parts of keys, then those of values. */
function readTypes(words: Words): readonly string[][] {
  const types: string[][] = [[], []];
  let at = 0;
  for (const word of words.takeRest()) {
    if (word === ':') at = 1;
    else if (word !== '.') types[at]?.push(word);
  }
  return types;
}

function readElements(words: Words, keyType: readonly string[], valueType: readonly string[]): readonly Element[] {
  const elements: Element[] = [];
  while (!words.done && !words.take('}')) {
    elements.push(readElement(words, keyType, valueType));
    words.take(',');
  }
  return elements;
}

function readElement(words: Words, keyType: readonly string[], valueType: readonly string[]): Element {
  const key = readConcatenation(words, keyType);
  let comment: string | undefined;
  let value: ElementValue | undefined;
  for (let word = words.peek(); word !== undefined && word !== ',' && word !== '}'; word = words.peek()) {
    words.next();
    if (word === 'comment') comment = unquote(words.next());
    else if (word === ':') value = readVerdict(words) ?? { kind: 'data', values: readConcatenation(words, valueType) };
    // Else what nft prints about an element that rules made: how long it stays, what it has counted.
  }
  return { key, value, comment };
}

function readConcatenation(words: Words, types: readonly string[]): readonly Value[] {
  const values: Value[] = [];
  do {
    const text = unquote(words.next());
    values.push(readValue(text, valueTypeOf(types[values.length] ?? '')) ?? { kind: 'word', text });
  } while (words.take('.'));
  return values;
}

/** The names that nft prints for some priorities. */
const priorities: Readonly<Record<string, number>> = {
  raw: -300,
  mangle: -150,
  dstnat: -100,
  filter: 0,
  security: 50,
  srcnat: 100,
};

/** `type T hook H priority P`, as words; undefined for anything else. */
function readBaseChain(words: readonly string[]): BaseChain | undefined {
  const [, type, hookWord, hook, priorityWord, ...rest] = words;
  if (type === undefined || hook === undefined || hookWord !== 'hook' || priorityWord !== 'priority') return undefined;
  const priority = readPriority(rest);
  return priority === undefined ? undefined : { type, hook, priority };
}

/** `-110`, `filter`, `dstnat - 10`. */
function readPriority(words: readonly string[]): number | undefined {
  const [, name, offset] = /^([a-z]+)?([+-]?\d{1,9})?$/.exec(words.join('')) ?? [];
  const base = name === undefined ? 0 : priorities[name];
  return base === undefined || (name === undefined && offset === undefined) ? undefined : base + Number(offset ?? 0);
}

/** A time as nft prints it, in seconds: `3h`, `1d2h3m4s`, `10800s`, `10800`; undefined for anything else. */
function readSeconds(text: string): number | undefined {
  const [all, days, hours, minutes, seconds] =
    /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,10})s?)?(?:\d{1,9}ms)?$/.exec(text) ?? [];
  if (all === undefined || all === '') return undefined;
  return Number(days ?? 0) * 86400 + Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
}
