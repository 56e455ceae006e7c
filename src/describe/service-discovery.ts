import type { ServiceInfo } from '../cluster/model.ts';
import { parseAddress, joinHostPort } from '../kernel/address.ts';

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
  const named = service.ports.filter((port) => port.name !== '');
  switch (service.skipped) {
    case 'external-name': {
      const value = service.externalName ?? '';
      return [{ name, type: 'CNAME', value: value.endsWith('.') ? value : `${value}.` }];
    }
    case 'headless': {
      const ready = service.headlessEndpoints.filter((endpoint) => endpoint.ready);
      const share = Math.max(1, Math.floor(100 / Math.max(1, ready.length)));
      const hosts = ready.map(({ hostname, address }) => `${hostname || address.replace(/[.:]/g, '-')}.${name}`);
      return [
        ...ready.map(({ address }) => addressRecord(name, address)),
        ...ready.map(({ address }, i) => addressRecord(hosts[i] ?? '', address)),
        // Only EndpointSlices hold the number of a named target port: uses the Service port's number instead.
        ...named.flatMap((port) => {
          const number = typeof port.targetPort === 'number' ? port.targetPort : port.port;
          return hosts.map((host) => serviceRecord(name, port, `${share} ${number} ${host}`));
        }),
      ];
    }
    case 'no-cluster-ip':
      return [];
    case undefined:
      return [
        ...service.clusterIPs.map((address) => addressRecord(name, address)),
        ...named.map((port) => serviceRecord(name, port, `100 ${port.port} ${name}`)),
      ];
  }
}

function addressRecord(name: string, address: string): DnsRecord {
  return { name, type: parseAddress(address)?.family === 'ipv6' ? 'AAAA' : 'A', value: address };
}

function serviceRecord(name: string, port: ServiceInfo['ports'][number], rest: string): DnsRecord {
  return { name: `_${port.name}._${port.protocol.toLowerCase()}.${name}`, type: 'SRV', value: `0 ${rest}` };
}

/**
 * The variables that containers of the Service's namespace are started with (kubelet's envvars.FromServices), in its
 * order: none for a Service without a cluster IP. Of the Service default/kubernetes, containers of all namespaces have
 * them.
 */
export function environmentVariables(
  service: ServiceInfo,
): readonly { readonly name: string; readonly value: string }[] {
  const [host] = service.clusterIPs;
  const [first] = service.ports;
  if (service.skipped !== undefined || host === undefined || first === undefined) return [];
  const prefix = variableName(service.name);
  const url = ({ protocol, port }: typeof first) => `${protocol.toLowerCase()}://${joinHostPort(host, port)}`;
  return [
    { name: `${prefix}_SERVICE_HOST`, value: host },
    { name: `${prefix}_SERVICE_PORT`, value: String(first.port) },
    ...service.ports
      .filter(({ name }) => name !== '')
      .map(({ name, port }) => ({ name: `${prefix}_SERVICE_PORT_${variableName(name)}`, value: String(port) })),
    { name: `${prefix}_PORT`, value: url(first) },
    ...service.ports.flatMap((port) => {
      const name = `${prefix}_PORT_${port.port}_${port.protocol}`;
      return [
        { name, value: url(port) },
        { name: `${name}_PROTO`, value: port.protocol.toLowerCase() },
        { name: `${name}_PORT`, value: String(port.port) },
        { name: `${name}_ADDR`, value: host },
      ];
    }),
  ];
}

function variableName(text: string): string {
  return text.replaceAll('-', '_').toUpperCase();
}
