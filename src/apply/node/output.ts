// The output of a tool, within its room: lines that concern only other programs are dropped.
import { largestBundle } from '../../bundle/folder.ts';
import type { LongListing } from '../../base/findings/apply.ts';
import { Failure } from '../state/failure.ts';
import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { hasOpenQuote } from '../../kernel/iptables/parse-rule.ts';
import { linesOf } from '../../kernel/lines.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';

/** The most bytes of all readings of a node in memory at once; parsed, they take twenty times as much. See docs/security.md. */
export const mostRead = largestBundle;

/** Bytes of other tools' output, and of each tool's stderr. */
export const mostSaid = 2 ** 20;

/** Whether to keep a line (without its end). It must be quick: others may make a listing millions of lines long. */
export type KeepsLine = (line: string) => boolean;

export class Room {
  readonly bytes: number;
  #left: number;

  constructor(bytes: number) {
    this.bytes = bytes;
    this.#left = bytes;
  }

  /** Takes this many bytes, or returns false and takes none. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}

export function tooLarge(listing: LongListing, { bytes }: Room): Failure {
  return new Failure('node-too-large', { ...listing, most: bytes, of: bytes === mostRead ? 'node' : 'listing' });
}

export class Output {
  readonly #room: Room;
  readonly #keeps: KeepsLine | undefined;
  readonly #kept: Buffer[] = [];
  /** The beginning of a line whose end has not come yet. */
  #begun: Buffer[] = [];
  #isCut = false;

  constructor(room: Room, keeps?: KeepsLine) {
    this.#room = room;
    this.#keeps = keeps;
  }

  /** Whether something did not fit. Nothing after it is kept. */
  get isCut(): boolean {
    return this.#isCut;
  }

  add(chunk: Buffer): void {
    // A pipe's small chunks sit in far larger buffers: copy them.
    if (!this.#keeps) return this.#store(this.#kept, Buffer.from(chunk));
    const [first, last] = [chunk.indexOf(lineEnd) + 1, chunk.lastIndexOf(lineEnd) + 1];
    if (first > 0) this.#endLine(chunk.subarray(0, first), this.#keeps);
    this.#addLines(chunk.subarray(first, last), this.#keeps);
    if (last < chunk.length) this.#store(this.#begun, Buffer.from(chunk.subarray(last)));
  }

  /** Call it once, at the end. Keeps a last line without an end: it shows that something is missing. */
  finish(): string {
    return Buffer.concat([...this.#kept.splice(0), ...this.#begun.splice(0)]).toString();
  }

  #endLine(end: Buffer, keeps: KeepsLine): void {
    const line = Buffer.concat([...this.#begun, end]);
    for (const part of this.#begun.splice(0)) this.#room.give(part.length);
    this.#addLines(line, keeps);
  }

  /** Stores copies: a part of a chunk would keep all of it in memory. */
  #addLines(lines: Buffer, keeps: KeepsLine): void {
    let from = 0;
    for (let start = 0; start < lines.length && !this.#isCut;) {
      const end = lines.indexOf(lineEnd, start) + 1;
      if (!keeps(lines.toString('utf8', start, end - 1))) {
        if (from < start) this.#store(this.#kept, Buffer.from(lines.subarray(from, start)));
        from = end;
      }
      start = end;
    }
    if (from < lines.length) this.#store(this.#kept, Buffer.from(lines.subarray(from)));
  }

  #store(list: Buffer[], bytes: Buffer): void {
    if (this.#isCut) return;
    if (this.#room.take(bytes.length)) list.push(bytes);
    else this.#isCut = true;
  }
}

const lineEnd = 10;

/** Keeps kube-proxy's sets and sets of sets. Other programs' sets may have millions of entries. */
export function keepsSetLines(): KeepsLine {
  const whole = new Set<string>();
  return (line) => {
    const [, verb, name = '', next] = /^(create|add) (\S+) (\S+)/.exec(line) ?? [];
    if (verb === 'create' && next === 'list:set') whole.add(name);
    return verb !== 'add' || whole.has(name) || name === temporarySetName || parseSetName(name) !== undefined;
  };
}

/** In the names of all chains and sets that kpc-apply may own. */
const ownMark = 'KUBE-';

/** Characters in lines that name nothing of kube-proxy's, so that stay whatever happens to its rules. */
export function lengthOfOthers(text: string): number {
  let length = 0;
  for (const line of linesOf(text)) if (!line.includes(ownMark)) length += line.length + 1;
  return length;
}

/** Whether a listing keeps all rules of a chain, also those that name nothing of kube-proxy's. */
export function isKeptWhole(table: TableName, chain: string): boolean {
  return isBuiltInChain(table, chain) || chain.includes(ownMark);
}

/**
 * Keeps the rules of kube-proxy's chains and, because order counts, of built-in chains. Other chains may have millions
 * of rules: keeps those that name kube-proxy's objects, and others while `room` has space.
 */
export function keepsRuleLines(room: (bytes: number) => boolean = () => false): KeepsLine {
  // Inside a quoted comment of several lines anything may appear: keep all of it. Test: apply/bounded-listings.test.ts.
  let isQuoted = false;
  return (line) => {
    isQuoted ||= line.includes('"') && hasOpenQuote(line);
    const name = /^(?:\[\d+:\d+\] )?(?:-A |:)([^ "]+) /.exec(line)?.[1];
    const isForeign = name !== undefined && !tableNames.some((table) => isBuiltInChain(table, name));
    const isKept = isQuoted || !isForeign || line.includes(ownMark) || line.includes(temporarySetName);
    return isKept || room(Buffer.byteLength(line) + 1);
  };
}
