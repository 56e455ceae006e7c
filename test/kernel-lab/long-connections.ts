// Keeps connections open while the node changes, and makes new ones meanwhile, for the suites of traffic.
import { assert, expectApply } from './harness.ts';
import type { startServers } from './servers.ts';
import type { Probe } from './traffic.ts';

type Traffic = Awaited<ReturnType<typeof startServers>>;

/** A client's place ("-" is the node), the address and port that it connects to, and the protocol. */
export type Route = readonly [from: string, address: string, port: number, protocol: 'tcp' | 'udp'];

/** Routes of all kinds: from pods and the node to cluster IPs, and from outside clients to node ports, external IPs and load balancers. */
export const routesOfAllKinds: readonly Route[] = [
  ['pod-b', '10.96.0.10', 80, 'tcp'],
  ['pod-b', '10.96.0.18', 80, 'tcp'],
  ['pod-b', 'fd00:96::10', 80, 'tcp'],
  ['pod-a', '10.96.0.21', 80, 'tcp'],
  ['client', '10.96.0.23', 80, 'tcp'],
  ['client', '192.168.0.1', 30080, 'tcp'],
  ['client', '192.168.0.1', 30081, 'tcp'],
  ['client', 'fd00:192::1', 30080, 'tcp'],
  ['client', '203.0.113.10', 80, 'tcp'],
  ['client', '203.0.113.20', 80, 'tcp'],
  ['client', '203.0.113.21', 80, 'tcp'],
  ['client', '203.0.113.22', 80, 'tcp'],
  ['-', '10.96.0.10', 80, 'tcp'],
  ['-', 'fd00:96::10', 80, 'tcp'],
  ['-', '192.168.0.1', 30080, 'tcp'],
  ['client', '10.96.0.11', 53, 'udp'],
  ['pod-b', '10.96.0.11', 53, 'udp'],
  ['client', '192.168.0.1', 30053, 'udp'],
];

/** Returns a probe with one short connection over a route. */
export const probeOf = ([from, address, port, protocol]: Route): Probe => ({ from, address, port, protocol });

/** Opens a connection over each route. Returns their ids. */
export async function openAll(traffic: Traffic, prefix: string, routes: readonly Route[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const [i, [from, address, port, protocol]] of routes.entries()) {
    const id = `${prefix}${i}`;
    const answer = await traffic.transfer(id, from, address, port, protocol);
    assert(answer.startsWith('pod-'), `${from} to ${address}:${port} over ${protocol}: ${answer}`);
    ids.push(id);
  }
  return ids;
}

/** Applies a bundle while new connections are made, all of which must succeed. Calls `watch` before each round. */
export async function applyUnderFire(
  traffic: Traffic,
  bundle: string,
  newcomers: readonly Probe[],
  watch: () => Promise<void> = async () => {},
): Promise<void> {
  const asked = { stop: false };
  const failed = new Set<string>();
  let attempts = 0;
  const fire = (async () => {
    while (!asked.stop) {
      await watch();
      const answers = await traffic.probe(newcomers);
      attempts += answers.length;
      answers.forEach((answer, i) => {
        if (!answer.startsWith('pod-')) failed.add(`${newcomers[i]?.from} to ${newcomers[i]?.address}: ${answer}`);
      });
    }
  })();
  // Handle the rejection now, because the promise is awaited only after the apply. Its error belongs to the test, not to kpc-apply.
  fire.catch(() => {});
  await expectApply(['apply', bundle], 0);
  asked.stop = true;
  await fire;
  assert(attempts > 0 && failed.size === 0, `of ${attempts} new connections failed: ${[...failed].join('; ')}`);
}
