export const ownedLists = [
  /** Keyed by virtualServerKey. */
  'virtualServers',
  'sets',
  /** Keyed by chainKey. */
  'chains',
  /** Keyed by jumpKey: owned rules in chains not owned, such as jumps, or kube-proxy's rule in a kubelet's KUBE-FIREWALL. */
  'jumps',
  'links',
  /** Keyed by addressKey: owned addresses on another program's link. */
  'addresses',
  /** Chains and rules that kubelet also makes but that were missing when kpc-apply made them. A later kubelet takes them over. */
  'besideKubelet',
  /** Keyed by nftTableKey: tables with their content. */
  'nftTables',
] as const;

export type OwnedNames = Readonly<Record<(typeof ownedLists)[number], readonly string[]>>;
