import { chooseEndpoints } from '../../cluster/endpoint-choice.ts';
import type { Cluster, ShownPort } from '../../cluster/model.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import { type Address, isLoopback } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { behaviourReason, type BehaviourReason, stepsBetween } from '../../kube-proxy/releases.ts';
import {
  failingShare,
  type Fate,
  interfaceOf,
  isPart,
  isUnknownOwn,
  lostShare,
  type Packet,
  type ReachedEndpoint,
  sumChances,
  type Verdict,
  workingShares,
} from '../../packet/packet.ts';
import { reasonKey } from '../../packet/reason.ts';
import type { HealthAnswer } from '../../snapshot/health-checks.ts';
import { type LostJumps, lostJumpsOf, lostLinkOf } from '../trace/obstacles.ts';
import type { Scene } from '../trace/scene.ts';
import { isLeft, stopOf } from '../trace/stop.ts';
import { type CauseId, causeIds, type CauseReason, findServiceCause, haveOneSetup } from './causes.ts';
import { type Difference, lackOtherEndpoints, sourceWord, unsettled } from './compare.ts';
import {
  destinationFinder,
  isOfService,
  isShutOut,
  type KnownDestination,
  ownEndpointOf,
  portText,
  senderOf,
  servedPorts,
  textOfDestination,
} from './destinations.ts';
import type { Effect, EffectChoice, EffectSeverity, EndpointShares } from './effects.ts';
import { chancesOf, compareChoice, endsOf, isNearly, lossesOf, seenSources, type SeenSources } from './ends.ts';
import { knownOwnAddresses } from './senders.ts';

interface Explained {
  readonly cause: CauseId;
  readonly because: readonly CauseReason[];
  readonly ports: readonly ShownPort[];
  /** Whether the packet goes from a pod to itself. Only fields of its Service may then explain the difference. */
  readonly isHairpin?: boolean;
  readonly effect: Effect;
}

/** Returns two functions for the two sides of one node. One explains differences; the other finds the destinations of packets. */
export function explainer(...scenes: readonly [Scene, Scene]) {
  const nodes = knownOwnAddresses(scenes);
  const find = destinationFinder(scenes, nodes);
  const served = new Set(scenes.flatMap(servedPorts));
  const known = scenes.map(({ side }) => ({ side, ports: new Set(side.ports.map(portText)) }));
  const [ignores, ignored] = scenes.map(({ side }) => side.settings?.ignoresExternalIPs === true);
  const changesExternalIPs = ignores !== ignored;
  const serviceCause = findServiceCause(...scenes);
  const behavioursOf = behaviourFinder(...scenes);
  const isOneSetup = haveOneSetup(scenes);
  const [own, ownOfOther] = scenes.map((scene) => knownOwnAddresses([scene]));
  const isOfOneNode = ({ destination: { text } }: Packet): boolean => own?.has(text) !== ownOfOther?.has(text);
  const lostJumps = scenes.map((scene) => ({ side: scene.side, jumps: lostJumpsOf(scene) }));
  const explain = (difference: Difference): Explained => {
    const { sender, packet, from, to } = difference;
    const target = find(packet, difference.answers);
    const ownEndpoint = ownEndpointOf(sender, target, known);
    const seen = seenSources(difference, nodes);
    const { explains, shownBy } = findShowing(difference, scenes, nodes);
    const [fate, scene] = explains === 'old' ? [from, scenes[0]] : [to, scenes[1]];
    const effect: Effect = {
      target: target.kind,
      senders: [senderOf(sender, target, ownEndpoint)],
      ...endsOf(difference, seen, scenes),
      severity: severityOfDifference(difference, target),
      classes: 1,
      choice: choiceOf(from, to, seen),
      example: {
        from: sender.address?.text ?? 'node',
        to: textOfDestination(packet),
        protocol: packet.protocol,
        interface: interfaceOf(sender.enters, scene.side.routes[packet.destination.family] !== undefined),
        node: scene.side.nodeName,
        nodePort: isUnknownOwn(packet.destination) ? packet.port : undefined,
        family: isUnknownOwn(packet.destination) ? packet.destination.family : undefined,
      },
      shownBy,
      lacks: fate.verdict === 'unknown' ? unsettled(fate.reasons, packet, scene) : [],
    };
    const isServed = target.ports.some((each) => served.has(portText(each)));
    const cause = lackOtherEndpoints([from, to], scenes)
      ? 'ungiven-endpoints'
      : causeOfDifference(difference, target, isServed, ownEndpoint !== undefined, changesExternalIPs, nodes);
    const isOpen = cause === 'not-understood' || cause === 'ungiven-endpoints';
    if (!isOpen && isOfOneNode(packet)) return { cause: 'node-addresses', because: [], ports: target.ports, effect };
    const behaviours = isOpen || !isOfService.has(target.kind) ? [] : behavioursOf(target.ports, difference);
    if (behaviours.length > 0) return { cause: 'behaviour', because: behaviours, ports: target.ports, effect };
    const ofServices = isOpen || target.kind === 'health-check' ? undefined : serviceCause(target.ports);
    const isHairpin = cause === 'hairpin' && (!ofServices || ofServices.cause === 'service-fields');
    // For a pod that sends to itself, a difference in settings may be the cause, whatever the Service's policy.
    if (ofServices && (isOneSetup || !isHairpin)) return { ...ofServices, ports: target.ports, isHairpin, effect };
    if (cause === 'connection') return { cause, because: whyFailing(difference, scenes), ports: target.ports, effect };
    const lost = isOfService.has(target.kind) && !isOpen ? findLost(difference, target.ports, lostJumps) : [];
    return { cause: lost.length > 0 ? 'lost-jump' : cause, because: lost, ports: target.ports, isHairpin, effect };
  };
  return { explain, find };
}

function whyFailing({ packet, from, to }: Difference, scenes: readonly [Scene, Scene]): readonly CauseReason[] {
  const { family } = packet.destination;
  return [from, to].flatMap((fate, at) => {
    const [side, losses] = [scenes[at]?.side.name ?? '', lossesOf(fate)];
    return losses.length === 0 ? [] : [{ kind: 'losses', side, family, losses }];
  });
}

/**
 * Finds a side whose own trace ends as in the comparison, and that does not know the end if a side does not. If there is none, the side that
 * explains the difference is not shown.
 */
function findShowing(
  { packet, from, to }: Difference,
  scenes: readonly [Scene, Scene],
  nodes: ReadonlyMap<string, Address>,
) {
  const first = from.verdict === 'unknown' && to.verdict !== 'unknown' ? 'old' : 'new';
  const isUnknown = from.verdict === 'unknown' || to.verdict === 'unknown';
  // A trace of the other side alone does not show that EndpointSlices fit only one side.
  const sides = lackOtherEndpoints([from, to], scenes) ? ([first] as const) : (['new', 'old'] as const);
  const shownBy = sides.find((side) => {
    const [scene, fate] = side === 'old' ? [scenes[0], from] : [scenes[1], to];
    const own = (fate.verdict === 'unknown') === isUnknown ? scene.alone(packet, fate) : undefined;
    return own !== undefined && (own === fate || answersAs(own, fate, nodes));
  });
  return { explains: shownBy ?? first, shownBy };
}

/** Reports whether a trace answers as the comparison does. Alone, a side may lack more. */
function answersAs(own: Fate, fate: Fate, nodes: ReadonlyMap<string, Address>): boolean {
  const lacks = new Set(own.reasons.map(reasonKey));
  return (
    own.verdict === fate.verdict &&
    isNearly(failingShare(own), failingShare(fate)) &&
    chancesWithSources(own.endpoints, nodes) === chancesWithSources(fate.endpoints, nodes) &&
    (fate.verdict !== 'unknown' || fate.reasons.every((reason) => lacks.has(reasonKey(reason))))
  );
}

function chancesWithSources(endpoints: readonly ReachedEndpoint[], nodes: ReadonlyMap<string, Address>): string {
  return chancesOf(endpoints, (each) => `${formatSocketAddress(each)} as ${sourceWord(each.source, nodes)}`);
}

function findLost(
  { sender, packet, from, to }: Difference,
  ports: readonly ShownPort[],
  [before, after]: readonly { readonly side: Scene['side']; readonly jumps: LostJumps }[],
): readonly CauseReason[] {
  const target = { ...packet, address: packet.destination };
  const [was, is] = [from, to].map((fate, at) => {
    const known = at === 0 ? before : after;
    const link = known && lostLinkOf({ sender, target, fate }, ports, known.side, known.jumps);
    return link ? [{ kind: 'lost-jump', side: known.side.name, from: link.from, to: link.to } as const] : [];
  });
  return was && is && was.length !== is.length ? [...was, ...is] : [];
}

function choiceOf(from: Fate, to: Fate, source: SeenSources | undefined): EffectChoice | undefined {
  if (from.verdict !== 'delivered' || compareChoice(from, to) === 'same') return undefined;
  const [before, after] = [
    sumChances(from.endpoints, formatSocketAddress),
    sumChances(to.endpoints, formatSocketAddress),
  ];
  const sharesOf = (chances: ReadonlyMap<string, number>): EndpointShares => {
    const values = [...chances.values()];
    return { endpoints: values.length, least: Math.min(...values), most: Math.max(...values) };
  };
  const kept = [...before.keys()].filter((endpoint) => after.has(endpoint)).length;
  const lost = { from: failingShare(from), to: failingShare(to) };
  const isLost = !isNearly(lost.from, 0) || !isNearly(lost.to, 0);
  return { from: sharesOf(before), to: sharesOf(after), kept, source, lost: isLost ? lost : undefined };
}

function causeOfDifference(
  { sender, packet, from, to, isOfConnection }: Difference,
  { kind, ports }: KnownDestination,
  isServed: boolean,
  isOwnEndpoint: boolean,
  changesExternalIPs: boolean,
  nodes: ReadonlyMap<string, Address>,
): CauseId {
  if (from.verdict === 'unknown' || to.verdict === 'unknown') return 'not-understood';
  if (isOfConnection) return 'connection';
  // A policy, range or address never changes only the endpoints' shares.
  if (compareChoice(from, to) === 'other-shares' && isNearly(lostShare(from), lostShare(to))) return 'endpoints';
  if (kind === 'external-ip' && changesExternalIPs) return 'external-ips';
  const own = causeIds.find((each) => each === kind);
  if (own) return own;
  const stops = new Set([from, to].map((fate) => stopOf(fate)?.kind));
  // The rules of one side treat an address of the node as a cluster IP that lacks the port.
  const isOfClusterIP = stops.size > 1 && stops.has('unserved-port');
  if (kind === 'node') return isOfClusterIP ? 'unserved-port' : [from, to].some(isBalanced) ? 'proxy-port' : 'other';
  const delivers = new Set([from, to].map(({ endpoints }) => endpoints.length > 0));
  if (kind === 'node-port') {
    if (isLoopback(packet.destination)) return 'node-port-loopback';
    // One side leaves the packet to the node itself, and the other side's rules translate its address.
    if (isOfClusterIP || isLeft(from) !== isLeft(to)) return 'node-port-addresses';
  }
  if (stops.has('stranger')) return 'other';
  if (!isServed) return 'no-endpoints';
  // If a side's Service rules leave the packet unchanged, the choice of endpoints is not the cause.
  if (isLeft(from) || isLeft(to)) return 'other';
  if (isOwnEndpoint && delivers.has(true)) {
    const [before, after] = [from, to].map(({ endpoints }) => {
      const others = endpoints.filter(({ address }) => address.text !== sender.address?.text);
      return chancesWithSources(others, nodes);
    });
    if (before === after) return 'hairpin';
  }
  const isSame = chancesOf(from.endpoints) === chancesOf(to.endpoints);
  const isSameChoice = !delivers.has(false) && isSame;
  if (!isSameChoice && kind === 'load-balancer-ip' && isShutOut(sender.address, ports)) return 'source-ranges';
  const policyOf = kind === 'cluster-ip' ? internalPolicyOf : externalPolicyOf;
  const isLocal = ports.map(policyOf).findLast((policy) => policy !== undefined) === 'Local';
  if (isLocal && !isSameChoice) return kind === 'cluster-ip' ? 'internal-policy-local' : 'external-policy-local';
  if (!delivers.has(false)) return isSame ? 'masquerade' : 'endpoints';
  return stops.has('source-ranges') ? 'source-ranges' : 'other';
}

function isBalanced({ steps }: Fate): boolean {
  return steps.some((step) => step.kind === 'listener' && step.server.program === 'balancer');
}

/**
 * Judges a difference by the share of connections that are not known to fail, whichever endpoints they reach. A connection that depends on
 * what no listing shows may work or fail.
 */
function severityOfDifference({ sender, from, to, answers }: Difference, { kind }: KnownDestination): EffectSeverity {
  if (from.verdict === 'unknown' || to.verdict === 'unknown') return 'unknown';
  const rangeOf = (fate: Fate, isAnswered: boolean) => {
    const takes = kind === 'node' || (kind === 'health-check' && isAnswered);
    const arrives = (verdict: Verdict): boolean => verdict === 'delivered' || (verdict === 'local' && takes);
    const { working, depending, unknown } = workingShares(fate, arrives);
    return { least: working + unknown, most: working + unknown + depending };
  };
  const before = rangeOf(from, !answers || admits(answers.from, answers.to));
  const after = rangeOf(to, !answers || admits(answers.to, answers.from));
  if (isNearly(before.least, after.least) && isNearly(before.most, after.most))
    return isNearly(before.most, 0) ? 'fails-otherwise' : 'changes';
  // Nobody outside the cluster relies on a cluster IP that fails for part of the connections, so the size of that part does not matter.
  if (kind === 'cluster-ip' && sender.place === 'outside' && isPart(before.most) && isPart(after.most))
    return 'changes';
  if (before.least - after.most > 1e-6) return 'breaks';
  return after.least - before.most > 1e-6 ? 'opens' : 'unknown';
}

/** Reports whether an answer counts as success. A 503 counts only if the other side answers too, because it is as bad as no answer. */
function admits(own: HealthAnswer | undefined, other: HealthAnswer | undefined): boolean {
  return own !== undefined && (own.status !== 503 || other !== undefined);
}

/** The chosen endpoints under each policy, as sorted text. */
type Choice = Readonly<Record<'cluster' | 'local', string>>;

/**
 * Returns a function that finds the behaviours that make the two kube-proxies choose different endpoints. Behaviours are the cause only if
 * packets reach the endpoints that both sides choose under the same policy.
 */
function behaviourFinder(
  { side: old }: Scene,
  { side: fresh }: Scene,
): (ports: readonly ShownPort[], difference: Difference) => readonly BehaviourReason[] {
  if (old.kind === 'dump' || fresh.kind === 'dump' || !fresh.readBy) return () => [];
  const { readBy, node } = fresh;
  const steps = stepsBetween(old.behaviours, fresh.behaviours, [old.mode, fresh.mode]);
  const choicesOf = ({ servicePorts }: Cluster): ReadonlyMap<string, Choice> =>
    new Map(
      servicePorts.map((port) => {
        const { cluster, local } = chooseEndpoints(port, node);
        return [portText(port), { cluster: listed(cluster), local: listed(local) }];
      }),
    );
  let known: readonly ReadonlyMap<string, Choice>[] | undefined;
  return (ports, { from, to }) => {
    const [before, after] = [from, to].map(reached);
    if (steps.length === 0 || before === after) return [];
    const choices = (known ??= [old.behaviours, ...steps.map(({ does }) => does)].map((does) =>
      choicesOf(readBy(does)),
    ));
    const own = ports.flatMap((port) =>
      (['cluster', 'local'] as const).map((policy) => {
        return choices.map((each) => each.get(portText(port))?.[policy]);
      }),
    );
    const chosen = own.find((each) => each[0] === before && each.at(-1) === after) ?? [];
    return steps.flatMap(({ behaviour }, at) =>
      chosen[at] === chosen[at + 1]
        ? []
        : behaviourReason(behaviour, old.settings.release, fresh.settings.release, fresh.behaviours),
    );
  };
}

function reached({ endpoints }: Fate): string {
  return listed(endpoints.map((each) => ({ label: formatSocketAddress(each) })));
}

function listed(endpoints: readonly { readonly label: string }[]): string {
  return [...new Set(endpoints.map(({ label }) => label))].sort().join();
}
