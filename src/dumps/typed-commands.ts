import { tableNames, type TableName } from '../kernel/iptables/iptables.ts';

/** A command as it was typed, or written above its output as a title. */
export interface Command {
  readonly tool: 'iptables' | 'ip6tables' | 'ipset' | 'ipvsadm' | 'ip' | 'sysctl' | 'nft' | 'other';
  /** The table that it names. */
  readonly table: TableName | undefined;
  /** Whether it prints a part only: one chain, one set, what grep found. */
  readonly isPart: boolean;
}

/** No longer line is a command: it is cheap to look at. */
const longestCommand = 400;

const toolName =
  /(?:^|[\s$#>%~+=*:`"'([|-])(?:(ip6?tables)(?:-legacy|-nft)?(?:-save)?|(ipset|ipvsadm|ip|sysctl|nft))(?![\w/-])/gi;

/** Matches an iptables command that names one chain. */
const oneChain = { part: /(?:^| )-[A-Za-z]*[SL] +[\w-]*[A-Z]/ };

/**
 * `follows`: what follows a tool's name in a command, or in a title that holds nothing else. `part`: what makes the
 * tool print a part. ip needs none: kpc asks it only for the Services' one link.
 */
const tools: Readonly<Record<string, { readonly follows?: RegExp; readonly part?: RegExp }>> = {
  iptables: oneChain,
  ip6tables: oneChain,
  ipset: { follows: /^(?: +(?:-[a-z]|save|list|-[LS])|[\s:=`"')*-]*$)/i, part: /^ +(?:list|save|-L|-S) +[\w-]/ },
  ipvsadm: { part: /(?:^| )(?:-t|-u|-f|--(?:tcp|udp|sctp|fwmark)-service)[ =]/ },
  ip: { follows: /^ +(?:-\S+ +){0,9}(?:a|addr|address|link|l)\b/i },
  sysctl: { follows: /^(?: +-|[\s:=`"')*-]*$)/i },
  nft: { follows: /^ +(?:-\S+ +){0,9}list\b/i, part: /^(?!.* list +ruleset\b)/ },
};

/** What a shell shows in front of a command: "root@node1:~#", "[root@node1 ~]#", "$", "➜  ~"; or the title that Ansible writes. */
const prompt = /^(?:(?!->)(?:[\w.@:~/[\]() -]{0,80}[$#%>]|[➜❯»λ])(?: |$)|\S+ \| (?:CHANGED|SUCCESS)\b)/;

/** What iptables-save writes of itself, and a warning of iptables-nft-save. */
const ownComment = /^# (?:Generated|Completed|Warning|Table)\b/;

/** The command on a line, also behind a prompt or in a title; undefined for any other line. */
export function readCommand(line: string): Command | undefined {
  if (line.length > longestCommand || ownComment.test(line)) return undefined;
  for (const { 0: whole, 1: rules, 2: other, index } of line.matchAll(toolName)) {
    const tool = (rules ?? other ?? '').toLowerCase() as Command['tool'];
    const rest = line.slice(index + whole.length);
    const { follows, part } = tools[tool] ?? {};
    if (follows?.test(rest) === false) continue;
    const table = /(?:^| )(?:-t|--table)[ =]?(\w+)/.exec(rest)?.[1];
    const isPart = filters.test(rest) || part?.test(rest) === true;
    return { tool, table: tableNames.find((name) => name === table), isPart };
  }
  return prompt.test(line) ? { tool: 'other', table: undefined, isPart: false } : undefined;
}

const filters = /\|\s*(?:sudo\s+)?(?:[ez]?grep|rg|head|tail|awk|sed)\b/;

/** What ssh, kubectl, a shell and script(1) say among the output of other programs. */
const chatter =
  /^(?:Defaulted container |Defaulting container name |Use 'kubectl describe |Unable to use a TTY|command terminated with exit code |If you don't see a command prompt|Pseudo-terminal will not|Connection to \S+ closed|Warning: Permanently added |\*\* WARNING: connection is not using|Last login: |Welcome to |Script (?:started|done)|Authorized |\+{1,3} |exit$|logout$|-{2,3}$|# |```|~~~|<\/?pre>|<\/?code>|(?:ip6?tables|ipvsadm|ipset) v?\d)/i;

/** Whether a line is of no tool that kpc reads the output of, and says nothing. */
export function isChatter(line: string): boolean {
  return chatter.test(line);
}

/** What log programs, mails, diffs and grep put in front of a line. */
const prefix =
  /^(?:(?:>\s?|\+(?=[-:*[])|\|\s){1,20}|[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w.-]+(?:\[\d+\])?: |\d{1,7}[:-]\s?(?=[-:*[]))/;

/** A line without what a log, a mail or grep puts in front of it; undefined if there is nothing of that. */
export function takePrefix(line: string): string | undefined {
  const found = prefix.exec(line)?.[0];
  return found ? line.slice(found.length).trim() : undefined;
}

/** Whether a line replaces others that were left out; between two places that it found, grep -A writes "--". */
export function isEllipsis(line: string): boolean {
  return (
    line === '--' || /^[[(<{]?(?:\.{3,}|…|\.{2}|snip(?:ped)?|omitted|truncated|output omitted)[\])>}]?$/i.test(line)
  );
}
