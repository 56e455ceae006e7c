import { portAddresses, type AddressIndex, type PortAddress, type ShownPort } from '../../cluster/model.ts';
import type { Address } from '../../kernel/address.ts';
import type { SocketAddress } from '../../kernel/ports-and-marks.ts';
import type { Packet } from '../../packet/packet.ts';

/** The Service port that a destination belongs to. A cluster IP is not a node address, so it has no node ports. */
export function portAt(
  { address, port, protocol }: Pick<Packet, 'port' | 'protocol'> & SocketAddress,
  index: AddressIndex,
): ShownPort | undefined {
  const fits = (each: ShownPort): boolean => each.family === address.family && each.protocol.toLowerCase() === protocol;
  const there = index.servicesAt(address.text);
  const own = there.find((each) => each.port === port && fits(each));
  const isClusterIP = there.some((each) => addressKind(each, address) === 'cluster-ip');
  return (
    own ?? (isClusterIP ? undefined : index.nodePortsAt(port).find((each) => each.nodePort === port && fits(each)))
  );
}

/** The kind of this address of a Service port; undefined if the port does not have it. */
export function addressKind(port: ShownPort, { text }: Address): PortAddress['kind'] | undefined {
  return portAddresses(port).find(({ address }) => address.text === text)?.kind;
}
