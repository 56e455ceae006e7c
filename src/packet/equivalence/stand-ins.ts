import type { Node } from '../../cluster/objects.ts';
import type { Cluster, ServicePort } from '../../cluster/model.ts';
import type { Only } from './compare.ts';
import { portKey, type PortKey } from './questions.ts';
import { zoneLabel } from '../../cluster/node-context.ts';

/** A node that stands for others, with what it is asked for; undefined for everything. */
export interface StandIn {
  readonly node: string;
  readonly only: Only | undefined;
}

/**
 * The nodes that show everything that a cluster's nodes differ in, besides their own addresses. What a node does with
 * packets to a Service depends on whether it has endpoints of that Service if a traffic policy or hints look at this, on its
 * zone, on its own kinds of addresses, and on whether it has any endpoints at all.
 */
export function chooseStandIns(
  nodes: ReadonlyMap<string, Node>,
  { servicePorts }: Cluster,
  names: readonly string[],
): readonly StandIn[] {
  const bound = servicePorts.filter(looksAtPlace);
  const hosted = new Map<string, Map<ServicePort, number>>();
  const hosts = new Set<string>();
  for (const port of servicePorts) {
    for (const { status } of port.endpoints) hosts.add(status.nodeName ?? '');
  }
  for (const port of bound) {
    for (const { status } of port.endpoints) {
      let counts = hosted.get(status.nodeName ?? '');
      if (!counts) hosted.set(status.nodeName ?? '', (counts = new Map()));
      counts.set(port, (counts.get(port) ?? 0) + 1);
    }
  }
  const seen = new Set<string>();
  const isNew = (key: string): boolean => !seen.has(key) && Boolean(seen.add(key));
  return names.flatMap((name): readonly StandIn[] => {
    const node = nodes.get(name);
    const zone = node?.metadata.labels[zoneLabel] ?? '';
    const kinds = (node?.addresses ?? []).map(({ type, address }) => `${type} ${address.includes(':') ? 6 : 4}`);
    const families = (node?.podCIDRs ?? []).map((cidr) => (cidr.includes(':') ? 6 : 4));
    const shape = [zone, node?.kubernetesVersion, ...kinds, ...families, hosts.has(name)].join('|');
    const isWhole = isNew(shape);
    const addresses = new Set<string>();
    const ports = new Set<PortKey>();
    for (const port of bound) {
      const here = hosted.get(name)?.get(port) ?? 0;
      const share = here === 0 ? 'none' : here === port.endpoints.length ? 'all' : 'some';
      if (!isNew(`${port.label} ${port.family} ${port.protocol} ${zone} ${share}`)) continue;
      for (const { text } of [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs]) addresses.add(text);
      ports.add(portKey(port.protocol, port.nodePort)).add(portKey('tcp', port.healthCheckNodePort));
    }
    if (isWhole) return [{ node: name, only: undefined }];
    return addresses.size > 0 ? [{ node: name, only: { addresses, ports } }] : [];
  });
}

function looksAtPlace({ externalPolicyLocal, internalPolicyLocal, endpoints }: ServicePort): boolean {
  const isHinted = endpoints.some(({ status }) => status.zoneHints.length > 0 || status.nodeHints.length > 0);
  return externalPolicyLocal || internalPolicyLocal || isHinted;
}
