import { joinWords } from '../base/join-words.ts';
import type { Pod } from '../cluster/objects.ts';
import type { ShownPort } from '../cluster/model.ts';
import { findOwners, type Owners } from '../changes/owners.ts';
import { decompileSide } from '../describe/decompile.ts';
import type { Side } from '../dumps/side.ts';
import { emptyLists, type ObjectLists, type UnreadLists } from '../input/objects/kinds.ts';
import { addressBits, loopbackAddresses, type Address } from '../kernel/address.ts';
import { families, familyNames } from '../kernel/family.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import type { Link } from '../kernel/link/link.ts';
import { formatSocketAddress, type SocketAddress } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { prepare, type Evaluator } from '../packet/evaluate.ts';
import { knowledgeOf, wholeState } from './knowledge.ts';
import { withLocalhostListener } from './localhost-listener.ts';
import { withoutBlindAnswers, withServicesBehindServices, withUngivenEndpoints } from './service-endpoints.ts';
import { withUnreadRanges } from './unread-ranges.ts';
import { podTrafficOf, type PodTraffic } from './pod-networks.ts';

/** A node that packets are sent to: its state, and its Services. */
export interface Scene {
  readonly side: Side;
  readonly owners: Owners;
  /** The node's own, without those that kube-proxy makes. */
  readonly links: readonly Link[];
  readonly evaluate: Evaluator;
  readonly mode: ProxyMode | undefined;
  readonly ports: readonly ShownPort[];
  /** The endpoints of these ports by "ip:port". */
  readonly endpoints: ReadonlyMap<string, KnownEndpoint>;
  /** What the rules take for traffic of pods. */
  readonly podTraffic: PodTraffic;
  readonly objects: SceneObjects;
  /** Pods by "namespace/name". */
  readonly pods: ReadonlyMap<string, Pod>;
}

interface KnownEndpoint {
  readonly address: Address;
  /** Whether it is on this node; undefined if not known. */
  readonly isLocal: boolean | undefined;
}

/** The manifests that name senders, policies and ways to Services. */
export type SceneObjects = {
  readonly [List in SceneList]: readonly ObjectLists[List][number][];
} & {
  /** What of a cluster could not be read. */
  readonly unread: UnreadLists;
};

type SceneList =
  'services' | 'nodes' | 'pods' | 'policies' | 'ingresses' | 'gateways' | 'referenceGrants' | 'namespaces';

/** Makes a scene of any side. The ports of a dump are read back from its state; `objects` are those of manifests. */
export function sceneOfSide(side: Side, objects?: SceneObjects): Scene {
  const { state, labels, services } = side;
  const owners = findOwners(labels ? [labels, state] : [state]);
  // A dormant table shows Services, too.
  const shown = services ? undefined : decompileSide({ ...side, state: wholeState(side, undefined) }, owners);
  const mode = services?.settings.mode ?? shown?.mode ?? modeOfState(state);
  return sceneOf(side, owners, mode, shown?.ports ?? [], objects);
}

/** Makes a scene of a side. `decompiled` are the ports of a dump; a compiled side knows its own. */
export function sceneOf(
  side: Side,
  owners: Owners,
  mode: ProxyMode | undefined,
  decompiled: readonly ShownPort[],
  objects: SceneObjects = { ...emptyLists(), unread: new Set() },
): Scene {
  const links = linksOfSide(side);
  const ports = side.services?.cluster.servicePorts ?? decompiled;
  const endpoints = new Map(endpointsOf(ports, side.services?.node.name ?? ''));
  const podTraffic = podTrafficOf(wholeState(side, mode));
  return {
    side,
    owners,
    links,
    evaluate: evaluatorOf(side, links, mode, { ports, endpoints, podTraffic, objects }),
    mode,
    ports,
    endpoints,
    podTraffic,
    objects,
    pods: new Map(objects.pods.map(({ object }) => [`${object.metadata.namespace}/${object.metadata.name}`, object])),
  };
}

function evaluatorOf(
  side: Side,
  links: readonly Link[],
  mode: ProxyMode | undefined,
  served: Pick<Scene, 'ports' | 'endpoints' | 'podTraffic' | 'objects'>,
): Evaluator {
  const evaluate = prepare(wholeState(side, mode), knowledgeOf(side, links, mode, served));
  const listening = withLocalhostListener(side, served.ports, evaluate);
  const translating = withoutBlindAnswers(served.ports, listening);
  const ofEndpoints = withUngivenEndpoints(side, withServicesBehindServices(served.ports, mode, translating));
  return withUnreadRanges(side, served.objects.unread, ofEndpoints);
}

/** The endpoints that have an address; names may have taken the place of some before a dump was pasted. */
function endpointsOf(ports: readonly ShownPort[], node: string): readonly (readonly [string, KnownEndpoint])[] {
  return ports.flatMap(({ endpoints = [] }) =>
    endpoints.flatMap(({ label, address, port, status }) => {
      if (!address || port === undefined) return [];
      const isLocal = node === '' || !status ? undefined : status.nodeName === node;
      return [[label, { address, isLocal }] as const];
    }),
  );
}

/** Whether an endpoint is on this node; undefined if not known. */
export function isLocalEndpoint({ endpoints }: Scene, endpoint: SocketAddress): boolean | undefined {
  return endpoints.get(formatSocketAddress(endpoint))?.isLocal;
}

/** Parts of a state that a dump may leave out, and that are then taken to be as on the other side. */
const partsOfDump = ['sets', 'virtualServers', 'links', 'sysctls'] as const;

/** The rules of iptables that a dump lacks, in words: "table filter of IPv4". */
function lackingRules({ iptables }: Side['coverage']): readonly string[] {
  return families.flatMap((family) => {
    const missing = tableNames.filter((table) => !iptables[family].includes(table));
    if (missing.length === tableNames.length) return [`rules of ${familyNames[family]}`];
    return missing.map((table) => `table ${table} of ${familyNames[family]}`);
  });
}

const partWords: Readonly<Record<(typeof partsOfDump)[number], string>> = {
  sets: 'IP sets',
  virtualServers: 'virtual servers',
  links: 'addresses',
  sysctls: 'sysctls',
};

/** What a side of a comparison does not show, in sentences. */
export function describeUnshown({ side: { name, coverage }, mode }: Scene): readonly string[] {
  const lacking = mode && modeFacts[mode].kinds.has('iptables') ? lackingRules(coverage) : [];
  const unshown = partsOfDump.filter((part) => !coverage[part]).map((part) => partWords[part]);
  return [
    ...(lacking.length > 0
      ? [`${name} does not show ${joinWords(lacking)}: what packets meet there is not known`]
      : []),
    ...(unshown.length > 0 ? [`${name} does not show ${unshown.join(', ')}: assumed equal to the other side`] : []),
  ];
}

/** Makes two sides of one node complete: what one does not show, such as the node's addresses, it takes from the other. */
export function onOneNode(from: Scene, to: Scene): readonly [Scene, Scene] {
  return [complete(from, to), complete(to, from)];
}

function complete(scene: Scene, other: Scene): Scene {
  const { side } = scene;
  const missing = partsOfDump.filter((part) => !side.coverage[part] && other.side.coverage[part]);
  const knowsAddresses = scene.links.some(({ addresses }) => addresses.length > 0);
  if (missing.length === 0 && knowsAddresses) return scene;
  const taken = Object.fromEntries(missing.map((part) => [part, other.side.state[part]]));
  const shown = Object.fromEntries(missing.map((part) => [part, true]));
  const state: KernelState = { ...side.state, ...taken };
  const { allAddresses } = (missing.includes('links') ? other : scene).side.coverage;
  const completed: Side = { ...side, state, coverage: { ...side.coverage, ...shown, allAddresses } };
  const links = knowsAddresses ? scene.links : other.links;
  return { ...scene, side: completed, links, evaluate: evaluatorOf(completed, links, scene.mode, scene) };
}

/** The node's own links, as far as a side shows them: only a dump says which link has which address. */
export function linksOfSide({ state, services }: Side): readonly Link[] {
  if (!services) return state.links.filter(({ name }) => name !== serviceLink);
  const { hostAddresses, nodeIPs } = services.node;
  const own = hostAddresses.length > 0 ? hostAddresses : families.map((family) => nodeIPs[family]);
  const all = [...own, ...families.map((family) => loopbackAddresses[family])];
  const addresses = [...new Map(all.map((address) => [address.text, address])).values()];
  return [
    {
      name: 'node',
      addresses: addresses.map((address) => {
        return { family: address.family, address, prefixLength: addressBits[address.family] };
      }),
    },
  ];
}
