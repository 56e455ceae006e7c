import { joinWays, joinWords, shellWord } from '../../base/printable.ts';
import { type Address, type Family, familyNames, isLoopback } from '../../kernel/address.ts';
import { formatRule as formatIptablesRule, tableNames } from '../../kernel/iptables/iptables.ts';
import { formatElement, formatNftRule, nftFamily } from '../../kernel/nftables/format.ts';
import { nftTableName } from '../../kube-proxy/nft-table.ts';
import { lacksAddresses } from '../../kernel/ipvs/ipvs.ts';
import { sysctlOfLink } from '../../kernel/sysctls-and-modules.ts';
import {
  isGap,
  type Circumstance,
  type LineOfFile,
  type LostByBridge,
  type Missing,
  type Reason,
} from '../../packet/reason.ts';
import { isUnknownOwn, type Fate } from '../../packet/packet.ts';
import type { RuleStep } from '../../packet/step.ts';
import { unshownPosition } from '../../packet/run-chain.ts';
import { jumpCommand } from '../../snapshot/faults.ts';
import { faultWords, fullListings, unlistedWords, unshownJumpWords } from './lack.ts';
import { expectDumpFile } from '../../dumps/read-dump.ts';
import { showsIptablesAsNft, type Snapshot } from '../../snapshot/snapshot.ts';
import type { Scene } from '../../ask/trace/scene.ts';

/** Why a verdict is unknown, and what would settle it. */
export interface ReasonInWords {
  readonly kind: Reason['kind'];
  /** A clause, such as "the dump lacks the output of ipset save". */
  readonly text: string;
  /** Ways to settle the verdict, as imperatives such as "add the output of ipset save". Each is enough. */
  readonly settle: readonly string[];
  /** The command or flag that settles the verdict, for programs. */
  readonly command?: string | undefined;
}

export function reasonWords(reason: Reason, family: Family, scene: Scene): ReasonInWords {
  return { kind: reason.kind, ...wordsOfReason(reason, family, scene) };
}

function wordsOfReason(reason: Reason, family: Family, scene: Scene): Omit<ReasonInWords, 'kind'> {
  switch (reason.kind) {
    case 'missing-listing': {
      const { text, command, isPart, settle } = missingWords(reason.missing, family, scene);
      const kind = expectDumpFile(command.replaceAll(/\W+/g, '-'));
      const file = kind && (scene.side.host ?? scene.side).coverage.empty?.get(kind);
      if (file) return { text: `${text}: ${file} is empty`, command, settle: ['print it as root'] };
      return { text, command, settle: settle ?? [`add ${isPart ? 'all of ' : ''}the output of ${command}`] };
    }
    case 'missing-flag':
      return missingFlagWords(reason, scene);
    case 'unread-rule': {
      const { of, rule } = reason;
      if (!rule)
        return {
          text: `kpc could not read all of ${typeof of === 'string' ? of : lineWords(of)}`,
          settle: checkOnNode,
        };
      // Some rules that iptables keeps in nftables (`xt`) are shown in full only by iptables' own listing.
      const command = jumpCommand({ tool: 'iptables', family });
      const isSaved = scene.side.coverage.iptables[family].length > 0;
      const answer =
        typeof of === 'string' && of.startsWith('xt ') && !isSaved
          ? { settle: [`add the output of ${command}`], command }
          : watch(rule, family);
      return { text: `kpc cannot read a rule${ruleClause(rule)}`, ...answer };
    }
    case 'unread-value': {
      const where = reason.rule ? ` in ${whereOf(reason.rule)}` : '';
      const answer = reason.rule ? watch(reason.rule, family) : { settle: ['check what it means'] };
      return { text: `kpc does not understand ${reason.text}${where}`, ...answer };
    }
    case 'unknown-order':
      return {
        text: `${joinWords(reason.chains, 'and')} have the same hook and priority, so the last one registered sees packets first`,
        settle: reason.isListable
          ? ['add the output of nft list ruleset in one piece', 'look at nft list hooks on the node']
          : ['look at nft list hooks on the node: the dump does not show it'],
        command: 'nft list hooks',
      };
    case 'circumstance': {
      const answer = reason.rule ? watch(reason.rule, family) : unshown(reason);
      return { text: `${circumstances[reason.of]}${ruleClause(reason.rule)}`, ...answer };
    }
    case 'too-many-ways':
      return {
        text: 'the rules branch into more paths than kpc follows, or loop',
        settle: ['follow the rules on the node with nft monitor trace'],
        command: 'nft monitor trace',
      };
  }
}

function unshown({
  of,
  text,
}: {
  readonly of: Circumstance;
  readonly text: string;
}): Pick<ReasonInWords, 'settle' | 'command'> {
  if (of === 'redirect') {
    const names = ['all', text].map((link) => sysctlOfLink(link, 'send_redirects'));
    return { settle: [`set ${joinWords(names, 'and')} to 0, so that the node sends no redirect`] };
  }
  if (of === 'encryption') {
    const command = 'ip xfrm state list nokeys';
    return { settle: [`look on the node for keys in ${command}, and for losses in /proc/net/xfrm_stat`], command };
  }
  if (of === 'xdp') {
    const command = `bpftool net show dev ${shellWord(text)}`;
    return { settle: [`${command} names the program on the node`], command };
  }
  if (of !== 'bridge-port') return { settle: ['no listing shows it'] };
  const command = `bridge fdb show br ${shellWord(text)}`;
  return { settle: [`look for the hosts on the node in ${command} and bridge vlan`], command };
}

/** Says how to see, on the node, whether a rule matches packets. No listing shows this. */
function watch({ tool, table, chain }: RuleStep, family: Family): Pick<ReasonInWords, 'settle' | 'command'> {
  const command =
    tool === 'iptables' ? `${listCommands[family]} -t ${table} -vnL ${shellWord(chain)}` : 'nft monitor trace';
  const shows = tool === 'iptables' ? `its counter in ${command}` : command;
  return { settle: [`${shows} shows on the node whether it matches`], command };
}

const listCommands: { readonly [F in Family]: string } = { ipv4: 'iptables', ipv6: 'ip6tables' };

export function reasonSentence({ text, settle }: ReasonInWords): string {
  return `${text}; ${joinWays(settle)}`;
}

const circumstances: { readonly [C in Circumstance]: string } = {
  listener: 'kube-proxy itself listens at this port, and chooses an endpoint',
  rate: 'a rule matches packets up to a limit',
  excess: 'a rule matches packets above a limit',
  'source-port': "a rule matches the client's port, which its kernel chooses",
  program: 'a rule matches the program or user that sends',
  'bridge-port':
    'a bridge does not carry frames between all of its ports, and nothing shows which ports the hosts are behind',
  refusal: 'the node refuses the packet, but that error might not reach the sender',
  redirect:
    'the node refuses the packet, but sends a redirect first, which may use up the limit of ICMP errors to this sender',
  memory: 'a rule depends on earlier packets',
  peer: 'a rule matches the address of the other end of a tunnel',
  encryption:
    'an IPsec policy encrypts such packets, or accepts only encrypted ones: they pass if both ends have its keys',
  xdp: 'an XDP program sees the packet before any rule, and may drop or change it',
  content: 'a rule matches a property that is unknown for this packet',
};

const checkOnNode = ['check what the node does with this packet'];

function lineWords({ file, line }: LineOfFile): string {
  return `line ${line} of ${file}`;
}

interface MissingInWords {
  readonly text: string;
  readonly command: string;
  /** Whether the dump has a part of the output. */
  readonly isPart?: boolean;
  readonly settle?: readonly string[] | undefined;
}

const unreadRanges: MissingInWords = {
  text: 'the ServiceCIDRs of the cluster could not be read, but kube-proxy drops packets to unused cluster IPs in them',
  command: 'kubectl get servicecidrs',
  settle: ['name their networks with --service-cluster-ip-range'],
};

function missingWords(missing: Missing, family: Family, { side }: Scene): MissingInWords {
  switch (missing.kind) {
    case 'iptables':
      return missingTablesWords(missing, side);
    case 'legacy-iptables': {
      const command = missing.family === 'ipv4' ? 'iptables-legacy-save' : 'ip6tables-legacy-save';
      return { text: "the dump lacks the node's rules of iptables-legacy", command };
    }
    case 'nftables':
      return nftablesWords(missing, side);
    case 'jump':
    case 'chain':
    case 'policy': {
      const command = jumpCommand({ tool: 'iptables', ...missing, family });
      return { text: unshownWords(missing), command, isPart: true };
    }
    case 'virtual-servers':
      return serverWords(missing);
    case 'set':
      return missing.tool === 'iptables'
        ? { text: `the dump lacks all or part of the set ${missing.set}`, command: 'ipset save' }
        : { text: `the dump lacks the set or map ${missing.set}`, command: 'nft list ruleset' };
    case 'endpoint-slices':
      return sliceWords(missing.service, side);
    case 'fitting-slices':
      return {
        text: `the EndpointSlices of ${missing.service} fit only one side (${joinWords(missing.fields, 'and')} changed)`,
        command: 'kubectl get pods -A -o yaml',
        settle: ['give each side its own EndpointSlices, or give the Pods to both'],
      };
    case 'service-cidrs':
      return unreadRanges;
    case 'own-address':
      if (missing.isUnrouted) return unroutedWords(missing.address);
      return {
        text: `kpc does not know whether ${missing.address.text} is an address of the node${unlistedClause(missing.address, side)}`,
        ...ownAddressWords(side),
      };
    case 'own-addresses':
      return { text: "kpc does not know the node's addresses", ...ownAddressWords(side) };
    case 'route': {
      const { text } = missing.address;
      const command = `ip route get ${text}`;
      const leaves = `a rule matches the interface by which packets to ${text} leave`;
      return { text: leaves, command, settle: [`${command} on the node shows it`] };
    }
    case 'routes':
      return routesWords(missing, side);
    case 'sysctl': {
      const command = `sysctl ${missing.name}`;
      return { text: `kpc does not know ${missing.name}`, command };
    }
    case 'bridge':
      return bridgeWords(missing);
  }
}

function routesWords(
  { family, table, isRules }: Missing & { readonly kind: 'routes' },
  side: Snapshot,
): MissingInWords {
  const ip = family === 'ipv4' ? 'ip' : 'ip -6';
  if (isRules) {
    const command = `${ip} rule`;
    return { text: 'the routing rules are not known, and may lead to a table other than main', command };
  }
  const command = `${ip} route show table all`;
  const text =
    table === undefined ? "kpc does not know the node's routes" : `the dump lacks the routes of table ${table}`;
  const settle =
    side.kind === 'dump'
      ? `add the output of ${command} and ${ip} rule`
      : `trace a dump of the node that holds the output of ${command}`;
  return { text, command, settle: [settle] };
}

function unshownWords(missing: Missing & { readonly kind: 'jump' | 'chain' | 'policy' }): string {
  switch (missing.kind) {
    case 'jump':
      return unshownJumpWords([missing.from], missing.to);
    case 'chain':
      return `the dump lacks chain ${missing.chain} of table ${missing.table}, to which a rule jumps`;
    case 'policy':
      return `the dump lacks the policy of ${missing.chain} in table ${missing.table} of ${familyNames[missing.family]}`;
  }
}

function missingTablesWords(
  { family, tables, unread }: Missing & { readonly kind: 'iptables' },
  side: Snapshot,
): MissingInWords {
  const command = jumpCommand({ tool: 'iptables', family });
  if (unread) return { text: `kpc could not read the rule in ${lineWords(unread)}`, command };
  if (tables.length === tableNames.length) {
    const isShown = Object.values(side.state.iptables[family] ?? {}).some((chains) => chains.size > 0);
    return isShown
      ? { text: `the dump lacks a part of the output of ${command}`, command, settle: ['add all of it'] }
      : listing(command);
  }
  const isPart = tables.every((name) => side.state.iptables[family]?.[name]);
  const those = `${tables.length === 1 ? 'table' : 'tables'} ${joinWords(tables)} of ${familyNames[family]}`;
  return {
    text: `the dump lacks ${isPart ? 'a part of ' : ''}${those}, which may drop, refuse or redirect the packet`,
    command,
    isPart,
    settle: isPart ? undefined : [`add the output of ${command} without -t`],
  };
}

function serverWords({ unlisted, unread }: Missing & { readonly kind: 'virtual-servers' }): MissingInWords {
  const command = 'ipvsadm -Sn';
  if (unread) return { text: `kpc could not read ${lineWords(unread)}`, command, settle: checkOnNode };
  return unlisted === undefined
    ? listing(command)
    : { text: unlistedWords(unlisted), command, settle: [`add all of the output of ${fullListings[unlisted.lacks]}`] };
}

function sliceWords(service: string, side: Snapshot): MissingInWords {
  const command = 'kubectl get endpointslices -A -o yaml';
  const faults = side.kind === 'dump' ? [] : side.faultsOf(service);
  const unfit = faults.find(({ code }) => code === 'no-node-fits');
  return {
    text: `the input holds no EndpointSlices of ${service}${unfit ? `, and ${faultWords(unfit)}` : ''}`,
    command,
    settle: [`add the output of ${command}`, ...(unfit ? ['give the Nodes that have it'] : [])],
  };
}

function bridgeWords({ sysctl, link, lost }: Missing & { readonly kind: 'bridge' }): MissingInWords {
  const command = `sysctl ${sysctl}`;
  const bridge = link === undefined ? 'a link' : `link ${link}`;
  return {
    text: `kpc does not know whether ${bridge} is a bridge whose packets pass rules and NAT${lost ? bridgeEffects[lost] : ''}`,
    command,
    settle: [`add the output of ${command} and ip -d -j addr`],
  };
}

const bridgeEffects: { readonly [L in LostByBridge]: string } = {
  answer: '; if not, the answer crosses the bridge untranslated, and the sender does not accept it',
  reset: '; if so, a TCP reset does not pass NAT on its way back, and the sender times out',
};

function listing(command: string): MissingInWords {
  return { text: `the dump lacks the output of ${command}`, command, settle: ['add it'] };
}

/** Describes missing nftables tables. Whether nft prints one table, or a ruleset with only one table, its output has the same form. */
function nftablesWords({ family, chain }: Missing & { readonly kind: 'nftables' }, side: Snapshot): MissingInWords {
  const { state, coverage } = side;
  const command = jumpCommand({ tool: showsIptablesAsNft(side) ? 'iptables' : 'nftables', family });
  if (chain !== undefined) {
    return {
      text: `the dump lacks chain ${chain} of table ${nftFamily[family]} ${nftTableName}`,
      command,
      isPart: true,
    };
  }
  const isOther = state.nftables.length > 0 && !state.nftables.some((table) => table.family === family);
  if (!isOther || coverage.lacksTables) return listing(command);
  const text = `nothing shows whether the node has table ${nftFamily[family]} ${nftTableName}`;
  return { text, command, settle: [`add all of the output of ${command}, below a line with that command`] };
}

function unroutedWords({ text, family }: Address): MissingInWords {
  const command = `${family === 'ipv4' ? 'ip' : 'ip -6'} route show table all`;
  const both = `ip addr shows ${text} on a link, but the routes of table local lack it`;
  return {
    text: `${both}: one of the two listings is cut off or older`,
    command,
    isPart: true,
  };
}

function unlistedClause({ text }: Address, { doubts }: Snapshot): string {
  const unlisted = doubts.find((doubt) => doubt.kind === 'unlisted' && lacksAddresses.has(doubt.lacks));
  return unlisted?.kind === 'unlisted' ? `: ${unlistedWords({ ...unlisted, ...unlisted.naming?.get(text) })}` : '';
}

function ownAddressWords(side: Scene['side']): Pick<MissingInWords, 'command' | 'settle'> {
  const { nodeName, objects } = side;
  const command = 'ip addr';
  if (side.kind === 'dump')
    return { command, settle: ['add the output of ip addr', 'give the output of ip -j addr with --host-addresses'] };
  // If two sides are compared, a trace cannot cover all Nodes at once.
  if (nodeName === '' && objects.nodes.length > 1)
    return { command: '--node', settle: ['name one of the Nodes with --node'] };
  const addressList = 'give the output of ip -j addr with --host-addresses';
  if (side.node.hostAddresses.some((each) => !isLoopback(each) && !isUnknownOwn(each)))
    return { command, settle: [addressList] };
  // kpc traces a difference without the sides' objects, so no Node may be listed although the input has some.
  const which = nodeName === '' ? 'name the Node with --node, and add it if the input lacks it' : 'add the Node';
  return { command, settle: [which, addressList] };
}

function missingFlagWords(
  reason: Reason & { readonly kind: 'missing-flag' },
  { links, side }: Scene,
): Omit<ReasonInWords, 'kind'> {
  if (reason.flag === '--from') {
    const command = `ip route get ${reason.to.text}`;
    return {
      text: `the node's routes choose the source address of the packet, and the outcome depends on it${ruleClause(reason.rule)}`,
      settle: [`${command} on the node shows that address: name it with --from, such as --from ${reason.such.text}`],
      command,
    };
  }
  if (reason.flag === '--node') {
    const [one, other] = reason.nodes;
    return {
      text: `no node is named, and the outcome depends on the node: ${one} and ${other} treat this packet differently`,
      settle: [`name it with --node, such as --node ${one}`],
      command: `--node ${one}`,
    };
  }
  // Without a rule, what depends on the link is a check by the kernel, or the return path.
  if (reason.such !== undefined && !reason.rule) {
    return {
      text: 'the packet may arrive by several links of the node, and the outcome depends on which',
      settle: [`name it with --in-interface, such as --in-interface ${reason.such}`],
      command: `--in-interface ${reason.such}`,
    };
  }
  const outer = links.find(({ name, addresses }) => name !== 'lo' && addresses.some(({ scope }) => scope !== 'link'));
  const named = side.kind === 'dump' && outer ? outer.name : 'eth0';
  return {
    text: `a rule matches the interface where the packet arrives${ruleClause(reason.rule)}`,
    settle: [`name it with --in-interface, such as --in-interface ${named}`],
    command: `--in-interface ${named}`,
  };
}

function ruleClause(rule: RuleStep | undefined): string {
  return rule ? `: ${whereOf(rule)}: ${ruleText(rule)}` : '';
}

/** Returns "iptables nat KUBE-SERVICES rule 3". */
export function whereOf({ tool, table, chain, position }: RuleStep): string {
  if (position === unshownPosition) return `${tool} ${table} ${chain}, a rule that the dump lacks`;
  return `${tool} ${table} ${chain} rule ${position}`;
}

/** Formats a rule in its tool's syntax. */
export function ruleText(step: RuleStep): string {
  if (step.tool === 'iptables') return formatIptablesRule(step.rule);
  return `${formatNftRule(step.rule)}${step.element ? ` → ${formatElement(step.element)}` : ''}`;
}

/** Returns the conditions under which an unknown fate has the other outcome. The clause begins with "if". */
export function conditionWords({ reasons, otherwise }: Fate): string {
  const conditions = [
    ...(otherwise?.assumed.flatMap(({ reason, isSo }) => assumptionWords(reason, isSo) ?? []) ?? []),
    ...(reasons.some(isGap) ? ['what is not shown lets the packet pass unchanged'] : []),
  ];
  return `if ${joinWords([...new Set(conditions)])}`;
}

function assumptionWords(reason: Reason, isSo: boolean): string | undefined {
  if (reason.kind === 'circumstance') return 'no limit is reached';
  if (reason.kind !== 'missing-listing') return undefined;
  if (reason.missing.kind === 'jump') return `${reason.missing.from} jumps to ${reason.missing.to}`;
  if (reason.missing.kind === 'chain') return `${reason.missing.chain} is as kube-proxy makes it`;
  if (reason.missing.kind === 'policy') return `the policy of ${reason.missing.chain} is to accept`;
  if (reason.missing.kind === 'own-addresses' && isSo) return 'the destination is an address of this node';
  if (reason.missing.kind !== 'own-address') return undefined;
  return `${reason.missing.address.text} is ${isSo ? 'an' : 'no'} address of this node`;
}
