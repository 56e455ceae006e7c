import { isIdle, type UnfitPod, type Unready } from '../base/findings/lint.ts';
import { mayBeUnseen } from '../base/findings/services.ts';
import { count, joinWords } from '../base/printable.ts';
import { serviceName, type ShownPort } from '../cluster/model.ts';
import type { PortFault, Snapshot } from './snapshot.ts';
import { families, familyNames, type Family } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { findMissingJumps, type MissingJump } from '../kube-proxy/missing-jumps.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import { nftChains, nftTableName } from '../kube-proxy/nft-table.ts';

export function faultsOfPort(port: ShownPort, side: Snapshot): readonly PortFault[] {
  if (side.kind === 'dump') return [];
  return side.faultsOf(serviceName(port)).filter((fault) => {
    const { code, arguments: details } = fault;
    switch (code) {
      case 'selects-nothing':
      case 'no-node-fits':
      case 'no-ready-endpoint':
        return true;
      case 'family-without-endpoints':
        return details.family === port.family;
      case 'unknown-port':
        return details.port === port.port && details.protocol === port.protocol;
      case 'undeclared-port':
        return details.port === `${targetPortOf(port, side)}/${port.protocol}`;
    }
  });
}

/** A Service port's target port as written; undefined if unknown. */
export function targetPortOf(port: ShownPort, side: Snapshot): number | string | undefined {
  const service = side.kind === 'dump' ? undefined : side.info(serviceName(port));
  return service?.ports.find((each) => each.name === port.portName && each.protocol === port.protocol)?.targetPort;
}

export function faultWords(fault: PortFault): string {
  switch (fault.code) {
    case 'selects-nothing':
      return 'its selector matches no Pod in the input';
    case 'no-node-fits':
      return `no Node has ${fault.arguments.wanted}, as ${fault.arguments.owner} asks`;
    case 'no-ready-endpoint':
      return unreadyWords(fault.arguments);
    case 'family-without-endpoints': {
      const { family, other } = fault.arguments;
      return `its endpoints have only ${familyNames[other]} addresses, none ${familyNames[family]}`;
    }
    case 'unknown-port': {
      const { owner, protocol, name, found } = fault.arguments;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${name}`;
      return `${owner} has a ${what}${found.length === 0 ? '' : ` (they have ${joinWords(found)})`}`;
    }
    case 'undeclared-port': {
      const { port, owner, ports } = fault.arguments;
      return `no container that it selects lists ${port} (${owner} lists ${joinWords(ports)})`;
    }
  }
}

/** Why a Service has no endpoints, in few words; undefined if it may have some. */
export function faultInShort(fault: PortFault): string | undefined {
  switch (fault.code) {
    case 'selects-nothing':
      return `selects no Pod${unlessUnseen([fault])}`;
    case 'no-node-fits':
      return `no Node has ${fault.arguments.wanted}`;
    case 'no-ready-endpoint':
      return unreadyInShort(fault.arguments);
    case 'family-without-endpoints':
      return `no ${familyNames[fault.arguments.family]} endpoints`;
    case 'unknown-port':
      return fault.arguments.name === '' ? undefined : `no port named ${fault.arguments.name}`;
    case 'undeclared-port':
      return undefined;
  }
}

function unreadyInShort(details: Unready): string {
  if (isIdle(details)) return 'scaled to 0';
  const { unused, pods } = details;
  if (unused) return unused.by === 'port' ? 'ports without a number' : `EndpointSlices of ${unused.types.join(', ')}`;
  return pods === undefined ? 'empty EndpointSlices' : `its Pods ${unfitPodWords(pods, shortUnfit)}`;
}

/** A clause: why no endpoint of a Service takes connections. */
export function unreadyWords(details: Unready): string {
  const { endpoints, owner, unused, pods } = details;
  if (isIdle(details)) return `the ${owner} that it selects is scaled to 0`;
  switch (unused?.by) {
    case 'address-type':
      return `kube-proxy skips its EndpointSlices (addressType ${joinWords(unused.types)})`;
    case 'port':
      return 'kube-proxy skips its EndpointSlices, because their ports have no number';
    case undefined:
  }
  if (endpoints === 1) return 'its one endpoint is not ready';
  if (endpoints > 1) return `none of its ${count(endpoints, 'endpoint')} is ready`;
  return pods ? `the Pods that it selects ${unfitPodWords(pods, longUnfit)}` : 'its EndpointSlices are empty';
}

const shortUnfit: Readonly<Record<UnfitPod, string>> = {
  ended: 'have ended',
  pending: 'are pending',
  'other-family': 'are of another family',
};

const longUnfit: Readonly<Record<UnfitPod, string>> = {
  ...shortUnfit,
  pending: 'have no address yet',
  'other-family': 'have no address of its family',
};

/** "have ended", or "have ended or are pending" if the Pods differ. */
function unfitPodWords(pods: readonly UnfitPod[], words: Readonly<Record<UnfitPod, string>>): string {
  return joinWords(
    pods.map((each) => words[each]),
    'or',
  );
}

/** A clause; undefined if unknown. */
export function whyNoEndpoint(port: ShownPort, side: Snapshot): string | undefined {
  const fault = faultsOfPort(port, side).find(({ code }) => code !== 'undeclared-port');
  if (fault) return faultWords(fault);
  const { endpoints = [] } = port;
  if (endpoints.length === 0) return undefined;
  // Other endpoints of a dump are in use.
  if (side.kind === 'dump') return 'each of its real servers has weight 0 and takes no new connections';
  return unreadyWords({ endpoints: endpoints.length, publishes: false, isScaledToZero: false });
}

export const lostJumpCause = "something removed kube-proxy's jump; restart kube-proxy";
export const lostRuleCause = "something removed kube-proxy's rule; restart kube-proxy";

/**
 * Missing jumps whose target exists: kube-proxy makes each jump (iptablesJumpChains, nftablesJumpChains), so another program removed it.
 */
export function findLostJumps(side: Snapshot, mode: ProxyMode, family: Family): readonly MissingJump[] {
  const translates = !programs(mode, 'virtualServers') && !programs(mode, 'proxyPorts');
  return missingJumps(side, mode, family).filter(
    (jump) => translates && jump.hasTarget && leadsToServices(jump) && isRead(side, jump),
  );
}

/** A sentence with what to do, if kube-proxy's table of a family is dormant. */
export function dormantCause({ doubts }: Snapshot, family: Family): string | undefined {
  const table = `${nftFamily[family]} ${nftTableName}`;
  return doubts.some((doubt) => doubt.kind === 'other-table' && doubt.table === table)
    ? `table ${table} is dormant, so no packet comes to its rules: delete the table and restart kube-proxy`
    : undefined;
}

/** Jumps missing from an incomplete listing: they may exist. */
export function findUnshownJumps(side: Snapshot, mode: ProxyMode): readonly MissingJump[] {
  return families.flatMap((family) => missingJumps(side, mode, family).filter((jump) => !isRead(side, jump)));
}

function missingJumps({ kind, state }: Snapshot, mode: ProxyMode, family: Family): readonly MissingJump[] {
  return kind === 'dump' ? findMissingJumps(state, mode, family) : [];
}

function isRead({ coverage }: Snapshot, jump: MissingJump): boolean {
  if (jump.tool === 'nftables') return jump.hasChain || coverage.nftables.includes(jump.family);
  return coverage.iptables[jump.family].includes(jump.table);
}

/** Whether it leads packets to the rules that translate Service addresses. */
export function leadsToServices(jump: MissingJump): boolean {
  if (jump.tool === 'nftables') return jump.to === nftChains.services;
  return jump.table === 'nat' && jump.to === baseChains.services;
}

/** A clause saying that it is unknown whether a jump exists. */
export function unshownJumpWords({ from, to }: Pick<MissingJump, 'from' | 'to'>): string {
  return `nothing in the dump jumps from ${from} to ${to}, so it is not known whether packets reach the rules there`;
}

export function jumpCommand({ tool, family }: Pick<MissingJump, 'tool' | 'family'>): string {
  return tool === 'nftables' ? 'nft list ruleset' : family === 'ipv4' ? 'iptables-save' : 'ip6tables-save';
}

/** The hook of the chain that lacks the jump to the Service rules. */
export function entryOf(jump: MissingJump): string {
  return jump.tool === 'nftables' ? (jump.chain.base?.hook ?? '') : jump.from.toLowerCase();
}

/** ", unless …": what kpc cannot see but what may give a Service port endpoints; '' if there is nothing. */
export function unlessUnseen(faults: readonly PortFault[]): string {
  for (const { code, arguments: details } of faults) {
    if (code !== 'selects-nothing' || !mayBeUnseen(details)) continue;
    const { lacking, maker } = details;
    if (lacking) return `, unless a program sets ${lacking.label} on the Pods of ${lacking.owner}`;
    if (maker !== undefined) return `, unless ${maker} makes its Pods`;
  }
  return '';
}
