/** The line that a table of `nft list` begins with. */
const table = /^\s*table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{/;

/** Whether a text begins with a table of nftables. */
export function beginsNft(text: string): boolean {
  return table.test(text);
}

/** Whether a table ends before its end. */
export function isCutOff(text: string): boolean {
  let depth = 0;
  let quoted = false;
  for (const character of text) {
    if (character === '"') quoted = !quoted;
    else if (!quoted && (character === '{' || character === '[')) depth++;
    else if (!quoted && (character === '}' || character === ']')) depth--;
  }
  return depth > 0 || quoted;
}
