import { isChatter, isEllipsis, readCommand, takePrefix, type Command } from './typed-commands.ts';
import { readHost, readTitle, type Host } from './host-of-output.ts';
import { isRefused, recognisers, type OutputKind } from './output-kinds.ts';

/** The output of one tool in a text that may hold those of several. */
export interface ToolOutput {
  readonly kind: OutputKind;
  /** The line of the text that it begins with, from 1. */
  readonly firstLine: number;
  /** Its lines, as many as there are in the text, each without what is in front of the output there. */
  readonly text: string;
  /** The command above it. */
  readonly command: Command | undefined;
  /** Where it was printed, if the lines above it say so. */
  readonly host: Host | undefined;
  /** Whether lines were left out of it, or a part was asked for. */
  readonly isPart: boolean;
  /** Of a table of nftables: whether it ends before its last brace. */
  readonly isCutOff: boolean;
}

/** A text that was printed, or pasted from a terminal, cut into what each tool printed. */
export interface SplitText {
  readonly outputs: readonly ToolOutput[];
  /** Lines that are of no tool, nor anything that a shell, ssh or kubectl says: their numbers. */
  readonly strays: readonly number[];
}

/** So much is read of a text before the first output; what begins later than that is no dump. */
const longestPreface = { lines: 500, characters: 1 << 16 };

interface DraftOutput {
  readonly kind: OutputKind;
  readonly firstLine: number;
  readonly lines: string[];
  readonly command: Command | undefined;
  readonly host: Host | undefined;
  readonly isCutOff: boolean;
  /** Of rules: whether a table is open. Undefined for rules without a table. */
  table: 'open' | 'closed' | undefined;
  hasEllipsis: boolean;
  /** The lines seen that a tool prints once. */
  readonly once: Set<string>;
}

const none: SplitText = { outputs: [], strays: [] };

/** Cuts a text into outputs. Takes any text; without any output in it, there are no strays either. */
export function splitOutputs(text: string): SplitText {
  const drafts: DraftOutput[] = [];
  const strays: number[] = [];
  let current: DraftOutput | undefined;
  let command: Command | undefined;
  let host: Host | undefined;
  const lines = new Lines(text);
  for (let given = lines.next(); given !== undefined; given = lines.next()) {
    let raw = given;
    let line = raw.trim();
    if (drafts.length === 0 && (isManifest(line) || lines.isBeyond(longestPreface))) return none;
    if (line === '') {
      current?.lines.push('');
      continue;
    }
    const block = lines.takeBlock(line);
    let kind = block?.kind ?? startOf(line, lines, current);
    const bare = kind === undefined ? takePrefix(line) : undefined;
    if (bare !== undefined) {
      kind = startOf(bare, lines, current);
      if (kind !== undefined || (current && rowOf(current.kind)?.continues?.(bare, bare))) {
        raw = bare;
        line = bare;
      }
    }
    if (kind !== undefined) {
      if (!current || block || !goesOn(current, kind, line)) {
        current = {
          kind,
          firstLine: lines.number,
          lines: [],
          command,
          host,
          isCutOff: block?.isCutOff === true,
          table: undefined,
          hasEllipsis: false,
          once: new Set(),
        };
        drafts.push(current);
      }
      noteTable(current, line);
      const single = onceOf(kind, line);
      if (single !== undefined) current.once.add(single);
      current.lines.push(block?.text ?? (kind === 'ip addr' ? raw : line));
      if (block) {
        lines.skip(block.text);
        current = undefined;
      }
      continue;
    }
    // Between two places that it found, grep -A writes "--".
    if (current && (isEllipsis(line) || line === '--')) {
      current.hasEllipsis = true;
      current.lines.push('');
      continue;
    }
    const typed = readCommand(line);
    if (typed) {
      command = typed;
      host = readHost(line);
      current = undefined;
    } else if (isChatter(line)) {
      current?.lines.push('');
      const titled = readTitle(line);
      if (titled) {
        host = titled;
        current = undefined;
      }
    } else if (current && takes(current, line, raw)) {
      noteTable(current, line);
      current.lines.push(current.kind === 'ip addr' ? raw : line);
    } else {
      strays.push(lines.number);
      current = undefined;
    }
  }
  if (drafts.length === 0) return none;
  return {
    outputs: drafts.map((draft) => ({
      kind: draft.kind,
      firstLine: draft.firstLine,
      text: `${draft.lines.join('\n')}\n`,
      command: draft.command,
      host: draft.host,
      isCutOff: draft.isCutOff,
      isPart: draft.hasEllipsis || draft.command?.isPart === true || lacksLines(draft),
    })),
    strays,
  };
}

/**
 * Whether a list of virtual servers is but a part of one, by what it lacks: one virtual server without the titles that
 * ipvsadm -Ln prints, or one of ipvsadm -Sn without a real server, where no command above it says that it is all.
 */
function lacksLines({ kind, lines, command }: DraftOutput): boolean {
  if (command !== undefined) return false;
  switch (kind) {
    case 'ipvsadm -Ln':
      return !lines.some((line) => titleOfList.test(line)) && lines.filter((line) => inProtocol.test(line)).length <= 1;
    case 'ipvsadm -Sn':
      return lines.every((line) => line === '' || line.startsWith('-A ')) && lines.filter(Boolean).length === 1;
    default:
      return false;
  }
}

const titleOfList = /^(?:IP Virtual Server version|Prot) /;
const inProtocol = /^(?:TCP|UDP|SCTP|FWM) /;

/** Whether a line can only be of manifests, which may hold rules as a text of their own. */
function isManifest(line: string): boolean {
  return (
    /^(?:- )?["']?(?:apiVersion|kind)["']?\s*:/.test(line) || /^\{\s*"(?:apiVersion|kind|metadata|items)"/.test(line)
  );
}

/** The kind of output that a line begins or goes on with, seen by itself. */
function startOf(line: string, lines: Lines, current: DraftOutput | undefined): OutputKind | undefined {
  const next = lines.peek();
  // Most lines are of the kind that the line before them was of.
  const likely = current && rowOf(current.kind);
  if (likely?.kind === 'rules' && likely.starts(line, next)) return 'rules';
  for (const { kind, starts } of recognisers) {
    // Below the titles of other columns stand lines like those of a list.
    if (kind === 'ipvsadm -Ln' && current && isRefused(current.kind) && !/^(?:IP|Prot) /.test(line)) continue;
    if (starts(line, next)) return kind;
  }
  return undefined;
}

function rowOf(kind: OutputKind): (typeof recognisers)[number] | undefined {
  return recognisers.find((row) => row.kind === kind);
}

/** Whether a line that an output of its kind may begin with goes on with the one that has begun. */
function goesOn(current: DraftOutput, kind: OutputKind, line: string): boolean {
  if (current.kind !== kind) return false;
  // What a tool prints once is in a second listing when it comes again: of another node, or at another time.
  if (!current.hasEllipsis && current.once.has(onceOf(kind, line) ?? '')) return false;
  if (kind === 'ipvsadm -Ln' && titleOfList.test(line)) return ![...current.once].some((once) => inProtocol.test(once));
  if (kind !== 'rules') return true;
  // Each table of iptables-save has such a line above it.
  if (line.startsWith('# Generated')) return current.lines.length === 0;
  if (line.startsWith('*'))
    return current.table !== undefined || current.lines.every((each) => each === '' || each.startsWith('#'));
  // iptables -S begins a table with the policies of its chains.
  if (line.startsWith('-P ')) return current.lines.every((each) => each === '' || each.startsWith('-P '));
  return current.table !== 'closed';
}

/** The part of a line that a tool prints once in a listing: the name of a table, a set, a virtual server or a link. */
function onceOf(kind: OutputKind, line: string): string | undefined {
  switch (kind) {
    case 'rules':
      return /^\*\w+$/.exec(line)?.[0];
    case 'ipset list':
      return /^Name: \S+$/.exec(line)?.[0];
    case 'ipset save':
      return /^create \S+/.exec(line)?.[0];
    case 'ipvsadm -Sn':
      return /^-A -\S+ \S+/.exec(line)?.[0];
    case 'ipvsadm -Ln':
      return titleOfList.exec(line)?.[0] ?? (inProtocol.test(line) ? line.split(/\s+/, 2).join(' ') : undefined);
    case 'ip addr':
      return /^\d+: \S+: </.exec(line)?.[0];
    default:
      return undefined;
  }
}

function noteTable(current: DraftOutput, line: string): void {
  if (current.kind !== 'rules') return;
  if (line.startsWith('*')) current.table = 'open';
  else if (line === 'COMMIT') current.table = 'closed';
}

/** Whether a line that could be anything is taken for a part of the output above it, be it one that cannot be read. */
function takes(current: DraftOutput, line: string, raw: string): boolean {
  if (rowOf(current.kind)?.continues?.(line, raw)) return true;
  switch (current.kind) {
    case 'rules':
      return current.table === 'open';
    case 'ipset save':
    case 'ipset list':
    case 'ipvsadm -Sn':
    case 'ipvsadm -Ln':
    case 'sysctl':
      return true;
    default:
      return false;
  }
}

/** What goes on over many lines, to its closing bracket. */
interface Block {
  readonly kind: 'ip -j addr' | 'nft list ruleset';
  readonly text: string;
  readonly isCutOff: boolean;
}

/** The lines of a text one by one, without what a terminal or a carriage return adds to them. */
class Lines {
  readonly #text: string;
  /** Where the line given last begins, and where the next one does. */
  #from = 0;
  #next = 0;
  /** The number of the line given last, from 1. */
  number = 0;

  constructor(text: string) {
    this.#text = text.startsWith('\ufeff') ? text.slice(1) : text;
  }

  next(): string | undefined {
    if (this.#next >= this.#text.length) return undefined;
    this.#from = this.#next;
    const end = this.#endOfLine(this.#from);
    this.#next = end + 1;
    this.number++;
    return plain(this.#text.slice(this.#from, end));
  }

  /** The beginning of the next line, without the blanks around it. */
  peek(): string {
    const end = Math.min(this.#endOfLine(this.#next), this.#next + mostOfNext);
    return plain(this.#text.slice(this.#next, end)).trim();
  }

  isBeyond({ lines, characters }: { readonly lines: number; readonly characters: number }): boolean {
    return this.number > lines || this.#from > characters;
  }

  /** What begins with the line given last and goes on to its closing bracket, or to the end of the text. */
  takeBlock(line: string): Block | undefined {
    if (!/^(?:\[|\{|table )/.test(line)) return undefined;
    const head = this.#text.slice(this.#from, this.#from + mostOfNext);
    const kind = isLinksJson.test(head) ? 'ip -j addr' : isTable.test(head) ? 'nft list ruleset' : undefined;
    const end = kind && endOfBlock(this.#text, this.#from);
    return kind && { kind, text: this.#text.slice(this.#from, end), isCutOff: end === undefined };
  }

  /** Goes on behind a text that the line given last begins with. */
  skip(taken: string): void {
    const end = this.#from + taken.length;
    for (; this.#next < end; this.number++) this.#next = this.#endOfLine(this.#next) + 1;
  }

  #endOfLine(from: number): number {
    const end = this.#text.indexOf('\n', from);
    return end < 0 ? this.#text.length : end;
  }
}

/** So much of what follows is enough to tell. */
const mostOfNext = 400;

/** Colours, and other commands to a terminal, that a tool or a recording of its output wrote. */
// eslint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[\d;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9])/g;

function plain(line: string): string {
  const ended = line.endsWith('\r') ? line.slice(0, -1) : line;
  return ended.includes('\u001b') ? ended.replace(escapes, '') : ended;
}

/** What `ip -j addr` begins with, be it that another program sorted its fields. */
const isLinksJson = /^\s*\[\s*(?:\]\s*$|\{\s*\}|\{\s*"(?:addr_info|ifindex|ifname|link_index)")/;

/** The line that a table of `nft list` begins with. */
const isTable = /^\s*table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{/;

/** The offset behind the value of JSON, or the table of nft, that begins at `start`; undefined where it has no end. */
function endOfBlock(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (quoted) {
      if (code === backslash) i++;
      else if (code === quote) quoted = false;
    } else if (code === quote) quoted = true;
    else if (code === openBracket || code === openBrace) depth++;
    else if ((code === closeBracket || code === closeBrace) && --depth === 0) return i + 1;
  }
  return undefined;
}

const quote = 34;
const openBracket = 91;
const backslash = 92;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;
