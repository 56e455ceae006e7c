import { serviceName } from '../../cluster/model.ts';
import { fullName } from '../../cluster/objects.ts';
import { behavioursOf, concernsMode } from '../../kube-proxy/releases.ts';
import type { Gap, Knowledge } from '../../packet/knowledge.ts';
import { lacks, type Reason } from '../../packet/reason.ts';
import type { CompiledSnapshot, Snapshot } from '../../snapshot/snapshot.ts';
import { portAt } from './port-at.ts';
import { stopOf } from './stop.ts';

/**
 * Missing input that decides how packets end:
 *
 * - endpoints of a Service: a packet refused because there are none may be delivered
 * - rules or virtual servers that may take the packet: that none takes it is then not certain
 * - ServiceCIDRs: a packet that no rule takes may be dropped, if its address is a cluster IP that no Service has
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
    if (blind && portAt({ address, port, protocol }, side.addresses)) return blind.reason;
    return verdict === 'forwarded' ? ranges : undefined;
  };
}

/**
 * Services whose endpoints the input lacks, by the labels of their ports. In a cluster, a Service with a selector always has an
 * EndpointSlice, even if empty.
 */
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

/** The names of Services without any EndpointSlices, Endpoints or Pods in the input. */
export function servicesWithoutEndpoints({ cluster }: Pick<CompiledSnapshot, 'cluster'>): ReadonlySet<string> {
  return new Set(cluster.services.flatMap((each) => (each.endpointsGiven === false ? [fullName(each)] : [])));
}

/** Whether the reason is missing rules or virtual servers that may send packets to endpoints. */
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

/** Whether kube-proxy uses the networks of cluster IPs, and kpc could not read them. */
function lacksServiceCIDRs({ settings, objects }: Snapshot): boolean {
  if (!settings || !objects.unread.has('serviceCidrs')) return false;
  const { mode, release } = settings;
  return behavioursOf(release).has('service-cidrs') && concernsMode('service-cidrs', mode);
}
