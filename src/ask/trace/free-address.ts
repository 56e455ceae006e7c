import { addressAfter, addressBits, contains, parseNetwork, type Address, type Network } from '../../kernel/address.ts';
import { addressesOn, type Link } from '../../kernel/link/link.ts';
import { isIn } from './pod-networks.ts';
import type { Scene } from './scene.ts';

export function networksOfLinks(links: readonly Link[]): readonly Network[] {
  return links
    .flatMap(({ addresses }) => addresses)
    .flatMap(({ address, prefixLength }) => parseNetwork(`${address.text}/${prefixLength}`) ?? []);
}

/** Returns addresses that no host has: the first and last address of each network, and all addresses that routes list as broadcast. */
function addressesOfNoHost(network: Network, scene: Scene): ReadonlySet<string> {
  const ends = [network, ...networksOfLinks(scene.links)].flatMap((each) => {
    const size = 2 ** (addressBits[each.family] - each.prefixLength);
    return each.family === 'ipv4' && size > 2 ? [each.address, addressAfter(each.address, size - 1)] : [];
  });
  const routes = scene.side.routes[network.family]?.routes ?? [];
  const ofRoutes = routes.flatMap(({ type, destination }) => (type === 'broadcast' ? [destination.address] : []));
  return new Set([...ends, ...ofRoutes].map(({ text }) => text));
}

/** The host number from which freeAddressIn counts down, because routers and endpoints often have low numbers. */
const tried = 250;
const blockSize = 256;
/** The number of blocks to search in a large network. */
const blocks = 256;

/** Returns an address that a host may have, and that neither the node nor any endpoint or Service has. */
export function freeAddressIn(
  network: Network | undefined,
  scene: Scene,
  except: readonly Network[] = [],
): Address | undefined {
  if (!network) return undefined;
  const { endpoints } = scene.side;
  const own = addressesOn(scene.links);
  const unusable = addressesOfNoHost(network, scene);
  const isTaken = ({ text }: Address) =>
    endpoints.has(text) || endpoints.isOfService(text) || own.has(text) || unusable.has(text);
  let start = network.address;
  for (let block = 0; block < blocks && contains(network, start); block++) {
    const passed = except.find((each) => contains(each, start));
    const hosts = passed ? 0 : tried;
    for (let host = hosts; host > 1; host--) {
      const address = addressAfter(start, host);
      if (contains(network, address) && !isIn(except, address) && !isTaken(address)) return address;
    }
    start = passed
      ? addressAfter(passed.address, 2 ** (addressBits[network.family] - passed.prefixLength))
      : addressAfter(start, blockSize);
  }
  return undefined;
}
