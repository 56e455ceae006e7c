import { pods } from './network.ts';
import { startTraffic } from './traffic.ts';
import type { Traffic } from './traffic.ts';

/** Starts traffic with a server of each protocol and family on port 8080 of each pod, named after it. */
export async function startServers(): Promise<Traffic> {
  const traffic = startTraffic(`${process.env['KPC_LAB']}/traffic.pl`);
  for (const pod of pods) {
    for (const protocol of ['tcp', 'udp', 'sctp'] as const) {
      await traffic.listen(pod, protocol, '0.0.0.0', 8080, pod);
      await traffic.listen(pod, protocol, '::', 8080, pod);
    }
  }
  return traffic;
}
