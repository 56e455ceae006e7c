import { hashName } from '../../base/hash-name.ts';
import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import type { TrafficPath } from '../../cluster/plan-traffic.ts';
import { nftPrefixes } from '../../kube-proxy/nftables.ts';

/** The chains that a Service port may have, in use or not: see nftPrefixes. */
export interface ServiceChainNames {
  readonly cluster: string;
  readonly local: string;
  readonly external: string;
  readonly firewall: string;
}

/** The chain that sends packets to an endpoint, and the set of the clients that it remembers. */
export interface EndpointNames {
  readonly chain: string;
  readonly affinitySet: string;
}

/** A prefix, a hash, and the Service port's namespace, name, protocol and port name (servicePortChainNameBase). */
export function serviceChainNames(port: ServicePort): ServiceChainNames {
  const base = hashAndTruncate(describePort(port));
  return {
    cluster: nftPrefixes.cluster + base,
    local: nftPrefixes.local + base,
    external: nftPrefixes.external + base,
    firewall: nftPrefixes.firewall + base,
  };
}

/** The chain that spreads the packets of a path over its endpoints; there only where it has some. */
export function policyChainName(names: ServiceChainNames, { policy }: TrafficPath): string {
  switch (policy) {
    case 'Cluster':
      return names.cluster;
    case 'Local':
      return names.local;
  }
}

/** The same of one endpoint, with its address and port (servicePortEndpointChainNameBase): a name may have no colon. */
export function endpointNames(port: ServicePort, { address, port: number }: Endpoint): EndpointNames {
  const base = hashAndTruncate(`${describePort(port)}__${address.text.replaceAll(':', '.')}/${number}`);
  return { chain: nftPrefixes.endpoint + base, affinitySet: nftPrefixes.affinity + base };
}

function describePort({ namespace, service, protocol, portName }: ServicePort): string {
  return `${namespace}/${service}/${protocol.toLowerCase()}/${portName}`;
}

/** chainNameBaseLengthMax: what nft allows, less the longest prefix. */
const maxLength = 240;

/** The hash keeps names apart that are too long to be written whole. */
function hashAndTruncate(text: string): string {
  const name = `${hashName(text, 8)}-${text}`;
  return name.length > maxLength ? `${name.slice(0, maxLength - 3)}...` : name;
}
