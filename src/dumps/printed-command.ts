import { families, type Family } from '../kernel/address.ts';
import { tableNames, type TableName, type IptablesVariant } from '../kernel/iptables/iptables.ts';
import type { RoutesAsked } from '../kernel/route/parse-routes.ts';
import { nameRoutingTable } from '../kernel/route/route.ts';

export interface PrintedCommand {
  readonly tool: 'iptables' | 'ip6tables' | 'ipset' | 'ipvsadm' | 'ip' | 'sysctl' | 'nft' | 'other';
  readonly table: TableName | undefined;
  readonly variant?: IptablesVariant | undefined;
  readonly isPart: boolean;
  /** Whether the line is a shell's prompt with a command, so that both the tool's output and its errors went to the terminal. */
  readonly isTyped?: boolean | undefined;
  readonly allAddresses?: readonly Family[] | undefined;
  readonly routing?: RoutingAsked | undefined;
  /** The name of the host, without its domain. Undefined if it is unknown. */
  readonly host: string | undefined;
  /** The command as typed. Set if what it prints is not in this node's kernel. */
  readonly elsewhere?: string | undefined;
}

type RoutingAsked = RoutesAsked & { readonly isAll: boolean };

const longestCommand = 400;

const toolName =
  /(?:^|[\s$#>%~+=*:`"'([|-])(?:(ip6?tables)(?:-(legacy|nft))?(?:-save)?|(ipset|ipvsadm|ip|sysctl|nft))(?![\w/-])/gi;

const oneChain = { part: /(?:^| )-[A-Za-z]*[SL] +[\w-]*[A-Z]/ };

/** For each tool: `follows` matches what may follow the tool's name. `part` matches arguments that make the tool print only a part. */
const tools: Readonly<Record<string, { readonly follows?: RegExp; readonly part?: RegExp }>> = {
  iptables: oneChain,
  ip6tables: oneChain,
  ipset: { follows: /^(?: +(?:-[a-z]|save|list|-[LS])|[\s:=`"')*-]*$)/i, part: /^ +(?:list|save|-L|-S) +[\w-]/ },
  ipvsadm: { part: /(?:^| )(?:-t|-u|-f|--(?:tcp|udp|sctp|fwmark)-service)[ =]/ },
  ip: { follows: /^ +(?:-\S+ +){0,9}(?:a|ad|add|addr|address|link|l|r|ro|route|rule|ru)\b/i },
  sysctl: { follows: /^(?: +-|[\s:=`"')*-]*$)/i },
  nft: {
    follows: /^ +(?:-\S+ +){0,9}list\b/i,
    part: /^(?!.* list +ruleset\b(?! +(?:ip6?|inet|arp|bridge|netdev)\b))/,
  },
};

/** Matches a shell's prompt in front of a command: "root@node1:~#", "[root@node1 ~]#", "$", "➜  ~". */
export const prompt = /^(?!->|# |lines \d)(?:[\w.@:~/[\]() -]{0,80}[$#%>]|[➜❯»λ])(?: |$)/;

const titleOfHost = /^[\w.:-]{1,253} \| (?:CHANGED|SUCCESS)\b/;

/** Captures the name of the host in "root@node1:~#", in "[root@node1 ~]#" and in Ansible's title. */
export const hostInPrompt =
  /^(?:[[(]?[\w.-]{1,64}@([A-Za-z][\w-]{0,62})(?=[\w.-]{0,190}[\s:\])#$%>])|([A-Za-z][\w-]{0,62})[\w.-]{0,190} \| (?:CHANGED|SUCCESS)\b)/;

/** Matches commands that run another command elsewhere. For ssh, captures the host. ssh with options is not recognised. */
const remote =
  /(?:^| )(?:ssh (?:[\w.-]{1,64}@)?([A-Za-z][\w-]{0,62})|(?:ssh|docker|podman|nerdctl|crictl|kubectl|oc) )/;

function hostOfPrompt(line: string): string | undefined {
  const elsewhere = remote.exec(line);
  if (elsewhere) return elsewhere[1];
  const [, inPrompt, inTitle] = hostInPrompt.exec(line) ?? [];
  return inPrompt ?? inTitle;
}

export const ownComment = /^# (?:Generated|Completed|Warning|Table)\b/;

const unknownCommand: PrintedCommand = { tool: 'other', table: undefined, isPart: false, host: undefined };

/** Reads a command after a prompt or in a title. Also reads a title that Ansible prints for a host. Undefined for any other line. */
export function readCommand(line: string, above: PrintedCommand | undefined): PrintedCommand | undefined {
  if (line.length > longestCommand || ownComment.test(line)) return undefined;
  if (titleOfHost.test(line)) return { ...(above ?? unknownCommand), host: hostOfPrompt(line) };
  const elsewhere = foreign.some(
    ({ command, unless = [] }) => matchesInOrder(line, command) && !unless.some((each) => matchesInOrder(line, each)),
  )
    ? line.replace(prompt, '').trim()
    : undefined;
  for (const { 0: whole, 1: rules, 2: variant, 3: other, index } of line.matchAll(toolName)) {
    const tool = (rules ?? other ?? '').toLowerCase() as PrintedCommand['tool'];
    const rest = line.slice(index + whole.length);
    const { follows, part } = tools[tool] ?? {};
    if (follows?.test(rest) === false) continue;
    const table = /(?:^| )(?:-t|--table)[ =]?(\w+)/.exec(rest)?.[1];
    const routing = tool === 'ip' ? readRoutesAsked(rest) : undefined;
    const isPart =
      filters.test(rest) || part?.test(rest) === true || (routing !== undefined && !wholeRouting.test(rest));
    return {
      tool,
      table: tableNames.find((name) => name === table),
      variant: (['legacy', 'nft'] as const).find((each) => each === variant),
      isPart,
      isTyped: prompt.test(line) && !/[<>]/.test(rest),
      allAddresses: tool === 'ip' && !isPart ? readAllAddresses(rest) : undefined,
      routing,
      host: hostOfPrompt(line),
      elsewhere,
    };
  }
  return elsewhere !== undefined || prompt.test(line)
    ? { ...unknownCommand, host: hostOfPrompt(line), elsewhere }
    : undefined;
}

/** Matches "ip addr" with options for format or family, also in a title, but not "ip addr show eth0", which prints one link. */
const wholeAddresses =
  /^((?: +-(?:4|6|o|oneline|j|json|p|pretty|br|brief|c|color|d|details|s|stats|statistics|h|human|N|r))*) +a(?:d|dd|ddr|ddress)?(?: +(?:s|sh|show|l|ls|list|lst))?[ :=`"')*-]*$/;

/** Returns the families for which an ip command prints the addresses of all links. Undefined for any other command. */
function readAllAddresses(rest: string): readonly Family[] | undefined {
  const [, options] = wholeAddresses.exec(rest) ?? [];
  if (options === undefined) return undefined;
  const only = /-([46])/.exec(options)?.[1];
  return only === undefined ? families : [only === '4' ? 'ipv4' : 'ipv6'];
}

/** Returns the family and table whose routes or rules an ip command lists. Undefined for any other command. */
function readRoutesAsked(rest: string): RoutingAsked | undefined {
  const [, options] = /^((?: +-\S+)*) +(?:r|ro|route|rule|ru)\b/.exec(rest) ?? [];
  if (options === undefined) return undefined;
  const table = / t(?:a|ab|abl|able)? +(\S+)/.exec(rest)?.[1];
  // `ip route get` accepts an IPv6 address even without -6.
  const isSaid = !/ get /.test(rest);
  const family = / -(?:6|f(?:amily)? inet6)\b/.test(options) ? 'ipv6' : isSaid ? 'ipv4' : undefined;
  const isAll = allTables.test(rest);
  return { family, table: table === undefined || table === 'all' ? undefined : nameRoutingTable(table), isAll };
}

const allTables =
  /^(?: +-\S+)* +(?:r|ro|route) +(?:(?:s|sh|show|l|ls|list|lst) +)?t(?:a|ab|abl|able)? +all[ :=`"')*-]*$/;

/** Matches an "ip route" or "ip rule" that selects nothing except a table. Matches up to the end of the command or title. */
const wholeRouting =
  /^(?: +-\S+(?: +inet6?)?){0,9} +(?:r|ro|route|ru|rule)(?: +(?:s|sh|show|l|ls|list|lst))?(?: +t(?:a|ab|abl|able)? +[^\s;&|]+)?\s*(?:$|[;&|:=`"')*#-]|\d?>)/;

/** Matches a pipe to a program that may leave out lines. */
const filters = /(?<!\|)\|(?!\s*(?:$|\||(?:sudo\s+)?(?:cat|column|less|more|nl|sort|tee)\b))/;

/** Patterns that must match one after the other, each after the previous match. A single pattern would be slow on the text in between. */
type Steps = readonly RegExp[];

const intoHost: Steps = [/\bnsenter /, /(?:-[A-Za-z]*t ?|--target[ =])1(?: |$)/];

/** Ways into the node's own network: commands that lead there, and pods that run there in most clusters. */
const intoNode: readonly Steps[] = [
  intoHost,
  [
    /\bnode\/|\bchroot \/host\b|\b(?:kube-proxy|kube-router|kube-flannel|kindnet|calico-node|canal|cilium|aws-node|weave-net|antrea-agent|node-debugger)\b/,
  ],
];

/** Commands that print what is not in this node's kernel. They show another network namespace, or a file that a program may load. */
const foreign: readonly { readonly command: Steps; readonly unless?: readonly Steps[] }[] = [
  { command: [/\bnsenter /, /-/], unless: [intoHost] },
  { command: [/\bip (?:-\S+ ){0,9}(?:netns exec|-n|-netns) \S/] },
  { command: [/\b(?:kubectl|oc|crictl) /, /(?:^| )(?:exec|rsh|run|debug) /], unless: intoNode },
  { command: [/\b(?:docker|podman|nerdctl) /, /(?:^| )exec /, /(?:^| )(?:k8s_|[\da-f]{12,64} )/] },
  { command: [/\b(?:cat|less|more|head|tail|[ez]?grep) /, /(?:^| )\/(?:etc|run|usr\/lib|usr\/local\/lib|lib)\/\S/] },
  { command: [/^==> \/(?:etc|run|usr\/lib|usr\/local\/lib|lib)\/\S/] },
];

function matchesInOrder(text: string, steps: Steps): boolean {
  let rest = text;
  return steps.every((step) => {
    const found = step.exec(rest);
    rest = found ? rest.slice(found.index + found[0].length) : '';
    return found !== null;
  });
}
