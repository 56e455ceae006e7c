import type { Family } from './family.ts';
import type { Origin } from './origin.ts';

/** A network link. `kind` is the link type of `ip -d link` where it is known: dummy for kube-ipvs0. */
export interface Link {
  readonly name: string;
  readonly kind?: string | undefined;
  readonly addresses: readonly LinkAddress[];
}

export interface LinkAddress {
  readonly family: Family;
  /** Canonical text. */
  readonly address: string;
  readonly prefixLength: number;
  /** "global", "link", "host"; undefined is global. */
  readonly scope?: string | undefined;
  readonly origin?: Origin | undefined;
}

/**
 * The input of `ip -batch` that makes these links, with their addresses, where none exists. kube-proxy does not set
 * kube-ipvs0 up: an address of a link that is down is local all the same. '' for no links.
 */
export function formatLinks(links: readonly Link[]): string {
  const lines: string[] = [];
  for (const link of links) {
    if (link.kind !== undefined) lines.push(formatLinkAdd(link.name, link.kind));
    for (const address of link.addresses) lines.push(formatAddressAdd(link.name, address));
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** `link add NAME type KIND`. */
export function formatLinkAdd(link: string, kind: string): string {
  return `link add ${link} type ${kind}`;
}

/** `addr add ADDRESS/LENGTH dev NAME`. */
export function formatAddressAdd(link: string, address: LinkAddress): string {
  const line = `addr add ${address.address}/${address.prefixLength} dev ${link}`;
  return address.scope === undefined || address.scope === 'global' ? line : `${line} scope ${address.scope}`;
}
