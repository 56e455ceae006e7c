import { groupBy } from '../../cluster/grouping.ts';
import { portAddresses, serviceName, type ServiceHealthCheck, type ShownPort } from '../../cluster/model.ts';
import { addressWords } from '../diff/port-facts.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { isLoopback, parseAddress, type Address } from '../../kernel/address.ts';
import { familyNames } from '../../kernel/family.ts';
import type { Value } from '../../kernel/nftables/table.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { KernelState } from '../../kernel/state.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import { isKubeProxyTable, nftSets } from '../../kube-proxy/nft-table.ts';
import { findNodePortListeners } from '../../kube-proxy/node-port-listeners.ts';
import { unknownOwn, type PacketProtocol } from '../../packet/packet.ts';
import type { DescriptionLine } from '../describe/describe-words.ts';
import { lostWayWords, assumedPlace, lackNote } from './stop-words.ts';
import { connectionWords } from './connection-words.ts';
import { reasonSentence, reasonWords } from './reason-words.ts';
import { assumedLine } from './assumed-values.ts';
import { healthCheckWords, policyLines } from './notes.ts';
import { packetOf } from './ask.ts';
import { readSender, type NamedSender } from './read-sender.ts';
import { senderKinds, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

/** The fate of packets from every kind of sender to every address of a Service. */
export interface Matrix {
  /** As on the command line. */
  readonly senders: readonly string[];
  /** By address, then by sender. A sender without an address of that family has no cell. */
  readonly cells: readonly MatrixCell[];
  /** Sentences about the Service's health checks. */
  readonly healthChecks: readonly string[];
  /**
   * Why packets have an unknown end and what settles it, why they miss existing rules, what depends on assumed Pods, and why
   * there are no endpoints.
   */
  readonly doubts: readonly string[];
  /** Sentences on network policies that may refuse what arrives. */
  readonly policies: readonly string[];
  /** The values here that kpc chose because the input lacks them. */
  readonly assumed: readonly DescriptionLine[];
}

interface MatrixCell extends Trace {
  /** The sender's column. A named sender may also be one of the usual kinds. */
  readonly from: string;
  readonly column: number;
  /** Such as "cluster IP". */
  readonly kind: string;
}

/**
 * Sends a packet to each address of the Service ports from each kind of sender, from an endpoint on the node, and from the named sender.
 */
export function traceMatrix(ports: readonly ShownPort[], scene: Scene, named?: NamedSender): Matrix {
  const names = [...(named ? [named.from] : []), ...senderKinds, 'itself'];
  const isHere = findEndpointsHere(scene.side);
  const cells = ports.flatMap((port) => {
    const own = port.endpoints?.find((each) => scene.side.endpoints.isLocal(each) !== false && isHere(each.label));
    const itself = own?.port === undefined ? undefined : own.address?.text;
    const others = [...senderKinds, ...(itself === undefined ? [] : [itself])];
    const asked = others.map((from) => ({ from, inInterface: undefined, namespace: undefined }));
    const senders = [...(named ? [named] : []), ...asked].flatMap((each, column) => {
      const read = readSender(each, port.family, scene);
      return read.kind === 'read' ? [{ from: names[column] ?? '', column, sender: read.value }] : [];
    });
    return targetsOfPort(port, scene).flatMap(({ kind, ...target }) =>
      senders.flatMap(({ sender, ...name }): readonly MatrixCell[] => {
        // A loopback address belongs to each host itself, and pods reach cluster IPs through their own node.
        if (isLoopback(target.address) && sender.enters) return [];
        if (name.from === 'remote-pod' && kind === addressWords['cluster-ip']) return [];
        return [{ ...name, kind, sender, target, fate: scene.evaluate(packetOf(sender, target)) }];
      }),
    );
  });
  const services = new Set(ports.map(serviceName));
  const healthChecks = (scene.side.cluster?.healthChecks ?? []).filter(({ namespace, service }) =>
    services.has(`${namespace}/${service}`),
  );
  const values = [
    scene.side.nodeName,
    ...(scene.side.assumed?.clusterCIDRs ?? []),
    ...names,
    ...cells.flatMap(({ target: { address, port } }) => [address.text, String(port)]),
    ...cells.flatMap(({ fate }) => fate.endpoints.map(({ address }) => address.text)),
    ...healthChecks.map(({ port }) => String(port)),
  ];
  const doubts = cells.flatMap((cell) => {
    const { fate, target } = cell;
    const { isUndecided, reason } = connectionWords(cell, scene);
    return [
      ...fate.reasons.map((each) => `unknown: ${reasonSentence(reasonWords(each, target.address.family, scene))}`),
      ...(isUndecided ? [`unsure: ${reason}`] : []),
    ];
  });
  const places = cells.flatMap(({ fate, target }) => {
    const place = assumedPlace(target, fate, scene);
    return place === '' ? [] : [`${fate.verdict}${place}: none is assumed on this one`];
  });
  const lacks = cells.flatMap((cell) => lackNote(cell, scene) ?? []);
  const lost = cells.flatMap((cell) => lostWayWords(cell, scene) ?? []);
  return {
    senders: names,
    cells,
    healthChecks: healthCheckLines(healthChecks, scene.side),
    policies: policyLines(cells, scene),
    doubts: [...new Set([...doubts, ...lost, ...places, ...lacks])],
    assumed: assumedLine(values, scene.side),
  };
}

/** A line for each Service; one for each family where kube-proxy's answers differ. */
function healthCheckLines(checks: readonly ServiceHealthCheck[], side: Snapshot): readonly string[] {
  const said = checks.map((check) => ({ ...check, words: healthCheckWords(check, side) }));
  return [...groupBy(said, ({ namespace, service }) => `${namespace}/${service}`).values()].flatMap((own) => {
    const [words, ...others] = new Set(own.map((each) => each.words));
    if (words !== undefined && others.length === 0) return [words];
    return own.map((each) => `${each.words} (${familyNames[each.family]})`);
  });
}

/** The addresses at which a dump's rules serve a node port, if the rules name them. */
function listenersOf({ family, protocol }: ShownPort, port: number, state: KernelState): readonly Address[] {
  const listeners = findNodePortListeners(state)({ family, protocol, port });
  return listeners.kind === 'listed' ? [...listeners.addresses].flatMap((text) => parseAddress(text) ?? []) : [];
}

/**
 * Tells by "ip:port" whether an endpoint may be on the node. The sets for packets from endpoints to themselves list the local
 * ones; if a dump lacks the set, any endpoint may be local.
 */
function findEndpointsHere({ kind, state: { nftables, sets } }: Snapshot): (label: string) => boolean {
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
  return (label) => kind !== 'dump' || lists.length === 0 || here.has(label);
}

/** The endpoint's half of `ADDRESS . ADDRESS . PROTOCOL . PORT`. */
function socketOfKey(key: readonly Value[]): string | undefined {
  const [address, port] = [key[0], key.at(-1)];
  if (address?.kind !== 'address' || port?.kind !== 'number') return undefined;
  return formatSocketAddress({ address: address.address, port: port.value });
}

function targetsOfPort(shown: ShownPort, { links, side }: Scene) {
  const { family, port, nodePort } = shown;
  const protocol = shown.protocol.toLowerCase() as PacketProtocol;
  const target = (kind: string, address: Address, number: number | undefined) =>
    number ? [{ kind, address, port: number, protocol, label: undefined }] : [];
  const known = links
    .flatMap((link) => link.addresses)
    .filter((each) => each.family === family && each.scope !== 'link')
    .map(({ address }) => address);
  const own = known.length > 0 || !nodePort ? known : listenersOf(shown, nodePort, side.state);
  return [
    ...portAddresses(shown).flatMap(({ kind, address }) => target(addressWords[kind], address, port)),
    ...own.flatMap((address) => target('node port', address, nodePort)),
    // The node has some address, even if the dump shows none.
    ...(own.length === 0 && side.kind === 'dump' ? target('node port', unknownOwn[family], nodePort) : []),
  ];
}
