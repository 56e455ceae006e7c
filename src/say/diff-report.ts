import { otherParts } from '../base/findings/answers.ts';
import { count, escapeText, formatCount, joinPhrases, joinWords } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { areSidesSame, type ServicePortDiff, type SideDiff } from '../ask/diff/diff-sides.ts';
import { describeKernelChange } from './changes.ts';
import type { KernelChange } from '../ask/changes/kernel-change.ts';
import { cutBlock, lines, section, type Block } from './lines.ts';
import { otherPartWords } from './words/answers.ts';
import { serviceReasonWords } from './port-facts.ts';
import type { BeyondKernel, CountedKind } from '../ask/diff/beyond-kernel.ts';
import type { ComparisonGap, GapPart } from '../ask/diff/not-compared.ts';
import { partsOfDump, type Scene } from '../ask/trace/scene.ts';
import type { Doubt } from '../dumps/dump.ts';
import { families, familyNames } from '../kernel/address.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { unlistedWords } from './way/lack.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';

/** The most items of each list to print before "and 230 more". Infinity prints whole lists. */
export interface ReportLimits {
  readonly servicePorts: number;
  readonly lines: number;
}

interface ComparedSides {
  readonly from: Snapshot;
  readonly to: Snapshot;
}

/** Lists differences in how the two sides were compiled: mode, node, release and Pod networks, as far as both sides show them. */
export function sideChanges({ from, to }: ComparedSides) {
  const isOneNode = from.nodeName === to.nodeName;
  const facts = ({ mode, nodeName, settings, node }: Snapshot) =>
    ({
      mode,
      node: nodeName || undefined,
      release: settings?.release,
      podCIDRs: (isOneNode && node?.podCIDRs.map(({ text }) => text).join(', ')) || undefined,
    }) as const;
  const [old, fresh] = [facts(from), facts(to)];
  return (['mode', 'node', 'release', 'podCIDRs'] as const).flatMap((of) => {
    const change = { of, from: old[of], to: fresh[of] };
    return change.from === undefined || change.to === undefined || change.from === change.to ? [] : [change];
  });
}

export function sideChangeTexts(sides: ComparedSides): readonly string[] {
  return sideChanges(sides).map(({ of, from, to }) => `${of}: ${from} → ${to}`);
}

/** Describes a difference in words: first each Service port, then objects that belong to no Service, then a summary. */
export function reportDiff(diff: SideDiff, limits: ReportLimits): readonly Block[] {
  const shown = diff.servicePorts.slice(0, limits.servicePorts);
  const hidden = diff.servicePorts.slice(limits.servicePorts);
  return [
    ...shown.map((port) => reportServicePort(port, diff, limits.lines)),
    lines('dim', 2, hidden.length > 0 && `… and ${formatCount(hidden.length)} more: ${summarizeKinds(hidden)}`),
    ...otherParts.map((part) => section(otherPartWords[part].title, diff[part].flatMap(changeLine), limits.lines)),
    lines('summary', 0, summarizeDiff(diff)),
  ];
}

function reportServicePort(
  { label, change, reasons, kernel, follows }: ServicePortDiff,
  { extent, isReadBack }: SideDiff,
  limit: number,
): Block {
  const unchanged = extent === 'all' ? 'nothing changes in the kernel' : 'nothing changes in what was compared';
  const words = reasons.map((reason) => serviceReasonWords(reason));
  return [
    ...lines('heading', 0, `${label} ${change}`),
    ...cutBlock(lines('plain', 2, ...words), limit, 2),
    ...cutBlock(kernel.flatMap(changeLine), limit, 2),
    ...lines('dim', 2, follows.length > 0 && `… and ${count(follows.length, 'chain')} that change as a result`),
    ...lines('dim', 2, kernel.length + follows.length === 0 && !isReadBack && `… ${unchanged}`),
  ];
}

function changeLine(change: KernelChange): Block {
  return lines(change.change, 1, describeKernelChange(change));
}

export function summarizeDiff(diff: SideDiff): string {
  if (areSidesSame(diff)) return summarizeSame(diff);
  // If two parts have the same name, their numbers are added.
  const others = new Map<string, number>();
  for (const part of otherParts) {
    const { what } = otherPartWords[part];
    others.set(what, (others.get(what) ?? 0) + diff[part].length);
  }
  const parts = [
    ...(diff.servicePorts.length > 0 ? [summarizeKinds(diff.servicePorts)] : []),
    ...[...others].flatMap(([what, number]) => (number > 0 ? [`${count(number, 'difference')} in ${what}`] : [])),
  ];
  const missed = joinPhrases(describeGaps(diff.gaps));
  return `${parts.join('; ')}${missed === '' ? '' : `; not compared: ${missed}`}.${countComments(diff)}`;
}

/** Returns "3 Service ports differ: 2 changed, 1 added", or "1 Service port changed" if all changed in the same way. */
function summarizeKinds(differing: readonly ServicePortDiff[]): string {
  const ports = count(differing.length, 'Service port');
  const kinds = (['changed', 'added', 'removed'] as const).flatMap((kind) => {
    const number = differing.filter(({ change }) => change === kind).length;
    return number > 0 ? [[kind, number] as const] : [];
  });
  if (kinds.length === 1) return `${ports} ${kinds[0]?.[0]}`;
  return `${ports} differ: ${kinds.map(([kind, number]) => `${formatCount(number)} ${kind}`).join(', ')}`;
}

/** Counts rules that differ only in comments, which do not affect packets. */
function countComments({ comments }: SideDiff): string {
  if (comments === 0) return '';
  return ` ${count(comments, 'rule')} ${comments === 1 ? 'differs in its comment' : 'differ in their comments'} alone.`;
}

/** Names what was not compared, so that "no difference" does not read like the result of a full comparison. */
function summarizeSame(diff: SideDiff): string {
  const missed = diff.extent === 'all' ? [] : describeGaps(diff.gaps);
  return `${noDifference(missed, countCompared(diff))}${countComments(diff)}`;
}

export function noDifference(notCompared: readonly string[], compared = ''): string {
  if (notCompared.length === 0) return 'No difference.';
  return `No difference in what could be compared${compared}; not compared: ${joinPhrases(notCompared)}.`;
}

/** Tells how many Service ports were compared, if nothing else was compared. */
function countCompared({ compared }: SideDiff): string {
  if (!compared) return '';
  const { all, withoutEndpoints: lacking } = compared;
  const without = lacking === 0 ? '' : lacking === all ? ', without endpoints' : `, ${lacking} without endpoints`;
  return ` (${count(all, 'Service port')}${without})`;
}

const partNames: { readonly [P in GapPart]: string } = {
  iptables: 'rules',
  nftables: 'nftables rules',
  sets: 'sets',
  virtualServers: 'virtual servers',
  proxyPorts: 'proxy ports',
  links: 'addresses',
  sysctls: 'sysctls',
  ipvsTimeouts: 'IPVS timeouts',
  base: 'rules and sets that belong to no Service',
  nodeAddresses: "the node's addresses",
  rest: 'the rest',
};

/** Names the parts that were not compared, each of them once. */
export function describeGaps(gaps: readonly ComparisonGap[]): readonly string[] {
  const words = gaps.map(({ part, family, table, sysctls = [], doubt, beyond }) => {
    if (beyond) return beyondWords(beyond);
    if (doubt) return describeDoubt(doubt);
    const ofTable = table === undefined ? '' : ` of table ${table}`;
    const named = sysctls.length === 0 ? '' : ` ${nameSome(sysctls)}`;
    return (family === undefined ? '' : `${familyNames[family]} `) + partNames[part] + ofTable + named;
  });
  return [...new Set(words)];
}

function describeDoubt(doubt: Doubt): string {
  switch (doubt.kind) {
    case 'unread':
      return `what kpc could not read in ${doubt.file}`;
    case 'cut-line':
      return `the rest of ${doubt.file}, whose last line is cut off`;
    case 'unlisted':
      return `what ${doubt.file} lacks: ${unlistedWords(doubt)}`;
    case 'second-listing':
      return `${doubt.output} from another node in ${doubt.file}`;
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
    case 'hidden-table':
      return `objects that nft put into ${familyNames[doubt.family]} table ${doubt.table}`;
    case 'other-variant':
    case 'legacy-tables':
      return `${familyNames[doubt.family]} rules of the other variant of iptables`;
  }
}

export function beyondWords(beyond: BeyondKernel): string {
  switch (beyond.kind) {
    case 'objects':
      return `${countOf(beyond)} that ${beyond.count === 1 ? 'differs' : 'differ'}`;
    case 'ways':
      return `${countOf(beyond)} that ${beyond.count === 1 ? 'leads' : 'lead'} to a Service that changed`;
    case 'left-out':
      return 'objects with errors, which are left out';
    case 'untaken':
      return `what ${nameSome(beyond.of.map(takenWords))}`;
    case 'unrecorded':
      return `${joinWords([...beyond.objects.map(countOf), ...beyond.fields.map(fieldWords)])}, which one side does not record`;
    case 'never-recorded':
      return neverRecordedWords(beyond);
    case 'skipped':
      return `Services without a cluster IP, which kpc skips (${nameSome(beyond.names)})`;
    case 'endpoints':
      return `endpoints of ${nameSome(beyond.names)}, which neither side gives`;
    case 'kept-slices':
      return `endpoints of ${nameSome(beyond.names)}, whose EndpointSlices fit only one side (give each side its own, or give the Pods)`;
    case 'later-connections':
      return `later connections of a client, because session affinity of ${nameSome(beyond.names)} differs`;
    case 'schedulers':
      return `which endpoint a connection gets, because the scheduler of ${nameSome(beyond.names)} differs`;
    case 'edited':
      return `rules in ${nameSome(beyond.names.map(escapeText))}, because kpc goes by the Services there`;
    case 'pods-on-node':
      return 'pods on the node, because no node is named';
    case 'settings':
      return `the effect of ${joinWords(beyond.names, 'and')}, which no single packet shows`;
    case 'own-settings':
      return `kube-proxy's own ports and settings (${joinWords(beyond.names)}), which differ`;
    case 'unrecorded-settings':
      return `kube-proxy's own settings (${joinWords(beyond.names)}), which one side does not record`;
    case 'zones':
      return `which endpoints of ${nameSome(beyond.names)} are in a client's zone, because no Node's zone is known`;
    case 'dns':
      return `DNS answers for ${nameSome(beyond.names)}, which changed ("kpc diff" shows how)`;
    case 'second-family':
      return `the second IP family of ${nameSome(beyond.names)}, which the API server adds if the cluster has both (compare what it stores, as "kubectl apply --dry-run=server -o yaml" prints it)`;
    case 'cleared-status':
      return `load balancer addresses of ${nameSome(beyond.names)}, which the API server of 1.29 or later clears on the side of another type`;
    case 'load-balancers':
      return `what the load balancer of ${nameSome(beyond.names)} does, because its annotations or class differ`;
    case 'nodes':
      return `packets on nodes that only one side has (${nameSome(beyond.names)})`;
    case 'other-nodes':
      return `the other ${beyond.names.length === 1 ? 'node' : 'nodes'} (${nameSome(beyond.names)})`;
    case 'other-family':
      return `packets to ${nameSome(beyond.names)} in the IP family that was left out`;
    case 'node-ports':
      return `node ports of ${nameSome(beyond.names)} at addresses that the Node does not list (give the output of ip -j addr with --host-addresses)`;
    case 'unnamed-node':
      return `what depends on the node (${nameSome(beyond.names)}), because no node is named`;
    case 'readiness':
      return `the readiness of Pods of ${nameSome(beyond.names)}: their probes or gates differ, but all are assumed ready`;
  }
}

function neverRecordedWords({ selectors }: Extract<BeyondKernel, { kind: 'never-recorded' }>): string {
  const own = selectors.length === 0 ? '' : `selectors of ${nameSome(selectors)} (not on both sides), `;
  return `${own}ipFamilyPolicy, Pods, network policies, Ingresses and routes of Gateways, which neither side records`;
}

function takenWords({ folder, lacks }: Extract<BeyondKernel, { kind: 'untaken' }>['of'][number]): string {
  return `kustomization ${escapeText(folder)} takes from ${nameSome(lacks.map(escapeText))}`;
}

function fieldWords({ field, names }: Extract<BeyondKernel, { kind: 'unrecorded' }>['fields'][number]): string {
  return `${field} of ${nameSome(names)}`;
}

function countOf({ of, count: number }: CountedKind): string {
  return count(number, of);
}

/** Names the iptables rules that a dump lacks: "table filter of IPv4". */
function lackingRules({ iptables }: Snapshot['coverage']): readonly string[] {
  return families.flatMap((family) => {
    const missing = tableNames.filter((table) => !iptables[family].includes(table));
    if (missing.length === tableNames.length) return [`rules of ${familyNames[family]}`];
    return missing.map((table) => `table ${table} of ${familyNames[family]}`);
  });
}

/** Returns what a side of a comparison does not show. */
export function findUnshown({ side: { name, coverage, mode } }: Scene): readonly ArgumentsOf<'reading'>[] {
  const rules = mode && modeFacts[mode].kinds.has('iptables') ? lackingRules(coverage) : [];
  const others = partsOfDump.filter((part) => !coverage[part]).map((part) => partNames[part]);
  return [
    { areRules: true, parts: rules },
    { areRules: false, parts: others },
  ].flatMap(({ areRules, parts }) => (parts.length === 0 ? [] : [{ problem: 'unshown', name, parts, areRules }]));
}
