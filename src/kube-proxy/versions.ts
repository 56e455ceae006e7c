/**
 * The Kubernetes releases whose kube-proxy kpc follows, oldest first, with the version whose source kpc follows. Its output
 * was compared with all of these but v1.31.14. Of a release that is not out, it is the newest version before it. Which of its modes
 * kpc follows is in `modeHistories`.
 */
export const kubeProxyVersions = {
  '1.25': 'v1.25.16',
  '1.30': 'v1.30.14',
  '1.31': 'v1.31.14',
  '1.32': 'v1.32.10',
  '1.33': 'v1.33.13',
  '1.34': 'v1.34.2',
  '1.35': 'v1.35.4',
  '1.36': 'v1.36.3',
  '1.37': 'v1.37.2',
  '1.38': 'v1.38.0-beta.0',
} as const;

/** A release of Kubernetes that kpc follows: "1.37". */
export type Release = keyof typeof kubeProxyVersions;

export const releases = Object.keys(kubeProxyVersions) as readonly Release[];

/** The gates that are set, each on or off. */
export type FeatureGates = ReadonlyMap<string, boolean>;
