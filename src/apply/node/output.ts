// The output of a tool, as far as there is room for it: lines that only tell of other programs are not kept.
import { largestBundle } from '../../bundle/folder.ts';
import { Failure } from '../state/failure.ts';
import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { hasOpenQuote } from '../../kernel/iptables/parse-rule.ts';
import { linesOf } from '../../kernel/lines.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';

/**
 * Bytes that kpc-apply holds of all that it reads of a node at one time, as many as of a bundle: what is parsed of them takes twenty
 * times as much. docs/security.md has the same, and examples/ the limit of memory for it.
 */
export const mostRead = largestBundle;

/** Bytes that it holds of the output of a tool that lists nothing, and of each tool's stderr. */
export const mostSaid = 2 ** 20;

/** Says whether a line, without its end, is kept. Others may have made the listing millions of lines long: it has to be quick. */
export type KeepsLine = (line: string) => boolean;

/** Bytes that several outputs have between them. */
export class Room {
  /** All that it had at first. */
  readonly bytes: number;
  #left: number;

  constructor(bytes: number) {
    this.bytes = bytes;
    this.#left = bytes;
  }

  /** Takes this many bytes. Takes none and returns false if there are fewer. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}

/** Why a listing is refused that has no room. `what` says where it is from. */
export function tooLarge(what: string, { bytes }: Room, tool?: string): Failure {
  const limit = `kpc-apply reads ${bytes / 2 ** 20} MB of ${bytes === mostRead ? 'a node' : 'it'} at most`;
  return new Failure(
    'node-too-large',
    `${what} is too long: ${limit}`,
    'see what makes it so long, and remove what no program needs',
    tool,
  );
}

/** Gathers output as it comes: all of it, or the lines that are kept, as far as there is room. */
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

  /** Whether there was more to keep than room for it. Nothing is kept from there on. */
  get isCut(): boolean {
    return this.#isCut;
  }

  add(chunk: Buffer): void {
    // What a pipe gave in small pieces has far larger buffers.
    if (!this.#keeps) return this.#store(this.#kept, Buffer.from(chunk));
    const [first, last] = [chunk.indexOf(lineEnd) + 1, chunk.lastIndexOf(lineEnd) + 1];
    if (first > 0) this.#endLine(chunk.subarray(0, first), this.#keeps);
    this.#addLines(chunk.subarray(first, last), this.#keeps);
    if (last < chunk.length) this.#store(this.#begun, Buffer.from(chunk.subarray(last)));
  }

  /** Call it once, after the last chunk. A last line without an end is kept whatever it is: it shows that something is lacking. */
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

/**
 * Keeps the entries of kube-proxy's sets, and those of sets of sets, which may name one of them. Other programs' sets may have
 * millions.
 */
export function keepsSetLines(): KeepsLine {
  const whole = new Set<string>();
  return (line) => {
    const [, verb, name = '', next] = /^(create|add) (\S+) (\S+)/.exec(line) ?? [];
    if (verb === 'create' && next === 'list:set') whole.add(name);
    return verb !== 'add' || whole.has(name) || name === temporarySetName || parseSetName(name) !== undefined;
  };
}

/** All chains and sets that kpc-apply may own have this in their names. */
const ownMark = 'KUBE-';

/** How many characters the lines have that name nothing of kube-proxy's: they are there whatever becomes of its own. */
export function lengthOfOthers(text: string): number {
  let length = 0;
  for (const line of linesOf(text)) if (!line.includes(ownMark)) length += line.length + 1;
  return length;
}

/** Whether all rules of a chain are kept: of another program's, those that name nothing of kube-proxy's are not. */
export function isKeptWhole(table: TableName, chain: string): boolean {
  return isBuiltInChain(table, chain) || chain.includes(ownMark);
}

/**
 * Keeps the rules of kube-proxy's chains, and those of the kernel's own, where the order counts. Of other programs' chains, which
 * may have a rule for each of millions of clients, it keeps the rules that name something of kube-proxy's, and others as far as there
 * is `room` for their bytes.
 */
export function keepsRuleLines(room: (bytes: number) => boolean = () => false): KeepsLine {
  // A rule whose quoted comment goes on in the next line. What is in there may look like anything: all is kept from there on.
  // Test: keeps all that follows a comment of several lines.
  let isQuoted = false;
  return (line) => {
    isQuoted ||= line.includes('"') && hasOpenQuote(line);
    const name = /^(?:\[\d+:\d+\] )?(?:-A |:)([^ "]+) /.exec(line)?.[1];
    const isForeign = name !== undefined && !tableNames.some((table) => isBuiltInChain(table, name));
    const isKept = isQuoted || !isForeign || line.includes(ownMark) || line.includes(temporarySetName);
    return isKept || room(Buffer.byteLength(line) + 1);
  };
}
