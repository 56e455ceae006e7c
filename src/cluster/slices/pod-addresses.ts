import { maxPoolSize, pick } from '../pick-by-hash.ts';
import { addressAfter, type Address, type Network } from '../../kernel/address.ts';

/** A Pod that wants an address of a network. */
export interface Claim {
  readonly network: Network;
  /** Identifies the workload, the same in each run. */
  readonly workload: string;
  /** Which of the workload's Pods it is. */
  readonly index: number;
  /** Whether the Pod is there; the others are kept room for. */
  readonly wanted: boolean;
}

/** For how many Pods a workload has room at least, if there is as much: the first of these that fits. */
const rooms = [16, 8, 4, 2, 1] as const;

/** How many Pods of a workload with so many have room. */
export function roomFor(replicas: number, least: number): number {
  return Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, replicas))));
}

/**
 * Gives each Pod an address of its network, by the name of its workload and its number there. The first Pods of all
 * workloads choose first, and Pods that are not there keep their place free, so that one replica more moves no other Pod;
 * another workload rarely does. Nothing of `taken` is given away. Claims that get no address are missing in the result.
 */
export function choosePodAddresses(
  claimsWithRoom: (least: number) => readonly Claim[],
  taken: ReadonlySet<string>,
): ReadonlyMap<string, Address> {
  const used = new Set(taken);
  const pools = new Map<string, AddressPool>();
  const chosen = new Map<string, Address>();
  for (const claim of chooseRoom(claimsWithRoom).toSorted(compareClaims)) {
    const { network } = claim;
    const pool = pools.get(network.text) ?? new AddressPool(network, used);
    pools.set(network.text, pool);
    const address = pool.take(`${claim.workload}/${claim.index}/${network.family}`, claim.wanted);
    if (address && claim.wanted) chosen.set(claimKey(claim), address);
  }
  return chosen;
}

/** What choosePodAddresses names a claim by. */
export function claimKey({ network, workload, index }: Omit<Claim, 'wanted'>): string {
  return `${workload}/${index}/${network.family}`;
}

/** The claims, with so much room for more of them that no network is more than half full. */
function chooseRoom(claimsWithRoom: (least: number) => readonly Claim[]): readonly Claim[] {
  for (const least of rooms) {
    const claims = claimsWithRoom(least);
    if (isHalfEmpty(claims)) return claims;
  }
  return claimsWithRoom(1).filter(({ wanted }) => wanted);
}

function isHalfEmpty(claims: readonly Claim[]): boolean {
  const counts = new Map<string, number>();
  for (const { network } of claims) counts.set(network.text, (counts.get(network.text) ?? 0) + 1);
  return claims.every(({ network }) => (counts.get(network.text) ?? 0) <= sizeOf(network) / 2);
}

function sizeOf({ family, prefixLength }: Network): number {
  return Math.min(maxPoolSize, 2 ** ((family === 'ipv4' ? 32 : 128) - prefixLength));
}

function compareClaims(a: Claim, b: Claim): number {
  return a.index - b.index || (a.workload < b.workload ? -1 : a.workload > b.workload ? 1 : 0);
}

/** The addresses of one network. */
class AddressPool {
  readonly #network: Network;
  readonly #size: number;
  /** Of all networks: one may lie in the other. */
  readonly #used: Set<string>;
  readonly #kept = new Set<number>();
  #full = false;

  constructor(network: Network, used: Set<string>) {
    this.#network = network;
    this.#size = sizeOf(network);
    this.#used = used;
  }

  take(name: string, wanted: boolean): Address | undefined {
    if (this.#full) return undefined;
    const offset = pick(name, { size: this.#size, reserved: 0, isFree: (at) => this.#isFree(at) });
    if (offset === undefined) {
      this.#full = true;
      return undefined;
    }
    this.#kept.add(offset);
    const address = addressAfter(this.#network.address, offset);
    if (wanted) this.#used.add(address.text);
    return address;
  }

  /** The first is the network's own, the second that of the node's bridge; IPv4 has the broadcast address at the end. */
  #isFree(at: number): boolean {
    if (at < 2 || (this.#network.family === 'ipv4' && at === this.#size - 1) || this.#kept.has(at)) return false;
    return !this.#used.has(addressAfter(this.#network.address, at).text);
  }
}
