import { isLoopback, joinHostPort, type Address } from '../../kernel/address.ts';
import { formatSocketAddress, parseSocketAddress } from '../../kernel/socket-address.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { lostShare, sumChances, type Fate, type Packet, type ReachedEndpoint } from '../packet.ts';
import { isLocalEndpoint, serviceOf, type Scene } from '../trace/scene.ts';
import { causeIds, causes, type Cause, type CauseId } from './causes.ts';
import { compareScenes, ownAddresses, sourceWord, type Difference } from './compare.ts';
import { portKey } from './questions.ts';

/**
 * What a difference does to clients, the worst first: what worked no longer does, or works in another way, or something works
 * that did not; or nothing works on either side, and only the failure is another.
 */
const severities = ['breaks', 'changes', 'opens', 'fails-otherwise'] as const;

export type Severity = (typeof severities)[number];

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

/** How packets end on both sides, the same for all these senders. */
export interface Effect {
  readonly target: Target['kind'];
  readonly senders: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly severity: Severity;
  readonly classes: number;
  /** A packet to ask kpc trace for. */
  readonly example: {
    readonly from: string;
    readonly to: string;
    readonly protocol: string;
    readonly interface: string | undefined;
  };
}

type ShownPort = Scene['ports'][number];

/** What a packet is sent to. */
interface Target {
  readonly kind:
    | ShownPort['addresses'][number]['kind']
    | 'node-port'
    | 'health-check'
    | 'ping'
    | 'unserved-port'
    | 'unserved-address'
    | 'node';
  /** Those that have the address or node port. */
  readonly ports: readonly ShownPort[];
}

interface Gathered {
  readonly effects: Map<string, Effect>;
  readonly services: Set<string>;
  readonly nodes: Set<string>;
  readonly reasons: Set<string>;
  /** The addresses on which only one side serves node ports. */
  readonly served: { readonly old: Set<string>; readonly new: Set<string> };
}

/** Gathers differences by their causes, node by node. */
export class Findings {
  readonly #byCause = new Map<CauseId, Gathered>();

  /** Takes the differences between two sides of one node. */
  collector(from: Scene, to: Scene): (difference: Difference) => void {
    const explain = explainer(from, to);
    const node = from.side.services?.node.name ?? to.side.services?.node.name ?? '';
    return (difference) => {
      const { cause, labels, effect } = explain(difference);
      const known = this.#byCause.get(cause) ?? {
        effects: new Map(),
        services: new Set(),
        nodes: new Set(),
        reasons: new Set(),
        served: { old: new Set(), new: new Set() },
      };
      this.#byCause.set(cause, known);
      for (const label of labels) known.services.add(label);
      for (const reason of reasonsOf(cause, from, to)) known.reasons.add(reason);
      known.nodes.add(node);
      addTo(known.effects, effect);
      if (cause !== 'node-port-addresses') return;
      known.served[difference.from.endpoints.length > 0 ? 'old' : 'new'].add(difference.packet.destination.text);
    };
  }

  /** Those that concern clients most come first. */
  list(): readonly Finding[] {
    const found = causeIds.flatMap((cause): readonly Finding[] => {
      const known = this.#byCause.get(cause);
      if (!known) return [];
      const effects = [...known.effects.values()].sort(bySeverity);
      const { title, advice }: Cause = causes[cause];
      return [
        {
          cause,
          title,
          reasons: [...known.reasons, ...servedWords(known.served)],
          advice,
          severity: effects[0]?.severity ?? 'fails-otherwise',
          services: [...known.services].sort(),
          effects,
          classes: effects.reduce((sum, { classes }) => sum + classes, 0),
          nodes: [...known.nodes].sort(),
        },
      ];
    });
    return found.toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ severity }: { readonly severity: Severity }): number {
  return severities.indexOf(severity);
}

function bySeverity(a: Effect, b: Effect): number {
  return rank(a) - rank(b) || b.classes - a.classes;
}

/** Adds a class of packets to those that end alike. */
function addTo(effects: Map<string, Effect>, effect: Effect): void {
  const key = [effect.target, effect.from, effect.to].join('|');
  const known = effects.get(key) ?? { ...effect, senders: [], classes: 0 };
  const worst = rank(effect) < rank(known) ? effect : known;
  const isNew = effect.senders.some((sender) => !known.senders.includes(sender));
  const senders = isNew ? [...known.senders, ...effect.senders].sort() : known.senders;
  effects.set(key, { ...worst, senders, classes: known.classes + effect.classes });
}

/** Of which addresses only one side serves node ports. */
function servedWords(served: Gathered['served']): readonly string[] {
  return (['old', 'new'] as const).flatMap((side) => {
    const addresses = [...served[side]].sort().join(', ');
    return addresses === '' ? [] : [`Here only the ${side} side serves them on ${addresses}.`];
  });
}

function reasonsOf(cause: CauseId, from: Scene, to: Scene): readonly string[] {
  const { modes }: Cause = causes[cause];
  if (!modes || from.mode === to.mode) return [];
  return [from, to].flatMap(({ mode }) => (mode ? [`${modeFacts[mode].title} ${modes[mode]}.`] : []));
}

/** Tells differences between two sides of one node. */
function explainer(...scenes: readonly [Scene, Scene]) {
  const nodes = ownAddresses(scenes);
  const find = targetFinder(scenes, nodes);
  return (difference: Difference) => {
    const { sender, packet, from, to } = difference;
    const target = find(packet);
    const isOwnEndpoint =
      sender.address !== undefined &&
      target.ports.some(({ endpoints = [] }) =>
        endpoints.some(({ endpoint }) => parseSocketAddress(endpoint)?.address.text === sender.address?.text),
      );
    const effect: Effect = {
      target: target.kind,
      senders: [isOwnEndpoint ? 'an endpoint of the Service' : sender.words],
      from: fateWords(from, to, packet, scenes, nodes),
      to: fateWords(to, from, packet, [...scenes].reverse(), nodes),
      severity: severityOf(from, to, target),
      classes: 1,
      example: {
        from: sender.address?.text ?? 'node',
        to: packet.protocol === 'icmp' ? packet.destination.text : joinHostPort(packet.destination.text, packet.port),
        protocol: packet.protocol,
        interface: sender.enters?.interface,
      },
    };
    const labels = new Set(target.ports.map(({ name }) => name));
    return { cause: causeOf(difference, target, isOwnEndpoint, nodes), labels, effect };
  };
}

/** Looks up what packets are sent to, by the Services of either side. `nodes` are the node's own addresses. */
function targetFinder(scenes: readonly Scene[], nodes: ReadonlyMap<string, Address>): (packet: Packet) => Target {
  /** By socket, by address, and by port of the node. */
  const targets = new Map<string, { readonly kind: Target['kind']; readonly ports: ShownPort[] }>();
  const add = (key: string, kind: Target['kind'], port: ShownPort): void => {
    const known = targets.get(key);
    if (known) known.ports.push(port);
    else targets.set(key, { kind, ports: [port] });
  };
  for (const port of scenes.flatMap(({ ports }) => ports)) {
    const { family, protocol, nodePort, healthCheckNodePort } = port;
    for (const { kind, address } of port.addresses) {
      if (port.port !== undefined) add(`${address} ${portKey(protocol, port.port)}`, kind, port);
      add(address, 'unserved-port', port);
    }
    if (nodePort !== undefined) add(`${family} ${portKey(protocol, nodePort)}`, 'node-port', port);
    if (healthCheckNodePort !== undefined)
      add(`${family} ${portKey('tcp', healthCheckNodePort)}`, 'health-check', port);
  }
  return ({ destination: { text, family }, protocol, port }) => {
    const key = portKey(protocol, port);
    const isNode = nodes.has(text);
    const served = targets.get(`${text} ${key}`) ?? (isNode ? targets.get(`${family} ${key}`) : undefined);
    if (served) return served;
    if (isNode) return { kind: 'node', ports: [] };
    const near = targets.get(text) ?? { kind: 'unserved-address', ports: [] };
    return near.ports.length > 0 && protocol === 'icmp' ? { ...near, kind: 'ping' } : near;
  };
}

/** Why the sides differ. */
function causeOf(
  { sender, packet, from, to }: Difference,
  { kind, ports }: Target,
  isOwnEndpoint: boolean,
  nodes: ReadonlyMap<string, Address>,
): CauseId {
  if (from.verdict === 'unknown' || to.verdict === 'unknown') return 'not-understood';
  const own = causeIds.find((each) => each === kind);
  if (own || kind === 'node') return own ?? 'other';
  const delivers = [from, to].map(({ endpoints }) => endpoints.length > 0);
  if (kind === 'node-port') {
    if (isLoopback(packet.destination)) return 'node-port-loopback';
    // One side leaves to the node itself what the other delivers.
    const isLeft = (delivers[0] && to.verdict === 'local') || (delivers[1] && from.verdict === 'local');
    if (isLeft) return 'node-port-addresses';
  }
  if (ports.every(({ endpoints = [] }) => endpoints.length === 0)) return 'no-endpoints';
  if (isOwnEndpoint && delivers.includes(true)) {
    // Whether others than the sender are chosen alike, and see the same source.
    const [before, after] = [from, to].map(({ endpoints }) => {
      const others = endpoints.filter(({ address }) => address.text !== sender.address?.text);
      return chancesOf(others, (each) => `${formatSocketAddress(each)} as ${sourceWord(each.source, nodes)}`);
    });
    if (before === after) return 'hairpin';
  }
  const isSame = chancesOf(from.endpoints) === chancesOf(to.endpoints);
  const isSameChoice = !delivers.includes(false) && isSame;
  const policy = kind === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
  const isLocal = ports.findLast((port) => port[policy] !== undefined)?.[policy] === 'Local';
  if (isLocal && !isSameChoice) return kind === 'cluster-ip' ? 'internal-policy-local' : 'external-policy-local';
  if (!delivers.includes(false)) return isSame ? 'masquerade' : 'endpoints';
  return ports.some(({ sourceRanges }) => sourceRanges.length > 0) ? 'source-ranges' : 'other';
}

function severityOf(from: Fate, to: Fate, { kind }: Target): Severity {
  const [before = 0, after = 0] = [from, to].map(({ ways }) =>
    ways.reduce((sum, { verdict, probability }) => {
      const works = verdict === 'delivered' || (verdict === 'local' && (kind === 'node' || kind === 'health-check'));
      return sum + (works ? probability : 0);
    }, 0),
  );
  if (Math.abs(before - after) < 1e-6) return before > 0 ? 'changes' : 'fails-otherwise';
  return before > after ? 'breaks' : 'opens';
}

/** Endpoints with their chances. */
function chancesOf(
  endpoints: readonly ReachedEndpoint[],
  wordOf: (endpoint: ReachedEndpoint) => string = formatSocketAddress,
): string {
  return [...sumChances(endpoints, wordOf)].map(([where, chance]) => `${where} ${chance.toFixed(5)}`).join();
}

/** What becomes of a packet, in words that fit all packets of its kind; the source only where the sides differ in it. */
function fateWords(
  fate: Fate,
  other: Fate,
  packet: Packet,
  scenes: readonly Scene[],
  nodes: ReadonlyMap<string, Address>,
): string {
  const nameOf = (source: Fate['source']): string => {
    const word = sourceWord(source, nodes);
    if (word === 'node') return "the node's address";
    return word === packet.destination.text ? 'the address of the Service' : "the client's address";
  };
  const [sources, otherSources] = [fate, other].map((each) => {
    const seen = each.endpoints.length > 0 ? each.endpoints : [each];
    return [...new Set(seen.map(({ source }) => nameOf(source)))].sort().join(' or ');
  });
  const isSame = fate.verdict !== other.verdict || chancesOf(fate.endpoints) === chancesOf(other.endpoints);
  const isSeen = fate.verdict === other.verdict && isKept.has(fate.verdict) && sources !== otherSources;
  const where = isSame ? '' : whichEndpoints(fate, scenes);
  const lost = fate.verdict === 'delivered' && lostShare(fate) > 0 ? ', with some connections lost' : '';
  return `${endWords[fate.verdict]}${where}${isSeen ? `, with ${sources} as source` : ''}${lost}`;
}

const isKept: ReadonlySet<string> = new Set(['delivered', 'local', 'forwarded']);

const endWords: { readonly [V in Fate['verdict']]: string } = {
  delivered: 'delivered',
  refused: 'refused',
  dropped: 'dropped',
  local: 'left to the node itself',
  forwarded: 'left to routing',
  unknown: 'not known',
};

/** A dump does not say where endpoints are: the other side may. The side's own scene comes first. */
function whichEndpoints({ endpoints }: Fate, scenes: readonly Scene[]): string {
  const placeOf = (each: ReachedEndpoint): boolean | undefined =>
    scenes.map((scene) => isLocalEndpoint(scene, each)).find((isLocal) => isLocal !== undefined);
  const places = new Set(endpoints.map(placeOf));
  if (places.has(undefined)) return ' to other endpoints';
  if (places.size > 1) return ' to endpoints on this and other nodes';
  return places.has(true) ? ' to endpoints on this node' : ' to endpoints on other nodes';
}

/** How packets end on two sides. */
export interface ServiceEffects {
  /** The worst first, each with the Services ("namespace/name", sorted) that it is the same for; none for no Service. */
  readonly effects: readonly (Effect & { readonly services: readonly string[] })[];
  /** Whether some packets only go to other endpoints, or to the same with other chances: no effect says so. */
  readonly choosesOthers: boolean;
  /** Whether pods that reach themselves through a Service are treated differently. No effect says that. */
  readonly touchesHairpins: boolean;
}

/** Sends one packet of each class to both sides, and says for which Services they end otherwise. */
export function effectsByService(from: Scene, to: Scene): ServiceEffects {
  const explain = explainer(from, to);
  const ofServices = new Map<string, Map<string, Effect>>();
  const others = { choosesOthers: false, touchesHairpins: false };
  compareScenes(from, to, (difference) => {
    const { cause, labels, effect } = explain(difference);
    if (cause === 'hairpin') others.touchesHairpins = true;
    else if (effect.from === effect.to) others.choosesOthers = true;
    else {
      for (const service of labels.size === 0 ? [''] : new Set([...labels].map(serviceOf))) {
        const known = ofServices.get(service) ?? new Map<string, Effect>();
        ofServices.set(service, known);
        addTo(known, effect);
      }
    }
  });
  const effects = new Map<string, ServiceEffects['effects'][number]>();
  for (const [service, known] of [...ofServices].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    for (const effect of [...known.values()].sort(bySeverity)) {
      const key = JSON.stringify([effect.target, effect.senders, effect.from, effect.to]);
      const before = effects.get(key)?.services ?? [];
      effects.set(key, { ...effect, services: service === '' ? before : [...before, service] });
    }
  }
  return { effects: [...effects.values()].toSorted((a, b) => rank(a) - rank(b)), ...others };
}
