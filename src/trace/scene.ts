import type { Owners } from '../changes/owners.ts';
import type { ServiceHealthCheck } from '../cluster/model.ts';
import type { DecompiledPort } from '../describe/decompile.ts';
import type { Side } from '../diff/side.ts';
import type { Address } from '../kernel/address.ts';
import { loopbackAddresses, parseAddress } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { Link } from '../kernel/link.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import { serviceLink } from '../kube-proxy/link.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Evaluator } from '../packet/evaluate.ts';
import { prepare } from '../packet/evaluate.ts';
import type { PacketNode } from '../packet/node.ts';

/** Where packets are traced: one node with its state, and the Services that it serves. */
export interface Scene {
  readonly side: Side;
  readonly owners: Owners;
  readonly node: PacketNode;
  readonly evaluate: Evaluator;
  readonly mode: ProxyMode | undefined;
  readonly ports: readonly KnownPort[];
  /** Pods by "namespace/name". */
  readonly pods: ReadonlyMap<string, KnownPod>;
  readonly healthChecks: readonly ServiceHealthCheck[];
}

/** A Pod of the input. */
export interface KnownPod {
  readonly addresses: readonly Address[];
  readonly nodeName: string;
}

/** A Service port, as manifests, a bundle or a dump shows it. */
export interface KnownPort {
  /** "namespace/name" or "namespace/name:port"; of dumps without names, its address. */
  readonly label: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number | undefined;
  readonly addresses: readonly KnownAddress[];
  readonly nodePort: number | undefined;
  readonly healthCheckNodePort: number | undefined;
  readonly endpoints: readonly KnownEndpoint[];
}

interface KnownAddress {
  readonly kind: 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'unknown';
  readonly address: Address;
}

interface KnownEndpoint extends SocketAddress {
  /** Undefined where nothing tells. */
  readonly isLocal: boolean | undefined;
}

/** Sets up a side. `ports` are those that a dump shows; a side that was compiled knows its own. */
export function sceneOf(
  side: Side,
  owners: Owners,
  mode: ProxyMode | undefined,
  decompiled: readonly DecompiledPort[],
  pods: ReadonlyMap<string, KnownPod>,
): Scene {
  const node = nodeOfSide(side);
  return {
    side,
    owners,
    node,
    evaluate: prepare(side.state, node),
    mode,
    ports: side.services ? portsOfCluster(side.services) : decompiled.map(portOfDump),
    pods,
    healthChecks: side.services?.cluster.healthChecks ?? [],
  };
}

/** A node with the addresses that a side knows. Which link has which is known of dumps alone, and routes of none. */
export function nodeOfSide({ state, services }: Side): PacketNode {
  const links: readonly Link[] = services
    ? [nodeLink(services.node)]
    : state.links.filter(({ name }) => name !== serviceLink);
  return { links, routes: undefined, sysctls: new Map() };
}

function nodeLink({ hostAddresses, nodeIPs }: NonNullable<Side['services']>['node']): Link {
  const own = hostAddresses.length > 0 ? hostAddresses : families.map((family) => nodeIPs[family]);
  const all = [...own, ...families.map((family) => loopbackAddresses[family])];
  return {
    name: 'node',
    addresses: [...new Map(all.map((address) => [address.text, address])).values()].map((address) => ({
      family: address.family,
      address,
      prefixLength: address.family === 'ipv4' ? 32 : 128,
    })),
  };
}

function portsOfCluster({ cluster, node }: NonNullable<Side['services']>): readonly KnownPort[] {
  return cluster.servicePorts.map((port) => {
    const at = (kind: KnownAddress['kind']) => (address: Address) => ({ kind, address });
    return {
      label: port.label,
      family: port.family,
      protocol: port.protocol,
      port: port.port,
      addresses: [
        { kind: 'cluster-ip', address: port.clusterIP },
        ...port.externalIPs.map(at('external-ip')),
        ...port.loadBalancerIPs.map(at('load-balancer-ip')),
      ],
      nodePort: port.nodePort || undefined,
      healthCheckNodePort: port.healthCheckNodePort || undefined,
      endpoints: port.endpoints.map(({ address, port: number, status }) => ({
        address,
        port: number,
        isLocal: node.name === '' ? undefined : status.nodeName === node.name,
      })),
    };
  });
}

function portOfDump(port: DecompiledPort): KnownPort {
  return {
    label: port.name,
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    addresses: port.addresses.flatMap(({ kind, address: text }) => {
      const address = parseAddress(text);
      return address ? [{ kind, address }] : [];
    }),
    nodePort: port.nodePort,
    healthCheckNodePort: port.healthCheckNodePort,
    endpoints: (port.endpoints ?? []).flatMap(({ endpoint }) => {
      const socket = parseSocketAddress(endpoint);
      return socket ? [{ ...socket, isLocal: undefined }] : [];
    }),
  };
}
