import type { Address } from '../../kernel/address.ts';
import type { Packet } from '../packet.ts';
import type { KnownPort, Scene } from '../trace/scene.ts';
import { portKey } from './questions.ts';

type AddressKind = KnownPort['addresses'][number]['kind'];

/** What a packet is sent to. */
export interface Target {
  readonly kind: AddressKind | 'node-port' | 'health-check' | 'ping' | 'unserved-port' | 'unserved-address' | 'node';
  /** The Services that have the address or node port: "namespace/name:port". */
  readonly labels: readonly string[];
  readonly ports: readonly KnownPort[];
}

export type FindTarget = (packet: Packet) => Target;

/** Looks up what packets are sent to, by the Services of either side. `nodes` are the node's own addresses. */
export function targetFinder(scenes: readonly Scene[], nodes: ReadonlyMap<string, Address>): FindTarget {
  const sockets = new Map<string, { readonly kind: AddressKind; readonly port: KnownPort }[]>();
  const byAddress = new Map<string, KnownPort[]>();
  const nodePorts = new Map<string, KnownPort[]>();
  const healthChecks = new Map<string, string>();
  const push = <T>(map: Map<string, T[]>, key: string, item: T): void => {
    const known = map.get(key);
    if (known) known.push(item);
    else map.set(key, [item]);
  };
  for (const { ports, healthChecks: checks } of scenes) {
    for (const port of ports) {
      for (const { kind, address } of port.addresses) {
        if (port.port !== undefined)
          push(sockets, `${address.text} ${portKey(port.protocol, port.port)}`, { kind, port });
        push(byAddress, address.text, port);
      }
      if (port.nodePort !== undefined) push(nodePorts, `${port.family} ${portKey(port.protocol, port.nodePort)}`, port);
    }
    for (const { family, port, namespace, service } of checks)
      healthChecks.set(`${family} ${port}`, `${namespace}/${service}`);
  }
  const at = (kind: Target['kind'], ports: readonly KnownPort[]): Target => ({
    kind,
    ports,
    labels: [...new Set(ports.map(({ label }) => label))],
  });
  return ({ destination: { text, family }, protocol, port }) => {
    const served = sockets.get(`${text} ${portKey(protocol, port)}`);
    if (served?.[0])
      return at(
        served[0].kind,
        served.map((each) => each.port),
      );
    const isNode = nodes.has(text);
    const nodePort = isNode ? nodePorts.get(`${family} ${portKey(protocol, port)}`) : undefined;
    if (nodePort) return at('node-port', nodePort);
    const check = isNode && protocol === 'tcp' ? healthChecks.get(`${family} ${port}`) : undefined;
    if (check !== undefined) return { kind: 'health-check', ports: [], labels: [check] };
    if (isNode) return at('node', []);
    const near = byAddress.get(text);
    if (near) return at(protocol === 'icmp' ? 'ping' : 'unserved-port', near);
    return at('unserved-address', []);
  };
}
