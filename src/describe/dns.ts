import type { HeadlessEndpoint, ServiceInfo } from '../cluster/model.ts';
import { parseAddress } from '../kernel/address.ts';

/** One record of the cluster's DNS, names with their final dot. */
export interface DnsRecord {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'SRV' | 'CNAME';
  readonly value: string;
}

/**
 * What pods get for a Service's names, after the specification of DNS-based service discovery (version 1.1.0) and as
 * CoreDNS answers: a headless Service has the addresses of its ready endpoints, each under its hostname, or else under
 * its address with dashes.
 */
export function dnsRecords(service: ServiceInfo, clusterDomain: string): readonly DnsRecord[] {
  const name = `${service.name}.${service.namespace}.svc.${clusterDomain}.`;
  switch (service.skipped) {
    case 'external-name':
      return [{ name, type: 'CNAME', value: withDot(service.externalName ?? '') }];
    case 'headless':
      return headlessRecords(service, name);
    case 'no-cluster-ip':
      return [];
    case undefined:
      return [
        ...service.clusterIPs.map((address) => addressRecord(name, address)),
        ...service.ports
          .filter((port) => port.name !== '')
          .map((port) => serviceRecord(name, port, `100 ${port.port} ${name}`)),
      ];
  }
}

function headlessRecords(service: ServiceInfo, name: string): readonly DnsRecord[] {
  const ready = service.headlessEndpoints.filter((endpoint) => endpoint.ready);
  const share = Math.max(1, Math.floor(100 / Math.max(1, ready.length)));
  return [
    ...ready.map(({ address }) => addressRecord(name, address)),
    ...ready.map((endpoint) => addressRecord(`${labelOf(endpoint)}.${name}`, endpoint.address)),
    ...service.ports
      .filter((port) => port.name !== '')
      .flatMap((port) =>
        ready.map((endpoint) => {
          // The number behind a named target port is in the slices: the Service's own stands for it.
          const number = typeof port.targetPort === 'number' ? port.targetPort : port.port;
          return serviceRecord(name, port, `${share} ${number} ${labelOf(endpoint)}.${name}`);
        }),
      ),
  ];
}

function labelOf({ hostname, address }: HeadlessEndpoint): string {
  return hostname || address.replace(/[.:]/g, '-');
}

function addressRecord(name: string, address: string): DnsRecord {
  return { name, type: parseAddress(address)?.family === 'ipv6' ? 'AAAA' : 'A', value: address };
}

function serviceRecord(name: string, port: ServiceInfo['ports'][number], rest: string): DnsRecord {
  return { name: `_${port.name}._${port.protocol.toLowerCase()}.${name}`, type: 'SRV', value: `0 ${rest}` };
}

function withDot(name: string): string {
  return name.endsWith('.') ? name : `${name}.`;
}
