import type { Release } from '../../src/kube-proxy/releases.ts';

/** A difference that compareWithKubeProxy found, and where. */
interface Found {
  readonly difference: string;
  /** The case and the mode: "long-comment/nftables". */
  readonly key: string;
  readonly release: Release;
}

/** A difference from kube-proxy that kpc has on purpose, and that recordings show. */
interface Difference {
  /** What docs/differences.md says of it: words of that page. */
  readonly said: string;
  /** A case that shows it, and in which release. */
  readonly shownBy: Pick<Found, 'key' | 'release'>;
  readonly explains: (found: Found) => boolean;
}

/** The cases in which one slice holds an endpoint twice, once ready and once not. */
const equalEndpoints: ReadonlySet<string> = new Set([
  'iptables-102-0081/iptables',
  'iptables-102-0138/iptables',
  'ipvs-101-0106/ipvs',
  'ipvs-101-0144/ipvs',
  'ipvs-101-0192/ipvs',
]);

/** The cases in which a Service has addresses of IPv6, alone or beside those of IPv4. */
const mixedAddresses: ReadonlySet<string> = new Set([
  'dual-stack/userspace',
  'long-names/userspace',
  'source-ranges-of-one-family/userspace',
  'source-ranges-overlapping/userspace',
  'source-ranges-with-node/userspace',
]);

export const differencesOnPurpose: readonly Difference[] = [
  {
    said: 'kube-proxy itself listens for TCP node ports on localhost',
    shownBy: { key: 'localhost-gate-node-ports-localhost-since-1.37/nftables', release: '1.37' },
    explains: ({ difference }) => difference.startsWith('- listeners'),
  },
  {
    said: 'kpc shortens such a comment',
    shownBy: { key: 'long-comment/nftables', release: '1.36' },
    explains: ({ difference }) =>
      /^- \S+ kube-proxy map .* comment "[^"]{129,}"|^\+ .* comment "[^"]{128}"/.test(difference),
  },
  {
    said: 'kube-proxy 1.30 first sorts the slice with an unstable sort',
    shownBy: { key: 'ipvs-101-0106/ipvs', release: '1.30' },
    explains: ({ key, release }) => release === '1.30' && equalEndpoints.has(key),
  },
  {
    said: 'kube-proxy stops at the first IPv6 address',
    shownBy: { key: 'dual-stack/userspace', release: '1.25' },
    explains: ({ difference, key }) =>
      mixedAddresses.has(key) && /^(?:\+ ipv4 \w+ KUBE-|- balancer: )/.test(difference),
  },
];

/** The differences that are none on purpose: kpc's faults. */
export function withoutPurpose(differences: readonly string[], key: string, release: Release): readonly string[] {
  return differences.filter(
    (difference) => !differencesOnPurpose.some(({ explains }) => explains({ difference, key, release })),
  );
}
