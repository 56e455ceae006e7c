import { diagnose, type Finding } from '../base/findings/finding.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';
import { groupBy } from './grouping.ts';
import { usedOfStatus, type ServiceWithSlices } from './endpoints.ts';
import { fullName, type EndpointSlice, type EndpointStatus, type Sourced } from './objects.ts';

interface Listed {
  readonly slice: Sourced<EndpointSlice>;
  readonly status: EndpointStatus;
}

/**
 * Finds endpoints that two slices list with different conditions, nodes or hints. kube-proxy uses one slice's values, by a map's order
 * (endpointInfoByServicePort in pkg/proxy/endpointslicecache.go).
 */
export function findDisagreeing(services: readonly ServiceWithSlices[], behaviours: Behaviours): readonly Finding[] {
  if (!behaviours.has('endpoint-slices')) return [];
  return services.flatMap(({ object, given }) => {
    if (given.length < 2) return [];
    const all = given.flatMap((slice) =>
      slice.object.endpoints.flatMap(({ address, status }) => (address ? { slice, status, text: address.text } : [])),
    );
    const found = [...groupBy(all, ({ text }) => text)].flatMap(([endpoint, [first, ...others]]) => {
      const other = others.find((each) => disagree(first, each, behaviours));
      return other ? [{ endpoint, first, other }] : [];
    });
    const [one] = found;
    if (!one) return [];
    const slices = [one.first, one.other].map(({ slice }) => fullName(slice.object.metadata));
    const endpoints = found.map(({ endpoint }) => endpoint);
    const place = one.other.slice.source.place([
      'endpoints',
      one.other.slice.object.endpoints.findIndex(({ address }) => address?.text === one.endpoint),
    ]);
    return [diagnose('disagreeing-slices', { service: fullName(object.metadata), slices, endpoints }, place)];
  });
}

function disagree(a: Listed, b: Listed, behaviours: Behaviours): boolean {
  const ports = new Set(a.slice.object.ports.map(portKey));
  if (a.slice === b.slice || !b.slice.object.ports.some((port) => ports.has(portKey(port)))) return false;
  if (usedOfStatus(a.status) === usedOfStatus(b.status)) return false;
  if (behaviours.has('running-endpoint-first')) return a.status.terminating === b.status.terminating;
  // Endpoints that differ only by node do not disagree, because each node uses its own.
  return usedOfStatus({ ...a.status, nodeName: undefined }) !== usedOfStatus({ ...b.status, nodeName: undefined });
}

function portKey({ name, protocol, port }: EndpointSlice['ports'][number]): string {
  return `${name}/${protocol}/${port}`;
}
