import { serviceName } from '../cluster/model.ts';
import { fullName } from '../cluster/objects.ts';
import { behavioursOf, concernsMode } from '../kube-proxy/releases.ts';
import type { Gap, Knowledge } from '../packet/knowledge.ts';
import { lacks, type Reason } from '../packet/reason.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { portAt } from './port-at.ts';
import { stopOf } from './stop.ts';

/**
 * What the input lacks and decides how packets end:
 *
 * - the endpoints of a Service: what is refused for want of one may be delivered
 * - rules or virtual servers that may take a packet to its Service: that none takes it is then no end
 * - the ServiceCIDRs: what no rule takes may be dropped, as a cluster IP that no Service has
 */
export function doubtedEnds(side: Snapshot, gaps: readonly Gap[]): Knowledge['doubtOfEnd'] {
  const ungiven = ungivenEndpoints(side);
  const ranges = lacksServiceCIDRs(side) ? lacks({ kind: 'service-cidrs' }) : undefined;
  return ({ destination: address, port, protocol }, end) => {
    const { verdict } = end;
    if (verdict === 'dropped' || verdict === 'refused') {
      const stop = ungiven.size > 0 ? stopOf(end) : undefined;
      return stop && 'servicePort' in stop ? ungiven.get(stop.servicePort ?? '') : undefined;
    }
    if (verdict !== 'local' && verdict !== 'forwarded') return undefined;
    const blind = gaps.find((gap) => gap.family === address.family && lacksTranslation(gap.reason));
    if (blind && portAt({ address, port, protocol }, side.ports)) return blind.reason;
    return verdict === 'forwarded' ? ranges : undefined;
  };
}

/** By the labels of their ports, the Services whose endpoints the input lacks. One with a selector has an EndpointSlice in every cluster, if an empty one. */
function ungivenEndpoints(side: Snapshot): ReadonlyMap<string, Reason> {
  if (side.kind === 'dump') return new Map();
  const ungiven = servicesWithoutEndpoints(side);
  const ports = ungiven.size === 0 ? [] : side.cluster.servicePorts;
  return new Map(
    ports.flatMap((port) => {
      const service = serviceName(port);
      return ungiven.has(service) ? [[port.label, lacks({ kind: 'endpoint-slices', service })] as const] : [];
    }),
  );
}

/** The names of the Services of which the input shows no endpoints: no EndpointSlices, Endpoints or Pods. */
export function servicesWithoutEndpoints({ cluster }: Pick<CompiledSnapshot, 'cluster'>): ReadonlySet<string> {
  return new Set(cluster.services.flatMap((each) => (each.endpointsGiven === false ? [fullName(each)] : [])));
}

/** Whether rules or virtual servers are missing that may send packets to endpoints. */
function lacksTranslation(reason: Reason): boolean {
  if (reason.kind !== 'missing-listing') return false;
  const { missing } = reason;
  switch (missing.kind) {
    case 'iptables':
      return missing.tables.includes('nat');
    case 'nftables':
    case 'virtual-servers':
      return true;
    default:
      return false;
  }
}

/** Whether kube-proxy knows of networks of cluster IPs, which could not be read. */
function lacksServiceCIDRs({ settings, objects }: Snapshot): boolean {
  if (!settings || !objects.unread.has('serviceCidrs')) return false;
  const { mode, release } = settings;
  return behavioursOf(release).has('service-cidrs') && concernsMode('service-cidrs', mode);
}
