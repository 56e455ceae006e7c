export const ownedLists = [
  /** virtualServerKey. */
  'virtualServers',
  'sets',
  /** chainKey. */
  'chains',
  /**
   * By jumpKey: rules in chains that are not owned: jumps in built-in chains, and kube-proxy's rule in a kubelet's
   * KUBE-FIREWALL.
   */
  'jumps',
  'links',
  /** By addressKey: addresses on another program's link. */
  'addresses',
  /**
   * Chains and rules that kubelet also makes and kpc-apply made because that kubelet had none. A later kubelet takes
   * them as its own.
   */
  'besideKubelet',
  /** By nftTableKey: nftables tables with their content. */
  'nftTables',
] as const;

export type OwnedNames = Readonly<Record<(typeof ownedLists)[number], readonly string[]>>;
