import { expect, test } from 'vitest';
import { parseAddress, parseNetwork, type Address } from '../../src/kernel/address.ts';
import type { Route } from '../../src/kernel/route/route.ts';
import { placesOf } from '../../src/packet/routing/places.ts';

const address = (text: string): Address => {
  const parsed = parseAddress(text);
  if (!parsed) throw new Error(text);
  return parsed;
};
/** `onRead` hears each time that someone asks where the route leads. */
const route = (text: string, link: string, onRead = () => {}): Route => {
  const destination = parseNetwork(text);
  if (!destination) throw new Error(text);
  const hops = [{ link }];
  return {
    type: 'unicast',
    hops,
    get destination() {
      onRead();
      return destination;
    },
  } as unknown as Route;
};
const placesBy = (routes: readonly Route[]) =>
  placesOf({ own: [], links: [], routes, isPod: () => true, inward: new Set() });

test('of several routes to an address, the one with the longest prefix counts', () => {
  const places = placesBy([
    route('0.0.0.0/0', 'eth0'),
    route('10.244.0.0/16', 'cni0'),
    route('10.244.1.7/32', 'veth7'),
  ]);
  expect(places.linkInside(address('10.244.1.7'))).toBe('veth7');
  expect(places.linkInside(address('10.244.1.8'))).toBe('cni0');
  expect(places.linkInside(address('192.0.2.1'))).toBeUndefined();
  expect(places.closerHop(address('10.244.1.7'), { link: 'cni0' } as never)).toMatchObject({ link: 'veth7' });
  expect(places.closerHop(address('10.244.1.8'), { link: 'cni0' } as never)).toBeUndefined();
});

test('routes are read once, not for each packet', () => {
  let reads = 0;
  const count = () => {
    reads++;
  };
  const places = placesBy(Array.from({ length: 250 }, (_, at) => route(`10.244.${at}.0/24`, 'cni0', count)));
  const before = reads;
  for (let at = 0; at < 250; at++) {
    places.linkInside(address(`10.244.${at}.1`));
    places.closerHop(address(`10.244.${at}.1`), { link: 'eth0' } as never);
  }
  expect(reads).toBe(before);
});
