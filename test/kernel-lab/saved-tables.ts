import { spawnSync } from 'node:child_process';
import { run } from './network.ts';

/** Returns kube-proxy's nftables tables in an order that does not depend on their history. */
export function saveTables(): string {
  return ['ip', 'ip6'].map(saveTable).join('\n');
}

/** Like saveTables, for a fresh node after a bundle was fed to the tools by hand. */
export function saveTablesByHand(folder: string): string {
  run('ip', ['netns', 'add', 'by-hand']);
  try {
    const script = `nft -f ${folder}/nftables.nft; for f in ip ip6; do nft -s list table $f kube-proxy 2>/dev/null; echo =====; done`;
    const [ipv4 = '', ipv6 = ''] = run('ip', ['netns', 'exec', 'by-hand', 'bash', '-c', script]).split('=====\n');
    return [ipv4, ipv6].map((text) => (text === '' ? '' : normalize(text))).join('\n');
  } finally {
    run('ip', ['netns', 'del', 'by-hand']);
  }
}

/** Makes tables of other programs: a firewall's, a container runtime's, and one with a similar name in another family. */
export function makeOtherTables(): void {
  run(
    'nft',
    ['-f', '-'],
    `
table ip filter { chain INPUT { type filter hook input priority 0; policy accept; ip saddr 100.64.9.9 drop; }; }
table ip docker { map kube-proxy { type ipv4_addr : verdict; }; chain nat { type nat hook prerouting priority -100; }; }
table inet kube-proxy { chain theirs { counter drop; }; }
`,
  );
}

/** Returns the content of the other programs' tables. */
export function saveOtherTables(): string {
  return ['ip filter', 'ip docker', 'inet kube-proxy']
    .map((table) => run('nft', ['-s', 'list', 'table', ...table.split(' ')]))
    .join('');
}

function saveTable(family: string): string {
  const { status, stdout } = spawnSync('nft', ['-s', 'list', 'table', family, 'kube-proxy'], { encoding: 'utf8' });
  return status === 0 ? normalize(stdout) : '';
}

function normalize(text: string): string {
  const parts = text.match(/^\t(?:chain|set|map) .*\n(?:\t\t.*\n)*\t\}$/gm) ?? [];
  return parts
    .map((part) =>
      part.replace(/elements = \{([^}]*)\}/, (_, elements: string) =>
        elements
          .split(',')
          .map((element) => element.trim())
          .toSorted()
          .join(',\n'),
      ),
    )
    .toSorted()
    .join('\n');
}
