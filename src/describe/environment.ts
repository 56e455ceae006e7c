import type { ServiceInfo } from '../cluster/model.ts';
import { joinHostPort } from '../kernel/address.ts';

/** An environment variable that kubelet gives to containers. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly value: string;
}

/**
 * The variables that containers of the Service's namespace are started with (kubelet's envvars.FromServices), in its
 * order: none for a Service without a cluster IP. Of the Service default/kubernetes, containers of all namespaces have
 * them.
 */
export function environmentVariables(service: ServiceInfo): readonly EnvironmentVariable[] {
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
