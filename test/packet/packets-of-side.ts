import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import type { PacketProtocol } from '../../src/packet/packet.ts';

/** An address and port to send to. */
export interface AskedPort {
  readonly address: string;
  readonly port: number;
  readonly protocol: PacketProtocol;
}

/** Every address and port of a side's Services, a wrong port of each, pings, node ports and addresses that nothing has. */
export function portsOf({ cluster }: Snapshot): readonly AskedPort[] {
  const asked = new Map<string, AskedPort>();
  const add = (address: string, port: number, protocol: PacketProtocol): void => {
    asked.set(`${protocol} ${address} ${port}`, { address, port, protocol });
  };
  for (const port of cluster?.servicePorts ?? []) {
    const protocol = port.protocol.toLowerCase() as PacketProtocol;
    for (const { text } of [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs]) {
      add(text, port.port, protocol);
      add(text, 81, protocol);
      add(text, 0, 'icmp');
    }
    if (port.nodePort > 0) {
      const own = port.family === 'ipv4' ? ['192.168.0.1', '127.0.0.1'] : ['fd00:192::1', '::1'];
      for (const address of own) add(address, port.nodePort, protocol);
    }
    if (port.healthCheckNodePort > 0) add('192.168.0.1', port.healthCheckNodePort, 'tcp');
  }
  for (const address of ['192.168.0.1', '127.0.0.1']) add(address, 22, 'tcp');
  add('10.1.2.10', 8080, 'tcp');
  add('10.96.0.250', 80, 'tcp');
  return [...asked.values()];
}
