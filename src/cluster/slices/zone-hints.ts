import { compareText } from '../../kernel/compare.ts';
import { zoneLabel } from '../node-context.ts';
import { topologyMode, type Node, type Service, type SliceEndpoint } from '../objects.ts';

const distributions: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

export function addHints(
  service: Service,
  endpoints: readonly SliceEndpoint[],
  ratios: ZoneRatios | undefined,
): readonly SliceEndpoint[] {
  if (asksForZones(service)) return addZoneHints(endpoints, ratios);
  const { trafficDistribution } = service.spec;
  if (!distributions.has(trafficDistribution)) return endpoints;
  const wantsNodes = trafficDistribution === 'PreferSameNode';
  return endpoints.map((endpoint) => {
    const { ready, zone, nodeName } = endpoint.status;
    if (!ready) return endpoint;
    const zoneHints = zone === undefined ? [] : [zone];
    const nodeHints = wantsNodes && nodeName !== undefined ? [nodeName] : [];
    return { ...endpoint, status: { ...endpoint.status, zoneHints, nodeHints } };
  });
}

function asksForZones(service: Service): boolean {
  return /^[Aa]uto$/.test(topologyMode(service));
}

function addZoneHints(endpoints: readonly SliceEndpoint[], ratios: ZoneRatios | undefined): readonly SliceEndpoint[] {
  const ready = endpoints.filter(({ status }) => status.ready);
  const allocated = allocateZones(
    ready.map(({ status }) => status.zone),
    ratios,
  );
  if (!allocated) return endpoints;
  const zones = allocated.values();
  return endpoints.map((endpoint) => {
    const zone = endpoint.status.ready ? zones.next().value : undefined;
    return zone === undefined ? endpoint : { ...endpoint, status: { ...endpoint.status, zoneHints: [zone] } };
  });
}

/** How far above average the load of a zone's endpoints may get before hints are dropped (overloadThreshold in topologycache). */
const overloadThreshold = 0.2;

/** Labels of nodes that hardly run Pods. */
const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Zone → its share of the cluster's CPUs, sorted by zone. */
export type ZoneRatios = ReadonlyMap<string, number>;

/** Each zone's share of CPUs (TopologyCache.SetNodes); undefined if a Node lacks a zone or CPUs, or if there is only one zone. */
export function readZoneRatios(nodes: readonly Node[]): ZoneRatios | undefined {
  const byZone = new Map<string, bigint>();
  let total = 0n;
  for (const { metadata, ready, nanoCPUs } of nodes) {
    if (!ready || excludedLabels.some((label) => Object.hasOwn(metadata.labels, label))) continue;
    const zone = metadata.labels[zoneLabel];
    if (!zone || nanoCPUs === 0n) return undefined;
    total += nanoCPUs;
    byZone.set(zone, (byZone.get(zone) ?? 0n) + nanoCPUs);
  }
  if (byZone.size < 2) return undefined;
  const sorted = [...byZone].toSorted(([a], [b]) => compareText(a, b));
  return new Map(sorted.map(([zone, nano]) => [zone, milliOf(nano) / milliOf(total)]));
}

function milliOf(nano: bigint): number {
  return Number((nano + 999_999n) / 1_000_000n);
}

/**
 * The zone that each endpoint serves, in the order of `zones`, the endpoints' own; undefined if hints would do harm or are unknown
 * (TopologyCache.AddHints). Where the controller's choice depends on map order, takes the first by name.
 */
function allocateZones(
  zones: readonly (string | undefined)[],
  ratios: ZoneRatios | undefined,
): readonly string[] | undefined {
  const desired = ratios && desiredByZone(zones.length, ratios);
  if (!desired) return undefined;
  const own: string[] = [];
  for (const zone of zones) {
    if (zone === undefined) return undefined;
    own.push(zone);
  }
  const { giving, receiving } = findMoves(desired, countByZone(own));
  return own.map((zone) => {
    const receiver = takeOne(giving, zone) ? [...receiving.keys()].toSorted(compareText)[0] : undefined;
    if (receiver === undefined) return zone;
    takeOne(receiving, receiver);
    return receiver;
  });
}

/** How many endpoints each zone should have; undefined if no number is close enough (getAllocations). */
function desiredByZone(endpoints: number, ratios: ZoneRatios): ReadonlyMap<string, number> | undefined {
  if (ratios.size > endpoints) return undefined;
  const desired = new Map<string, number>();
  let left = endpoints;
  for (const [zone, ratio] of ratios) {
    const exact = ratio * endpoints;
    const minimum = Math.ceil(exact * (1 / (1 + overloadThreshold)));
    desired.set(zone, Math.max(exact, minimum));
    left -= minimum;
  }
  return left < 0 ? undefined : desired;
}

function countByZone(zones: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const zone of zones) counts.set(zone, (counts.get(zone) ?? 0) + 1);
  return counts;
}

type ZoneCounts = Map<string, number>;

/** How many endpoints each zone gives away or receives (getGivingAndReceivingZones). */
function findMoves(desired: ReadonlyMap<string, number>, allocated: ReadonlyMap<string, number>) {
  const toGive: ZoneCounts = new Map();
  const toReceive: ZoneCounts = new Map();
  for (const [zone, target] of desired) {
    const has = allocated.get(zone) ?? 0;
    if (has > target) toGive.set(zone, has - target);
    else if (has < target) toReceive.set(zone, target - has);
  }
  const giving: ZoneCounts = new Map();
  const receiving: ZoneCounts = new Map();
  for (;;) {
    const [giver, give] = findMost(toGive);
    const [receiver, receive] = findMost(toReceive);
    if ((give < 1 && receive < 1) || give < 0.5 || receive < 0.5) return { giving, receiving };
    move(toGive, giving, giver);
    move(toReceive, receiving, receiver);
  }
}

function findMost(zones: ReadonlyMap<string, number>): readonly [zone: string, number: number] {
  let most: readonly [string, number] = ['', 0];
  for (const entry of zones) if (entry[1] > most[1]) most = entry;
  return most;
}

function move(from: ZoneCounts, to: ZoneCounts, zone: string): void {
  from.set(zone, (from.get(zone) ?? 0) - 1);
  to.set(zone, (to.get(zone) ?? 0) + 1);
}

/** False if none is left. */
function takeOne(counts: ZoneCounts, zone: string): boolean {
  const left = counts.get(zone) ?? 0;
  if (left > 1) counts.set(zone, left - 1);
  else counts.delete(zone);
  return left > 0;
}
