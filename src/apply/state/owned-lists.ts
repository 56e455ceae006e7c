export const ownedLists = [
  /** virtualServerKey. */
  'virtualServers',
  'sets',
  /** chainKey. */
  'chains',
  /** By jumpKey: owned rules in chains that are not owned, such as jumps, or kube-proxy's rule in a kubelet's KUBE-FIREWALL. */
  'jumps',
  'links',
  /** By addressKey: addresses on another program's link. */
  'addresses',
  /** Chains and rules that kubelet also makes, missing when kpc-apply made them. A later kubelet takes them over. */
  'besideKubelet',
  /** By nftTableKey: nftables tables with their content. */
  'nftTables',
] as const;

export type OwnedNames = Readonly<Record<(typeof ownedLists)[number], readonly string[]>>;
