import { stateOnNode } from '../diff/foreign-items.ts';
import { showsIptablesAsNft, stateWithOthers, type Snapshot } from '../../snapshot/snapshot.ts';
import { mayProgram, possibleModes } from '../../snapshot/possible-modes.ts';
import { findUnshownJumps } from '../../snapshot/faults.ts';
import { hasProtocol, serviceName, type ShownPort } from '../../cluster/model.ts';
import { type Address, families, type Family, isLoopback } from '../../kernel/address.ts';
import { tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { addressesOn, isLinkNamed, type Link } from '../../kernel/link/link.ts';
import type { StalePorts } from '../../cluster/stale-slices.ts';
import type { KernelState } from '../../kernel/state.ts';
import { modeFacts, programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { isUsualNodePort } from '../../kube-proxy/ipvs-objects.ts';
import { findOwnAddresses, findUnshownMasquerading, showsAllAddresses } from '../../kube-proxy/unshown.ts';
import { serverFinder, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import { lacksAddresses, type Unlisted, type VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import {
  everywhere,
  ipvsStations,
  laterTables,
  stationsOf,
  type Gap,
  type Knowledge,
  type Station,
} from '../../packet/knowledge.ts';
import { isUnknownOwn } from '../../packet/packet.ts';
import { findLackedChain, isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import { circumstance, lacks, unreadRule, type Missing, type Reason } from '../../packet/reason.ts';
import { doubtedEnds, localhostListeners, addressKind } from './service-ends.ts';
import { isIn, type PodTraffic } from './pod-networks.ts';

/** Returns a side's state. The state includes what other programs have on the node, and a sysctl that kube-proxy's rules imply. */
export function wholeState(side: Snapshot): KernelState {
  if (side.kind !== 'dump') return side.host ? stateOnNode(side, side.host) : side.state;
  const { state, coverage, mode } = side;
  const sysctls = !coverage.sysctls && mode && hasLoopbackPorts(mode) ? withLocalnet(state) : state.sysctls;
  return { ...stateWithOthers(side), sysctls };
}

function hasLoopbackPorts(mode: ProxyMode): boolean {
  return modeFacts[mode].loopbackNodePorts.includes('ipv4');
}

const localnet = 'net.ipv4.conf.all.route_localnet';

/** Adds route_localnet, which kube-proxy sets in iptables mode with the rule that guards loopback addresses (NewProxier). */
function withLocalnet({ iptables, sysctls }: KernelState): KernelState['sysctls'] {
  const rules = iptables.ipv4?.filter?.get(baseChains.kubeletFirewall)?.rules ?? [];
  const guards = rules.some(({ args }) =>
    args.some((arg) => arg.kind === 'destination' && arg.range.text === '127.0.0.0/8' && !arg.negated),
  );
  return guards && !sysctls.has(localnet) ? new Map([...sysctls, [localnet, '1']]) : sysctls;
}

/**
 * Collects what is known about a side's node. Parts that no dump shows are unknown rather than absent. `clusterIPs`: cluster IPs that no
 * Service on this side has, so that no node has them either. `stale`: ports whose endpoints may belong to the other side.
 */
export function knowledgeOf(
  side: Snapshot,
  links: readonly Link[],
  podTraffic: PodTraffic,
  clusterIPs: ReadonlySet<string>,
  stale: StalePorts,
): Knowledge {
  const { kind, host, mode, ports } = side;
  const { coverage, doubts } = host ?? side;
  const isUnread = (output: RegExp): boolean =>
    doubts.some((doubt) => (doubt.kind === 'unread' || doubt.kind === 'cut-line') && output.test(doubt.output));
  const isOutward = links.some(({ addresses }) => addresses.some(({ address }) => isKnownOwn(address)));
  const ofLinks = addressesOn(links);
  const unlisted = doubts.filter((doubt) => doubt.kind === 'unlisted');
  const lacksAddress = unlisted.some(({ lacks: what }) => lacksAddresses.has(what));
  const showsAll = (family: Family): boolean => showsAllAddresses(coverage, links, family) && !lacksAddress;
  const variants = doubts.flatMap((doubt) => (doubt.kind === 'other-variant' ? [[doubt.family, doubt.tables]] : []));
  const servers = new Set(side.state.virtualServers.map(({ address }) => address.text));
  const masquerading = mode && kind === 'dump' ? families.map((family) => unshownMasquerading(side, mode, family)) : [];
  const own = kind === 'dump' ? findOwnAddresses(side.state) : new Set<string>();
  const doubted = doubtedGaps(host ?? side, links).filter(({ reason }) => kind === 'dump' || !isOfServers(reason));
  const gaps = [
    ...families.flatMap((family) => listingGaps(side, doubted, family)),
    ...bridgeGaps(links),
    ...programGaps(links),
  ];
  const isHeld = holdsServices(side);
  const nodeIPs = side.node && Object.values(side.node.nodeIPs).filter(isKnownOwn);
  return {
    links,
    routes: side.routes,
    isPod: (address) => isIn(podTraffic.networks, address),
    serviceAt: servicesByAddress(side, isHeld === true),
    isOfEveryNode: ({ text }) => isHeld === true && side.endpoints.isOfService(text) && !ofLinks.has(text),
    ...placesOfPods(side),
    hasAllAddresses: (family) =>
      isOutward && (kind !== 'dump' || (showsAll(family) && coverage.links && !isUnread(/^ip /))),
    hasAllSysctls: host === undefined,
    lacksEntries: (set) => isUnread(/^ipset/) || unlisted.some(({ endsOfSets }) => endsOfSets?.includes(set)),
    // The gap for a table that is only partly shown covers the table's policies too. iptables refuses policy DROP in table nat.
    lacksPolicies: (family, table) =>
      host !== undefined && table !== 'nat' && coverage.iptables[family].includes(table),
    listeners: localhostListeners(side),
    lacksProxyPorts: mode !== undefined && modeFacts[mode].kinds.has('proxyPorts') && !side.coverage.proxyPorts,
    otherVariant: Object.fromEntries(variants) as Knowledge['otherVariant'],
    gaps,
    supposed: mode ? [...findUnshownJumps(side, mode), ...masquerading.flatMap(({ jumps }) => jumps)] : [],
    supposedChains: masquerading.flatMap(({ chains }) => chains),
    ...tablesShown(side, host ?? side),
    sendsFrom: nodeIPs && Object.fromEntries(nodeIPs.map((address) => [address.family, address])),
    isOwn: ({ text }) => own.has(text),
    isElsewhere: findElsewhere(side, podTraffic, clusterIPs, isHeld),
    // If a packet goes to a node port, its destination is likely an address of the node. Addresses of virtual servers are the node's too.
    isLikelyOwn: ({ destination, port, protocol }) =>
      servers.has(destination.text) ||
      (ports.length === 0 && isUsualNodePort(port)) ||
      isAtNodePort(ports, destination, port, protocol),
    doubtOfEnd: doubtedEnds(side, gaps, stale),
  };
}

function isAtNodePort(ports: readonly ShownPort[], to: Address, port: number, protocol: string): boolean {
  const takes = (each: ShownPort): boolean =>
    (each.healthCheckNodePort === port || (each.nodePort === port && hasProtocol(each, protocol))) &&
    !addressKind(each, to);
  return ports.some(takes) && !ports.some((each) => addressKind(each, to) === 'cluster-ip');
}

/**
 * Returns a test for addresses that the node does not have: addresses of pods and endpoints elsewhere, and cluster IPs unless the mode
 * gives these to the node.
 */
function findElsewhere(
  side: Snapshot,
  { networks }: PodTraffic,
  others: ReadonlySet<string>,
  isHeld: boolean | undefined,
): Knowledge['isElsewhere'] {
  const { kind, nodeName, ports, endpoints } = side;
  const clusterIPs = isHeld === false ? ports.flatMap(({ clusterIP }) => clusterIP ?? []) : [];
  // If manifests are compiled without a named node, no endpoint is on the node.
  const isOther = (isLocal: boolean | undefined): boolean => kind !== 'dump' && (isLocal ?? nodeName !== '') === false;
  const elsewhere = new Set([...others, ...clusterIPs.map(({ text }) => text)]);
  return (address) => {
    const isOfEndpoint = endpoints.at(address.text).some(({ isLocal }) => isIn(networks, address) || isOther(isLocal));
    return isOfEndpoint || elsewhere.has(address.text);
  };
}

function servicesByAddress({ claims }: Snapshot, isHeld: boolean): Knowledge['serviceAt'] {
  return (address, protocol, port) => {
    const own = claims.servicesAt(address.text);
    const [first] = own;
    if (!first) return undefined;
    const asked = own.find((each) => each.port === port && hasProtocol(each, protocol));
    const isClusterIP = own.some((each) => addressKind(each, address) === 'cluster-ip');
    return { label: asked?.label ?? serviceName(first), isClusterIP, isHeld };
  };
}

/** Reports whether the mode gives each node the addresses of Services. Undefined if the node's possible modes differ in this. */
function holdsServices(side: Snapshot): boolean | undefined {
  const [first, ...others] = new Set(possibleModes(side).map((mode) => programs(mode, 'links')));
  return others.length > 0 ? undefined : first;
}

function isKnownOwn(address: Address): boolean {
  return !isLoopback(address) && !isUnknownOwn(address);
}

function placesOfPods({
  node,
  endpoints,
}: Snapshot): Pick<Knowledge, 'isRemote' | 'isEndpoint' | 'isPodHere' | 'isOfService'> {
  const placeOf = ({ text }: Address) => endpoints.at(text).at(-1)?.isLocal;
  const networks = node?.podCIDRs ?? [];
  return {
    isOfService: ({ text }) => endpoints.isOfService(text),
    isEndpoint: ({ text }) => endpoints.has(text),
    isRemote: (address) => {
      const isLocal = placeOf(address);
      return isLocal === undefined ? undefined : !isLocal;
    },
    isPodHere: (address) => {
      const isKnown = networks.some(({ family }) => family === address.family);
      return isKnown ? isIn(networks, address) || placeOf(address) === true : undefined;
    },
  };
}

function unshownMasquerading({ state, coverage }: Snapshot, mode: ProxyMode, family: Family) {
  const tables = state.iptables[family] ?? {};
  const { chains, jumps } = findUnshownMasquerading(tables, mode, coverage.iptables[family].includes('nat'));
  return {
    chains: chains.map((chain) => ({ family, table: 'nat', chain }) as const),
    jumps: jumps.map((jump) => ({ ...jump, tool: 'iptables', family }) as const),
  };
}

/** Returns the order of nftables tables. kube-proxy creates its own tables when it starts, so they come after those that a dump shows. */
function tablesShown(side: Snapshot, shown: Snapshot): Pick<Knowledge, 'listed' | 'listsRuleset'> {
  const made = side === shown ? [] : side.state.nftables;
  const later = made.map(({ family, name }) => [`${family} ${name}`, { listing: laterTables, place: 0 }] as const);
  const listed = new Map([...later, ...(shown.coverage.listed ?? [])]);
  return { listed, listsRuleset: (family) => showsRuleset(shown, family) };
}

function showsRuleset({ coverage }: Snapshot, family: Family): boolean {
  return coverage.nftables.includes(family) && coverage.lacksTables !== true;
}

/** Joins the gaps of a node whose mode is unknown. Only all listings together can show that no rule belongs to a Service. */
function listingGaps(side: Snapshot, doubted: readonly Gap[], family: Family): readonly Gap[] {
  const own = gapsOfFamily(side, family);
  const all = [...own, ...doubted.filter((gap) => gap.family === family)];
  const [first] = own;
  if (side.mode || !first) return all;
  const isOfAll = ({ at, concerns }: Gap): boolean => !at && !concerns;
  const [, ...also] = all.filter(isOfAll).map(({ reason }) => reason);
  return [{ family, stations: everywhere, reason: { ...first.reason, also } }, ...all.filter((gap) => !isOfAll(gap))];
}

function gapsOfFamily(side: Snapshot, family: Family): readonly Gap[] {
  const { state, coverage, doubts } = side;
  const shown = coverage.iptables[family];
  const hasRuleset = showsRuleset(side, family);
  const asksIptables = mayProgram(side, 'iptables') && !(hasRuleset && showsIptablesAsNft(side));
  const asksServers = mayProgram(side, 'virtualServers');
  const [unlisted] = doubts.flatMap((doubt) => (doubt.kind === 'unlisted' && ofServers.has(doubt.lacks) ? doubt : []));
  const isUnread = (table: TableName): boolean =>
    doubts.some(
      (doubt) =>
        (doubt.kind === 'unread' && doubt.rules?.family === family && doubt.rules.tables.includes(table)) ||
        (doubt.kind === 'hidden-table' && doubt.family === family && doubt.table === table) ||
        (doubt.kind === 'other-table' && doubt.table === `${nftFamily[family]} ${table}`) ||
        (doubt.kind === 'legacy-tables' && doubt.family === family),
    );
  const missing = asksIptables ? tableNames.filter((name) => !shown.includes(name) && !isUnread(name)) : [];
  return [
    ...(missing.length > 0 ? [tableGap(family, missing)] : []),
    ...(mayProgram(side, 'nftables') && !hasRuleset
      ? [
          {
            family,
            stations: everywhere,
            reason: lacks({ kind: 'nftables', family, chain: lackedChain(side, family) }),
          },
        ]
      : []),
    ...(asksServers && !coverage.virtualServers ? [serverGap(family)] : []),
    ...(asksServers && unlisted ? [unlistedGap(family, unlisted, state.virtualServers)] : []),
  ];
}

function isOfServers(reason: Reason): boolean {
  return reason.kind === 'missing-listing' && reason.missing.kind === 'virtual-servers';
}

function lackedChain({ state, coverage }: Snapshot, family: Family): string | undefined {
  const own = state.nftables.find((table) => table.family === family && isKubeProxyTable(table.name));
  return own && coverage.lacksTables !== true ? findLackedChain(own) : undefined;
}

const ofServers: ReadonlySet<Unlisted['lacks']> = new Set<Unlisted['lacks']>([
  'virtual server',
  'node port',
  'real server',
]);

function tableGap(family: Family, tables: readonly TableName[]): Gap {
  return { family, stations: stationsOf(tables), reason: lacks({ kind: 'iptables', family, tables }) };
}

function serverGap(family: Family, known: Omit<Missing & { kind: 'virtual-servers' }, 'kind'> = {}): Gap {
  return { family, stations: ipvsStations, reason: lacks({ kind: 'virtual-servers', ...known }) };
}

function unlistedGap(family: Family, unlisted: Unlisted, servers: readonly VirtualServer[]): Gap {
  const find = serverFinder(servers);
  const ends = new Set(unlisted.ends?.map(virtualServerKey));
  const isPart = (server: VirtualServer): boolean =>
    ends.has(virtualServerKey(server)) || (unlisted.lacks === 'real server' && server.realServers.length === 0);
  return {
    ...serverGap(family, { unlisted }),
    concerns: ({ protocol, destination, port }) => {
      const server = find(protocol, destination, port);
      return server ? isPart(server) : protocol !== 'icmp';
    },
  };
}

/** Makes a gap for rules at an interface. Such rules see incoming packets before all other rules, and outgoing packets after them. */
function hookedGap(family: Family, at: NonNullable<Gap['at']>, reason: Reason): Gap {
  const station =
    at.end === 'input' ? { hook: 'prerouting', priority: -Infinity } : { hook: 'postrouting', priority: Infinity };
  return { family, stations: [station as Station], reason, at };
}

/** Makes gaps for rules that see bridged frames, or that see the neighbour requests that IPv4 packets need. */
function gapsOfFrames(
  by: 'bridge' | 'arp',
  { end, interfaces: named, addresses }: NonNullable<Gap['at']>,
  links: readonly Link[],
  reason: Reason,
): readonly Gap[] {
  const masters = new Set(links.map(({ master }) => master));
  const isSeen = ({ name, kind, traits }: Link): boolean =>
    by === 'bridge' ? (kind ?? (masters.has(name) ? by : '')) === by : name !== 'lo' && traits?.NOARP !== true;
  const seen = links.length === 0 ? ['*'] : links.filter(isSeen).map(({ name }) => name);
  const interfaces = named.length > 0 ? named : seen;
  return families
    .filter((family) => by === 'bridge' || family === 'ipv4')
    .map((family) => hookedGap(family, { end, interfaces, addresses }, reason));
}

function bridgeGaps(links: readonly Link[]): readonly Gap[] {
  const closed = links.flatMap(({ name, master, traits }) => {
    if (traits?.vlan_filtering === true) return [name];
    return master !== undefined && traits?.flood === false && traits.learning === false ? [master] : [];
  });
  return [...new Set(closed)].flatMap((name) => {
    const at = { end: 'output', interfaces: [name] } as const;
    return families.map((family) => hookedGap(family, at, circumstance('bridge-port', name)));
  });
}

/** Makes gaps for XDP programs, which see packets before the kernel does. */
function programGaps(links: readonly Link[]): readonly Gap[] {
  return links.flatMap(({ name, traits }) => {
    if (traits?.xdp !== true) return [];
    const at = { end: 'input', interfaces: [name, ...mastersOf([name], links)] } as const;
    return families.map((family) => hookedGap(family, at, circumstance('xdp', name)));
  });
}

/** Returns the bridges or bonds that have these interfaces as ports. Rules after the port match only the bridge or bond. */
function mastersOf(interfaces: readonly string[], links: readonly Link[]): readonly string[] {
  const isNamed = (port: string): boolean => interfaces.some((name) => isLinkNamed(name, port));
  return links.flatMap(({ name, master }) => (master !== undefined && isNamed(name) ? [master] : []));
}

function doubtedGaps({ doubts }: Snapshot, links: readonly Link[]): readonly Gap[] {
  return doubts.flatMap((doubt): readonly Gap[] => {
    switch (doubt.kind) {
      case 'unread': {
        const { rules, file, line, output } = doubt;
        if (rules) {
          const missing = { kind: 'iptables', ...rules, unread: { file, line } } as const;
          return [{ family: rules.family, stations: stationsOf(rules.tables), reason: lacks(missing) }];
        }
        const unread = { file, line };
        if (output.startsWith('ipvsadm')) return families.map((family) => serverGap(family, { unread }));
        if (output !== 'nft list ruleset') return [];
        return families.map((family) => {
          return { family, stations: everywhere, reason: unreadRule({ file, line }) };
        });
      }
      case 'cut-line':
        return doubt.output.startsWith('ipvsadm') ? families.map((family) => serverGap(family)) : [];
      case 'other-table': {
        const reason = unreadRule(`table ${doubt.table}`);
        const hooked = doubt.hooked.map(({ end, isRead, interfaces }) => {
          return { end, interfaces: [...(isRead ? [] : interfaces), ...mastersOf(interfaces, links)] };
        });
        const [byFrames] = doubt.table.split(' ', 1);
        if (byFrames === 'bridge' || byFrames === 'arp')
          return doubt.hooked.flatMap((at) => gapsOfFrames(byFrames, at, links, reason));
        if (doubt.tables) return hooked.flatMap((at) => families.map((family) => hookedGap(family, at, reason)));
        const seen = doubt.table.startsWith('ip ')
          ? (['ipv4'] as const)
          : doubt.table.startsWith('ip6 ')
            ? (['ipv6'] as const)
            : families;
        return seen.map((family) => ({ family, stations: everywhere, reason }));
      }
      case 'hidden-table': {
        const { family } = doubt;
        return [{ family, stations: everywhere, reason: lacks({ kind: 'nftables', family }) }];
      }
      case 'legacy-tables': {
        const { family } = doubt;
        return [{ family, stations: stationsOf(tableNames), reason: lacks({ kind: 'legacy-iptables', family }) }];
      }
      case 'unlisted':
      case 'second-listing':
      case 'other-variant':
        return [];
    }
  });
}
