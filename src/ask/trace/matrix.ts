import {
  type Endpoint,
  portAddresses,
  serviceName,
  sourceNetworks,
  type PortAddress,
  type ServiceHealthCheck,
  type ShownPort,
} from '../../cluster/model.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { isLoopback, type Address } from '../../kernel/address.ts';
import { singleAddress, spanOf } from '../../kernel/address-range.ts';
import type { Value } from '../../kernel/nftables/table.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import { isKubeProxyTable, nftSets } from '../../kube-proxy/nft-table.ts';
import { unknownOwn, type PacketProtocol } from '../../packet/packet.ts';
import { representatives } from './address-cells.ts';
import { homeElsewhere, isTakenBySender, packetOf } from './ask.ts';
import { nodeAddressesFor } from './node-addresses.ts';
import { isIn } from './pod-networks.ts';
import { readSender, type NamedSender } from './read-sender.ts';
import { isUnaddressed, senderKinds, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

type TargetKind = PortAddress['kind'] | 'node-port';

export interface Matrix {
  /** The senders' names, as on the command line. */
  readonly senders: readonly string[];
  /** Sorted by address, then by sender. A sender that has no address of a family has no cells in that family. */
  readonly cells: readonly MatrixCell[];
  /** Cells for which no packet is sent, because no address of the sender is known. */
  readonly open: readonly OpenCell[];
  readonly healthChecks: readonly ServiceHealthCheck[];
}

interface CellPlace {
  /** The sender's column. The sender that the question names may also be one of the usual kinds. */
  readonly from: string;
  readonly column: number;
  readonly kind: TargetKind;
  readonly target: Trace['target'];
}

type MatrixCell = CellPlace & Trace;

interface OpenCell extends CellPlace {
  readonly why: Finding;
}

/**
 * Sends a packet from each sender to each address of the Service ports. The senders are the usual kinds, an endpoint on the node, a client
 * that source ranges treat differently from the usual client, and the sender that the question names.
 */
export function traceMatrix(ports: readonly ShownPort[], scene: Scene, named?: NamedSender): Matrix {
  const told = ports.map((port) => toldApart(port, scene));
  const usual = [...senderKinds, 'itself', ...new Set(told.flatMap((each) => each ?? []))];
  const names = [...(named ? [named.from] : []), ...usual];
  const isHere = findEndpointsHere(scene.side);
  const open: OpenCell[] = [];
  const cells = ports.flatMap((port, at) => {
    const own = port.endpoints?.find((each) => scene.side.endpoints.isLocal(each) !== false && isHere(each));
    const itself = own?.port === undefined ? undefined : own.address?.text;
    const askedOf = (name: string): string | undefined => {
      if (name === 'itself') return itself;
      return senderKinds.some((kind) => kind === name) || name === told[at] ? name : undefined;
    };
    const asked = usual.map((name) => ({ from: askedOf(name), inInterface: undefined, namespace: undefined }));
    const senders = [...(named ? [named] : []), ...asked].flatMap(({ from, ...each }, column) => {
      const read = from === undefined ? undefined : readSender({ ...each, from }, port.family, scene);
      return read === undefined ? [] : [{ from: names[column] ?? '', column, read }];
    });
    return targetsOfPort(port, scene).flatMap(({ kind, ...target }) =>
      senders.flatMap(({ read, ...name }): readonly MatrixCell[] => {
        const sender = read.kind === 'read' ? read.value : undefined;
        // Every host has its own loopback addresses, and a pod on another node reaches Services through that node.
        if (isLoopback(target.address) && (!sender || sender.enters)) return [];
        const isElsewhere = sender ? homeElsewhere(sender, scene) !== undefined : name.from === 'remote-pod';
        if (isElsewhere && isTakenBySender(target, scene)) return [];
        if (name.from === told[at] && !ofRanges.has(kind)) return [];
        if (read.kind === 'wrong' && isUnaddressed(read.diagnostic))
          open.push({ ...name, kind, target, why: read.diagnostic });
        return sender ? [{ ...name, kind, sender, target, fate: scene.evaluate(packetOf(sender, target)) }] : [];
      }),
    );
  });
  const services = new Set(ports.map(serviceName));
  const healthChecks = (scene.side.cluster?.healthChecks ?? []).filter((check) => services.has(serviceName(check)));
  return { senders: names, cells, open, healthChecks };
}

const ofRanges: ReadonlySet<TargetKind> = new Set(['load-balancer-ip', 'unknown']);

/** Returns a client outside the cluster that the source ranges treat differently from the usual one. Undefined if there is none. */
function toldApart(port: ShownPort, scene: Scene): string | undefined {
  const { family } = port;
  const ranges = sourceNetworks(port);
  const external = readSender({ from: 'external', inInterface: undefined, namespace: undefined }, family, scene);
  const usual = external.kind === 'read' ? external.value.address : undefined;
  if (ranges.length === 0 || !usual) return undefined;
  const { endpoints } = scene.side;
  const singles = ranges.flatMap((range) => singleAddress(range) ?? []);
  const isTaken = ({ text }: Address) =>
    endpoints.has(text) || endpoints.isOfService(text) || singles.some((each) => each.text === text);
  const { placeOf } = scene.evaluate;
  return [...singles, ...representatives(family, ranges.map(spanOf), isTaken)].find(
    (each) => isIn(ranges, each) !== isIn(ranges, usual) && placeOf(each) === placeOf(usual),
  )?.text;
}

/**
 * Returns a test of whether an endpoint without a nodeName may be on the node. It may not if its address is another Node's. In a dump, the
 * sets for packets from endpoints to themselves list the local endpoints. If a dump lacks these sets, any endpoint may be local.
 */
function findEndpointsHere(side: Snapshot): (endpoint: Endpoint<undefined>) => boolean {
  const {
    kind,
    nodeName,
    objects,
    state: { nftables, sets },
  } = side;
  const ofTables = nftables.flatMap(({ name, sets: own }) => {
    const set = isKubeProxyTable(name) ? own.get(nftSets.hairpinConnections) : undefined;
    return set ? [set.elements.map(({ key }) => socketOfKey(key))] : [];
  });
  const ofSets = sets.flatMap(({ name, entries }) => {
    if (parseSetName(name)?.set !== 'loopBack') return [];
    return [
      entries.map(({ address, port }) => address && port !== undefined && formatSocketAddress({ address, port })),
    ];
  });
  const lists = [...ofTables, ...ofSets];
  const here = new Set(lists.flat());
  if (kind === 'dump') return ({ label }) => lists.length === 0 || here.has(label);
  const ofOthers = objects.nodes.flatMap(({ object: { metadata, addresses } }) =>
    nodeName === '' || metadata.name === nodeName ? [] : addresses.map(({ address }) => address),
  );
  const others = new Set(ofOthers);
  return ({ address }) => !address || !others.has(address.text);
}

/** Returns the endpoint's address and port from `ADDRESS . ADDRESS . PROTOCOL . PORT`. */
function socketOfKey(key: readonly Value[]): string | undefined {
  const [address, port] = [key[0], key.at(-1)];
  if (address?.kind !== 'address' || port?.kind !== 'number') return undefined;
  return formatSocketAddress({ address: address.address, port: port.value });
}

function targetsOfPort(shown: ShownPort, scene: Scene) {
  const { family, port, nodePort } = shown;
  const protocol = shown.protocol.toLowerCase() as PacketProtocol;
  const target = (kind: TargetKind, address: Address, number: number | undefined) =>
    number ? [{ kind, address, port: number, protocol, label: undefined }] : [];
  const own = nodePort ? nodeAddressesFor({ family, protocol, port: nodePort }, scene) : [];
  return [
    ...portAddresses(shown).flatMap(({ kind, address }) => target(kind, address, port)),
    ...own.flatMap((address) => target('node-port', address, nodePort)),
    // A node always has an address, even if the dump shows none.
    ...(own.every(isLoopback) && scene.side.kind === 'dump' ? target('node-port', unknownOwn[family], nodePort) : []),
  ];
}
