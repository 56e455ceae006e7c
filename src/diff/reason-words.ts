import { count, formatCount } from '../base/format-count.ts';
import { familyNames } from '../kernel/family.ts';
import type { Gap } from './not-compared.ts';
import type { ChangeKind } from './changes/kernel-change.ts';
import { describeFacts } from './port-facts.ts';
import type { Doubt } from '../dumps/dump.ts';
import type { EndpointState, ServiceReason, Skip } from './service-changes.ts';

/** A reason in the words of Kubernetes, on one line. */
export function describeReason(reason: ServiceReason): string {
  switch (reason.kind) {
    case 'behaviour': {
      const { from, to, pullRequests, samePackets } = reason;
      const pulls = pullRequests.map((number) => `kubernetes/kubernetes#${number}`).join(', ');
      const effect = samePackets ? '; packets meet the same' : '';
      return `kube-proxy ${from.release} ${from.does}; ${to.release} ${to.does}${effect} (${pulls})`;
    }
    case 'facts':
      return describeFacts(reason.families);
    case 'service-added':
      return 'Service added';
    case 'service-removed':
      return 'Service removed';
    case 'port-added':
      return 'port added to the Service';
    case 'port-removed':
      return 'port removed from the Service';
    case 'port-renamed':
      return `port renamed: ${orNone(reason.from)} → ${orNone(reason.to)}`;
    case 'programmed':
      return `${describeSkip(reason.from)} → ${describeSkip(reason.to)}`;
    case 'field':
      return `${reason.field} ${orNone(reason.from)} → ${orNone(reason.to)}`;
    case 'list':
      return `${reason.field}: ${[...reason.added.map((item) => `+ ${item}`), ...reason.removed.map((item) => `− ${item}`)].join(', ')}`;
    case 'scaled':
      return `endpoints ${reason.from} → ${reason.to}`;
    case 'endpoint-added':
      return `endpoint ${reason.endpoint} added${inBrackets(describeEndpoint(reason.state))}`;
    case 'endpoint-removed':
      return `endpoint ${reason.endpoint} removed${inBrackets(reason.state.node === undefined ? [] : [`was on ${reason.state.node}`])}`;
    case 'endpoint-changed':
      return `endpoint ${reason.endpoint} ${describeTurn(reason.from, reason.to).join(', ')}`;
  }
}

function orNone(text: string): string {
  return text === '' ? '(none)' : text;
}

function inBrackets(parts: readonly string[]): string {
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function describeSkip(skip: Skip): string {
  switch (skip) {
    case undefined:
      return 'programmed by kube-proxy';
    case 'headless':
      return 'headless (clusterIP: None)';
    case 'external-name':
      return 'type ExternalName';
    case 'no-cluster-ip':
      return 'without a cluster IP';
    case 'absent':
      return 'absent';
  }
}

function describeEndpoint({ condition, node, used }: EndpointState): readonly string[] {
  return [
    ...(condition === 'ready' ? [] : [condition]),
    ...(node === undefined ? [] : [`on ${node}`]),
    ...(used || condition !== 'ready' ? [] : ['not used on this node']),
  ];
}

function describeTurn(from: EndpointState, to: EndpointState): readonly string[] {
  const parts: string[] = [];
  if (from.condition !== to.condition) parts.push(`${to.condition} (was ${from.condition})`);
  if (from.node !== to.node) parts.push(`now on ${to.node ?? 'no node'} (was on ${from.node ?? 'no node'})`);
  if (from.zone !== to.zone) parts.push(`zone ${orNone(from.zone ?? '')} → ${orNone(to.zone ?? '')}`);
  if (from.hints.join() !== to.hints.join()) {
    parts.push(`hints ${orNone(from.hints.join(' '))} → ${orNone(to.hints.join(' '))}`);
  }
  if (from.used !== to.used) parts.push(to.used ? 'now used on this node' : 'no longer used on this node');
  return parts;
}

/** "3 Service ports differ: 2 changed, 1 added", or "1 Service port changed" where all do the same. */
export function summarizeKinds(kinds: readonly ChangeKind[]): string {
  const ports = count(kinds.length, 'Service port');
  const [first] = kinds;
  if (first !== undefined && kinds.every((kind) => kind === first)) return `${ports} ${first}`;
  return `${ports} ${kinds.length === 1 ? 'differs' : 'differ'}: ${describeKinds(kinds)}`;
}

/** "2 changed, 1 added". */
function describeKinds(kinds: readonly ChangeKind[]): string {
  return (['changed', 'added', 'removed'] as const)
    .map((kind) => [kind, kinds.filter((each) => each === kind).length] as const)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${formatCount(number)} ${kind}`)
    .join(', ');
}

/** The parts of a kernel that are not compared, in a few words each. What both sides lack alike is said once. */
export function describeGaps(gaps: readonly Gap[]): readonly string[] {
  const words = gaps.map(({ part, family, table, doubt }) => {
    if (doubt) return describeDoubt(doubt);
    const ofTable = table === undefined ? '' : ` of table ${table}`;
    return (family === undefined ? '' : `${familyNames[family]} `) + partNames[part] + ofTable;
  });
  return [...new Set(words)];
}

function describeDoubt(doubt: Doubt): string {
  switch (doubt.kind) {
    case 'unread':
      return `what could not be read of ${doubt.file}`;
    case 'empty':
      return `what is not in ${doubt.file}, which is empty`;
    case 'cut-line':
      return `what may follow in ${doubt.file}, whose last line is cut off`;
    case 'no-forwarding':
      return `how real servers are reached, which the columns of ${doubt.file} do not show`;
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
  }
}

const partNames: { readonly [P in Gap['part']]: string } = {
  rules: 'rules',
  nftables: 'nftables rules',
  sets: 'sets',
  virtualServers: 'virtual servers',
  links: 'addresses',
  sysctls: 'sysctls',
  ipvsTimeouts: 'IPVS timeouts',
  modules: 'kernel modules',
  base: 'rules and sets that belong to no Service',
  rest: 'the rest',
};
