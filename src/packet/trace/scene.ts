import type { Ingress, Namespace, NetworkPolicy, Pod, Sourced } from '../../cluster/objects.ts';
import { type ShownPort, shownInManifests } from '../../describe/shown-port.ts';
import type { AddressObjects } from '../../describe/describe-services.ts';
import type { Owners } from '../../diff/changes/owners.ts';
import type { Side } from '../../diff/compared-side.ts';
import { addressBits, loopbackAddresses, type Address } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { Link } from '../../kernel/link/link.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import type { KernelState } from '../../kernel/state.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { prepare, type Evaluator } from '../evaluate.ts';

/** Where packets are traced: one node with its state, and the Services that it serves. */
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
  readonly objects: SceneObjects;
  /** Pods by "namespace/name". */
  readonly pods: ReadonlyMap<string, Pod>;
}

interface KnownEndpoint {
  readonly address: Address;
  /** Whether it is on this node; undefined if not known. */
  readonly isLocal: boolean | undefined;
}

/** The objects of manifests that packets are traced among. */
export interface SceneObjects extends AddressObjects {
  readonly pods: readonly Sourced<Pod>[];
  readonly policies: readonly Sourced<NetworkPolicy>[];
  readonly ingresses: readonly Sourced<Ingress>[];
  readonly namespaces: readonly Sourced<Namespace>[];
}

const noObjects: SceneObjects = { services: [], nodes: [], pods: [], policies: [], ingresses: [], namespaces: [] };

/** Sets up a side. `decompiled` are the ports that a dump shows; a side that was compiled knows its own. */
export function sceneOf(
  side: Side,
  owners: Owners,
  mode: ProxyMode | undefined,
  decompiled: readonly ShownPort[],
  objects: SceneObjects = noObjects,
): Scene {
  const links = linksOfSide(side);
  return {
    side,
    owners,
    links,
    evaluate: evaluatorOf(side, links, mode),
    mode,
    ports: side.services?.cluster.servicePorts.map(shownInManifests) ?? decompiled,
    endpoints: new Map(side.services ? endpointsOf(side.services) : decompiled.flatMap(endpointsShown)),
    objects,
    pods: new Map(objects.pods.map(({ object }) => [`${object.metadata.namespace}/${object.metadata.name}`, object])),
  };
}

function endpointsOf({ cluster, node }: NonNullable<Side['services']>): readonly (readonly [string, KnownEndpoint])[] {
  return cluster.servicePorts.flatMap(({ endpoints }) =>
    endpoints.map(({ label, address, status }) => {
      return [label, { address, isLocal: node.name === '' ? undefined : status.nodeName === node.name }] as const;
    }),
  );
}

function endpointsShown({ endpoints = [] }: ShownPort): readonly (readonly [string, KnownEndpoint])[] {
  return endpoints.flatMap(({ endpoint }) => {
    const address = parseSocketAddress(endpoint)?.address;
    return address ? [[endpoint, { address, isLocal: undefined }] as const] : [];
  });
}

/** The "namespace/name" of the Service that a port with this name is of. */
export function serviceOf(port: string): string {
  return port.replace(/:[^:/]*$/, '');
}

/** Whether an endpoint is on this node; undefined if not known. */
export function isLocalEndpoint({ endpoints }: Scene, endpoint: SocketAddress): boolean | undefined {
  return endpoints.get(formatSocketAddress(endpoint))?.isLocal;
}

function otherTables({ doubts }: Side) {
  return doubts.flatMap((doubt) => (doubt.kind === 'other-table' ? [doubt] : []));
}

/** A side's state with the tables of other programs. */
export function wholeState(side: Side): KernelState {
  const others = otherTables(side).flatMap(({ tables = [] }) => tables);
  const tables = new Map(others.map((table) => [`${table.family} ${table.name}`, table]));
  return { ...side.state, nftables: [...side.state.nftables, ...tables.values()] };
}

/**
 * The rules of other programs take part. What a table does that kpc could not read as a whole is unknown, and the verdict
 * with it.
 */
function evaluatorOf(side: Side, links: readonly Link[], mode: ProxyMode | undefined): Evaluator {
  const evaluate = prepare(wholeState(side), links);
  const isKnown = otherTables(side).every(({ tables }) => tables);
  const decided = new Set(families.filter((family) => isKnown && listMissing(side, mode, family).length === 0));
  return (packet) => {
    const fate = evaluate(packet);
    return decided.has(packet.destination.family) ? fate : { ...fate, verdict: 'unknown', endpoints: [] };
  };
}

/** What a dump lacks of all that decides about a packet of a family, each as the command that prints it. */
export function listMissing({ coverage }: Side, mode: ProxyMode | undefined, family: Family): readonly string[] {
  const hasRules = coverage.iptables[family].includes('nat');
  const hasTables = coverage.nftables.includes(family);
  // Without a mode, either tool may have all the rules.
  if (!mode && (hasRules || hasTables)) return [];
  const kinds: ReadonlySet<string> = mode ? modeFacts[mode].kinds : new Set(['iptables', 'nftables']);
  const commands = [
    ['iptables', family === 'ipv4' ? 'iptables-save' : 'ip6tables-save', hasRules],
    ['nftables', 'nft list ruleset', hasTables],
    ['sets', 'ipset save', coverage.sets],
    ['virtualServers', 'ipvsadm -Sn', coverage.virtualServers],
    ['links', 'ip addr', coverage.links],
  ] as const;
  return commands.flatMap(([kind, command, isThere]) => (kinds.has(kind) && !isThere ? [command] : []));
}

/** Parts of a state that a dump may leave out, and that are then taken to be as on the other side. */
export const partsOfDump = ['sets', 'virtualServers', 'links', 'sysctls'] as const;

/** Two sides of one node: what one of them does not know, the node's own addresses first of all, it takes from the other. */
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
  const completed: Side = { ...side, state, coverage: { ...side.coverage, ...shown } };
  const links = knowsAddresses ? scene.links : other.links;
  return { ...scene, side: completed, links, evaluate: evaluatorOf(completed, links, scene.mode) };
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
