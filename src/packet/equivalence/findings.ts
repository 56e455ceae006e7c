import { isLoopback, joinHostPort, type Address } from '../../kernel/address.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { Fate, Packet, ReachedEndpoint } from '../packet.ts';
import { type KnownPort, type Scene, serviceOf } from '../trace/scene.ts';
import { causeIds, causeOf, causes, type CauseId } from './causes.ts';
import { ownAddresses, sourceWord, type Difference, compareScenes } from './compare.ts';
import { targetFinder, type FindTarget, type Target } from './subject.ts';

/**
 * What a difference does to clients: what worked no longer does, or works in another way, or something works that did not;
 * or nothing works on either side, and only the failure is another.
 */
export type Severity = 'breaks' | 'changes' | 'opens' | 'fails-otherwise';

/** All classes that differ for one reason. */
export interface Finding {
  readonly cause: CauseId;
  readonly title: string;
  /** What each side does, in sentences. */
  readonly reasons: readonly string[];
  readonly advice: string | undefined;
  readonly severity: Severity;
  /** "namespace/name:port", sorted. */
  readonly services: readonly string[];
  readonly effects: readonly Effect[];
  /** How many classes of packets. */
  readonly classes: number;
  /** The nodes that were asked and show it; '' if there is no Node object. */
  readonly nodes: readonly string[];
}

/** What becomes of packets on both sides, alike for all these senders. */
export interface Effect {
  readonly target: Target['kind'];
  readonly senders: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly severity: Severity;
  readonly classes: number;
  readonly example: Example;
}

/** A packet to ask kpc trace for. */
interface Example {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly interface: string | undefined;
}

interface MutableEffect extends Omit<Effect, 'senders' | 'classes'> {
  readonly senders: Set<string>;
  classes: number;
}

interface MutableFinding {
  readonly services: Set<string>;
  readonly effects: Map<string, MutableEffect>;
  readonly reasons: Set<string>;
  readonly nodes: Set<string>;
  /** Addresses of the node where each side serves node ports. */
  readonly served: { readonly from: Set<string>; readonly to: Set<string> };
}

/** Gathers differences by their causes, node by node. */
export class Findings {
  readonly #byCause = new Map<CauseId, MutableFinding>();

  /** Takes the differences between two sides of one node. */
  collector(from: Scene, to: Scene): (difference: Difference) => void {
    const nodes = ownAddresses([from, to]);
    const find = targetFinder([from, to], nodes);
    const reasons = (cause: CauseId): readonly string[] => reasonsOf(cause, from, to);
    const node = from.side.services?.node.name ?? to.side.services?.node.name ?? '';
    return (difference) => this.#add(difference, { find, nodes, reasons, node });
  }

  #add({ sender, packet, from, to }: Difference, { find, nodes, reasons, node }: Collected): void {
    const target = find(packet);
    const isOwnEndpoint =
      sender.address !== undefined &&
      target.ports.some(({ endpoints }) => endpoints.some(({ address }) => address.text === sender.address?.text));
    const delivers = { from: from.endpoints.length > 0, to: to.endpoints.length > 0 };
    const cause = causeOf({
      target,
      isLoopback: isLoopback(packet.destination),
      isOwnEndpoint,
      isUnknown: from.verdict === 'unknown' || to.verdict === 'unknown',
      isUnserved: (delivers.from && to.verdict === 'local') || (delivers.to && from.verdict === 'local'),
      delivers,
      sameEndpoints: endpointsKey(from) === endpointsKey(to),
      sameOthers: othersKey(from, sender.address, nodes) === othersKey(to, sender.address, nodes),
    });
    let finding = this.#byCause.get(cause);
    if (!finding) {
      const served = { from: new Set<string>(), to: new Set<string>() };
      finding = { services: new Set(), effects: new Map(), reasons: new Set(), nodes: new Set(), served };
      this.#byCause.set(cause, finding);
    }
    for (const label of target.labels) finding.services.add(label);
    for (const reason of reasons(cause)) finding.reasons.add(reason);
    finding.nodes.add(node);
    if (delivers.from) finding.served.from.add(packet.destination.text);
    if (delivers.to) finding.served.to.add(packet.destination.text);
    const words = [
      fateWords(from, to, packet, target.ports, nodes),
      fateWords(to, from, packet, target.ports, nodes),
    ] as const;
    const key = [target.kind, ...words].join('|');
    let effect = finding.effects.get(key);
    if (!effect) {
      effect = {
        target: target.kind,
        senders: new Set(),
        from: words[0],
        to: words[1],
        severity: severityOf(from, to, target),
        classes: 0,
        example: {
          from: sender.address?.text ?? 'node',
          to: packet.protocol === 'icmp' ? packet.destination.text : joinHostPort(packet.destination.text, packet.port),
          protocol: packet.protocol,
          interface: sender.enters?.interface,
        },
      };
      finding.effects.set(key, effect);
    }
    effect.classes++;
    effect.senders.add(isOwnEndpoint ? 'an endpoint of the Service' : sender.words);
  }

  /** Those that concern clients most come first. */
  list(): readonly Finding[] {
    const found = causeIds.flatMap((cause): readonly Finding[] => {
      const finding = this.#byCause.get(cause);
      if (!finding) return [];
      const effects = [...finding.effects.values()]
        .map((effect) => ({ ...effect, senders: [...effect.senders].sort() }))
        .sort((a, b) => rank(a.severity) - rank(b.severity) || b.classes - a.classes);
      const { title, advice } = causes[cause];
      return [
        {
          cause,
          title,
          reasons: [...finding.reasons, ...(cause === 'node-port-addresses' ? servedWords(finding.served) : [])],
          advice,
          severity: effects[0]?.severity ?? 'fails-otherwise',
          services: [...finding.services].sort(),
          effects,
          classes: effects.reduce((sum, { classes }) => sum + classes, 0),
          nodes: [...finding.nodes].sort(),
        },
      ];
    });
    return found.toSorted((a, b) => rank(a.severity) - rank(b.severity));
  }
}

interface Collected {
  readonly find: FindTarget;
  readonly nodes: ReadonlyMap<string, Address>;
  readonly reasons: (cause: CauseId) => readonly string[];
  readonly node: string;
}

const severities: readonly Severity[] = ['breaks', 'changes', 'opens', 'fails-otherwise'];

function rank(severity: Severity): number {
  return severities.indexOf(severity);
}

function severityOf(from: Fate, to: Fate, { kind }: Target): Severity {
  const share = (fate: Fate): number =>
    fate.ways.reduce((sum, { verdict, probability }) => {
      const works = verdict === 'delivered' || (verdict === 'local' && (kind === 'node' || kind === 'health-check'));
      return sum + (works ? probability : 0);
    }, 0);
  const [before, after] = [share(from), share(to)];
  if (Math.abs(before - after) < 1e-6) return before > 0 ? 'changes' : 'fails-otherwise';
  return before > after ? 'breaks' : 'opens';
}

function reasonsOf(cause: CauseId, from: Scene, to: Scene): readonly string[] {
  const { modes } = causes[cause];
  if (!modes || from.mode === to.mode) return [];
  return [from, to].flatMap(({ mode }) => (mode ? [`${modeFacts[mode].title} ${modes[mode]}.`] : []));
}

/** Of which addresses only one side serves node ports. */
function servedWords({ from, to }: MutableFinding['served']): readonly string[] {
  return [
    ...(from.size > 0 ? [`Here only the old side serves them on ${[...from].sort().join(', ')}.`] : []),
    ...(to.size > 0 ? [`Here only the new side serves them on ${[...to].sort().join(', ')}.`] : []),
  ];
}

function at({ address, port }: Pick<ReachedEndpoint, 'address' | 'port'>): string {
  return joinHostPort(address.text, port);
}

/** The endpoints with their chances. */
function endpointsKey({ endpoints }: Fate, wordOf: (endpoint: ReachedEndpoint) => string = at): string {
  const chances = new Map<string, number>();
  for (const each of endpoints) chances.set(wordOf(each), (chances.get(wordOf(each)) ?? 0) + each.probability);
  return [...chances].map(([where, chance]) => `${where} ${chance.toFixed(5)}`).join();
}

/** The endpoints besides the sender, with their chances and the source that they see. */
function othersKey(fate: Fate, sender: Address | undefined, nodes: ReadonlyMap<string, Address>): string {
  const endpoints = fate.endpoints.filter(({ address }) => address.text !== sender?.text);
  return endpointsKey({ ...fate, endpoints }, (each) => `${at(each)} as ${sourceWord(each.source, nodes)}`);
}

function sourceName(source: Fate['source'], packet: Packet, nodes: ReadonlyMap<string, Address>): string {
  const word = sourceWord(source, nodes);
  if (word === 'node') return "the node's address";
  return word === packet.destination.text ? 'the address of the Service' : "the client's address";
}

/** What becomes of a packet, in words that fit all packets of its kind; the source only where the sides differ in it. */
function fateWords(
  fate: Fate,
  other: Fate,
  packet: Packet,
  ports: readonly KnownPort[],
  nodes: ReadonlyMap<string, Address>,
): string {
  const sources = (each: Fate): string =>
    [
      ...new Set(
        (each.endpoints.length > 0 ? each.endpoints : [each]).map(({ source }) => sourceName(source, packet, nodes)),
      ),
    ]
      .sort()
      .join(' or ');
  const seen =
    fate.verdict === other.verdict && sources(fate) !== sources(other) ? `, with ${sources(fate)} as source` : '';
  switch (fate.verdict) {
    case 'delivered': {
      const isSame = endpointsKey(fate) === endpointsKey(other);
      const where = other.verdict !== 'delivered' || isSame ? '' : whichEndpoints(fate, ports);
      const lost = fate.ways.some(({ verdict }) => verdict !== 'delivered') ? ', with some connections lost' : '';
      return `delivered${where}${seen}${lost}`;
    }
    case 'refused':
      return 'refused';
    case 'dropped':
      return 'dropped';
    case 'local':
      return `left to the node itself${seen}`;
    case 'forwarded':
      return `left to routing${seen}`;
    case 'unknown':
      return 'not known';
  }
}

function whichEndpoints({ endpoints }: Fate, ports: readonly KnownPort[]): string {
  const known = new Map(ports.flatMap((port) => port.endpoints).map((each) => [at(each), each.isLocal]));
  const places = new Set(endpoints.map((each) => known.get(at(each))));
  if (places.has(undefined)) return ' to other endpoints';
  if (places.size > 1) return ' to endpoints on this and other nodes';
  return places.has(true) ? ' to endpoints on this node' : ' to endpoints on other nodes';
}

/** What becomes of the same packets to some Services on two sides. */
interface ServiceEffect extends Effect {
  /** "namespace/name", sorted; empty for packets to no Service. */
  readonly services: readonly string[];
}

/** What becomes of packets on two sides. */
export interface ServiceEffects {
  readonly effects: readonly ServiceEffect[];
  /** Whether some packets only go to other endpoints, or to the same with other chances: no effect says so. */
  readonly choosesOthers: boolean;
  /** Whether pods that reach themselves through a Service are not treated alike, which no effect says either. */
  readonly touchesHairpins: boolean;
}

/** Sends one packet of each class to both sides, and says for which Services they end otherwise. */
export function effectsByService(from: Scene, to: Scene): ServiceEffects {
  const find = targetFinder([from, to], ownAddresses([from, to]));
  const ofServices = new Map<string, { readonly findings: Findings; readonly collect: (found: Difference) => void }>();
  compareScenes(from, to, (difference) => {
    const labels = find(difference.packet).labels.map((label) => serviceOf({ label }));
    for (const service of new Set(labels.length === 0 ? [''] : labels)) {
      let known = ofServices.get(service);
      if (!known) {
        const findings = new Findings();
        known = { findings, collect: findings.collector(from, to) };
        ofServices.set(service, known);
      }
      known.collect(difference);
    }
  });
  const effects = new Map<string, ServiceEffect>();
  let choosesOthers = false;
  let touchesHairpins = false;
  for (const [service, { findings }] of [...ofServices].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const found = findings.list();
    const others = found.filter(({ cause }) => cause !== 'hairpin');
    if (others.length < found.length) touchesHairpins = true;
    for (const effect of ownEffects(others)) {
      if (effect.from === effect.to) {
        choosesOthers = true;
        continue;
      }
      const key = JSON.stringify([effect.target, effect.senders, effect.from, effect.to]);
      const before = effects.get(key)?.services ?? [];
      effects.set(key, { ...effect, services: service === '' ? before : [...before, service] });
    }
  }
  const sorted = [...effects.values()].toSorted((a, b) => weights.indexOf(a.severity) - weights.indexOf(b.severity));
  return { effects: sorted, choosesOthers, touchesHairpins };
}

/** The worst first. */
const weights: readonly Severity[] = ['breaks', 'changes', 'opens', 'fails-otherwise'];

/** The effects on one Service, whatever their causes: each once, with all senders that have it. */
function ownEffects(findings: readonly Finding[]): readonly Effect[] {
  const effects = new Map<string, Effect>();
  for (const effect of findings.flatMap((finding) => finding.effects)) {
    const key = JSON.stringify([effect.target, effect.from, effect.to]);
    const before = effects.get(key);
    const senders = [...new Set([...(before?.senders ?? []), ...effect.senders])].toSorted();
    effects.set(key, { ...effect, ...before, senders, classes: effect.classes + (before?.classes ?? 0) });
  }
  return [...effects.values()];
}
