// Describes a dump's Services, objects that another mode left, UDP flows and the kube-proxy log. Also makes the JSON of kpc describe.
import { count, formatCount, joinWords } from '../../base/printable.ts';
import { nameSome } from '../words/rows.ts';
import type { ShownPort } from '../../cluster/model.ts';
import type { SharedSubject } from '../../ask/describe/find-items.ts';
import type { FlowChange, FlowFate, FlowFindings, StaleGroup } from '../../ask/describe/find-flows.ts';
import type { DumpReading } from '../../ask/describe/read-dumped.ts';
import { joinHostPort } from '../../kernel/address.ts';
import type { LeftChain } from '../../kube-proxy/left-behind.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Leftovers, ShownServices } from '../../snapshot/decompile.ts';
import type { DecompiledPort, Masquerade } from '../../snapshot/decompiled-port.ts';
import { unlessEmpty } from '../formats/json.ts';
import { cutBlock, lines, section, type Block } from '../lines.ts';
import { describeSkippedListings, faultWords } from '../way/lack.ts';
import { otherPartWords } from '../words/answers.ts';
import { describeLog, logJson } from './log.ts';
import { describeDecompiled, describeSharedInWords, podWords } from './service.ts';
import { rowsOfDump, tableOfRows, type TableStyle } from './table.ts';
import type { MasqueradedClients } from '../../cluster/plan-masquerade.ts';
import { portJson } from '../port-facts.ts';
import { addedRules, describePresent } from '../changes.ts';
import type { KernelItem, ServiceDescription } from '../../ask/describe/describe-services.ts';

/** Returns a table of a dump's Services, followed by what another mode left, stale flows and findings from the log. */
export function describeDumpInWords(
  { dump, flows, ruleless }: DumpReading,
  limit: number,
  style: TableStyle,
): readonly Block[] {
  const { shown, log, doubts } = dump;
  const { mode, ports, leftovers } = shown;
  const hasTable = ports.length > 0;
  return [
    hasTable ? tableOfRows(rowsOfDump(ports, dump.named), style) : [],
    lines(
      'plain',
      0,
      hasTable && mode && `${count(ports.length, 'Service port')} in ${modeFacts[mode].title}`,
      describeRuleless(ruleless),
    ),
    lines('plain', 0, ...describeLeftovers(leftovers)),
    flows ? describeFlows(flows, limit) : [],
    log ? describeLog(log, limit) : [],
    lines('plain', 0, ...describeSkippedListings(doubts)),
  ];
}

function describeRuleless(ports: readonly ShownPort[]): string | false {
  const labels = [...new Set(ports.map(({ label }) => label))];
  return (
    labels.length > 0 && `no rule for ${count(ports.length, 'Service port')} in the manifests: ${nameSome(labels)}`
  );
}

/** Describes some of a dump's Service ports with their stale flows, or chains and sets that belong to no Service port or to all. */
export function describeFoundPorts(
  ports: readonly DecompiledPort[],
  subjects: readonly SharedSubject[],
  { dump, flows }: DumpReading,
  limit: number,
): readonly Block[] {
  const { leftovers } = dump.shown;
  const left = new Set(leftovers.ports);
  const leftLines = (...texts: readonly (string | false)[]) =>
    lines('plain', 1, ...texts.map((text) => text && `${leftBy('iptables').toLowerCase()}: ${text}`));
  return [
    ...ports.map((port) => [
      ...describeDecompiled(port, limit),
      ...leftLines(left.has(port) && 'the node is in another mode now'),
    ]),
    ...subjects.map((subject) => {
      const { family, table, name } = subject;
      const same = leftovers.chains.filter((each) => each.family === family && each.table === table);
      const own = same.filter(({ chain }) => chain.name === name);
      return [...describeSharedInWords(subject, limit), ...leftLines(...own.map(describeReach))];
    }),
    flows && ports.length > 0 ? describeFlows(flows, limit, isPortAmong(ports)) : [],
    lines('plain', 0, ...describeSkippedListings(dump.doubts)),
  ];
}

/** Tells how packets reach a chain that another mode left: "nothing jumps to it", "still reached from PREROUTING". */
function describeReach({ reachedFrom }: LeftChain): string {
  return reachedFrom.length === 0 ? 'nothing jumps to it' : `still reached from ${reachedFrom.join(', ')}`;
}

function leftBy(mode: ProxyMode): string {
  return `Left by ${modeFacts[mode].title}`;
}

/** Returns one line for each kind of object. */
export function describeLeftovers({ chains, virtualServers, sets, addresses }: Leftovers): readonly string[] {
  const counted = (names: readonly string[], one: string, where = ''): readonly string[] =>
    names.length === 0 ? [] : [`${count(names.length, one)}${where} (${nameSome(names)})`];
  const dead = chains.filter(({ reachedFrom }) => reachedFrom.length === 0).map(({ chain }) => chain.name);
  const live = chains.filter(({ reachedFrom }) => reachedFrom.length > 0);
  const servers = virtualServers.map(
    ({ address, port, protocol }) => `${joinHostPort(address.text, port)}/${protocol}`,
  );
  const ofIpvs = [
    ...counted(servers, 'virtual server'),
    ...counted(sets, 'set'),
    ...counted(addresses, 'address', ' on kube-ipvs0'),
  ];
  return [
    ...counted(dead, 'chain').map((text) => `${otherPartWords.dead.title}: ${text}`),
    ...live.map((left) => {
      const { table, chain } = left;
      // In table filter, the only chains that count as left over are those that refuse packets.
      const refuses = table === 'filter' ? ', which refuses packets,' : '';
      const what = `chain ${chain.name} (${table})${refuses} with ${count(chain.rules.length, 'rule')}`;
      return `${leftBy('iptables')}, ${describeReach(left)}: ${what}`;
    }),
    ...(ofIpvs.length > 0 ? [`${leftBy('ipvs')}: ${ofIpvs.join(', ')}`] : []),
  ];
}

type IsAsked = (port: ShownPort | undefined) => boolean;

const anyPort: IsAsked = () => true;

export function isPortAmong(ports: readonly ShownPort[]): IsAsked {
  const labels = new Set(ports.map(({ label }) => label));
  return (port) => port !== undefined && labels.has(port.label);
}

const reasons: { readonly [R in StaleGroup['because']]: string } = {
  'not-serving': 'which is not a serving endpoint of the Service',
  'no-rule': 'to which no rule leads now',
  untranslated: 'which is not an endpoint: the flow began before the Service had rules here',
  'no-service': 'where there is no Service now: the Service was deleted, or another program translates these packets',
};

const fates: { readonly [F in FlowFate]: string } = {
  forgets: 'forgotten',
  keeps: 'kept',
  unknown: 'unknown, because the dump does not show which Service port had this address',
};

/** Lists stale flows, with commands that delete these flows and no others. */
function describeFlows({ listed, stale, change }: FlowFindings, limit: number, isAsked = anyPort): Block {
  const groups = stale.filter(({ port }) => isAsked(port));
  const total = groups.reduce((sum, { flows }) => sum + flows, 0);
  const found = groups.flatMap((group) => [
    ...lines('bad', 1, `${groupName(group)}: ${groupWords(group)}`),
    ...lines('plain', 2, group.command),
  ]);
  return [
    ...lines('heading', 0, `${count(listed, 'UDP flow')}, ${total === 0 ? 'none' : formatCount(total)} stale`),
    ...cutBlock(found, limit * 2, 1),
    ...(change ? describeFlowChange(change, limit, isAsked) : []),
  ];
}

function groupName({ port, destination }: Pick<StaleGroup, 'port' | 'destination'>): string {
  return `${port?.service === undefined ? '' : `${port.label}, `}${destination}/udp`;
}

function groupWords({ endpoint, flows, unanswered, because }: StaleGroup): string {
  const silent =
    unanswered === 0 ? '' : unanswered === flows ? ' without an answer' : `, ${unanswered} without an answer,`;
  return `${count(flows, 'flow')}${silent} to ${endpoint}, ${reasons[because]}`;
}

/** Tells what happens to flows after a change. Empty if no flow is stale. */
export function describeFlowChange({ release, groups }: FlowChange, limit: number, isAsked = anyPort): Block {
  const asked = groups.filter(({ port }) => isAsked(port));
  const totals = Object.entries({ ...fates, unknown: 'unknown' }).flatMap(([fate, words]) => {
    const total = asked.reduce((sum, { kubeProxy, flows }) => sum + (kubeProxy === fate ? flows : 0), 0);
    return total === 0 ? [] : [`${formatCount(total)} ${words}`];
  });
  const texts = asked.map(
    (group) => `${groupName(group)}: ${count(group.flows, 'flow')} to ${group.endpoint}: ${fates[group.kubeProxy]}`,
  );
  const title = `Stale UDP flows after a change to the Services in the manifests, with kube-proxy ${release}: ${joinWords(totals)}`;
  return section(title, lines('plain', 1, ...texts), limit);
}

export function flowsJson({ listed, stale, change }: FlowFindings, isAsked = anyPort) {
  return { listed, stale: groupsJson(stale, isAsked), change: change && flowChangeJson(change, isAsked) };
}

export function flowChangeJson({ release, groups }: FlowChange, isAsked = anyPort) {
  return { release, flows: groupsJson(groups, isAsked) };
}

function groupsJson<Group extends Pick<StaleGroup, 'port'>>(groups: readonly Group[], isAsked: IsAsked) {
  return groups
    .filter(({ port }) => isAsked(port))
    .map(({ port, ...group }) => ({ servicePort: port?.label, ...group }));
}

export function serviceJson(description: ServiceDescription) {
  return {
    ...description,
    ports: description.ports.map(({ label, ...each }) => ({
      servicePort: label,
      ...each,
      problems: each.problems?.map(faultWords),
      kernel: each.kernel.map(kernelItemJson),
      families: each.families.map(({ port, endpoints, masquerade, ...use }) => {
        return { ...portJson(port), endpoints, ...use, masquerade: masqueradeJson(masquerade) };
      }),
    })),
  };
}

function kernelItemJson({ change, takenBy }: KernelItem) {
  const { kind, fields, place } = change;
  const text = describePresent(change, takenBy !== undefined);
  return { kind, ...fields, text, rules: addedRules(change), takenBy, place: place?.locate() };
}

export function decompiledJson(port: DecompiledPort) {
  const { endpoints: _, ...known } = portJson(port);
  return {
    servicePort: port.label,
    ...known,
    fallback: port.fallback,
    masquerade: masqueradeJson(port.masquerade),
    endpoints: port.endpoints?.map(({ label: endpoint, takes, draining }) => ({ endpoint, takes, draining })),
  };
}

function dumpJson({ ports, leftovers }: ShownServices) {
  return { servicePorts: ports.map(decompiledJson), leftovers: unlessEmpty(describeLeftovers(leftovers)) };
}

export function readingJson(read: DumpReading) {
  const {
    flows,
    ruleless,
    dump: { log, shown },
  } = read;
  return {
    ...remarksJson(read),
    ...dumpJson(shown),
    withoutRules: unlessEmpty([...new Set(ruleless.map(({ label }) => label))]),
    flows: flows && flowsJson(flows, () => true),
    log: log && logJson(log),
  };
}

export function remarksJson({ dump: { doubts } }: Pick<DumpReading, 'dump'>) {
  return { skipped: unlessEmpty(describeSkippedListings(doubts)) };
}

function masqueradeJson(masquerade: Masquerade | undefined) {
  if (!masquerade) return undefined;
  const { clusterIP, external } = masquerade;
  return { clusterIP: clusterIP && clientsJson(clusterIP), external: external && clientsJson(external) };
}

function clientsJson(clients: MasqueradedClients) {
  return clients.kind === 'all-but-pods' ? { kind: 'all-but' as const, clients: podWords(clients.pods) } : clients;
}
