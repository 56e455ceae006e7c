import { run } from './network.ts';

/** A node's state as the tools print it, in an order that does not depend on its history. */
export interface SavedState {
  readonly iptables: string;
  readonly ip6tables: string;
  readonly ipset: string;
  readonly ipvsadm: string;
  readonly addresses: string;
}

const separator = '=====';

const saveScript = [
  'iptables-save',
  'ip6tables-save',
  'ipset save',
  'ipvsadm -Sn',
  'ip -o addr show dev kube-ipvs0 2>/dev/null',
]
  .map((command) => `${command}; echo ${separator}`)
  .join('\n');

/** Feeds a bundle to the tools by hand, as the documentation describes for a fresh node. */
const feedScript = `
cd "$1" || exit 1
# Without a local address, IPVS takes no address for one that it could send to.
ip link set lo up
[ -e ipset.restore ] && ipset restore <ipset.restore
[ -e iptables.restore ] && iptables-restore --noflush <iptables.restore
[ -e ip6tables.restore ] && ip6tables-restore --noflush <ip6tables.restore
[ -s ipvsadm.restore ] && ipvsadm -R <ipvsadm.restore
[ -e ip.batch ] && ip -batch ip.batch
`;

/** Saves the state of this node. */
export function saveState(): SavedState {
  return normalize(run('bash', ['-c', saveScript]));
}

/** Returns the state of a fresh node after a bundle's files were fed to the tools by hand; without a folder, of an empty node. */
export function saveByHand(folder: string | undefined): SavedState {
  run('ip', ['netns', 'add', 'by-hand']);
  try {
    const script = `${feedScript}\n${saveScript}`;
    return normalize(run('ip', ['netns', 'exec', 'by-hand', 'bash', '-c', script, 'feed', folder ?? '/run/netns']));
  } finally {
    run('ip', ['netns', 'del', 'by-hand']);
  }
}

function normalize(output: string): SavedState {
  const [iptables = '', ip6tables = '', ipset = '', ipvsadm = '', addresses = ''] = output.split(`${separator}\n`);
  return {
    iptables: normalizeTables(iptables),
    ip6tables: normalizeTables(ip6tables),
    // Sort the entries, because each set lists them in an order that depends on the set's random seed.
    ipset: sortLines(ipset.replaceAll(/ initval 0x[0-9a-f]+/g, '').replaceAll(/ hashsize \d+/g, '')),
    ipvsadm: sortLines(ipvsadm),
    addresses: sortLines(addresses.replaceAll(/^\d+: /gm, '')),
  };
}

/** Sorts tables, because they are listed in the order of their first use. Drops tables without rules. Rules keep their order. */
export function normalizeTables(text: string): string {
  return text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/ \[\d+:\d+\]/g, '')
    .split(/(?<=^COMMIT\n)/m)
    .filter((table) => /^(-A|:KUBE-)/m.test(table))
    .toSorted()
    .join('');
}

function sortLines(text: string): string {
  return text.split('\n').toSorted().join('\n').trim();
}
