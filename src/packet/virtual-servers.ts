import type { RealServer, VirtualServer } from '../kernel/ipvs.ts';
import type { Flow } from './flow.ts';

export type VirtualServerIndex = ReadonlyMap<string, VirtualServer>;

export function indexVirtualServers(servers: readonly VirtualServer[]): VirtualServerIndex {
  return new Map(servers.map((server) => [keyOf(server.protocol, server.address.text, server.port), server]));
}

/** The virtual server that takes the packet: of its address and port, or one of all ports. */
export function findVirtualServer(servers: VirtualServerIndex, flow: Flow): VirtualServer | undefined {
  const protocol = flow.protocol.toUpperCase();
  const { text } = flow.destination;
  return servers.get(keyOf(protocol, text, flow.port)) ?? servers.get(keyOf(protocol, text, 0));
}

function keyOf(protocol: string, address: string, port: number): string {
  return `${protocol} ${address} ${port}`;
}

/** How likely a scheduler takes each real server for a new client, as long as no connections weigh on it. */
const shares: Readonly<Record<string, (server: RealServer, all: readonly RealServer[]) => number>> = {
  rr: () => 1,
  lc: () => 1,
  dh: () => 1,
  ...Object.fromEntries(
    'wrr wlc lblc lblcr sh sed nq mh twos'.split(' ').map((name) => [name, ({ weight }: RealServer) => weight]),
  ),
  // One of the heaviest: which one, the kernel's own order of them decides.
  fo: isHeaviest,
  ovf: isHeaviest,
};

function isHeaviest({ weight }: RealServer, all: readonly RealServer[]): number {
  return all.every((other) => other.weight <= weight) ? 1 : 0;
}

/** The real servers that may be chosen, with their probabilities; undefined for a scheduler that kpc does not know. */
export function schedule({
  scheduler,
  realServers,
}: VirtualServer): { readonly servers: readonly RealServer[]; readonly probabilities: readonly number[] } | undefined {
  const share = Object.hasOwn(shares, scheduler) ? shares[scheduler] : undefined;
  if (!share) return undefined;
  const open = realServers.filter(({ weight }) => weight > 0);
  const servers = open.filter((server) => share(server, open) > 0);
  const total = servers.reduce((sum, server) => sum + share(server, open), 0);
  return { servers, probabilities: servers.map((server) => share(server, open) / total) };
}
