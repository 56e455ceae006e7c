import type { Finding } from '../base/findings/finding.ts';
import { findOwners, type Owners } from '../kube-proxy/owners.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import { indexPorts } from '../cluster/address-index.ts';
import { groupBy, uniqueBy } from '../cluster/grouping.ts';
import {
  hasAddress,
  keyOfPort,
  portAddresses,
  serviceName,
  type AddressIndex,
  type AssumedWorkload,
  type Cluster,
  type NodeContext,
  type PortAddress,
  type ServiceInfo,
  type ServicePort,
  type ShownPort,
  unplacedOf,
} from '../cluster/model.ts';
import { addressesOfPod, fullName, type Node, type Pod, type ProxySettings, type Service } from '../cluster/objects.ts';
import { coverAll, type Coverage } from '../dumps/coverage.ts';
import type { Doubt } from '../dumps/dump.ts';
import type { KnownRoutes } from '../dumps/read-ip.ts';
import type { ProxyLog } from '../dumps/kube-proxy-log.ts';
import type { Untaken } from '../input/files/kustomizations.ts';
import type { ObjectLists, UnreadLists } from '../input/objects/kinds.ts';
import type { ObjectBesideRules } from '../input/objects/read-objects.ts';
import {
  type Address,
  addressBits,
  families as bothFamilies,
  type Family,
  loopbackAddresses,
} from '../kernel/address.ts';
import type { TrackedFlow } from '../kernel/conntrack.ts';
import { addressesOn, type Link } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { modeOfState } from '../kube-proxy/evidence.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import type { Behaviours, Release } from '../kube-proxy/releases.ts';
import { findHealthCheckSets, serviceLink } from '../kube-proxy/ipvs-objects.ts';
import { findNodePortListeners, type FindListeners } from '../kube-proxy/node-port-listeners.ts';
import type { DecompiledPort } from './decompiled-port.ts';
import { findClaimed } from './claimed-addresses.ts';
import { decompile, type ShownServices } from './decompile.ts';
import { knownEndpoints, type KnownEndpoints } from './known-endpoints.ts';
import { nameServers, weighServersOfSides } from './server-owners.ts';

export type Snapshot = CompiledSnapshot | DumpedSnapshot;

/** Objects from manifests beside a state: further senders, policies, and objects that route traffic to Services, such as Ingresses. */
export type SnapshotObjects = {
  readonly [List in SnapshotList]: readonly ObjectLists[List][number][];
} & {
  readonly unread: UnreadLists;
  readonly besideRules: readonly ObjectBesideRules[];
  /** What kustomizations change, in words. kpc ignores these changes. */
  readonly kustomized: readonly string[];
  /** What kustomizations take from outside the input. */
  readonly untaken: readonly Untaken[];
  /** Whether objects with errors are left out. */
  readonly leavesOut: boolean;
};

type SnapshotList = Exclude<keyof ObjectLists, 'serviceCidrs' | 'autoscalers' | 'configs'>;

const noObjects: SnapshotObjects = {
  services: [],
  slices: [],
  endpoints: [],
  nodes: [],
  pods: [],
  workloads: [],
  policies: [],
  ingresses: [],
  gateways: [],
  referenceGrants: [],
  namespaces: [],
  unread: new Set(),
  besideRules: [],
  kustomized: [],
  untaken: [],
  leavesOut: false,
};

export type PortFault = Extract<Finding, { readonly code: (typeof portFaultCodes)[number] }>;

const portFaultCodes = [
  'selects-nothing',
  'no-node-fits',
  'no-ready-endpoint',
  'family-without-endpoints',
  'unknown-port',
  'undeclared-port',
] as const;

export function isPortFault(finding: Finding): finding is PortFault {
  return portFaultCodes.some((code) => code === finding.code);
}

function faultsByService(faults: readonly PortFault[]): ReadonlyMap<string, readonly PortFault[]> {
  const single = faults.flatMap((fault) => servicesOfFault(fault).map((name) => ({ name, fault })));
  return new Map([...groupBy(single, ({ name }) => name)].map(([name, own]) => [name, own.map(({ fault }) => fault)]));
}

function servicesOfFault(fault: PortFault): readonly string[] {
  return 'services' in fault.arguments ? fault.arguments.services : [fault.arguments.service];
}

interface SnapshotAssumptions {
  readonly services: readonly AssignedService[];
  readonly pods: ReadonlySet<string>;
  readonly clusterCIDRs: readonly string[];
  readonly families: readonly Family[];
  /** Workloads whose nodeSelector or affinity no Node meets. Their Pods are assumed to be on any Node. */
  readonly unplaced: readonly string[];
  readonly node: boolean;
  readonly mode: boolean;
}

/** Facts about a snapshot. Each function is called only once, when the fact is first used. */
interface Facts {
  readonly name: string;
  readonly state: () => KernelState;
  /** A state whose items have origins. The origins explain the items in `state`. Undefined if no state has origins. */
  readonly labels?: (() => KernelState | undefined) | undefined;
  readonly flows?: readonly TrackedFlow[] | undefined;
  readonly routes?: KnownRoutes | undefined;
  readonly objects?: SnapshotObjects | undefined;
  readonly assumedPods?: SnapshotObjects['pods'] | undefined;
  readonly owners?: Owners | undefined;
}

interface CompiledFacts extends Facts {
  readonly kind: 'manifests' | 'bundle';
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly families: readonly Family[];
  readonly assigned: readonly AssignedService[];
  readonly assumedEndpoints?: readonly AssumedWorkload[] | undefined;
  /** The networks that kpc assumes for clusterCIDR. Undefined if the input names networks. */
  readonly assumedClusterCIDRs?: readonly string[] | undefined;
  readonly assumedFamilies?: readonly Family[] | undefined;
  readonly portFaults?: (() => readonly PortFault[]) | undefined;
  /** The Nodes that kpc assumes. This node may be one of them. */
  readonly assumedNodes?: readonly string[] | undefined;
  /** The Nodes of the input and those that kpc assumes. Missing for a bundle. */
  readonly nodes?: ReadonlyMap<string, Node> | undefined;
  /** The dump on the other side of a comparison, if it shows the same node. */
  readonly host?: DumpedSnapshot | undefined;
  readonly onNode?: ((name: string) => CompiledSnapshot | undefined) | undefined;
  /** Returns the input as kpc reads it without a comparison. Set if no flags reproduce this side. Undefined if that reading is unusable. */
  readonly alone?: ((node: string) => Snapshot | undefined) | undefined;
  readonly isModeAssumed?: boolean | undefined;
  readonly ownFields?: CompiledSnapshot['ownFields'];
  /** What this side takes from the other side, as flags with values. With these, kpc makes this snapshot without the other side. */
  readonly taken?: Readonly<Record<string, string>> | undefined;
  readonly kpcVersion: string;
  readonly isAsCompiled: boolean;
  readonly behaviours: Behaviours;
  /** Returns the Services as a kube-proxy with other behaviours reads them. Missing for a bundle. */
  readonly readBy?: ((does: Behaviours) => Cluster) | undefined;
  readonly compile: (cluster: Cluster, node?: NodeContext) => KernelState;
  /** Returns the files of a golden whose rules are not those of its Services. */
  readonly edited?: (() => readonly string[]) | undefined;
}

interface DumpedFacts extends Facts {
  readonly coverage: Coverage;
  readonly doubts: readonly Doubt[];
  readonly log?: ProxyLog | undefined;
  readonly hostAddresses?: readonly Address[] | undefined;
  /** The Services from manifests beside the dump. They give names to the dump's objects. */
  readonly named?: Cluster | undefined;
  /** The release of the manifests beside the dump. kpc describe follows flows as that release does. */
  readonly release?: Release | undefined;
  readonly reached?: ShownServices | undefined;
}

abstract class Known<Own extends Facts> {
  readonly name: string;
  readonly flows: readonly TrackedFlow[] | undefined;
  readonly routes: KnownRoutes;
  readonly objects: SnapshotObjects;
  protected readonly facts: Own;
  #state: KernelState | undefined;
  #labels: KernelState | undefined;
  #owners: Owners | undefined;
  #shown: ReadonlyMap<string, DecompiledPort> | undefined;
  #endpoints: KnownEndpoints | undefined;
  #held: ReadonlySet<string> | undefined;
  #listeners: FindListeners | undefined;
  #ofHosts: ReadonlySet<string> | undefined;
  #pods: ReadonlyMap<string, Pod> | undefined;
  #services: ReadonlyMap<string, Service> | undefined;

  constructor(facts: Own) {
    const { name, flows, routes = {}, objects = noObjects, owners } = facts;
    this.name = name;
    this.routes = routes;
    this.flows = flows;
    this.objects = objects;
    this.facts = facts;
    this.#owners = owners;
  }

  get state(): KernelState {
    return (this.#state ??= this.facts.state());
  }

  get labels(): KernelState | undefined {
    return (this.#labels ??= this.facts.labels?.());
  }

  get owners(): Owners {
    const { labels, namedState } = this;
    return (this.#owners ??= findOwners(labels ? [labels, namedState] : [namedState]));
  }

  /** The state without objects of other programs that could be mistaken for a Service's. */
  get namedState(): KernelState {
    return this.state;
  }

  abstract readonly shown: ShownServices;
  abstract readonly ports: readonly ShownPort[];
  /** The Service ports that a name refers to: those on the node, or those in the manifests beside the node where the two differ. */
  abstract readonly namedPorts: readonly ShownPort[];
  abstract readonly addresses: AddressIndex;
  /** Like `addresses`, with more Services: those that rules or manifests name, although nothing on this node leads packets to them. */
  abstract readonly claims: AddressIndex;
  /** '' if no node is named. */
  abstract readonly nodeName: string;

  shownPort(label: string, family: Family): DecompiledPort | undefined {
    this.#shown ??= new Map(this.shown.ports.map((port) => [keyOfPort(port), port]));
    return this.#shown.get(keyOfPort({ family, label }));
  }

  /** Finds the addresses at which the state serves node ports. */
  get listeners(): FindListeners {
    return (this.#listeners ??= findNodePortListeners(this.state));
  }

  get heldAddresses(): ReadonlySet<string> {
    return (this.#held ??= addressesOn(this.state.links));
  }

  /** The addresses of hosts: those of Nodes, of Pods on the host network, and of the API server. */
  get addressesOfHosts(): ReadonlySet<string> {
    return (this.#ofHosts ??= new Set([
      ...this.objects.nodes.flatMap(({ object }) => object.addresses.map(({ address }) => address)),
      ...[...this.pods.values()].flatMap(({ spec, status }) => (spec.hostNetwork ? addressesOfPod({ status }) : [])),
      ...this.ports.flatMap((port) =>
        serviceName(port) === 'default/kubernetes'
          ? (port.endpoints ?? []).flatMap(({ address }) => address?.text ?? [])
          : [],
      ),
    ]));
  }

  get endpoints(): KnownEndpoints {
    return (this.#endpoints ??= knownEndpoints(this.addresses, this.claims, this.nodeName));
  }

  /** The Services as the manifests give them, by "namespace/name". */
  get written(): ReadonlyMap<string, Service> {
    return (this.#services ??= new Map(this.objects.services.map(({ object }) => [fullName(object.metadata), object])));
  }

  get pods(): ReadonlyMap<string, Pod> {
    return (this.#pods ??= new Map(
      [...this.objects.pods, ...(this.facts.assumedPods ?? [])].map(({ object }) => [
        fullName(object.metadata),
        object,
      ]),
    ));
  }
}

export class CompiledSnapshot extends Known<CompiledFacts> {
  readonly kind: 'manifests' | 'bundle';
  readonly coverage = coverAll();
  readonly doubts: readonly Doubt[] = [];
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly families: readonly Family[];
  readonly assigned: readonly AssignedService[];
  readonly assumedEndpoints: readonly AssumedWorkload[] | undefined;
  readonly assumed: SnapshotAssumptions;
  readonly taken: Readonly<Record<string, string>> | undefined;
  /** The fields of a configuration that appear neither in settings nor in rules. Undefined without a configuration. */
  readonly ownFields: Readonly<Record<string, unknown>> | undefined;
  readonly kpcVersion: string;
  readonly isAsCompiled: boolean;
  readonly compile: CompiledFacts['compile'];
  #services: ShownServices | undefined;
  #infos: ReadonlyMap<string, ServiceInfo> | undefined;
  #faults: ReadonlyMap<string, readonly PortFault[]> | undefined;

  constructor(facts: CompiledFacts) {
    super(facts);
    const { assigned, assumedEndpoints = [], assumedPods, assumedClusterCIDRs: clusterCIDRs = [] } = facts;
    const { assumedNodes = [], assumedFamilies = [], isModeAssumed = false } = facts;
    const pods = assumedPods
      ? assumedPods.flatMap(({ object }) => addressesOfPod(object))
      : assumedEndpoints.flatMap((workload) => workload.pods.flatMap(({ addresses }) => addresses));
    this.kind = facts.kind;
    this.cluster = facts.cluster;
    this.node = facts.node;
    this.settings = facts.settings;
    this.families = facts.families;
    this.assigned = assigned;
    this.assumedEndpoints = facts.assumedEndpoints;
    this.assumed = {
      services: assigned,
      pods: new Set(pods),
      clusterCIDRs,
      families: assumedFamilies,
      unplaced: unplacedOf(assumedEndpoints),
      node: assumedNodes.includes(facts.node.name),
      mode: isModeAssumed,
    };
    this.taken = facts.taken;
    this.ownFields = facts.ownFields;
    this.kpcVersion = facts.kpcVersion;
    this.isAsCompiled = facts.isAsCompiled;
    this.compile = facts.compile;
  }

  info(service: string): ServiceInfo | undefined {
    this.#infos ??= new Map(this.cluster.services.map((each) => [fullName(each), each]));
    return this.#infos.get(service);
  }

  faultsOf(service: string): readonly PortFault[] {
    this.#faults ??= faultsByService(this.facts.portFaults?.() ?? []);
    return this.#faults.get(service) ?? [];
  }

  get edited(): readonly string[] {
    return this.facts.edited?.() ?? [];
  }

  get nodeName(): string {
    return this.node.name;
  }

  get mode(): ProxyMode {
    return this.settings.mode;
  }

  get behaviours(): Behaviours {
    return this.facts.behaviours;
  }

  get readBy(): CompiledFacts['readBy'] {
    return this.facts.readBy;
  }

  get ports(): readonly ShownPort[] {
    return this.cluster.servicePorts;
  }

  get namedPorts(): readonly ShownPort[] {
    return this.ports;
  }

  get addresses(): AddressIndex {
    return this.cluster.addresses;
  }

  get claims(): AddressIndex {
    return this.addresses;
  }

  get hostAddresses(): readonly Address[] {
    return this.node.hostAddresses;
  }

  get shown(): ShownServices {
    return (this.#services ??= decompile(this.state, this.owners, () => 'certain', this.coverage));
  }

  /** The node's own addresses. All are on one link, because nothing shows which link has which address. */
  get links(): readonly Link[] {
    const { hostAddresses, nodeIPs } = this.node;
    const own = hostAddresses.length > 0 ? hostAddresses : bothFamilies.map((family) => nodeIPs[family]);
    const all = [...own, ...bothFamilies.map((family) => loopbackAddresses[family])];
    const addresses = uniqueBy(all, ({ text }) => text);
    return [
      {
        name: 'node',
        addresses: addresses.map((address) => {
          return { family: address.family, address, prefixLength: addressBits[address.family] };
        }),
      },
    ];
  }

  /** The same input on the other Nodes that kpc assumed. Empty if the input itself shows the Nodes. */
  get elsewhere(): readonly CompiledSnapshot[] {
    return this.assumed.node ? this.otherNodes.flatMap((name) => this.onNode(name) ?? []) : [];
  }

  /** All Nodes of the input, if this node may be any of them. Undefined if the node is known. */
  get anyOf(): ReadonlyMap<string, Node> | undefined {
    const { nodes } = this.facts;
    return nodes && nodes.size > 1 && this.nodeName === '' ? nodes : undefined;
  }

  /** The names of the other Nodes, if this node is known. Empty for a bundle. */
  get otherNodes(): readonly string[] {
    const { nodes = new Map<string, Node>() } = this.facts;
    return this.nodeName === '' ? [] : [...nodes.keys()].filter((name) => name !== this.nodeName);
  }

  onNode(name: string): CompiledSnapshot | undefined {
    const { host } = this;
    const side = this.facts.onNode?.(name);
    return host ? side?.besideDump(host) : side;
  }

  /** What a dump shows of the node besides kube-proxy's objects. Undefined if no dump is part of the comparison. */
  get host(): DumpedSnapshot | undefined {
    return this.facts.host;
  }

  besideDump(host: DumpedSnapshot): CompiledSnapshot {
    return this.with({ host, routes: host.routes });
  }

  get alone(): (() => Snapshot | undefined) | undefined {
    const { alone } = this.facts;
    return alone && (() => alone(this.nodeName));
  }

  on(node: NodeContext): CompiledSnapshot {
    return new CompiledSnapshot({ ...this.facts, node, state: () => this.compile(this.cluster, node) });
  }

  with(changes: Partial<Omit<CompiledFacts, 'isAsCompiled'>>): CompiledSnapshot {
    const isAsCompiled = this.isAsCompiled && !changes.state && !changes.cluster;
    const { facts } = this;
    return new CompiledSnapshot({
      ...facts,
      state: () => this.state,
      labels: () => this.labels,
      ...changes,
      isAsCompiled,
    });
  }
}

/** A node as a dump shows it. The output of tools does not show the Services for which kube-proxy made the state. */
export class DumpedSnapshot extends Known<DumpedFacts> {
  readonly kind = 'dump';
  readonly families = bothFamilies;
  readonly coverage: Coverage;
  readonly doubts: readonly Doubt[];
  readonly log: ProxyLog | undefined;
  readonly named: Cluster | undefined;
  readonly release: Release | undefined;
  readonly cluster = undefined;
  readonly node = undefined;
  readonly settings = undefined;
  readonly assumed = undefined;
  readonly elsewhere = [];
  readonly alone = undefined;
  readonly behaviours = undefined;
  readonly nodeName = '';
  readonly hostAddresses: readonly Address[] | undefined;
  #weighServer: ReturnType<typeof weighServersOfSides> | undefined;
  #shown: ShownServices | undefined;
  #reached: ShownServices | undefined;
  #addresses: AddressIndex | undefined;
  #claims: AddressIndex | undefined;
  #named: readonly ShownPort[] | undefined;

  constructor(facts: DumpedFacts) {
    super(facts);
    this.#reached = facts.reached;
    this.coverage = facts.coverage;
    this.doubts = facts.doubts;
    this.log = facts.log;
    this.hostAddresses = facts.hostAddresses;
    this.named = facts.named;
    this.release = facts.release;
  }

  get host(): this {
    return this;
  }

  /** Judges whether a virtual server is kube-proxy's. */
  get weighServer(): ReturnType<typeof weighServersOfSides> {
    return (this.#weighServer ??= weighServersOfSides(this, this));
  }

  override get namedState(): KernelState {
    const { state, weighServer } = this;
    return { ...state, virtualServers: state.virtualServers.filter((server) => weighServer(server) !== 'none') };
  }

  /** The Services that the dump shows, including leftovers of another mode. */
  get shown(): ShownServices {
    return (this.#shown ??= this.#decompiled(this.state));
  }

  #decompiled(state: KernelState): ShownServices {
    const found = decompile(state, this.owners, this.weighServer, this.coverage);
    const written = new Map(this.named?.servicePorts.map((port) => [keyOfPort(port), port]));
    const { mode } = found;
    const isCheck = (port: number): boolean =>
      mode !== undefined &&
      (!modeFacts[mode].filters.includes('health-checks') || findHealthCheckSets(state, port).length > 0);
    const ports = found.ports.map((port) => withUnshown(port, written.get(keyOfPort(port)), isCheck));
    return { ...found, ports };
  }

  /** The Services that the dump shows, including those in a dormant table, which no packet reaches. */
  get #all(): ShownServices {
    if (this.#reached) return this.#reached;
    const { state } = this;
    const whole = stateWithOthers(this);
    const found = whole === state ? this.shown : this.#decompiled(whole);
    return (this.#reached = { ...found, mode: found.mode ?? modeOfState(state) });
  }

  get mode(): ProxyMode | undefined {
    return this.#all.mode;
  }

  get ports(): readonly ShownPort[] {
    return this.#all.ports;
  }

  get namedPorts(): readonly ShownPort[] {
    return (this.#named ??= withWritten(this.ports, this.named?.servicePorts ?? []));
  }

  get addresses(): AddressIndex {
    return (this.#addresses ??= indexPorts(this.ports));
  }

  get claims(): AddressIndex {
    return (this.#claims ??= indexPorts<ShownPort>([
      ...this.ports,
      ...findClaimed(this.state, this.owners),
      ...(this.named?.servicePorts ?? []),
    ]));
  }

  get links(): readonly Link[] {
    return this.state.links.filter(({ name }) => name !== serviceLink);
  }

  /** Names the dump's objects after the Services in manifests that are read for a release. */
  namedBy(named: Cluster, release: Release): DumpedSnapshot {
    return this.with({ named, release, labels: () => nameServers(this.state, named.servicePorts) });
  }

  with(changes: Partial<DumpedFacts>): DumpedSnapshot {
    return new DumpedSnapshot({ ...this.facts, state: () => this.state, labels: () => this.labels, ...changes });
  }

  /** Adds facts that another side shows, but not its Services. */
  completedBy(state: KernelState, coverage: Coverage): DumpedSnapshot {
    return this.with({ state: () => state, coverage, owners: this.owners, reached: this.#all });
  }
}

/**
 * Adds from the manifests what the kernel does not show: the kinds of addresses, and the health check node port. Adds that port only if
 * `isCheck` accepts it, because the mode has no rules for it or a set has it.
 */
function withUnshown(
  shown: DecompiledPort,
  written: ServicePort | undefined,
  isCheck: (port: number) => boolean,
): DecompiledPort {
  if (!written) return shown;
  const { clusterIP, externalIPs, loadBalancerIPs, otherIPs = [], healthCheckNodePort: check } = shown;
  const kinds = new Map(portAddresses(written).map(({ kind, address }) => [address.text, kind]));
  const of = (kind?: PortAddress['kind']) => otherIPs.filter(({ text }) => kinds.get(text) === kind);
  return {
    ...shown,
    clusterIP: clusterIP ?? of('cluster-ip')[0],
    externalIPs: [...externalIPs, ...of('external-ip')],
    loadBalancerIPs: [...loadBalancerIPs, ...of('load-balancer-ip')],
    otherIPs: of(),
    healthCheckNodePort: check ?? [written.healthCheckNodePort].find((port) => port > 0 && isCheck(port)),
  };
}

/** Returns each written Service port as shown, if the dump shows all its addresses and ports, or else as written. */
function withWritten(shown: readonly ShownPort[], written: readonly ServicePort[]): readonly ShownPort[] {
  const serviceOf = (port: ShownPort): string => `${port.family} ${serviceName(port)}`;
  const services = new Set(written.map(serviceOf));
  const byLabel = new Map(shown.map((port) => [keyOfPort(port), port]));
  return [
    ...written.map((port) => {
      const own = byLabel.get(keyOfPort(port));
      const isSame =
        own?.port === port.port &&
        (port.nodePort === 0 || own.nodePort === port.nodePort) &&
        portAddresses(port).every(({ address }) => hasAddress(own, address));
      return isSame ? own : port;
    }),
    ...shown.filter((port) => !services.has(serviceOf(port))),
  ];
}

/** Adds the tables of other programs, and kube-proxy's own tables if they are dormant. */
export function stateWithOthers({ state, doubts }: Pick<Snapshot, 'state' | 'doubts'>): KernelState {
  const others = doubts.flatMap((doubt) => (doubt.kind === 'other-table' ? (doubt.tables ?? []) : []));
  if (others.length === 0) return state;
  const tables = new Map(others.map((table) => [`${table.family} ${table.name}`, table]));
  return { ...state, nftables: [...state.nftables, ...tables.values()] };
}

/** Reports whether only nft lists iptables mode's chains and their hooks. The Services' names are only in the output of iptables-save. */
export function showsIptablesAsNft({ doubts }: Pick<Snapshot, 'doubts'>): boolean {
  return doubts.some(
    (doubt) =>
      doubt.kind === 'other-table' &&
      doubt.tables?.some(({ chains }) => chains.has(baseChains.services) && chains.get('OUTPUT')?.base !== undefined),
  );
}
