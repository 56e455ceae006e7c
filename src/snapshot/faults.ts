import { mayBeUnseen, type UnseenPods } from '../base/findings/services.ts';
import { diagnose } from '../base/findings/finding.ts';
import { serviceName, type ShownPort } from '../cluster/model.ts';
import { isPortFault, type PortFault, type Snapshot } from './snapshot.ts';
import { families, type Family } from '../kernel/address.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { findMissingJumps, lacksChains, type MissingJump } from '../kube-proxy/missing-jumps.ts';
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

export function targetPortOf(port: ShownPort, side: Snapshot): number | string | undefined {
  const service = side.kind === 'dump' ? undefined : side.info(serviceName(port));
  return service?.ports.find((each) => each.name === port.portName && each.protocol === port.protocol)?.targetPort;
}

export function lackOfEndpoints(port: ShownPort, side: Snapshot): PortFault | undefined {
  const fault = faultsOfPort(port, side).find(({ code }) => code !== 'undeclared-port');
  const { endpoints = [] } = port;
  // A dump shows only endpoints that are in use, and these are ready.
  if (fault || endpoints.length === 0 || side.kind === 'dump') return fault;
  const details = { service: serviceName(port), endpoints: endpoints.length, publishes: false, isScaledToZero: false };
  const unready = diagnose('no-ready-endpoint', details);
  return isPortFault(unready) ? unready : undefined;
}

export function unseenPodsOf(faults: readonly PortFault[]): UnseenPods | undefined {
  for (const { code, arguments: details } of faults) {
    if (code !== 'selects-nothing' || !mayBeUnseen(details)) continue;
    const { lacking, maker } = details;
    if (lacking) return { label: lacking.label, owner: lacking.owner };
    if (maker !== undefined) return { maker };
  }
  return undefined;
}

/**
 * Finds missing jumps whose target chain exists. kube-proxy always makes these jumps (iptablesJumpChains, nftablesJumpChains), so another
 * program removed them.
 */
export function findRemovedJumps(side: Snapshot, mode: ProxyMode, family: Family): readonly MissingJump[] {
  return missingJumps(side, mode, family).filter((jump) => jump.hasTarget && isRead(side, jump));
}

/** Finds removed jumps that all translation depends on: without them, no packet to a Service is translated. */
export function findLostJumps(side: Snapshot, mode: ProxyMode, family: Family): readonly MissingJump[] {
  return translates(mode) ? findRemovedJumps(side, mode, family).filter(leadsToServices) : [];
}

function translates(mode: ProxyMode): boolean {
  return !programs(mode, 'virtualServers') && !programs(mode, 'proxyPorts');
}

/** Returns what packets lose if a jump is missing: translation, masquerading, or the rules of the chain. */
export function effectOfJump(jump: MissingJump, mode: ProxyMode): 'services' | 'masquerading' | 'rules' {
  if (leadsToServices(jump)) return translates(mode) ? 'services' : 'rules';
  return entryOf(jump) === 'postrouting' ? 'masquerading' : 'rules';
}

/** Finds a missing jump that masquerading depends on. The jump is from `hook`, where the packet comes in, or from POSTROUTING. */
export function findUnmasqueraded(
  side: Snapshot,
  mode: ProxyMode,
  family: Family,
  hook: string,
): MissingJump | undefined {
  return findRemovedJumps(side, mode, family).find(
    (jump) => entryOf(jump) === 'postrouting' || (entryOf(jump) === hook && leadsToServices(jump)),
  );
}

/** Returns the name of kube-proxy's table in a family, if the table is dormant and no packet reaches its rules. */
export function findDormantTable({ doubts }: Snapshot, family: Family): string | undefined {
  const table = `${nftFamily[family]} ${nftTableName}`;
  return doubts.some((doubt) => doubt.kind === 'other-table' && doubt.table === table) ? table : undefined;
}

/** Finds jumps that an incomplete listing lacks but the kernel may have. */
export function findUnshownJumps(side: Snapshot, mode: ProxyMode): readonly MissingJump[] {
  return families.flatMap((family) => missingJumps(side, mode, family).filter((jump) => !isRead(side, jump)));
}

function missingJumps({ kind, state }: Snapshot, mode: ProxyMode, family: Family): readonly MissingJump[] {
  return kind === 'dump' ? findMissingJumps(state, mode, family) : [];
}

function isRead({ coverage, state }: Snapshot, jump: MissingJump): boolean {
  if (jump.tool === 'nftables') return jump.hasChain || coverage.nftables.includes(jump.family);
  const { family, table } = jump;
  return coverage.iptables[family].includes(table) && !lacksChains(state.iptables[family]?.[table] ?? new Map());
}

export function leadsToServices(jump: MissingJump): boolean {
  if (jump.tool === 'nftables') return jump.to === nftChains.services;
  return jump.table === 'nat' && jump.to === baseChains.services;
}

export function jumpCommand({ tool, family }: Pick<MissingJump, 'tool' | 'family'>): string {
  return tool === 'nftables' ? 'nft list ruleset' : family === 'ipv4' ? 'iptables-save' : 'ip6tables-save';
}

export function entryOf(jump: MissingJump): string {
  return jump.tool === 'nftables' ? (jump.chain.base?.hook ?? '') : jump.from.toLowerCase();
}
