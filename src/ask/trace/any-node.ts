// Finds a packet's fate if the input has several Nodes and nothing names one: the fate on all of them, or unknown.
import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import { PlanMemo, endpointClass, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import { nodeAddresses, zoneOf } from '../../cluster/node-context.ts';
import type { Node } from '../../cluster/objects.ts';
import { fateOnAnyOf, type Evaluator } from '../../packet/evaluate.ts';
import type { Fate, Packet } from '../../packet/packet.ts';
import type { CompiledSnapshot, Snapshot } from '../../snapshot/snapshot.ts';

/** `own` evaluates on a node without a name, which has no endpoint and no Node's address. */
export function evaluateOnAny(side: Snapshot, own: Evaluator, evaluatorOf: (one: Snapshot) => Evaluator): Evaluator {
  const { anyOf } = side.kind === 'dump' ? { anyOf: undefined } : side;
  if (side.kind === 'dump' || !anyOf) return own;
  const standIns = new StandIns(side, anyOf);
  const made = new Map<string, Evaluator | undefined>();
  const evaluate = (name: string, isOwner: boolean, packet: Packet): readonly (readonly [string, Fate])[] => {
    const key = `${name} ${isOwner}`;
    if (!made.has(key)) {
      const one = standIns.snapshotOf(name, isOwner);
      made.set(key, one && evaluatorOf(one));
    }
    const found = made.get(key)?.(packet);
    return found ? [[name, found]] : [];
  };
  const onAny = (packet: Packet): Fate => {
    const owner = standIns.ownerOf(packet);
    const others = standIns.namesFor(packet, owner).flatMap((name) => evaluate(name, false, packet));
    const fates = owner === undefined ? others : [...evaluate(owner, true, packet), ...others];
    return fateOnAnyOf(new Map(fates)) ?? own(packet);
  };
  return Object.assign(onAny, { placeOf: own.placeOf, isNeighbour: own.isNeighbour });
}

/**
 * Chooses Nodes that together show every difference between all Nodes for a packet: one or two for each class of plans for its Service
 * ports.
 */
class StandIns {
  readonly #side: CompiledSnapshot;
  readonly #nodes: ReadonlyMap<string, Node>;
  readonly #plans = new PlanMemo();
  readonly #ofPorts = new Map<ServicePort, readonly string[]>();
  #owners: ReadonlyMap<string, string> | undefined;

  constructor(side: CompiledSnapshot, nodes: ReadonlyMap<string, Node>) {
    this.#side = side;
    this.#nodes = nodes;
  }

  ownerOf({ destination }: Packet): string | undefined {
    this.#owners ??= new Map(
      [...this.#nodes].flatMap(([name, node]) => nodeAddresses(node).map(({ text }) => [text, name] as const)),
    );
    return this.#owners.get(destination.text);
  }

  namesFor({ source, destination, port }: Packet, owner: string | undefined): readonly string[] {
    const { addresses } = this.#side.cluster;
    const ports = [...addresses.servicesAt(destination.text), ...addresses.nodePortsAt(port)];
    const ends = ports.length === 0 ? [] : [destination, ...(source ? [source] : [])];
    const homes = ends.flatMap(({ text }) => addresses.endpointsAt(text).map(({ status }) => status?.nodeName ?? ''));
    const names = new Set([
      ...ports.flatMap((each) => this.#namesOf(each)),
      ...homes.filter((each) => this.#nodes.has(each)),
    ]);
    if (owner === undefined) return [...names].toSorted();
    const other = [...this.#nodes.keys()].find((name) => name !== owner) ?? owner;
    names.delete(owner);
    return names.size > 0 ? [...names].toSorted() : [other];
  }

  /** Returns one Node of each class, and another one if their endpoints differ. */
  #namesOf(port: ServicePort): readonly string[] {
    const known = this.#ofPorts.get(port);
    if (known) return known;
    const plans = new Set<TrafficPlan>();
    const seen = new Map<string, readonly Endpoint[] | undefined>();
    const isTold = (key: string, list: readonly Endpoint[]): boolean => {
      const first = seen.get(key);
      if (seen.has(key) && (first === undefined || areSame(first, list))) return false;
      seen.set(key, seen.has(key) ? undefined : list);
      return true;
    };
    const names = [...this.#nodes].filter(([name, node]) => {
      const plan = this.#plans.recall(port, { name, zone: zoneOf(node) });
      if (plans.has(plan)) return false;
      plans.add(plan);
      const kind = endpointClass(plan);
      const lists = [plan.clusterEndpoints, plan.localEndpoints, plan.onNode];
      return lists.filter((list, i) => isTold(`${i} ${kind}`, list)).length > 0;
    });
    const found = names.map(([name]) => name);
    this.#ofPorts.set(port, found);
    return found;
  }

  /** Returns the side on a Node. Only the Node that a packet is sent to keeps its own addresses. */
  snapshotOf(name: string, isOwner: boolean): CompiledSnapshot | undefined {
    const one = this.#side.onNode(name);
    const { nodeIPs, hostAddresses } = this.#side.node;
    return isOwner ? one : one?.on({ ...one.node, nodeIPs, hostAddresses });
  }
}

function areSame(some: readonly Endpoint[], others: readonly Endpoint[]): boolean {
  return some === others || (some.length === others.length && some.every((each, i) => each === others[i]));
}
