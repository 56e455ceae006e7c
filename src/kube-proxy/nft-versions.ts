/** The versions of nft that write sets on which older ones crash: this one, and all from `from` on. */
const writers = { exactly: '1.0.6.1', from: [1, 1, 2] } as const;

/** The first release whose image has an nft that reads what all of them write. */
export const readsAllNft = '1.37';

/** Whether an nft of this version writes sets on which the nft in an older image of kube-proxy crashes. */
export function writesNewSets(version: readonly number[]): boolean {
  if (version.join('.') === writers.exactly) return true;
  const differing = writers.from.findIndex((part, i) => (version[i] ?? 0) !== part);
  return differing < 0 || (version[differing] ?? 0) > (writers.from[differing] ?? 0);
}

/** What such an nft on a node does to a kube-proxy there. */
export const newSetsWords = `nft ${writers.exactly}, or ${writers.from.join('.')} and newer, on the host writes sets that may crash the nft in the image of a kube-proxy before ${readsAllNft}, and then no Service works (kubernetes issues 136786 and 140898)`;
