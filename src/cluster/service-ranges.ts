import type { Network } from '../kernel/address.ts';
import { compareAddressRanges } from '../kernel/address-range.ts';
import { compareText } from '../kernel/compare.ts';
import type { ServiceRange } from './model.ts';
import type { ServiceCidr, Sourced } from './objects.ts';

const defaultName = 'kubernetes';

/** All ServiceCIDRs, else --service-cluster-ip-range, from which the API server would make a ServiceCIDR. Sorted, unique. */
export function serviceRanges(
  objects: readonly Sourced<ServiceCidr>[],
  flag: readonly Network[],
): readonly ServiceRange[] {
  const declared = objects.toSorted(compareServiceCidrs).flatMap(({ object, source }) =>
    object.cidrs.map((network, i): ServiceRange => {
      return { network, from: 'ServiceCIDR', place: source.place(['spec', 'cidrs', i]) };
    }),
  );
  const assumed = flag.map((network): ServiceRange => ({ network, from: '--service-cluster-ip-range' }));
  return sortRanges(objects.length > 0 ? declared : assumed);
}

/** Sorts, and keeps the first of equal networks. */
export function sortRanges(ranges: readonly ServiceRange[]): readonly ServiceRange[] {
  const known = new Map<string, ServiceRange>();
  for (const range of ranges) if (!known.has(range.network.text)) known.set(range.network.text, range);
  return [...known.values()].sort((a, b) => compareAddressRanges(a.network, b.network));
}

/** At most one per family. The API server's own ServiceCIDR comes first: it decides the family by default. */
export function assignableNetworks(objects: readonly Sourced<ServiceCidr>[]): readonly Network[] {
  const networks = objects.toSorted(compareServiceCidrs).flatMap(({ object }) => object.cidrs);
  return networks.filter(({ family }, i) => networks.findIndex((other) => other.family === family) === i);
}

export function isDefaultCidr({ metadata }: ServiceCidr): boolean {
  return metadata.name === defaultName;
}

function compareServiceCidrs({ object: a }: Sourced<ServiceCidr>, { object: b }: Sourced<ServiceCidr>): number {
  return Number(isDefaultCidr(b)) - Number(isDefaultCidr(a)) || compareText(a.metadata.name, b.metadata.name);
}
