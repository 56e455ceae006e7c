/** What is listed, a list for each. */
export const ownedLists = [
  /** virtualServerKey. */
  'virtualServers',
  'sets',
  /** chainKey. */
  'chains',
  /** Rules in chains that are not owned: jumps in the kernel's own, and kube-proxy's rule in a kubelet's KUBE-FIREWALL: jumpKey. */
  'jumps',
  /** Links, with all addresses on them. */
  'links',
  /** Addresses on a link that is another program's: addressKey. */
  'addresses',
  /**
   * Of the chains and rules, those that a kubelet makes too, and that kpc-apply made although there was a kubelet: it had
   * none. Where a kubelet came later, it has taken them for its own.
   */
  'besideKubelet',
  /** Tables of nftables, with all that is in them: nftTableKey. */
  'nftTables',
] as const;

/** Names of things in a kernel that are kpc-apply's. */
export type OwnedNames = Readonly<Record<(typeof ownedLists)[number], readonly string[]>>;
