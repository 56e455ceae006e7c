import { hashName } from '../../base/hash-name.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { serviceChainName } from '../../kube-proxy/chain-names.ts';

/** The chains that a Service port may have: see serviceChainName. */
export interface ServiceChainNames {
  readonly cluster: string;
  readonly local: string;
  readonly external: string;
  readonly firewall: string;
}

/** The names of a Service port's chains: a prefix and a hash of its label and protocol (kube-proxy's portProtoHash). */
export function serviceChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): ServiceChainNames {
  const hash = hashName(port.label + port.protocol.toLowerCase(), 16);
  return {
    cluster: serviceChainName('cluster', hash),
    local: serviceChainName('local', hash),
    external: serviceChainName('external', hash),
    firewall: serviceChainName('firewall', hash),
  };
}

/** The name of the chain that sends a Service port's packets to one endpoint ("ip:port", servicePortEndpointChainName). */
export function endpointChainName(port: Pick<ServicePort, 'label' | 'protocol'>, endpointLabel: string): string {
  return serviceChainName('endpoint', hashName(port.label + port.protocol.toLowerCase() + endpointLabel, 16));
}
