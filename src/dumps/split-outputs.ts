import { isReadable, recogniserList, recognisers, titleOfList, type OutputKind } from './output-kinds.ts';
import {
  isChatter,
  isEllipsis,
  readCommand,
  readHost,
  readTitle,
  takePrefix,
  type Command,
  type Host,
} from './typed-commands.ts';

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
  /** Of what has brackets: whether it ends before its last one. */
  readonly isCutOff: boolean;
}

/** A text that was printed, or pasted from a terminal, cut into what each tool printed. */
export interface SplitText {
  readonly outputs: readonly ToolOutput[];
  /** Lines that are of no tool, nor anything that a shell, ssh or kubectl says: their numbers. */
  readonly strays: readonly number[];
}

interface DraftOutput extends Pick<ToolOutput, 'kind' | 'firstLine' | 'command' | 'host'> {
  readonly lines: string[];
  /** How many brackets are open: up to the last one, all lines are of the output. */
  depth: number;
  /** Of rules: whether a table is open. Undefined for rules without a table. */
  table: 'open' | 'closed' | undefined;
  hasEllipsis: boolean;
  /** The lines seen that a tool prints once. */
  readonly once: Set<string>;
}

/** So much is read of a text before the first output; what begins later than that is no dump. */
const longestPreface = { lines: 500, characters: 1 << 16 };

const none: SplitText = { outputs: [], strays: [] };

/** Cuts a text into outputs. Takes any text; without any output in it, there are no strays either. */
export function splitOutputs(text: string): SplitText {
  const drafts: DraftOutput[] = [];
  const strays: number[] = [];
  let current: DraftOutput | undefined;
  let command: Command | undefined;
  let host: Host | undefined;
  const lines = new Lines(text);
  const begin = (kind: OutputKind): DraftOutput => {
    const from = { kind, firstLine: lines.number, command, host };
    const draft = { ...from, lines: [], depth: 0, table: undefined, hasEllipsis: false, once: new Set<string>() };
    drafts.push(draft);
    return draft;
  };
  for (let raw = lines.next(); raw !== undefined; raw = lines.next()) {
    let line = raw.trim();
    if (drafts.length === 0 && (isManifest(line) || lines.isBeyond(longestPreface))) return none;
    const bracketed: OutputKind | undefined = current?.depth ? current.kind : lines.startOfBrackets(line);
    if (bracketed !== undefined) {
      if (!current?.depth) current = begin(bracketed);
      takeBracketed(current, raw);
      if (current.depth === 0) current = undefined;
      continue;
    }
    if (line === '') {
      current?.lines.push('');
      continue;
    }
    let kind = startOf(line, lines.peek(), current);
    const bare = kind === undefined ? takePrefix(line) : undefined;
    if (bare !== undefined) {
      kind = startOf(bare, lines.peek(), current);
      if (kind !== undefined || (current && recognisers[current.kind].continues?.(bare, bare))) raw = line = bare;
    }
    if (kind !== undefined) {
      const single = recognisers[kind].once?.exec(line)?.[0];
      if (!current || !goesOn(current, kind, line, single)) current = begin(kind);
      take(current, line);
      if (single !== undefined) current.once.add(single);
      continue;
    }
    if (current && isEllipsis(line)) {
      current.hasEllipsis = true;
      current.lines.push('');
      continue;
    }
    const typed = readCommand(line);
    const titled = readTitle(line);
    if (typed ?? titled) {
      if (typed) command = typed;
      host = typed ? readHost(line) : titled;
      current = undefined;
    } else if (isChatter(line)) current?.lines.push('');
    else if (current && (recognisers[current.kind].continues?.(line, raw) || current.table === 'open')) {
      take(current, line);
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
      isCutOff: draft.depth > 0,
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

const inProtocol = /^(?:TCP|UDP|SCTP|FWM) /;

/** Whether a line can only be of manifests, which may hold rules as a text of their own. */
function isManifest(line: string): boolean {
  return (
    /^(?:- )?["']?(?:apiVersion|kind)["']?\s*:/.test(line) || /^\{\s*"(?:apiVersion|kind|metadata|items)"/.test(line)
  );
}

/** The kind of output that a line begins or goes on with, seen by itself. */
function startOf(line: string, next: string, current: DraftOutput | undefined): OutputKind | undefined {
  // Most lines are of the kind that the line before them was of; titles of a list may be of one with other columns.
  if (current && recognisers[current.kind].starts(line, next)) {
    if (current.kind !== 'ipvsadm -Ln' || !titleOfList.test(line)) return current.kind;
  }
  // Below the titles of other columns there are lines like those of a list.
  const isOther = current !== undefined && !isReadable(current.kind) && !titleOfList.test(line);
  return recogniserList.find(([kind, { starts }]) => !(isOther && kind === 'ipvsadm -Ln') && starts(line, next))?.[0];
}

/** Whether a line that an output of its kind may begin with goes on with the one that has begun; `single` is what it has once. */
function goesOn(current: DraftOutput, kind: OutputKind, line: string, single: string | undefined): boolean {
  if (current.kind !== kind) return false;
  // What a tool prints once is in a second listing when it comes again: of another node, or at another time.
  if (!current.hasEllipsis && single !== undefined && current.once.has(single)) return false;
  if (kind === 'ipvsadm -Ln' && titleOfList.test(line)) return ![...current.once].some((once) => inProtocol.test(once));
  if (kind !== 'rules') return true;
  // Each table of iptables-save has such a line above it.
  if (line.startsWith('# Generated')) return current.lines.length === 0;
  if (line.startsWith('*')) {
    return current.table !== undefined || current.lines.every((each) => each === '' || each.startsWith('#'));
  }
  // iptables -S begins a table with the policies of its chains.
  if (line.startsWith('-P ')) return current.lines.every((each) => each === '' || each.startsWith('-P '));
  return current.table !== 'closed';
}

function take(current: DraftOutput, line: string): void {
  current.lines.push(line);
  if (current.kind !== 'rules') return;
  if (line.startsWith('*')) current.table = 'open';
  else if (line === 'COMMIT') current.table = 'closed';
}

/** Takes a line of what has brackets, JSON or a table of nft, up to the last one. No quoted text goes on over a line. */
function takeBracketed(current: DraftOutput, line: string): void {
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const character = line[i];
    if (character === '"') quoted = !quoted;
    else if (quoted) i += character === '\\' ? 1 : 0;
    else if (character === '[' || character === '{') current.depth++;
    else if ((character === ']' || character === '}') && --current.depth === 0) {
      current.lines.push(line.slice(0, i + 1));
      return;
    }
  }
  current.lines.push(line);
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

  /** What begins with the line given last and goes on to its closing bracket. */
  startOfBrackets(line: string): 'ip -j addr' | 'nft list ruleset' | undefined {
    if (!/^(?:\[|table )/.test(line)) return undefined;
    const head = this.#text.slice(this.#from, this.#from + mostOfNext);
    return isLinksJson.test(head) ? 'ip -j addr' : isTable.test(head) ? 'nft list ruleset' : undefined;
  }

  #endOfLine(from: number): number {
    const end = this.#text.indexOf('\n', from);
    return end < 0 ? this.#text.length : end;
  }
}

/** How much of the following text is enough to decide. */
const mostOfNext = 400;

/** Colours, and other commands to a terminal, that a tool or a recording of its output wrote. */
// eslint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[\d;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9])/g;

function plain(line: string): string {
  const ended = line.endsWith('\r') ? line.slice(0, -1) : line;
  return ended.includes('\u001b') ? ended.replace(escapes, '') : ended;
}

/** What `ip -j addr` begins with, also after another program sorted its fields. */
const isLinksJson = /^\s*\[\s*(?:\]\s*$|\{\s*\}|\{\s*"(?:addr_info|ifindex|ifname|link_index)")/;

/** The line that a table of `nft list` begins with. */
const isTable = /^\s*table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{/;
