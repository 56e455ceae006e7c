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

/** What follows the name of a tool where it is a command, or a title that has nothing else. */
const follows: Partial<Readonly<Record<Command['tool'], RegExp>>> = {
  ipset: /^(?: +(?:-[a-z]|save|list|-[LS])|[\s:=`"')*-]*$)/i,
  ip: /^ +(?:-\S+ +){0,9}(?:a|addr|address|link|l)\b/i,
  sysctl: /^(?: +-|[\s:=`"')*-]*$)/i,
  nft: /^ +(?:-\S+ +){0,9}list\b/i,
};

/** What a shell shows in front of a command: "root@node1:~#", "[root@node1 ~]#", "$", "➜  ~". */
const prompt = /^(?!->)(?:[\w.@:~/[\]() -]{0,80}[$#%>]|[➜❯»λ])(?: |$)/;

/** What iptables-save writes of itself, and a warning of iptables-nft-save. */
const ownComment = /^# (?:Generated|Completed|Warning|Table)\b/;

/** The command on a line, be it behind a prompt or a title; undefined for any other line. */
export function readCommand(line: string): Command | undefined {
  if (line.length > longestCommand || ownComment.test(line)) return undefined;
  const found = findTool(line);
  if (!found) return prompt.test(line) ? { tool: 'other', table: undefined, isPart: false } : undefined;
  const { tool, rest } = found;
  const table = /(?:^| )(?:-t|--table)[ =]?(\w+)/.exec(rest)?.[1];
  return { tool, table: tableNames.find((name) => name === table), isPart: printsPart(tool, rest) };
}

function findTool(line: string): { readonly tool: Command['tool']; readonly rest: string } | undefined {
  for (const { 0: whole, 1: rules, 2: other, index } of line.matchAll(toolName)) {
    const tool = (rules ?? other ?? '').toLowerCase() as Command['tool'];
    const rest = line.slice(index + whole.length);
    if (follows[tool]?.test(rest) ?? true) return { tool, rest };
  }
  return undefined;
}

const filters = /\|\s*(?:sudo\s+)?(?:[ez]?grep|rg|head|tail|awk|sed)\b/;

function printsPart(tool: Command['tool'], rest: string): boolean {
  if (filters.test(rest)) return true;
  switch (tool) {
    case 'iptables':
    case 'ip6tables':
      return /(?:^| )-[A-Za-z]*[SL] +[\w-]*[A-Z]/.test(rest);
    case 'ipset':
      return /^ +(?:list|save|-L|-S) +[\w-]/.test(rest);
    case 'ipvsadm':
      return /(?:^| )(?:-t|-u|-f|--(?:tcp|udp|sctp|fwmark)-service)[ =]/.test(rest);
    case 'nft':
      return !/(?:^| )list +ruleset\b/.test(rest);
    // The link of the Services is all that is asked of it.
    case 'ip':
    case 'sysctl':
    case 'other':
      return false;
  }
}

/** What ssh, kubectl, a shell and script(1) say among the output of other programs. */
const chatter =
  /^(?:Defaulted container |Defaulting container name |Use 'kubectl describe |Unable to use a TTY|command terminated with exit code |If you don't see a command prompt|Pseudo-terminal will not|Connection to \S+ closed|Warning: Permanently added |\*\* WARNING: connection is not using|Last login: |Welcome to |Script (?:started|done)|\S+ \| (?:CHANGED|SUCCESS)\b|Authorized |\+{1,3} |exit$|logout$|-{2,3}$|# |```|~~~|<\/?pre>|<\/?code>|(?:ip6?tables|ipvsadm|ipset) v?\d)/i;

/** What log programs, mails, diffs and grep put in front of a line. */
const prefix =
  /^(?:(?:>\s?|\+(?=[-:*[])|\|\s){1,20}|[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w.-]+(?:\[\d+\])?: |\d{1,7}[:-]\s?(?=[-:*[]))/;

/** A line without what a log, a mail or grep puts in front of it; undefined where there is nothing of that. */
export function takePrefix(line: string): string | undefined {
  const found = prefix.exec(line)?.[0];
  return found ? line.slice(found.length).trim() : undefined;
}

/** Whether a line stands for others that were left out. */
export function isEllipsis(line: string): boolean {
  return /^[[(<{]?(?:\.{3,}|…|\.{2}|snip(?:ped)?|omitted|truncated|output omitted)[\])>}]?$/i.test(line);
}

/** Whether a line is of no tool that kpc reads the output of, and says nothing. */
export function isChatter(line: string): boolean {
  return chatter.test(line);
}
