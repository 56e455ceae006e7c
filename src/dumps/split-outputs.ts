import { savedLines } from '../kernel/iptables/parse-rule.ts';
import { countLines, LineList } from '../kernel/lines.ts';
import { hostInPrompt, ownComment, prompt, readCommand, type PrintedCommand } from './printed-command.ts';
import { isReadable, mayContinue, outputKinds, recognisers, titleOfList, type OutputKind } from './output-kinds.ts';

export interface ToolOutput {
  readonly kind: OutputKind;
  readonly firstLine: number;
  /** The output without prefixes. Its lines have the same numbers as in the text. */
  readonly text: string;
  readonly command: PrintedCommand | undefined;
  readonly isPart: boolean;
  readonly isCutOff: boolean;
  /** The number of the first line in or next to the output that kpc could not read. It is unknown what that line stands for. */
  readonly gap: number | undefined;
}

export interface SplitText {
  readonly outputs: readonly ToolOutput[];
  /** Commands that printed nothing: the next command follows directly. */
  readonly silent: readonly PrintedCommand[];
  /** The numbers of lines that no tool printed. Messages from a shell, ssh or kubectl do not count. */
  readonly strays: readonly number[];
}

interface DraftOutput extends Pick<ToolOutput, 'kind' | 'firstLine' | 'command'> {
  readonly lines: LineList;
  /** `hasRules`: whether any line is neither empty nor a comment. `hasOther`: whether any line is neither empty nor a chain's policy. */
  hasRules: boolean;
  hasOther: boolean;
  depth: number;
  /** Whether a string is still open. nft prints comments that span several lines. */
  isQuoted: boolean;
  table: 'open' | 'closed' | undefined;
  gap: number | undefined;
  readonly once: Set<string>;
}

/** The most characters before the first output. A text with more is not a dump. */
const longestPreface = 1 << 16;

export function holdsOutput(text: string): boolean {
  return new Splitter(text.slice(0, longestPreface).replace(/^\ufeff/, '')).run(true);
}

/** Splits any text. If the text has no outputs, there are no strays either. */
export function splitOutputs(text: string): SplitText {
  const splitter = new Splitter(text.replace(/^\ufeff/, ''));
  if (!holdsOutput(text) || !splitter.run()) return { outputs: [], silent: [], strays: [] };
  return {
    outputs: splitter.drafts.map((draft) => ({
      kind: draft.kind,
      firstLine: draft.firstLine,
      text: `${draft.lines.parts().join('\n')}\n`,
      command: draft.command,
      isCutOff: draft.depth > 0,
      isPart: draft.gap !== undefined || draft.command?.isPart === true,
      gap: draft.gap,
    })),
    silent: splitter.silent,
    strays: splitter.strays,
  };
}

class Splitter {
  readonly drafts: DraftOutput[] = [];
  readonly strays: number[] = [];
  readonly silent: PrintedCommand[] = [];
  readonly #text: string;
  #start = 0;
  #current: DraftOutput | undefined;
  #command: PrintedCommand | undefined;
  #isSilent = false;
  /** The output of the last line that was read since the last command. */
  #last: DraftOutput | undefined;
  /** The first line after that output that was not read. `isTitle`: whether the latest such line may be a title between two outputs. */
  #stray: { readonly line: number; readonly isTitle: boolean } | undefined;
  /** Whether the line above is empty or a message. */
  #isApart = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(isFirstOnly = false): boolean {
    let [at, next] = [0, 0];
    for (const raw of savedLines(this.#text, withoutEscapes)) {
      for (; at < next; at++) this.#start = this.#text.indexOf('\n', this.#start) + 1;
      next += countLines(raw);
      const line = raw.trim();
      if (this.drafts.length === 0 && isManifest(line)) return false;
      if (isFirstOnly && this.drafts.length > 0) return true;
      if (this.#current && recognisers[this.#current.kind].holds?.test(raw)) this.#take(this.#current, line);
      else if (!this.#takeBracketed(raw, at)) {
        if (line === '') this.#leave();
        else if (!this.#takeStart(line, at)) this.#takeOther(line, raw, at);
      }
    }
    return this.drafts.length > 0;
  }

  #ahead(count: number): readonly string[] {
    return this.#text
      .slice(this.#start, this.#start + longestAhead)
      .split('\n', count)
      .map(withoutEscapes);
  }

  #begin(kind: OutputKind, at: number): DraftOutput {
    const from = { kind, firstLine: at + 1, command: this.#command };
    const draft = {
      ...from,
      lines: new LineList(),
      hasRules: false,
      hasOther: false,
      depth: 0,
      isQuoted: false,
      table: undefined,
      gap: undefined,
      once: new Set<string>(),
    };
    this.drafts.push(draft);
    this.#current = draft;
    this.#isSilent = false;
    return draft;
  }

  #takeBracketed(raw: string, at: number): boolean {
    // If another table or a prompt follows, the nft listing lacks its end.
    const isCut = this.#current?.kind === 'nft list ruleset' && (nftTable.test(raw) || hostInPrompt.test(raw));
    const open = this.#current?.depth && !isCut ? this.#current : undefined;
    const kind = open?.kind ?? (/^\s*(?:\[|table )/.test(raw) ? startOfBrackets(this.#ahead(20)) : undefined);
    if (kind === undefined) {
      if (isCut) this.#current = undefined;
      return false;
    }
    const draft = open ?? this.#begin(kind, at);
    this.#join(draft, undefined);
    takeBrackets(draft, raw);
    if (draft.depth === 0) this.#current = undefined;
    return true;
  }

  #takeStart(line: string, at: number): boolean {
    const kind = recogniseStart(line, this.#ahead(2)[1]?.trim() ?? '', this.#current);
    if (kind === undefined) return false;
    const single = recognisers[kind].once?.exec(line)?.[0];
    const known = this.#current && goesOn(this.#current, kind, line, single) ? this.#current : undefined;
    const draft = known ?? this.#begin(kind, at);
    this.#take(draft, line, single);
    if (single !== undefined) draft.once.add(single);
    return true;
  }

  #takeOther(whole: string, raw: string, at: number): void {
    const current = this.#current;
    const bare = takePrefix(whole);
    if (bare !== undefined && this.#takeStart(bare, at)) return;
    const continues = (text: string): boolean => current !== undefined && mayContinue(current.kind, text);
    const isBare = bare !== undefined && continues(bare);
    const line = isBare ? bare : whole;
    const typed = readCommand(line, this.#command);
    if (typed) {
      if (this.#isSilent && this.#command) this.silent.push(this.#command);
      this.#isSilent = true;
      this.#command = typed;
      this.#current = this.#last = this.#stray = undefined;
      // If an output does not begin with a line feed, it follows the prompt on the same line.
      if (hostInPrompt.test(line)) this.#takeStart(line.replace(prompt, '').trim(), at);
    } else if (ownComment.test(line)) current?.lines.push('');
    else if (chatter.test(line)) this.#leave();
    else if (current && (isBare || continues(raw) || (current.table === 'open' && !line.startsWith('#'))))
      this.#take(current, line);
    else this.#takeStray(line, at + 1);
  }

  /** Skips a line that is certainly not part of an output. */
  #leave(): void {
    this.#current?.lines.push('');
    this.#isApart = true;
  }

  #takeStray(line: string, number: number): void {
    const isTitle = titleOfOutput.test(line);
    if (this.#last && !this.#stray && !this.#isApart && !isTitle) this.#last.gap ??= number;
    this.#stray = { line: this.#stray?.line ?? number, isTitle };
    this.#isApart = false;
    this.#isSilent = false;
    this.strays.push(number);
    const current = this.#current;
    if (current && (recognisers[current.kind].words || current.table === 'open')) current.lines.push('');
    else this.#current = undefined;
  }

  #take(draft: DraftOutput, line: string, single?: string): void {
    // A comment above a table does not show which listing the table is from.
    if (!line.startsWith('#')) this.#join(draft, single);
    takeLine(draft, line);
  }

  /** Records which outputs the stray lines above a line of `draft` may belong to. */
  #join(draft: DraftOutput, single: string | undefined): void {
    const stray = this.#stray;
    const last = this.#last;
    if (stray) {
      const isResumed = last?.kind === draft.kind && !(single !== undefined && last.once.has(single));
      const isFirst = !last && this.#command !== undefined && this.#command.tool !== 'other';
      if (isResumed) last.gap ??= stray.line;
      if (isResumed || (!stray.isTitle && (isFirst || !this.#isApart))) draft.gap ??= stray.line;
    }
    this.#last = draft;
    this.#stray = undefined;
    this.#isApart = false;
  }
}

/** Matches a title, or a separator between two outputs. */
const titleOfOutput = /^(?:[-=_*#~+]{3,}|~{3}\w+|={2,} .*|.+:)$/;

const inProtocol = /^(?:TCP|UDP|SCTP|FWM) /;

/** Reports whether a line can only be from a manifest. A manifest may contain rules as text. */
function isManifest(line: string): boolean {
  return (
    /^(?:- )?["']?(?:apiVersion|kind)["']?\s*:/.test(line) || /^\{\s*"(?:apiVersion|kind|metadata|items)"/.test(line)
  );
}

function recogniseStart(line: string, next: string, current: DraftOutput | undefined): OutputKind | undefined {
  const text = `${line}\n${next.slice(0, longestStart)}`;
  const starts = (kind: OutputKind): boolean => recognisers[kind].starts.some((pattern) => pattern.test(text));
  const isTitle = titleOfList.test(line);
  // Most lines are of the same kind as the line before. A title, however, may begin a list with other columns.
  if (current && starts(current.kind) && !(current.kind === 'ipvsadm -Ln' && isTitle)) return current.kind;
  const isOther = current !== undefined && !isReadable(current.kind) && !isTitle;
  return outputKinds.find((kind) => !(isOther && kind === 'ipvsadm -Ln') && starts(kind));
}

/** How many characters of the following lines to look at: without blanks and prefixes (longestStart), and with them (longestAhead). */
const longestStart = 400;
const longestAhead = 1 << 14;

/** Reports whether a line that could begin an output continues this one. `single`: a part that occurs only once in a listing. */
function goesOn(current: DraftOutput, kind: OutputKind, line: string, single: string | undefined): boolean {
  if (current.kind !== kind) return false;
  // A tool prints this part only once. The line therefore begins a second listing, which is from another node or time.
  if (single !== undefined && current.once.has(single)) return false;
  if (kind === 'ipvsadm -Ln' && titleOfList.test(line)) return ![...current.once].some((once) => inProtocol.test(once));
  if (kind !== 'rules') return true;
  // iptables-save prints a line such as "# Generated" in front of each table.
  if (line.startsWith('# Generated')) return false;
  if (line.startsWith('*')) return current.table !== undefined || !current.hasRules;
  // iptables -S prints a table's policies before its rules.
  if (line.startsWith('-P ')) return !current.hasOther;
  return current.table !== 'closed';
}

function keep(current: DraftOutput, line: string): void {
  current.lines.push(line);
  current.hasRules ||= line !== '' && !line.startsWith('#');
  current.hasOther ||= line !== '' && !line.startsWith('-P ');
}

function takeLine(current: DraftOutput, line: string): void {
  keep(current, line);
  if (current.kind !== 'rules') return;
  if (line.startsWith('*')) current.table = 'open';
  else if (line === 'COMMIT') current.table = 'closed';
}

function takeBrackets(current: DraftOutput, line: string): void {
  const isOfNft = current.kind === 'nft list ruleset';
  // nft's strings have no escapes, and of these only comments span several lines. Any other open quote ends with its line.
  const escape = isOfNft ? undefined : '\\';
  const mayStayOpen = current.isQuoted || (isOfNft && openComment.test(line));
  for (let i = 0; i < line.length; i++) {
    const character = line[i];
    if (character === '"') current.isQuoted = !current.isQuoted;
    else if (current.isQuoted) i += character === escape ? 1 : 0;
    else if (character === '[' || character === '{') current.depth++;
    else if ((character === ']' || character === '}') && --current.depth === 0) {
      current.lines.push(line.slice(0, i + 1));
      return;
    }
  }
  current.isQuoted &&= mayStayOpen;
  current.lines.push(line);
}

const openComment = /\bcomment "[^"]*$/;

const nftTable = /^\s*table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{/;

/** Returns the kind of output in brackets that begins with these lines. Recognises JSON even if another program sorted its fields. */
function startOfBrackets(lines: readonly string[]): keyof typeof bracketed | 'nft list ruleset' | undefined {
  const head = lines.join('\n').slice(0, longestStart);
  if (nftTable.test(head)) return 'nft list ruleset';
  return (Object.keys(bracketed) as (keyof typeof bracketed)[]).find((kind) => bracketed[kind].test(head));
}

/** Recognises the output of `ip -j` by its first fields. Leaves out neighbours, which have some of the same fields as routes. */
const bracketed = {
  'ip -j addr': /^\s*\[\s*(?:\]\s*$|\{\s*\}|\{\s*"(?:addr_info|ifindex|ifname|link_index)")/,
  'ip -j route': /^\s*\[\s*\{\s*"(?:dst|type|dev|gateway)"\s*:(?![^{}]*"(?:lladdr|state)")[^]*"(?:dst|flags)"/,
  'ip -j rule': /^\s*\[\s*\{\s*(?:"[a-z]+"\s*:\s*(?:"[^"]*"|\d+|null)\s*,\s*)*"priority"\s*:/,
} as const;

// oxlint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[\d;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9])/g;

/** Removes the frame that a program such as k9s draws around a line. */
function unboxed(line: string): string {
  if (!line.includes('│')) return line;
  const inside = line.trim().endsWith('│') ? line.trimEnd().slice(0, -1).trimEnd() : line;
  return inside.startsWith('│') ? inside.slice(inside[1] === ' ' ? 2 : 1) : inside;
}

function withoutEscapes(line: string): string {
  const ended = unboxed(line.endsWith('\r') ? line.slice(0, -1) : line);
  return ended.includes('\u001b') ? ended.replace(escapes, '') : ended;
}

/** Matches lines that ssh, kubectl, a shell or script(1) prints between the outputs of other programs. */
const chatter =
  /^(?:sudo: |\[sudo\] |Creating debugging pod |pod(?:\/| ")\S+ (?:created|deleted)|Defaulted container |Defaulting container name |Use 'kubectl describe |Unable to use a TTY|command terminated with exit code |If you don't see a command prompt|Pseudo-terminal will not|Connection to \S+ closed|Warning: Permanently added |\*\* WARNING: connection is not using|Last login: |Welcome to |Script (?:started|done)|Authorized |\*{3} Output of |={3,} (?:START|END) logs for container |Total Number of Rules: \d+$|cpu=\d+ |(?:(?:add|delete|destroy) )?table \w+ \S+$|flush ruleset$|\+{1,3} |exit$|logout$|#$|```|<\/?pre>|<\/?code>|(?:ip6?tables|ipvsadm|ipset|conntrack) v?\d)/i;

const prefix =
  /^(?:(?:>\s?|\+(?=[-:*[])|\|\s){1,20}|[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w.-]+(?:\[\d+\])?: |\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?|(?:\d{1,7}(?:[:-]\s?|\s{1,4})|[\w./-]{1,200}:(?:\d{1,7}:)?)(?=-{1,2}[A-Za-z]|\*[a-z]|:[^\s:]{1,64} (?:ACCEPT|DROP|-)(?: |$)|\[\d{1,20}:\d{1,20}\] |COMMIT$))/;

function takePrefix(line: string): string | undefined {
  const found = prefix.exec(line)?.[0];
  return found ? line.slice(found.length).trim() : undefined;
}
