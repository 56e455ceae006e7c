// Reads the output of tools within a memory limit. Drops lines that concern only other programs.
import { largestBundle } from '../../bundle/folder.ts';
import type { LongListing } from '../../base/findings/apply.ts';
import { Failure } from '../state/failure.ts';
import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { hasOpenQuote } from '../../kernel/iptables/parse-rule.ts';
import { linesOf } from '../../kernel/lines.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';

/** Limit in bytes on all readings of a node held in memory. Parsed readings take twenty times as much. See docs/security.md. */
export const mostRead = largestBundle;

/** Limit on the bytes that any other tool prints, and on each tool's stderr. */
export const mostSaid = 2 ** 20;

/** Reports whether to keep a line (without its end). Must be quick, because other programs may make a listing millions of lines long. */
export type KeepsLine = (line: string) => boolean;

export class Room {
  readonly bytes: number;
  #left: number;

  constructor(bytes: number) {
    this.bytes = bytes;
    this.#left = bytes;
  }

  /** Reserves bytes. Returns false and reserves nothing if they do not fit. */
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
  #begun: Buffer[] = [];
  #isCut = false;

  constructor(room: Room, keeps?: KeepsLine) {
    this.#room = room;
    this.#keeps = keeps;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  add(chunk: Buffer): void {
    // Copy the chunk, because a pipe's small chunks lie in far larger buffers.
    if (!this.#keeps) return this.#store(this.#kept, Buffer.from(chunk));
    const [first, last] = [chunk.indexOf(lineEnd) + 1, chunk.lastIndexOf(lineEnd) + 1];
    if (first > 0) this.#endLine(chunk.subarray(0, first), this.#keeps);
    this.#addLines(chunk.subarray(first, last), this.#keeps);
    if (last < chunk.length) this.#store(this.#begun, Buffer.from(chunk.subarray(last)));
  }

  /** Call once, at the end. Keeps a last line without a line end, because it shows that output is missing. */
  finish(): string {
    return Buffer.concat([...this.#kept.splice(0), ...this.#begun.splice(0)]).toString();
  }

  #endLine(end: Buffer, keeps: KeepsLine): void {
    const line = Buffer.concat([...this.#begun, end]);
    for (const part of this.#begun.splice(0)) this.#room.give(part.length);
    this.#addLines(line, keeps);
  }

  /** Stores copies, because part of a chunk would keep the whole chunk in memory. */
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

/** Returns a filter for kube-proxy's sets and for sets of sets. It drops entries of other programs' sets, which may be millions. */
export function keepsSetLines(): KeepsLine {
  const whole = new Set<string>();
  return (line) => {
    const [, verb, name = '', next] = /^(create|add) (\S+) (\S+)/.exec(line) ?? [];
    if (verb === 'create' && next === 'list:set') whole.add(name);
    return verb !== 'add' || whole.has(name) || name === temporarySetName || parseSetName(name) !== undefined;
  };
}

/** A part of the name of every chain and set that kpc-apply may own. */
const ownMark = 'KUBE-';

/** Counts the characters in lines without a name of kube-proxy's. These lines remain whatever happens to kube-proxy's rules. */
export function lengthOfOthers(text: string): number {
  let length = 0;
  for (const line of linesOf(text)) if (!line.includes(ownMark)) length += line.length + 1;
  return length;
}

export function isKeptWhole(table: TableName, chain: string): boolean {
  return isBuiltInChain(table, chain) || chain.includes(ownMark);
}

/**
 * Returns a filter that keeps the rules of kube-proxy's chains and, because their order counts, of built-in chains. Other chains may have
 * millions of rules, so the filter keeps their rules only if they name kube-proxy's objects or while `room` has space.
 */
export function keepsRuleLines(room: (bytes: number) => boolean = () => false): KeepsLine {
  // A quoted comment may span lines and contain anything, so keep all of it. Test: apply/bounded-listings.test.ts.
  let isQuoted = false;
  return (line) => {
    isQuoted ||= line.includes('"') && hasOpenQuote(line);
    const name = /^(?:\[\d+:\d+\] )?(?:-A |:)([^ "]+) /.exec(line)?.[1];
    const isForeign = name !== undefined && !tableNames.some((table) => isBuiltInChain(table, name));
    const isKept = isQuoted || !isForeign || line.includes(ownMark) || line.includes(temporarySetName);
    return isKept || room(Buffer.byteLength(line) + 1);
  };
}
