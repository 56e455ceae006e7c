// Describes why a packet stops, for example because someone removed one of kube-proxy's jumps.
import { count, percent } from '../../base/printable.ts';
import { failingShare, isArrival, isPart, lostShare, otherwiseShare, type KnownFate } from '../../packet/packet.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { isPlacedByKpc, serviceName, type ShownPort } from '../../cluster/model.ts';
import { faultsOfPort, unseenPodsOf } from '../../snapshot/faults.ts';
import {
  dormantWords,
  lostRuleCause,
  ownersWords,
  unlessUnseen,
  unmasqueradedWords,
  unprogrammedCause,
  unreachedWords,
  whyNoEndpoint,
} from './lack.ts';
import { nameSome } from '../words/rows.ts';
import { modeFacts, titleOfMode } from '../../kube-proxy/modes.ts';
import { carrierWords, decisionWords, stopperWords } from './connection.ts';
import type { StopCondition, Trace } from '../../ask/trace/question.ts';
import {
  isInternal,
  isLocalElsewhere,
  isUndetectedPod,
  causeOf,
  conditionOf,
  lacksEndpoints,
  lostWayOf,
} from '../../ask/trace/obstacles.ts';
import { besideManifests, type OneSided } from '../../ask/trace/beside-manifests.ts';
import { addressKind, otherServiceOf, servicePortAt } from '../../ask/trace/service-ends.ts';
import type { Scene } from '../../ask/trace/scene.ts';
import { stopOf, type Stop } from '../../ask/trace/stop.ts';

/** Says why a packet is dropped or refused, or what policy Local does with a delivered packet. */
export function causeNote(trace: Trace, scene: Scene): string | undefined {
  const fate = trace.fate.otherwise ?? trace.fate;
  const stop = causeOf(trace, scene);
  const port = servicePortAt(trace.target, scene.side);
  const left = leftServerWords(fate, scene);
  if (left !== undefined) return left;
  if (stop) return stopWords(stop, port, trace, scene);
  if (fate.verdict !== 'delivered' || !port || !scene.side.mode || !isLocalElsewhere(port, trace, scene))
    return undefined;
  return `${noLocalWords(port, trace)}: ${modeFacts[scene.side.mode].title} sends the packet to endpoints on other nodes`;
}

/**
 * Returns, for programs, what stops a packet. If most packets arrive, returns what stops the first one that does not arrive. `text`: the
 * note for people or, if there is none, the place of the rule that stops the packet.
 */
export function causeOfStop(trace: Trace, scene: Scene) {
  const fate = trace.fate.otherwise ?? trace.fate;
  const lost = isArrival(fate.verdict) ? fate.ways.find((way) => stopOf(way)) : undefined;
  if (lost) return causeOfEnd({ ...trace, fate: { ...trace.fate, ...lost, otherwise: undefined } }, scene);
  return causeOfEnd(trace, scene);
}

function causeOfEnd(trace: Trace, scene: Scene) {
  const fate = trace.fate.otherwise ?? trace.fate;
  const stop = causeOf(trace, scene);
  return stop && { kind: stop.kind, text: lostWayWords(trace, scene) ?? causeNote(trace, scene) ?? stoppedBy(fate) };
}

function stoppedBy({ steps, verdict }: KnownFate): string {
  const last = steps.at(-1);
  return last?.kind === 'rule' ? stopperWords(last) : `the node ${verdict === 'refused' ? 'refuses' : 'drops'} it`;
}

function stopWords(stop: Stop, port: ShownPort | undefined, trace: Trace, scene: Scene): string | undefined {
  switch (stop.kind) {
    case 'no-endpoints':
      return port && `${port.label} has no ready endpoint${becauseOf(port, scene)}`;
    case 'no-local-endpoints':
      return port && noLocalWords(port, trace);
    case 'no-server':
      return port && noServerWords(port, trace, scene);
    case 'source-ranges':
      return port && rangesWords(port, trace, scene);
    case 'unserved-port':
      return unservedPortWords(trace, scene);
    case 'unserved-address':
      return `no Service has ${trace.target.address.text}, and ${titleOfMode(scene.side.mode)} drops packets to unused cluster IPs`;
    case 'kernel':
      return stop.decision.kind === 'own-address'
        ? 'the endpoint is the sender itself, which cannot answer a packet from its own address'
        : carrierWords(trace.fate.steps) + decisionWords(stop.decision, stop.destination);
    case 'stranger':
      return `${carrierWords(trace.fate.steps)}${stopperWords(stop.step)}, not kube-proxy`;
    case 'kube-proxy':
      return undefined;
  }
}

/** Describes a virtual server that accepts the packet, although the node's mode does not make virtual servers. */
function leftServerWords({ steps }: Pick<KnownFate, 'steps'>, { side }: Scene): string | undefined {
  const { mode } = side;
  const server = steps.find((step) => step.kind === 'virtual-server')?.server;
  if (!server || !mode || modeFacts[mode].kinds.has('virtualServers')) return undefined;
  const { protocol, address, port } = server;
  const name = `${protocol} ${formatSocketAddress({ address, port })}`;
  const taken = `virtual server ${name}, which ${titleOfMode(mode)} does not make, takes the packet`;
  const evidence = side.kind === 'dump' ? side.weighServer(server) : 'certain';
  if (evidence === 'none') return `${taken}: it is another program's`;
  return `${taken}: delete what IPVS mode left on the node${evidence === 'possible' ? ", unless it is another program's" : ''}`;
}

function noLocalWords(port: ShownPort, trace: Trace): string {
  const policy = isInternal(port, trace) ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
  if (isPlacedByKpc(port)) return `${policy} is Local, but no Pod of ${port.service} is assumed on this node`;
  return `${policy} is Local, but ${port.label} has no endpoint on this node`;
}

/** Returns words to add to a verdict. They name the assumptions and unseen facts that the verdict depends on. */
export function stopConditionWords({ placed, unseen }: StopCondition): string {
  return `${placed === undefined ? '' : ` ${placeWithout(placed)}`}${unlessUnseen(unseen)}`;
}

export function placeWithout(service: string): string {
  return `on nodes without a Pod of ${service}`;
}

/** Says why a server has no endpoint. In IPVS mode, the Service may still have endpoints on other nodes. */
export function noServerWords(port: ShownPort, trace: Trace, scene: Scene): string {
  if (isLocalElsewhere(port, trace, scene)) return noLocalWords(port, trace);
  const { kind, mode } = scene.side;
  const isKnown = kind !== 'dump' || (mode && !modeFacts[mode].kinds.has('virtualServers'));
  const why = becauseOf(port, scene);
  return `${port.label} has no ready endpoint${why === '' && !isKnown ? ', or it has policy Local and no endpoint on this node' : why}`;
}

function becauseOf(port: ShownPort, { side }: Scene): string {
  const why = whyNoEndpoint(port, side);
  return why === undefined ? '' : `: ${why}`;
}

/** Returns a sentence saying that a Service port has no endpoint, and why, for all packets to it. Undefined if the reason is unknown. */
export function lackNote({ target, fate }: Trace, scene: Scene): string | undefined {
  const kind = stopOf(fate.otherwise ?? fate)?.kind;
  const port = servicePortAt(target, scene.side);
  const why = port && whyNoEndpoint(port, scene.side);
  return kind && lacksEndpoints.has(kind) && port && why !== undefined
    ? `${port.label} has no ready endpoint${unlessUnseen(unseenPodsOf(faultsOfPort(port, scene.side)))}: ${why}`
    : undefined;
}

/** Compares the source ranges in a dump's rules with the source ranges in the manifests beside the dump. */
function rangesWords(port: ShownPort, { sender }: Trace, { side }: Scene): string {
  const { label, family } = port;
  const isDump = side.kind === 'dump';
  const shown = rangeTexts(port);
  const written = isDump
    ? side.named?.servicePorts.find((each) => each.label === label && each.family === family)
    : port;
  const wanted = written ? rangeTexts(written) : shown;
  const ranges = `${isDump ? "this node's rules for " : ''}loadBalancerSourceRanges of ${label}${shown === '' ? '' : ` (${shown})`}`;
  const left = `${ranges} do not include ${sender.address?.text ?? 'the address of the node'}`;
  return wanted === shown ? left : `${left}; the manifests have ${wanted || 'none'}: ${unprogrammedCause}`;
}

function rangeTexts({ sourceRanges = [] }: ShownPort): string {
  const texts = sourceRanges.map(({ text }) => text);
  return texts.toSorted().join(', ');
}

/** Describes packets to a cluster IP that kube-proxy refuses because the Service lacks their port. */
function unservedPortWords({ target }: Trace, scene: Scene): string | undefined {
  const { address, port, protocol } = target;
  const own = scene.side.ports.filter((each) => addressKind(each, address) !== undefined);
  const [first] = own;
  if (!first) return undefined;
  if (protocol === 'icmp') return `${titleOfMode(scene.side.mode)} rejects pings to ${address.text}`;
  const service = first.service === undefined ? undefined : serviceName(first);
  const ports = own.map((each) => `${each.port}/${each.protocol}`);
  const owner = { role: 'owner', service, ports } as const;
  return ownersWords(address.text, `${port}/${protocol.toUpperCase()}`, [owner]);
}

/** Says what happens to a pod that kube-proxy does not recognise, and which setting changes this. */
export function undetectedNote(trace: Trace, scene: Scene): string | undefined {
  if (!isUndetectedPod(trace, scene)) return undefined;
  return `kube-proxy cannot recognise pods here, so it treats this pod as a client outside the cluster; set clusterCIDR, or choose another detectLocalMode: ${titleOfMode(scene.side.mode)} then sends packets from pods to all endpoints`;
}

/** Returns a sentence about a packet that the rules treat as a packet to another Service than the manifests do. */
export function otherServiceNote({ target, fate }: Trace, { side }: Scene): string | undefined {
  const other = otherServiceOf(fate.otherwise ?? fate, target, side);
  if (!other) return undefined;
  const { asked, by } = other;
  const what =
    by === undefined
      ? `this node sends the packet to none of the endpoints that ${asked} has in the manifests`
      : `this node's rules take the packet for one to ${by}, but the manifests have ${asked} there`;
  return `${what}: ${unprogrammedCause}`;
}

/** Returns sentences about a Service port that is not the same in the dump as in the manifests beside it. */
export function besideManifestsNotes(trace: Trace, scene: Scene): readonly string[] {
  const { target, fate } = trace;
  const found = besideManifests(target, scene.side);
  if (!found) return [];
  const { label, places, endpoints } = found;
  const isSaid = places.node.length === 0 && lostWayOf(trace, scene)?.kind === 'unprogrammed';
  const isOther = otherServiceOf(fate.otherwise ?? fate, target, scene.side) !== undefined;
  return [
    ...(isSaid || places.manifests.length === 0 ? [] : [`${label} is at ${onlyWords(places)}`]),
    ...(isOther || onlyWords(endpoints) === '' ? [] : [`${label} has endpoints ${onlyWords(endpoints)}`]),
  ].map((what) => `${what}: ${unprogrammedCause}`);
}

function onlyWords({ node, manifests }: OneSided): string {
  const parts = [
    node.length > 0 && `${nameSome(node)} only on this node`,
    manifests.length > 0 && `${nameSome(manifests)} only in the manifests`,
  ];
  return parts.filter((part) => part !== false).join(', ');
}

export function verdictWords(fate: KnownFate, { target }: Trace, scene: Scene): string {
  const { verdict, endpoints, ways, steps, redirectedTo } = fate;
  if (verdict === 'unknown') return verdict;
  const others = isArrival(verdict) ? otherwiseShare(fate) : lostShare({ ways, verdict });
  const rest = others > 1e-9 ? `; ${percent(others)} of connections end differently` : '';
  const failing = failingShare(fate);
  const lost = isArrival(verdict) && isPart(failing) ? `, but ${percent(failing)} of connections fail` : '';
  switch (verdict) {
    case 'delivered': {
      const reached = new Set(endpoints.map(formatSocketAddress)).size;
      const other = otherServiceOf(fate, target, scene.side);
      const not = other?.by === undefined ? ', none' : ` of ${other.by}, not`;
      const whose = other ? `${not} of ${other.asked}` : '';
      return `delivered to ${count(reached, 'endpoint')}${whose}${rest}${lost}`;
    }
    case 'local':
      if (redirectedTo !== undefined)
        return `redirected to port ${redirectedTo} of the node itself: a program on the node answers, if one listens there${rest}${lost}`;
      return `reaches the node itself: no rule of a Service matches the packet, so a program on the node answers${target.protocol === 'icmp' ? '' : ', if one listens there'}${rest}${lost}`;
    default: {
      const isClosed = verdict === 'refused' && target.protocol === 'tcp' && steps.at(-1)?.kind === 'listener';
      const { end, meaning } = isClosed ? closedByBalancer : endWords[verdict];
      return `${end}${stopConditionWords(conditionOf(target, fate, scene))}: ${meaning}${rest}${lost}`;
    }
  }
}

/** A balancer without endpoints keeps its port open, so a check that only connects to the port succeeds. */
const closedByBalancer = { end: 'refused', meaning: 'the connection is accepted, then closed at once' };

const endWords = {
  refused: { end: 'refused', meaning: 'the sender gets an error at once' },
  dropped: { end: 'dropped', meaning: 'the sender gets no answer and waits until it times out' },
  forwarded: { end: 'left to routing', meaning: 'no rule of a Service changes the packet' },
} as const;

/** Returns a sentence that says why a packet to a Service does not reach its endpoints, and what to do about it. */
export function lostWayWords(trace: Trace, scene: Scene): string | undefined {
  const lost = lostWayOf(trace, scene);
  switch (lost?.kind) {
    case 'dormant-table':
      return dormantWords(lost.table);
    case 'link': {
      const { from, to } = lost;
      return to === undefined
        ? `nothing in ${from} leads to an endpoint: ${lostRuleCause()}`
        : `${to} is on the way to the endpoints, but nothing in ${from} leads to ${to}: ${lostRuleCause(to)}`;
    }
    case 'unmasqueraded':
      return unmasqueradedWords(lost.jump);
    case 'unprogrammed':
      return unreachedWords(lost.claimed, trace.target.address.text);
    case 'unserved-port':
      return `kube-proxy serves ${lost.label}, but none of its rules admits this packet: ${lostRuleCause()}`;
    case undefined:
      return undefined;
  }
}
