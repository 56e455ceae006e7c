import type { Behaviour, Release } from './releases.ts';
import type { ProxyMode } from './modes.ts';

/** The minor number of a release, which may not be out yet: 40 for 1.40. */
export type Minor = number;

/** A feature that a KEP plans to remove. The plan may change before the release. */
interface AnnouncedEnd {
  readonly deprecatedIn: Minor;
  /** The first release that turns the feature off, unless the feature gate `gate` keeps it. */
  readonly offIn: Minor;
  /** The first release without the feature. */
  readonly goneIn: Minor;
  readonly kep: number;
  readonly gate: string;
}

export const announcedEnds = {
  'ipvs-mode': { deprecatedIn: 35, offIn: 40, goneIn: 43, kep: 5495, gate: 'KubeProxyIPVS' },
  'external-ips': { deprecatedIn: 36, offIn: 40, goneIn: 43, kep: 5707, gate: 'AllowServiceExternalIPs' },
} as const satisfies { readonly [B in Behaviour]?: AnnouncedEnd };

/** The planned new default mode. Before release `since`, a kube-proxy without a configured mode uses iptables. */
export const announcedDefault = { since: 40, mode: 'nftables', kep: 5343 } as const satisfies {
  readonly since: Minor;
  readonly mode: ProxyMode;
  readonly kep: number;
};

export const lastAnnounced: Minor = Math.max(...Object.values(announcedEnds).map(({ goneIn }) => goneIn));

export function parseMinor(text: string): Minor | undefined {
  const minor = /^v?1\.(\d{1,3})(?:\.\d{1,5})?$/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

export function isDeprecated(behaviour: keyof typeof announcedEnds, release: Release): boolean {
  return (parseMinor(release) ?? 0) >= announcedEnds[behaviour].deprecatedIn;
}
