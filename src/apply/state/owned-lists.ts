export const ownedLists = [
  /** By virtualServerKey. */
  'virtualServers',
  'sets',
  /** By chainKey. */
  'chains',
  /** By jumpKey. Owned rules in chains that are not owned, such as jumps, or kube-proxy's rule in a kubelet's KUBE-FIREWALL. */
  'jumps',
  'links',
  /** By addressKey. Addresses on another program's link. */
  'addresses',
  /** Chains and rules that kubelet also makes but that were missing when kpc-apply made them. A later kubelet takes them over. */
  'besideKubelet',
  /** By nftTableKey. Tables with their content. */
  'nftTables',
] as const;

export type OwnedNames = Readonly<Record<(typeof ownedLists)[number], readonly string[]>>;
