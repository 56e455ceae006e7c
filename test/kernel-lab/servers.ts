import { pods } from './network.ts';
import { startTraffic, type Traffic, type Transport } from './traffic.ts';

const allProtocols: readonly Transport[] = ['tcp', 'udp', 'sctp'];

/** Starts traffic with a server of each protocol and family on port 8080 of each pod, named after it. */
export async function startServers(protocols: readonly Transport[] = allProtocols): Promise<Traffic> {
  const traffic = startTraffic(`${process.env['KPC_LAB']}/traffic.pl`);
  for (const pod of pods) {
    for (const protocol of protocols) {
      await traffic.listen(pod, protocol, '0.0.0.0', 8080, pod);
      await traffic.listen(pod, protocol, '::', 8080, pod);
    }
  }
  return traffic;
}
