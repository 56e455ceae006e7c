import { type Address, families, type Family, parseAddress } from '../../src/kernel/address.ts';
import type { Link } from '../../src/kernel/link/link.ts';
import { knowAll } from '../packet/know-all.ts';
import { prepareEvaluator, type Evaluator } from '../../src/packet/evaluate.ts';
import type { KernelState } from '../../src/kernel/state.ts';
import { readStoredSide } from '../../src/snapshot/files/read-side.ts';
import type { CompiledSnapshot } from '../../src/snapshot/snapshot.ts';
import type { PacketProtocol } from '../../src/packet/packet.ts';
import { assert } from './harness.ts';
import { addresses, pods, run } from './network.ts';

export type Source = keyof typeof addresses;

export const sources: readonly Source[] = ['node1', 'node2', 'client', 'stranger', ...pods];

export interface Question {
  readonly from: Source;
  readonly protocol: PacketProtocol;
  readonly to: Address;
  readonly port: number;
}

export const nameOf = new Map<string, string>(
  Object.entries(addresses).flatMap(([name, { ipv4, ipv6 }]) => [
    [ipv4, name],
    [ipv6, name],
  ]),
);
export interface Services {
  readonly cluster: {
    readonly servicePorts: readonly {
      readonly family: Family;
      readonly protocol: 'TCP' | 'UDP' | 'SCTP';
      readonly clusterIP: Address;
      readonly port: number;
      readonly nodePort: number;
      readonly affinitySeconds?: number | undefined;
      readonly externalIPs: readonly Address[];
      readonly loadBalancerIPs: readonly Address[];
    }[];
  };
}

/** Returns all packets to send: from all hosts, to all addresses and ports of the Services, and to some unused ones. */
export function listQuestions({ cluster }: Services, hasSctp: boolean): readonly Question[] {
  const targets = new Map<string, Omit<Question, 'from'>>();
  const add = (protocol: PacketProtocol, to: Address, port: number): void => {
    if (protocol === 'sctp' && !hasSctp) return;
    targets.set(`${protocol} ${to.text} ${port}`, { protocol, to, port });
  };
  for (const port of cluster.servicePorts) {
    const protocol = port.protocol.toLowerCase() as PacketProtocol;
    const portals = [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs];
    for (const to of portals) {
      add(protocol, to, port.port);
      add('tcp', to, 81);
      add('tcp', to, 9999);
      add('icmp', to, 0);
    }
    if (port.nodePort === 0) continue;
    for (const to of nodeAddresses(port.family)) add(protocol, to, port.nodePort);
  }
  for (const family of families) {
    for (const to of nodeAddresses(family)) {
      add('tcp', to, 9999);
      add('tcp', to, 30999);
      add('icmp', to, 0);
    }
    for (const pod of pods) add('tcp', read(addresses[pod][family]), 8080);
    add('tcp', read(family === 'ipv4' ? '10.96.0.250' : 'fd00:96::250'), 80);
  }
  return [...targets.values()].flatMap((target) =>
    sources
      // Only node 1 sends to loopback addresses, because each host has its own.
      .filter((from) => from === 'node1' || !isLoopbackText(target.to.text))
      // Leave out packets between pods on node 2, because node 1 does not see them.
      .filter((from) => !isOnNode2(from) || !isOnNode2(nameOf.get(target.to.text)))
      .map((from) => ({ from, ...target })),
  );
}

function isOnNode2(name: string | undefined): boolean {
  return name === 'pod-c' || name === 'pod-d' || name === 'node2';
}

function isLoopbackText(text: string): boolean {
  return text === '127.0.0.1' || text === '::1';
}

function nodeAddresses(family: Family): readonly Address[] {
  return (family === 'ipv4' ? ['192.168.0.1', '10.1.1.1', '127.0.0.1'] : ['fd00:192::1', 'fd00:1:1::1', '::1']).map(
    read,
  );
}

export function read(text: string): Address {
  const address = parseAddress(text);
  assert(address !== undefined, text);
  return address;
}

/** Reads a bundle. */
export async function readBundleSide(folder: string): Promise<CompiledSnapshot> {
  const stored = await readStoredSide(folder);
  if (stored.kind !== 'bundle') throw new Error(`${folder} is not a bundle`);
  return stored.side;
}

/** Returns an evaluator of a state on node 1 of the network that buildNetwork makes. */
export function prepareNode1(state: KernelState): Evaluator {
  const link = (name: string, ...texts: readonly string[]): Link => ({
    name,
    addresses: texts.map((text) => {
      const [address = '', length] = text.split('/');
      const parsed = read(address);
      return { family: parsed.family, address: parsed, prefixLength: Number(length) };
    }),
  });
  const links = [
    link('lo', '127.0.0.1/8', '::1/128'),
    link('eth0', '192.168.0.1/24', 'fd00:192::1/64'),
    link('cni0', '10.1.1.1/24', 'fd00:1:1::1/64'),
  ];
  const sysctls = new Map([
    ['net.ipv4.ip_forward', '1'],
    ['net.ipv6.conf.all.forwarding', '1'],
    ['net.ipv4.conf.all.route_localnet', run('sysctl', ['-n', 'net.ipv4.conf.all.route_localnet']).trim()],
    ...state.sysctls,
  ]);
  return prepareEvaluator(
    { ...state, sysctls },
    knowAll(links, { ipv4: read('192.168.0.1'), ipv6: read('fd00:192::1') }),
  );
}
