import { hashName, prefixedHash } from '../../base/hash-name.ts';
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

/** The names of the chains that send a Service port's packets to one endpoint each ("ip:port", servicePortEndpointChainName). */
export function endpointChainNames(port: Pick<ServicePort, 'label' | 'protocol'>): (endpointLabel: string) => string {
  const prefix = serviceChainName('endpoint', '');
  const start = port.label + port.protocol.toLowerCase();
  return (endpointLabel) => prefixedHash(prefix, start + endpointLabel);
}
