import type { Service, SliceEndpoint } from '../objects.ts';
import { allocateZones, type ZoneRatios } from './zone-allocation.ts';

/** The annotations that ask for hints by CPUs; the first wins where both are there. */
const modeAnnotations = ['service.kubernetes.io/topology-aware-hints', 'service.kubernetes.io/topology-mode'] as const;

/** The values of trafficDistribution that ask for hints. */
const distributions: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

/** The endpoints of one Service and family with the hints that the endpointslice controller gives them. */
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

function asksForZones({ metadata: { annotations } }: Service): boolean {
  const name = modeAnnotations.find((each) => Object.hasOwn(annotations, each));
  const value = name && annotations[name];
  return value === 'Auto' || value === 'auto';
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
