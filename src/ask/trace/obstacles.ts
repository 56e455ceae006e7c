import { hasAddress, hasProtocol, isPlacedByKpc, type ShownPort } from '../../cluster/model.ts';
import { detectLocalTraffic } from '../../cluster/plan-masquerade.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import { claimedAt, showsTranslation, type ClaimedAddress } from '../describe/find-ports.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { addressKind, servicePortAt } from './service-ends.ts';
import { families, type Family } from '../../kernel/address.ts';
import type { MissingJump } from '../../kube-proxy/missing-jumps.ts';
import type { Fate } from '../../packet/packet.ts';
import {
  entryOf,
  faultsOfPort,
  findDormantTable,
  findLostJumps,
  findUnmasqueraded,
  unseenPodsOf,
} from '../../snapshot/faults.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { StopCondition, Trace } from './question.ts';
import type { Scene } from './scene.ts';
import { stopOf, type Stop } from './stop.ts';

export function isInternal(port: ShownPort, { target }: Pick<Trace, 'target'>): boolean {
  return addressKind(port, target.address) === 'cluster-ip';
}

export function isLocalElsewhere(
  port: ShownPort,
  trace: Pick<Trace, 'target'>,
  { side: { endpoints: known } }: Scene,
): boolean {
  const { endpoints = [] } = port;
  const policy = isInternal(port, trace) ? internalPolicyOf(port) : externalPolicyOf(port);
  const isElsewhere = endpoints.every((endpoint) => known.isLocal(endpoint) === false);
  return policy === 'Local' && endpoints.length > 0 && isElsewhere;
}

/** Reports whether policy Local treats a pod as an outside client because kube-proxy cannot recognise pods (kubernetes issue 131765). */
export function isUndetectedPod({ sender, target, fate }: Trace, { side }: Scene): boolean {
  const { mode } = side;
  const port = servicePortAt(target, side);
  if (!mode || !port || !sender.isPod || side.kind === 'dump') return false;
  const stop = stopOf(fate.otherwise ?? fate);
  if (stop && stop.kind !== 'no-local-endpoints') return false;
  const detects = detectLocalTraffic(side.settings, side.node, target.address.family) !== undefined;
  if (detects || isInternal(port, { target }) || externalPolicyOf(port) !== 'Local') return false;
  return modeFacts[mode].localWithoutEndpoints !== 'local-to-all';
}

export function conditionOf(
  target: Trace['target'],
  fate: Pick<Fate, 'verdict' | 'steps'>,
  scene: Scene,
): StopCondition {
  const kind = stopOf(fate)?.kind;
  const port = kind && servicePortAt(target, scene.side);
  if (!port) return { placed: undefined, unseen: undefined };
  const isPlaced = isPlacedByKpc(port) && dependsOnPlace.has(kind) && isLocalElsewhere(port, { target }, scene);
  return {
    placed: isPlaced ? port.service : undefined,
    unseen: lacksEndpoints.has(kind) ? unseenPodsOf(faultsOfPort(port, scene.side)) : undefined,
  };
}

const dependsOnPlace: ReadonlySet<Stop['kind']> = new Set(['no-local-endpoints', 'no-server']);

export const lacksEndpoints: ReadonlySet<Stop['kind']> = new Set(['no-endpoints', 'no-server']);

export type LostJumps = { readonly [F in Family]: readonly MissingJump[] };

export function lostJumpsOf({ side }: Scene): LostJumps {
  const { mode } = side;
  const [ipv4, ipv6] = families.map((family) => (mode ? findLostJumps(side, mode, family) : []));
  return { ipv4: ipv4 ?? [], ipv6: ipv6 ?? [] };
}

/** Ways in which a packet is stopped because no Service rule matched it. All other stops come earlier or do not depend on Service rules. */
const stopsOfUntaken: ReadonlySet<Stop['kind']> = new Set(['unserved-port', 'no-local-endpoints', 'kube-proxy']);

/** Reports whether no rule that translates Service addresses matched the packet, so that it stayed unchanged or was stopped. */
function isUntaken({ fate }: Pick<Trace, 'fate'>): boolean {
  const end = fate.otherwise ?? fate;
  const stop = stopOf(end);
  return stop ? stopsOfUntaken.has(stop.kind) : end.verdict === 'local' || end.verdict === 'forwarded';
}

/** The place where a packet's path to its endpoints is broken. `to`: the chain that the packet misses; undefined for an endpoint. */
interface LostLink {
  readonly from: string;
  readonly to: string | undefined;
}

/** Rules of kube-proxy that a node lacks, so that a packet to a Service reaches no endpoint. */
type Lost =
  | { readonly kind: 'dormant-table'; readonly table: string }
  | ({ readonly kind: 'link' } & LostLink)
  | { readonly kind: 'unmasqueraded'; readonly jump: MissingJump }
  | { readonly kind: 'unprogrammed'; readonly claimed: ClaimedAddress }
  /** One of kube-proxy's rules refuses the packet as if the Service lacked the port. */
  | { readonly kind: 'unserved-port'; readonly label: string };

export function lostWayOf(trace: Trace, scene: Scene): Lost | undefined {
  const { side } = scene;
  const { target, fate } = trace;
  const jump = stopOf(fate.otherwise ?? fate) && unmasqueradedBy(trace, scene);
  if (jump) return { kind: 'unmasqueraded', jump };
  if (!isUntaken(trace)) return undefined;
  const port = servicePortAt(target, side);
  const table = side.mode && port && findDormantTable(side, target.address.family);
  if (table !== undefined) return { kind: 'dormant-table', table };
  const claimed = unprogrammedAt(trace, side);
  const lost = port || claimed ? lostJumpsOf(scene) : { ipv4: [], ipv6: [] };
  const link = side.mode && lostLinkOf(trace, port ? [port] : [], side, lost);
  if (link) return { kind: 'link', from: link.from, to: link.to };
  if (claimed) return { kind: 'unprogrammed', claimed };
  const isUnserved = side.kind === 'dump' && stopOf(fate.otherwise ?? fate)?.kind === 'unserved-port';
  return side.mode && port && isUnserved ? { kind: 'unserved-port', label: port.label } : undefined;
}

/** Finds the missing jump without which a packet to an endpoint keeps its source, and may be lost on the way or at the endpoint. */
export function unmasqueradedBy({ sender, target, fate }: Trace, { side }: Scene): MissingJump | undefined {
  const end = fate.otherwise ?? fate;
  const stop = stopOf(end);
  const isKept =
    end.verdict === 'delivered'
      ? end.endpoints.every(({ source }) => source !== 'masqueraded')
      : stop?.kind === 'kernel' && (stop.decision.kind === 'loopback-source' || stop.decision.kind === 'own-address');
  if (!side.mode || !isKept || !servicePortAt(target, side)) return undefined;
  return findUnmasqueraded(side, side.mode, target.address.family, sender.enters ? 'prerouting' : 'output');
}

/** Returns what drops or refuses a packet. Returns 'kube-proxy' if the reason is that some of kube-proxy's rules are missing. */
export function causeOf(trace: Trace, scene: Scene): Stop | undefined {
  const stop = stopOf(trace.fate.otherwise ?? trace.fate);
  return stop && lostWayOf(trace, scene) ? { kind: 'kube-proxy' } : stop;
}

/** Finds the first broken link: a removed jump, rule, element or chain. `ports`: the Service ports that the packet may be for. */
export function lostLinkOf(
  trace: Pick<Trace, 'sender' | 'fate'> & { readonly target: Asked },
  ports: readonly ShownPort[],
  side: Snapshot,
  lost: LostJumps,
): LostLink | undefined {
  const jump = lostJumpOf(trace, lost);
  if (jump || side.kind !== 'dump' || !isUntaken(trace)) return jump;
  const { fate, target } = trace;
  const isLocal = (fate.otherwise ?? fate).verdict === 'local';
  const unreached = side.shown.unreached.find(({ facts, ports: unserved }) => {
    if (facts === 'sourceRanges') return false;
    const isAsked = (port: ShownPort): boolean =>
      facts === 'nodePorts' ? isLocal && port.nodePort === target.port : takesAt(port, target);
    return unserved.some((port) => isOfKind(port, target) && isAsked(port));
  });
  if (unreached) return { from: unreached.from, to: 'name' in unreached.to ? unreached.to.name : undefined };
  const [endless] = ports.flatMap(({ label, family: own }) => side.shownPort(label, own)?.endless ?? []);
  return endless && { from: endless.chain, to: undefined };
}

type Asked = Pick<Trace['target'], 'address' | 'port' | 'protocol'>;

function isOfKind(port: ShownPort, { protocol, address }: Asked): boolean {
  return hasProtocol(port, protocol) && port.family === address.family;
}

function takesAt(port: ShownPort, { address, port: number }: Asked): boolean {
  return hasAddress(port, address) && (port.port === undefined || port.port === number);
}

/**
 * Returns the Service port with this node port, if the node port certainly does not exist in the packet's family. Either manifests show
 * this, or the dump shows other Services of the family.
 */
export function otherFamilyAt({ address: { family }, port }: Asked, side: Snapshot): ShownPort | undefined {
  const isAsked = ({ nodePort }: ShownPort): boolean => port !== 0 && nodePort === port;
  const written = (side.kind === 'dump' ? (side.named?.servicePorts ?? []) : side.ports).filter(isAsked);
  const isWhole =
    side.kind !== 'dump' || (showsTranslation(side, family) && side.ports.some((each) => each.family === family));
  const found = written.length > 0 ? written : isWhole ? side.ports.filter(isAsked) : [];
  return found.some((each) => each.family === family) ? undefined : found[0];
}

/** If no rule matched the packet, returns the Service port that has its destination in manifests or in other rules of the dump. */
function unprogrammedAt({ target, fate }: Pick<Trace, 'target' | 'fate'>, side: Snapshot): ClaimedAddress | undefined {
  const { family } = target.address;
  if (side.kind !== 'dump' || !showsTranslation(side, family, ['nat'])) return undefined;
  const end = fate.otherwise ?? fate;
  const served = servicePortAt(target, side);
  // KUBE-PROXY-FIREWALL also names the address. It drops packets that no earlier rule accepted.
  if (served && !isLeftToFirewall(end)) return undefined;
  const isShown = end.verdict === 'local' && showsTranslation(side, family);
  const atNodePort = isShown ? side.named?.addresses.nodePortsAt(target.port) : undefined;
  const written = atNodePort?.find((port) => port.nodePort === target.port && isOfKind(port, target));
  const named = written && ({ by: 'manifests', label: written.label } as const);
  return claimedAt(target, side) ?? named ?? (served && { by: 'rules', label: served.label });
}

function isLeftToFirewall(end: Pick<Fate, 'verdict' | 'steps'>): boolean {
  const last = end.steps.at(-1);
  return stopOf(end)?.kind === 'kube-proxy' && last?.kind === 'rule' && last.chain === baseChains.proxyFirewall;
}

function lostJumpOf(
  trace: Pick<Trace, 'sender' | 'fate'> & { readonly target: Pick<Trace['target'], 'address'> },
  lost: LostJumps,
): MissingJump | undefined {
  const hook = trace.sender.enters ? 'prerouting' : 'output';
  const jumps = lost[trace.target.address.family];
  return isUntaken(trace) ? jumps.find((jump) => entryOf(jump) === hook) : undefined;
}
