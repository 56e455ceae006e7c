import { indexCluster } from '../../cluster/address-index.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import type { BundleContent } from '../../bundle/make-bundle.ts';
import { loopbackAddresses } from '../../kernel/address.ts';
import { families } from '../../kernel/family.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import { hasRules, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import { isLearned, type NftTable } from '../../kernel/nftables/table.ts';
import { jumpChain, restrictState, emptyState, type KernelState } from '../../kernel/state.ts';
import { classifyChain } from '../../kube-proxy/chains.ts';
import { weighEvidence } from '../../kube-proxy/evidence.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { modeFacts, programs, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Session } from './observe-node.ts';
import { defaultSettings } from '../../settings/table.ts';
import { sysctlPath } from '../../kernel/sysctls-and-modules.ts';
import { Room } from '../node/output.ts';
import { listNetwork, mostListed } from '../node/network-listing.ts';
import { readVariants } from '../node/iptables-variants.ts';
import { neededOf, parseReading, readNode, type ReadingScope } from '../node/node-reading.ts';
import { ownershipOf } from '../state/owned-names.ts';
import { decideOwnership } from '../plan/ownership.ts';
import { readRecord } from '../state/record.ts';

/**
 * The node's state, as far as kpc-apply or a kube-proxy made it, in the form of a bundle. It knows no Services, and its
 * configuration is unknown: see decideWritable.
 */
export async function dumpNode(session: Session, nodeName: string): Promise<Omit<BundleContent, 'kpcVersion'>> {
  const { host, folder, onEvent } = session;
  const record = await readRecord(host, folder);
  const names = proxyModes.flatMap((mode) => modeFacts[mode].sysctls);
  const leftOut = new Map<string, string>();
  const variants = await readVariants(host);
  const lacking = new Set<RulesPlace>();
  const reading = await readNode(host, {
    needed: neededOf(emptyState, record.owned, variants),
    variants,
    onLeftOut: ({ code, message }, tool) =>
      void leftOut.set(tool, code === 'tool-missing' ? `${tool} is missing` : message),
    timeouts: true,
    roomForOthers: roomFor(lacking),
    settings: names.map(sysctlPath),
  });
  for (const reason of leftOut.values()) {
    onEvent({ kind: 'warning', text: `${reason}, so the dump lacks what it lists` });
  }
  const present = parseReading(reading);
  const ownership = decideOwnership(present, emptyState, { owned: record.owned, variants, adopt: true, excluded: [] });
  const evidence = weighEvidence(present);
  const owned = restrictState(present, {
    ...ownershipOf(ownership.owned, variants),
    // Nothing is taken away here, so what a kubelet made in kube-proxy's name counts too.
    chain: isDumped,
    jump: (rule, chain, table) =>
      evidence.jump(table, chain, rule) === 'certain' && isDumped(jumpChain(rule) ?? '', table),
  });
  const mode = modeOfDump(owned);
  const sysctls = modeFacts[mode].sysctls.map((name) => [name, reading.settings[sysctlPath(name)]] as const);
  const hostLinks = present.links.filter((link) => link.name !== serviceLink);
  const hostAddresses = hostLinks.flatMap((link) => link.addresses.map(({ address }) => address));
  const { ipv4, ipv6 } = owned.iptables;
  const state: KernelState = {
    ...owned,
    iptables: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) },
    nftables: owned.nftables.map(forgetLearned),
    sysctls: new Map(sysctls.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  };
  return {
    state,
    cluster: indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs: [] }),
    node: { name: nodeName, zone: '', podCIDRs: [], nodeIPs: loopbackAddresses, hostAddresses },
    settings: { ...defaultSettings(mode), release: newestRelease },
    families: families.filter(
      (family) => hasRules(state.iptables[family] ?? {}) || state.nftables.some((table) => table.family === family),
    ),
    assigned: [],
    dumped: true,
    network: await listNetwork(
      host,
      { ...present, dumped: state.iptables, variants, lacking, needsTables: programs(mode, 'nftables') },
      (what, { message }) => onEvent({ kind: 'warning', text: `${message}, so the dump lacks the ${what}` }),
    ),
  };
}

/** Gives each place the room that its listing has, and adds those that need more to `lacking`. */
function roomFor(lacking: Set<RulesPlace>): ReadingScope['roomForOthers'] {
  return (place) => {
    const room = new Room(mostListed);
    lacking.delete(place);
    return (bytes) => {
      const fits = room.take(bytes);
      if (!fits) lacking.add(place);
      return fits;
    };
  };
}

/** The mode whose bundles have files for all of it: what drains of IPVS is there beside rules, too. */
function modeOfDump({ nftables, links, virtualServers }: KernelState): ProxyMode {
  // kube-proxy of the other modes deletes its table when it starts.
  if (nftables.length > 0) return 'nftables';
  return links.length > 0 || virtualServers.length > 0 ? 'ipvs' : 'iptables';
}

/** Without the clients that rules remember: they are of the traffic, and no part of what a node was given. */
function forgetLearned(table: NftTable): NftTable {
  const sets = [...table.sets].map(([name, set]) => [name, isLearned(set) ? { ...set, elements: [] } : set] as const);
  return { ...table, sets: new Map(sets) };
}

/** A canary is there to be missed when tables are flushed, and says nothing of Services. */
function isDumped(chain: string, table: TableName): boolean {
  const kind = classifyChain(table, chain);
  return kind !== undefined && kind !== 'canary';
}
