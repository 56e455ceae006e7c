import { detectLocalTraffic } from '../../cluster/plan-masquerade.ts';
import { serviceName, type ShownPort } from '../../cluster/model.ts';
import { contains, type Address, type Family } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import type { Scene } from '../trace/scene.ts';
import { isLeft } from '../trace/stop.ts';
import {
  causeIds,
  haveOneSetup,
  keyOfReason,
  type CauseId,
  type CauseReason,
  type ModeOfSide,
  type Situation,
} from './causes.ts';
import {
  addCounts,
  compareScenes,
  noCounts,
  type ClassCounts,
  type ComparisonOptions,
  type Difference,
  type Like,
  type Unsettled,
} from './compare.ts';
import { severities, type EffectSeverity, type EffectSender, type Effect, type Divergence } from './effects.ts';
import { stepFinder } from './ends.ts';
import { explainer } from './explain.ts';
import { textOfDestination } from './destinations.ts';
import type { Only } from './representatives.ts';

interface Gathered {
  readonly effects: Map<string, Effect>;
  readonly ports: Map<string, ShownPort>;
  readonly nodes: Set<string>;
  readonly reasons: Map<string, CauseReason>;
  readonly situations: Map<string, Situation>;
  readonly served: { readonly old: Set<string>; readonly new: Set<string> };
  /** The equivalent destinations whose Services were added last. Used to avoid adding them again. */
  alike: readonly Like[];
}

export class Findings {
  readonly #byCause = new Map<CauseId, Gathered>();

  collector(from: Scene, to: Scene): (difference: Difference, alike?: readonly Like[]) => void {
    let explained: ReturnType<typeof explainer> | undefined;
    const isOneSetup = haveOneSetup([from, to]);
    const findStep = stepFinder([from, to], isOneSetup);
    const node = nodeOf(from, to);
    const modes = modesOf(from, to);
    return (difference, alike = none) => {
      const { explain, find } = (explained ??= explainer(from, to));
      const { ports, effect: found, ...blamed } = explain(difference);
      const { cause, because } = findStep(blamed.cause, difference, ports) ?? blamed;
      // A report for a whole cluster must not split differences with one cause by the number of endpoints.
      const effect = { ...found, choice: undefined, classes: 1 + alike.length };
      const known = this.#byCause.get(cause) ?? {
        effects: new Map(),
        ports: new Map(),
        nodes: new Set(),
        reasons: new Map(),
        situations: new Map(),
        served: { old: new Set(), new: new Set() },
        alike: none,
      };
      this.#byCause.set(cause, known);
      for (const port of ports) known.ports.set(port.label, port);
      // All senders to a destination have the same equivalent destinations, so these are added only once.
      for (const { address, port, protocol } of known.alike === alike ? none : alike)
        for (const each of find({ destination: address, port, protocol }, difference.answers).ports)
          known.ports.set(each.label, each);
      known.alike = alike;
      for (const reason of [modes, ...because]) known.reasons.set(keyOfReason(reason), reason);
      const server = serverOf(cause, difference);
      // Advice on the setup does not help if the new kube-proxy has no such health check, because no setting makes it answer.
      const isOfSetup = cause !== 'health-check' || (server === 'old' && !isOneSetup && hasCheck(to, difference));
      if (needsAdvice(effect.severity) && isOfSetup) {
        const { side } = to;
        const { family } = difference.packet.destination;
        const detectsPods = side.kind === 'dump' || detects(side, family, difference.sender.address);
        const isChecked = ports.some((port) => port.healthCheckNodePort);
        const situation = { place: difference.sender.place, detectsPods, isChecked };
        known.situations.set(JSON.stringify(situation), situation);
      }
      known.nodes.add(node);
      addTo(known.effects, effect);
      if (!server) return;
      const asked = { ...difference.packet, address: difference.packet.destination };
      for (const each of [asked, ...alike])
        known.served[server].add(cause === 'health-check' ? formatSocketAddress(each) : each.address.text);
    };
  }

  list(): readonly Divergence[] {
    const found = causeIds.flatMap((cause): readonly Divergence[] => {
      const known = this.#byCause.get(cause);
      if (!known) return [];
      const effects = [...known.effects.values()].sort(bySeverity);
      return [
        {
          cause,
          reasons: [...known.reasons.values()],
          served: { old: [...known.served.old].sort(), new: [...known.served.new].sort() },
          situations: [...known.situations.values()],
          severity: effects[0]?.severity ?? 'fails-otherwise',
          services: [...new Set([...known.ports.values()].map(serviceName))].sort(),
          servicePorts: [...known.ports.keys()].sort(),
          effects,
          classes: effects.reduce((sum, { classes }) => sum + classes, 0),
          nodes: [...known.nodes].sort(),
        },
      ];
    });
    return found.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Returns the side that alone serves a node port or answers a health check. A side that refuses for lack of endpoints serves too. */
function serverOf(cause: CauseId, { from, answers }: Difference): 'old' | 'new' | undefined {
  if (cause === 'node-port-addresses') return isLeft(from) ? 'new' : 'old';
  if (cause !== 'health-check' || !answers || (answers.from && answers.to)) return undefined;
  return answers.from ? 'old' : 'new';
}

function hasCheck({ side }: Scene, { packet }: Difference): boolean {
  return side.kind !== 'dump' && side.cluster.healthChecks.some(({ port }) => port === packet.port);
}

/** Reports whether kube-proxy recognises a sender with this address as a pod of the cluster. */
function detects({ settings, node }: CompiledSnapshot, family: Family, address: Address | undefined): boolean {
  const local = detectLocalTraffic(settings, node, family);
  return local !== undefined && (local.kind !== 'from-network' || !address || contains(local.network, address));
}

/** Returns the name of the node that both sides describe; '' if there is no Node object. */
export function nodeOf({ side: from }: Scene, { side: to }: Scene): string {
  return from.node?.name ?? to.nodeName;
}

function rank({ severity }: { readonly severity: EffectSeverity }): number {
  return severities.indexOf(severity);
}

function bySeverity(a: Effect, b: Effect): number {
  return rank(a) - rank(b) || b.classes - a.classes;
}

function addTo(effects: Map<string, Effect>, effect: Effect): void {
  const key = JSON.stringify([effect.target, effect.severity, effect.from, effect.to, effect.choice]);
  const known = effects.get(key) ?? { ...effect, senders: [], classes: 0 };
  const worst = rank(effect) < rank(known) ? effect : known;
  const senders = sortSenders([...known.senders, ...effect.senders]);
  effects.set(key, { ...worst, senders, classes: known.classes + effect.classes });
}

function sortSenders(senders: readonly EffectSender[]): readonly EffectSender[] {
  const byKey = new Map(senders.map((each) => [JSON.stringify(each), each]));
  return [...byKey].toSorted(([a], [b]) => compareText(a, b)).map(([, each]) => each);
}

function needsAdvice(severity: EffectSeverity): boolean {
  return severity === 'breaks' || severity === 'changes' || severity === 'unknown';
}

function modesOf({ side: from }: Scene, { side: to }: Scene): CauseReason {
  return { kind: 'modes', from: modeOf(from), to: modeOf(to) };
}

function modeOf({ mode, settings, behaviours }: Scene['side']): ModeOfSide | undefined {
  if (mode === undefined) return undefined;
  return { mode, by: settings && { release: settings.release, does: [...behaviours] } };
}

/** An effect, the Services that it applies to ("namespace/name", sorted), and their destinations. */
export interface ServiceEffect extends Effect {
  readonly services: readonly string[];
  readonly asked: readonly AskedThere[];
}

interface AskedThere {
  /** `id`: the protocol, address and port. If the destination may have any address, the family stands in place of the address. */
  readonly id: string;
  readonly example: Effect['example'];
}

export interface ServiceEffects extends Pick<ClassCounts, 'unknown' | 'unknownOnOne'> {
  readonly effects: readonly ServiceEffect[];
  /** Whether the sides treat Pods that reach themselves through a Service differently. `effects` does not include such differences. */
  readonly touchesHairpins: boolean;
}

/** Sends one packet of each class to both sides. Returns the differences by Service; undefined if there are too many destinations. */
export function effectsByService(from: Scene, to: Scene, options?: ComparisonOptions): ServiceEffects | undefined {
  const { explain, find } = explainer(from, to);
  let touchesHairpins = false;
  const gathered: Gathering[] = [];
  const collect = (difference: Difference, alike: readonly Like[], turn: number): void => {
    const { ports, effect, isHairpin } = explain(difference);
    if (isHairpin === true) {
      touchesHairpins = true;
      return;
    }
    const { packet: sent } = difference;
    gathered.push({ turn, port: `${sent.destination.family} ${sent.port}`, ports, effect });
    for (const { address, port, protocol, insteadOf, ...like } of alike) {
      const packet = { destination: address, port, protocol };
      const example = { ...effect.example, from: insteadOf(effect.example.from), to: textOfDestination(packet) };
      gathered.push({
        turn: like.turn,
        port: `${address.family} ${port}`,
        ports: find(packet, difference.answers).ports,
        effect: { ...effect, example },
      });
    }
  };
  const { unknown, unknownOnOne, isTooMuch } = compareScenes(from, to, collect, options);
  if (isTooMuch) return undefined;
  const merged = new Map<string, { effect: Effect; services: Set<string>; asked: Map<string, AskedThere> }>();
  for (const { service, id, effect } of effectsByAddress(gathered)) {
    const { target, senders, from: old, to: fresh, choice, example, classes } = effect;
    const key = JSON.stringify([target, senders, old, fresh, choice]);
    const known = merged.get(key) ?? { effect: { ...effect, classes: 0 }, services: new Set(), asked: new Map() };
    known.effect = { ...known.effect, classes: known.effect.classes + classes };
    if (service !== '') known.services.add(service);
    if (!known.asked.has(id)) known.asked.set(id, { id, example });
    merged.set(key, known);
  }
  const effects = [...merged.values()].map(({ effect, services, asked }): ServiceEffect => ({
    ...effect,
    services: [...services],
    asked: [...asked.values()],
  }));
  return { effects: effects.toSorted((a, b) => rank(a) - rank(b)), touchesHairpins, unknown, unknownOnOne };
}

interface Gathering {
  readonly turn: number;
  /** The family and port, as in "ipv4 30080". */
  readonly port: string;
  readonly ports: readonly ShownPort[];
  readonly effect: Effect;
}

const addressed: ReadonlySet<Effect['target']> = new Set(['cluster-ip', 'external-ip', 'load-balancer-ip', 'unknown']);

function effectsByAddress(gathered: readonly Gathering[]) {
  const found = new Map<string, { readonly service: string; readonly id: string; readonly own: Map<string, Effect> }>();
  // Of several equal effects, the first is the example.
  for (const { port, ports, effect } of gathered.toSorted((a, b) => a.turn - b.turn)) {
    const { protocol, to } = effect.example;
    const id = `${protocol} ${addressed.has(effect.target) ? to : port}`;
    for (const service of ports.length === 0 ? [''] : new Set(ports.map(serviceName))) {
      // Each address has senders of its own. For example, only the node itself reaches its loopback addresses.
      const key = `${service} ${protocol} ${to}`;
      const known = found.get(key) ?? { service, id, own: new Map<string, Effect>() };
      found.set(key, known);
      addTo(known.own, effect);
    }
  }
  const orderOf = (service: string) => (service === '' ? 1 : 0);
  return [...found.values()]
    .toSorted(({ service: a }, { service: b }) => orderOf(a) - orderOf(b) || compareText(a, b))
    .flatMap(({ own, ...at }) => [...own.values()].sort(bySeverity).map((effect) => ({ ...at, effect })));
}

const none: readonly never[] = [];

export interface Compared extends Readonly<Omit<ClassCounts, 'reasons'>> {
  readonly reasons: readonly Unsettled[];
  readonly findings: readonly Divergence[];
  /** The names of the nodes that packets were sent to; '' stands for a node without a Node object. */
  readonly asked: readonly string[];
}

export class Comparison {
  readonly #findings = new Findings();
  readonly #asked = new Set<string>();
  readonly #counts = noCounts();

  /** Compares both sides of one node. `only` limits the comparison to packets that no other node represents. */
  add(scenes: readonly [Scene, Scene], only: Only | undefined): void {
    const compared = compareScenes(...scenes, this.#findings.collector(...scenes), { only });
    this.#asked.add(nodeOf(...scenes));
    addCounts(this.#counts, compared);
  }

  result(): Compared {
    return {
      ...this.#counts,
      reasons: [...this.#counts.reasons.values()],
      findings: this.#findings.list(),
      asked: [...this.#asked],
    };
  }
}
