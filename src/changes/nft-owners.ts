import type { Element } from '../kernel/nftables/element.ts';
import { keyMeaning } from '../kernel/nftables/meaning.ts';
import type { NftChain, NftMap, NftSet } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { nftPrefixes } from '../kube-proxy/nftables.ts';

/** Which Service port the objects of nftables are there for, as in Owners. */
export interface NftOwners {
  ofNftChain(chain: Pick<NftChain, 'name' | 'origin'>): string | undefined;
  ofNftSet(set: Pick<NftSet | NftMap, 'name' | 'origin'>): string | undefined;
  ofNftElement(set: Pick<NftSet | NftMap, 'name'>, element: Element): string | undefined;
}

/** "service-ULMVA6XW-ns/name/tcp/port", and what comes after it in the name of an endpoint's chain or set. */
const ownName = new RegExp(
  `^(?:${Object.values(nftPrefixes).join('|')})[A-Z2-7]{8}-([^/]+)/([^/]+)/(?:tcp|udp|sctp)/([^_/]*)(?:__.*)?$`,
);

/** The label of the Service port in the name of a chain or set of its own; undefined where the name is cut short. */
function labelInNftName(name: string): string | undefined {
  const [, namespace, service, port] = ownName.exec(name) ?? [];
  if (namespace === undefined || service === undefined || port?.endsWith('...')) return undefined;
  return port ? `${namespace}/${service}:${port}` : `${namespace}/${service}`;
}

/** As findOwners: an item's own origin wins, then its name, then an item of the same name in any of the states. */
export function findNftOwners(states: readonly KernelState[]): NftOwners {
  const names = once(() => indexNames(states));
  const elements = once(() => indexElements(states, names()));
  const ofName = (name: string) => labelInNftName(name) ?? names().get(name);
  return {
    ofNftChain: ({ name, origin }) => origin?.servicePort ?? ofName(name),
    ofNftSet: ({ name, origin }) => origin?.servicePort ?? ofName(name),
    ofNftElement: ({ name }, element) =>
      element.origin?.servicePort ?? labelOfElement(element, ofName) ?? elements().get(elementKey(name, element)),
  };
}

/** A map's element names the chain that it leads to, or the Service port in its comment. */
function labelOfElement({ value, comment }: Element, ofName: (name: string) => string | undefined): string | undefined {
  const isJump = value?.kind === 'goto' || value?.kind === 'jump';
  return (isJump ? ofName(value.chain) : undefined) ?? (comment?.endsWith('...') ? undefined : comment);
}

function indexNames(states: readonly KernelState[]): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const { nftables } of states) {
    for (const { chains, sets } of nftables) {
      for (const { name, origin } of [...chains.values(), ...sets.values()]) {
        if (origin?.servicePort !== undefined && !labels.has(name)) labels.set(name, origin.servicePort);
      }
    }
  }
  return labels;
}

function indexElements(
  states: readonly KernelState[],
  names: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const { nftables } of states) {
    for (const { sets } of nftables) {
      for (const { name, elements } of sets.values()) {
        for (const element of elements) {
          const label =
            element.origin?.servicePort ??
            labelOfElement(element, (chain) => labelInNftName(chain) ?? names.get(chain));
          const key = elementKey(name, element);
          if (label !== undefined && !labels.has(key)) labels.set(key, label);
        }
      }
    }
  }
  return labels;
}

function elementKey(set: string, { key }: Element): string {
  return `${set} ${keyMeaning(key)}`;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
