import type { BundleFiles } from '../bundle/make-bundle.ts';
import type { BundleFileName, Manifest } from '../bundle/manifest.ts';
import { bundleFileKinds, bundleFileNames } from '../bundle/manifest.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { formatCount } from '../base/format-count.ts';

/** The files as people want to see them: what a Service becomes first, what every node has last. */
const headings: readonly (readonly [file: BundleFileName | 'manifest.json', what: string])[] = [
  ['ipvsadm.restore', 'virtual servers and the endpoints behind them, for ipvsadm -R'],
  ['ip.batch', 'virtual addresses on kube-ipvs0, for ip -batch'],
  ['ipset.restore', 'sets of addresses and ports that the rules match, for ipset restore'],
  ['iptables.restore', 'IPv4 rules, for iptables-restore --noflush'],
  ['ip6tables.restore', 'IPv6 rules, for ip6tables-restore --noflush'],
  ['nftables.nft', 'rules of both families, for nft -f'],
  ['sysctl.conf', 'kernel settings, for sysctl -p'],
  ['modules.conf', 'kernel modules, for modules-load.d'],
  ['services.json', 'the Services and endpoints that all this comes from'],
  ['manifest.json', 'what was compiled, and the checksums of the files'],
];

/** All files of a bundle in one text, each under a heading. */
export function formatAll(files: BundleFiles): string {
  return headings
    .flatMap(([name, what]) => {
      const text = files.get(name);
      return text === undefined ? [] : [`==> ${name}: ${what} <==\n${text}`];
    })
    .join('\n');
}

/** The names that --print takes, and the file that each stands for. */
export const printNames = {
  modules: 'modules.conf',
  sysctl: 'sysctl.conf',
  ipset: 'ipset.restore',
  iptables: 'iptables.restore',
  ip6tables: 'ip6tables.restore',
  ipvsadm: 'ipvsadm.restore',
  nftables: 'nftables.nft',
  ip: 'ip.batch',
  manifest: 'manifest.json',
  services: 'services.json',
} as const satisfies Record<string, BundleFileName | 'manifest.json'>;

export type PrintName = keyof typeof printNames;

/** The name after --print of the file that tells most of a bundle. */
export function mainFile({ mode, files }: Manifest): PrintName {
  const main = bundleFileNames.find((name) => name in files && bundleFileKinds[name] === modeFacts[mode].mainKind);
  const names = Object.keys(printNames) as readonly PrintName[];
  return names.find((name) => printNames[name] === main) ?? 'manifest';
}

/** One line that says how much came out. */
export function summarize({ counts, mode, node, families }: Manifest): string {
  const many = (count: number | undefined, one: string, more = `${one}s`) =>
    `${formatCount(count ?? 0)} ${count === 1 ? one : more}`;
  const parts = modeFacts[mode].summary.map(({ count, one, more }) => many(counts[count], one, more));
  const where = `${node.name === '' ? 'any node' : `node ${node.name}`}, mode ${mode}, ${families.join(' and ')}`;
  return `${many(counts['services'], 'Service')} (${many(counts['servicePorts'], 'port')}) on ${where}: ${parts.join(', ')}`;
}
