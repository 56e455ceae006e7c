// Derives facts that a dump lacks from kube-proxy's rules and sets: node addresses, virtual servers, masquerading.
import { families, type Family, isLinkLocal, isLoopback, parseAddress } from '../kernel/address.ts';
import { singleAddress } from '../kernel/address-range.ts';
import type { Rule, Chain, Tables } from '../kernel/iptables/iptables.ts';
import type { Unlisted, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { addressesOn, type Link, type LinkAddress } from '../kernel/link/link.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import { chainsOf, chainsOfElement, expressionsIn, type Expression, type NftTable } from '../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains, parseServiceChain, type ServiceChainKind } from './chain-names.ts';
import { isKubeProxyTable, nftSets, parseNftName } from './nft-table.ts';
import { dnatTargets } from './owners.ts';
import { formatEntry, type SetEntry } from '../kernel/ipset/set-entry.ts';
import {
  formatServerSocket,
  nodePortProtocol,
  openSets,
  parseSetName,
  serviceLink,
  setFamily,
  type SetId,
} from './ipvs-objects.ts';
import { modeOfState } from './evidence.ts';
import { programs, type ProxyMode } from './modes.ts';
import { listJumps } from './chains.ts';

/**
 * Returns the node's own addresses in rules: the addresses of node ports (GetNodeIPs), and the addresses to which userspace mode sends
 * packets.
 */
export function findOwnAddresses({ iptables, nftables }: KernelState): ReadonlySet<string> {
  const ofTables = nftables
    .filter(({ name }) => isKubeProxyTable(name))
    .flatMap(({ sets }) => sets.get(nftSets.nodePortIPs)?.elements ?? [])
    .map(({ key }) => formatKey(key));
  const ofRules = families.flatMap((family) => {
    const rulesOf = (chain: string): readonly Rule[] => iptables[family]?.nat?.get(chain)?.rules ?? [];
    return [
      ...rulesOf(baseChains.services)
        .filter((rule) => jumpChain(rule) === baseChains.nodePorts)
        .flatMap(addressAsked),
      ...[baseChains.portalsHost, baseChains.nodePortHost].flatMap(rulesOf).flatMap(addressGiven),
    ];
  });
  return new Set([...ofTables, ...ofRules]);
}

function addressAsked({ args }: Rule): readonly string[] {
  const to = args.find((arg) => arg.kind === 'destination' && arg.negated !== true);
  const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
  return address ? [address.text] : [];
}

function addressGiven({ args }: Rule): readonly string[] {
  return args.flatMap((arg) => (arg.kind === 'jump' && arg.target.kind === 'dnat' ? [arg.target.address.text] : []));
}

const addressSets: ReadonlySet<SetId | undefined> = new Set(openSets);

/**
 * Finds a set entry whose virtual server is missing, although kube-proxy makes it first (syncProxyRules in ipvs/proxier.go). `ends`: the
 * last virtual server of each list. If one of these lacks real servers, the list may be cut off. So the function also checks that local
 * endpoints are real servers.
 */
export function findUnlistedServer(state: KernelState, ends: readonly VirtualServer[]): Unlisted | undefined {
  if (!holdsServers(state)) return undefined;
  const endsBare = ends.some(({ realServers }) => realServers.length === 0);
  const sockets = new Set(state.virtualServers.map(formatServerSocket));
  const portsOf = (servers: readonly VirtualServer[]): ReadonlySet<string> =>
    new Set(servers.map(({ family, protocol, port }) => `${family} ${protocol} ${port}`));
  const ports = portsOf(state.virtualServers);
  const held = addressesOn(state.links);
  const known = familiesOf(state.links);
  const here = portsOf(
    state.virtualServers.filter(({ family, address }) => held.has(address.text) || !known.has(family)),
  );
  const real = new Set(
    state.virtualServers.flatMap(({ protocol, realServers }) =>
      realServers.map(({ address, port }) => formatServerSocket({ address, port, protocol })),
    ),
  );
  for (const set of state.sets) {
    const id = parseSetName(set.name)?.set;
    if (id === undefined) continue;
    const protocol = nodePortProtocol(id);
    const portOf = (entry: SetEntry): string => `${setFamily(set)} ${protocol} ${entry.port}`;
    const isListed = (entry: SetEntry): boolean => {
      if (protocol) return here.has(portOf(entry));
      if (addressSets.has(id)) return sockets.has(formatEntry(entry));
      return id !== 'loopBack' || !endsBare || real.has(formatEntry({ ...entry, source: undefined }));
    };
    const entry = set.entries.find((each) => each.other === undefined && !isListed(each));
    if (!entry) continue;
    const ofServer = protocol && ports.has(portOf(entry)) ? 'node port' : 'virtual server';
    const lacks = id === 'loopBack' ? 'real server' : ofServer;
    return { by: set.name, entry: formatEntry({ ...entry, source: undefined }), lacks, ends };
  }
  return undefined;
}

/** Returns the families in which links show an address of the node itself, where node ports may listen. */
function familiesOf(links: readonly Link[]): ReadonlySet<Family> {
  const own = links.flatMap(({ name, addresses }) => (name === serviceLink ? [] : addresses));
  const isOutward = ({ address }: LinkAddress): boolean => !isLoopback(address) && !isLinkLocal(address);
  return new Set(own.filter(isOutward).map(({ address }) => address.family));
}

/**
 * Finds a set that a rule names but the list lacks. The kernel keeps sets that rules use, so the list is incomplete. `endsOfSets`: the last
 * set of each list.
 */
export function findUnlistedSet({ iptables, sets }: KernelState, endsOfSets: readonly string[]): Unlisted | undefined {
  const listed = new Set(sets.map(({ name }) => name));
  for (const family of families) {
    for (const chains of Object.values(iptables[family] ?? {})) {
      for (const { name: by, rules } of chains.values()) {
        const named = rules.flatMap(({ args }) => args.flatMap((arg) => (arg.kind === 'match-set' ? arg.set : [])));
        const entry = named.find((each) => !listed.has(each));
        if (entry !== undefined) return { by, entry, lacks: 'set', endsOfSets };
      }
    }
  }
  return undefined;
}

/**
 * Finds an address that the listed links lack, although rules serve node ports there, or although a Service's virtual server has it.
 * (kube-proxy binds the addresses of all its virtual servers: syncService in ipvs/proxier.go.) If there are sets, they decide, because
 * another program's virtual servers may be listed without their addresses.
 */
export function findUnlistedAddress(state: KernelState, isShown: (family: Family) => boolean): Unlisted | undefined {
  const held = addressesOn(state.links);
  const known = familiesOf(state.links);
  const named = holdsServers(state) ? serversNamed(state) : nodePortsNamed(state);
  const served = new Set(named.flatMap(({ address }) => (address && held.has(address.text) ? address.family : [])));
  // If the node has none of the addresses of node ports in a family, the dump may show only a part of ip addr.
  const apart = new Set(families.filter((each) => !holdsServers(state) && known.has(each) && !served.has(each)));
  const naming = new Map<string, Pick<Unlisted, 'by' | 'entry'>>();
  for (const { by, ...entry } of named) {
    const { address } = entry;
    if (!address || held.has(address.text) || naming.has(address.text)) continue;
    if (isShown(address.family) || apart.has(address.family))
      naming.set(address.text, { by, entry: formatEntry(entry) });
  }
  const [first] = naming.values();
  return first && { ...first, lacks: 'address', naming, apart };
}

type NamedEntry = SetEntry & { readonly by: string };

function nodePortsNamed(state: KernelState): readonly NamedEntry[] {
  const mode = modeOfState(state);
  const by = mode && programs(mode, 'nftables') ? nftSets.nodePortIPs : baseChains.services;
  return [...findOwnAddresses(state)].map((text) => ({ by, address: parseAddress(text) }));
}

function serversNamed(state: KernelState): readonly NamedEntry[] {
  const own = state.sets.filter(({ name }) => parseSetName(name));
  return [
    ...own.flatMap(({ name, entries }) =>
      addressSets.has(parseSetName(name)?.set) ? entries.map((entry) => ({ by: name, ...entry })) : [],
    ),
    ...(own.length > 0
      ? []
      : state.virtualServers.map(({ address, protocol, port }) => ({ by: 'ipvsadm', address, protocol, port }))),
  ];
}

/**
 * Reports whether all addresses of a family were shown. Every node has a loopback link. If it is missing, only a part of `ip addr` was
 * pasted, or only the other family.
 */
export function showsAllAddresses(
  { allAddresses }: { readonly allAddresses?: readonly Family[] | undefined },
  links: readonly Link[],
  family: Family,
): boolean {
  const isOwnLoopback = ({ address }: Link['addresses'][number]): boolean =>
    address.family === family && isLoopback(address);
  return allAddresses?.includes(family) ?? links.some(({ addresses }) => addresses.some(isOwnLoopback));
}

function holdsServers(state: KernelState): boolean {
  const mode = modeOfState(state);
  return mode !== undefined && programs(mode, 'virtualServers');
}

const usualMark = 0x4000;

/** Supplies the masquerading rules for marked packets, if the shown part of table nat lacks them. `isWhole`: all of nat was printed. */
export function findUnshownMasquerading({ nat }: Tables, mode: ProxyMode, isWhole: boolean) {
  const isUnshown = (name: string): boolean => {
    const chain = nat?.get(name);
    return isWhole ? !chain : (chain?.rules ?? []).length === 0;
  };
  const rules = [...(nat?.values() ?? [])].flatMap((chain) => chain.rules);
  const isAsked = rules.some((rule) => jumpChain(rule) === baseChains.markMasquerade);
  if (!isAsked || !isUnshown(baseChains.markMasquerade)) return { chains: [], jumps: [] };
  const value = markTested(nat?.get(baseChains.postrouting)?.rules ?? []) ?? usualMark;
  const marks: Rule = { args: [{ kind: 'jump', target: { kind: 'mark', operation: 'or', value, mask: value } }] };
  const masquerades: Rule = {
    args: [
      { kind: 'mark', value, mask: value },
      { kind: 'jump', target: { kind: 'masquerade', randomFully: true } },
    ],
  };
  const mark = { name: baseChains.markMasquerade, rules: [marks] };
  if (!isUnshown(baseChains.postrouting)) return { chains: [mark], jumps: [] };
  const isLed = rules.some((rule) => jumpChain(rule) === baseChains.postrouting);
  return {
    chains: [mark, { name: baseChains.postrouting, rules: [masquerades] }],
    jumps: isLed ? [] : listJumps(mode).filter(({ to }) => to === baseChains.postrouting),
  };
}

function markTested(rules: readonly Rule[]): number | undefined {
  const [mark] = rules.flatMap(({ args }) => args.flatMap((arg) => (arg.kind === 'mark' ? [arg.value] : [])));
  return mark;
}

/**
 * Finds a chain that packets reach but that only marks them or does nothing. kube-proxy never writes such a chain. If most chains of the
 * same kind are like this, or all chains of endpoints, the listing leaves out other rules. If only a few are, the rules were deleted on the
 * node. Test: dumps/filtered-rules.test.ts.
 */
export function findEndlessChain(nat: ReadonlyMap<string, Chain>): string | undefined {
  const led = ledChains(nat);
  const isOf = ({ name }: Chain, kind: ServiceChainKind): boolean => parseServiceChain(name)?.kind === kind;
  const showsEndpoints = [...nat.values()].some((chain) => isOf(chain, 'endpoint') && !isEndless(chain));
  return endingKinds
    .flatMap((kind): readonly Chain[] => {
      const own = led.filter((chain) => isOf(chain, kind));
      const endless = own.filter(isEndless);
      const areDeleted = showsEndpoints && (endless.length === 1 || endless.length * 2 <= own.length);
      return areDeleted ? [] : endless;
    })
    .at(0)?.name;
}

function ledChains(chains: ReadonlyMap<string, Chain>): readonly Chain[] {
  const reached = new Set([...chains.values()].flatMap(({ rules }) => rules.map(jumpChain)));
  return [...chains.values()].filter(({ name }) => reached.has(name));
}

/**
 * Reports whether a chain's rules lead nowhere. Ignores rules of session affinity for known clients, because new clients do not match
 * these.
 */
function isEndless({ rules }: Chain): boolean {
  return !rules.some(
    (rule) =>
      rule.args.some(({ kind }) => kind === 'jump') &&
      jumpChain(rule) !== baseChains.markMasquerade &&
      !rule.args.some((arg) => arg.kind === 'recent' && arg.action.kind === 'rcheck'),
  );
}

/** Returns the chains of Service ports and endpoints that packets reach, but whose rules lead to no endpoint. */
export function findEndless(nat: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const endless = ledChains(nat).filter((chain) => isEnding(parseServiceChain(chain.name)?.kind) && isEndless(chain));
  return new Set(endless.map(({ name }) => name));
}

/** Like findEndless, for kube-proxy's table in nftables. */
export function findEndlessOfTable(table: NftTable): ReadonlySet<string> {
  const elements = [...table.sets.values()].flatMap((set) => set.elements);
  const reached = new Set([...expressionsIn(table).flatMap(chainsOf), ...elements.flatMap(chainsOfElement)]);
  const endless = [...table.chains.values()].filter((chain) => {
    const leadsOn = chain.rules.some(
      ({ expressions }) => expressions.some((each) => chainsOf(each).length > 0) && !expressions.some(isOfKnownClients),
    );
    return isEnding(parseNftName(chain.name)?.kind) && !leadsOn && dnatTargets(chain).length === 0;
  });
  return new Set(endless.map(({ name }) => name).filter((name) => reached.has(name)));
}

function isOfKnownClients(expression: Expression): boolean {
  return expression.kind === 'match' && 'set' in expression.right;
}

function isEnding(kind: string | undefined): boolean {
  return endingKinds.some((each) => each === kind);
}

/** kube-proxy makes chains of these kinds only if there is an endpoint. */
const endingKinds: readonly ServiceChainKind[] = ['cluster', 'local', 'external', 'endpoint'];
