import { nodeAddresses } from '../cluster/node-context.ts';
import type { Node, Service, Sourced } from '../cluster/objects.ts';
import type { SideServices } from '../diff/compared-side.ts';
import { parseAddress, type Address } from '../kernel/address.ts';

/** The objects of manifests that say whose an address is. */
export interface AddressObjects {
  readonly services: readonly Sourced<Service>[];
  readonly nodes: readonly Sourced<Node>[];
}

/** Why kube-proxy programs nothing on this node for an address of the input; undefined where that is not so. */
export function explainUnserved(
  asked: { readonly address: Address; readonly port?: number | undefined; readonly protocol?: string | undefined },
  { services, nodes }: AddressObjects,
  { cluster, node }: Pick<SideServices, 'cluster' | 'node'>,
): string | undefined {
  const { address, port, protocol } = asked;
  const { text } = address;
  const isServed = cluster.servicePorts.some(({ clusterIP, externalIPs, loadBalancerIPs }) =>
    [clusterIP, ...externalIPs, ...loadBalancerIPs].some((each) => each.text === text),
  );
  if (isServed || node.hostAddresses.some((each) => each.text === text)) return undefined;
  const proxied = services.find(
    ({ object: { spec, ingress } }) =>
      spec.type === 'LoadBalancer' &&
      ingress.some(({ ip, ipMode }) => ipMode === 'Proxy' && ip !== undefined && parseAddress(ip)?.text === text),
  );
  if (proxied) {
    const { namespace, name } = proxied.object.metadata;
    return `${text} is a load balancer address of ${namespace}/${name} with ipMode Proxy: kube-proxy programs nothing for it, so that packets pass the load balancer`;
  }
  const owner = nodes.find(({ object }) => nodeAddresses(object).some((each) => each.text === text));
  const name = owner?.object.metadata.name;
  if (name === undefined || name === node.name) return undefined;
  const ofNodePort = cluster.servicePorts.find(
    (each) =>
      port !== undefined &&
      each.nodePort === port &&
      each.family === address.family &&
      (protocol === undefined || each.protocol === protocol.toUpperCase()),
  );
  const other = node.name === '' ? '' : `, not of ${node.name}`;
  const answers = ofNodePort ? `; node port ${ofNodePort.nodePort} of ${ofNodePort.label} answers there` : '';
  return `${text} is an address of node ${name}${other}${answers}: ask with --node ${name}`;
}
