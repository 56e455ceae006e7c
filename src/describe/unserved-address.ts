import { nodeAddresses } from '../cluster/node-context.ts';
import type { Node, Service, Sourced } from '../cluster/objects.ts';
import type { SideServices } from '../diff/compared-side.ts';
import { parseAddress, type Address } from '../kernel/address.ts';

/** An address of the input for which kube-proxy programs nothing on this node. */
export type Elsewhere =
  | { readonly kind: 'proxied'; readonly address: string; readonly service: string }
  | {
      readonly kind: 'other-node';
      readonly address: string;
      readonly owner: string;
      /** '' if no node was named. */
      readonly node: string;
      /** The Service port whose node port was asked for. */
      readonly nodePort: { readonly port: number; readonly label: string } | undefined;
    };

/** The objects of manifests that say whose an address is. */
export interface AddressObjects {
  readonly services: readonly Sourced<Service>[];
  readonly nodes: readonly Sourced<Node>[];
}

/** Whose an address is that nothing on the node serves. */
export function findElsewhere(
  {
    address,
    port,
    protocol,
  }: { readonly address: Address; readonly port?: number | undefined; readonly protocol?: string | undefined },
  { services, nodes }: AddressObjects,
  { cluster, node }: Pick<SideServices, 'cluster' | 'node'>,
): Elsewhere | undefined {
  const isServed = cluster.servicePorts.some(({ clusterIP, externalIPs, loadBalancerIPs }) =>
    [clusterIP, ...externalIPs, ...loadBalancerIPs].some(({ text }) => text === address.text),
  );
  const isOwn = node.hostAddresses.some(({ text }) => text === address.text);
  if (isServed || isOwn) return undefined;
  const proxied = services.find(
    ({ object: { spec, ingress } }) =>
      spec.type === 'LoadBalancer' &&
      ingress.some(
        ({ ip, ipMode }) => ipMode === 'Proxy' && ip !== undefined && parseAddress(ip)?.text === address.text,
      ),
  );
  if (proxied) {
    const { namespace, name } = proxied.object.metadata;
    return { kind: 'proxied', address: address.text, service: `${namespace}/${name}` };
  }
  const owner = nodes.find(({ object }) => nodeAddresses(object).some(({ text }) => text === address.text));
  if (!owner || owner.object.metadata.name === node.name) return undefined;
  const asked = cluster.servicePorts.find(
    (each) =>
      port !== undefined &&
      each.nodePort === port &&
      each.family === address.family &&
      (protocol === undefined || each.protocol === protocol.toUpperCase()),
  );
  return {
    kind: 'other-node',
    address: address.text,
    owner: owner.object.metadata.name,
    node: node.name,
    nodePort: asked && { port: asked.nodePort, label: asked.label },
  };
}

/** Why an address of the input is not one that the node serves. */
export function describeElsewhere(elsewhere: Elsewhere): string {
  const { address } = elsewhere;
  if (elsewhere.kind === 'proxied') {
    return `${address} is a load balancer address of ${elsewhere.service} with ipMode Proxy: kube-proxy programs nothing for it, so that packets pass the load balancer`;
  }
  const { owner, node, nodePort } = elsewhere;
  const other = node === '' ? '' : `, not of ${node}`;
  const port = nodePort ? `; node port ${nodePort.port} of ${nodePort.label} answers there` : '';
  return `${address} is an address of node ${owner}${other}${port}: ask with --node ${owner}`;
}
