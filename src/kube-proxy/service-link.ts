import type { KernelState } from '../kernel/state.ts';

/** The dummy link that kube-proxy in IPVS mode binds the Services' addresses to. */
export const serviceLink = 'kube-ipvs0';

export function boundAddresses(state: Pick<KernelState, 'links'>): readonly string[] {
  return state.links
    .filter((link) => link.name === serviceLink)
    .flatMap((link) => link.addresses.map(({ address }) => address.text));
}
