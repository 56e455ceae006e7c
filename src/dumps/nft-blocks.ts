/** The line that a table of `nft list` begins with. */
const table = /^\s*table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{/;

/** What the JSON of `nft -j list` begins with, on one line or many. */
const json = /^\s*\{\s*"nftables"\s*:\s*\[/;

/** Whether a text begins with a table of nftables, or with the JSON of nft. */
export function beginsNft(text: string): boolean {
  return table.test(text) || json.test(text);
}

/** Whether a table, or JSON, ends before its end. */
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
