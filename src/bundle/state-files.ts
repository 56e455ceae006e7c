import type { FileText } from '../base/chunks.ts';
import { networkFile } from '../base/names.ts';
import { formatBalancer, parseBalancer } from '../kernel/balancer/balancer.ts';
import { formatSets, parseIpsetSave } from '../kernel/ipset/ipset.ts';
import { formatAppends, writeIptablesTables } from '../kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../kernel/iptables/parse-save.ts';
import { formatVirtualServer, parseIpvsadm } from '../kernel/ipvs/ipvs.ts';
import type { Family } from '../kernel/address.ts';
import type { ObjectKind, KernelState } from '../kernel/state.ts';
import { formatLinks, parseIpBatch } from '../kernel/link/link.ts';
import { joinPieces, type UnreadLine } from '../kernel/lines.ts';
import { formatModules, parseModules, formatSysctls, parseSysctls } from '../kernel/sysctls-and-modules.ts';
import { formatChain, writeNftTables } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';

export type FolderForm = 'bundle' | 'golden';

export interface PartTexts {
  each<Part extends object>(format: (part: Part) => string): (part: Part) => string;
}

export interface StateFile {
  readonly kind: ObjectKind;
  /** The name that --print uses for the file. */
  readonly print: string;
  /** Formats the file. Undefined if the state has no objects that belong in the file. */
  format(state: KernelState, texts: PartTexts): FileText | undefined;
  /** Reads the text of the file. `beside`: the state that was read from other files. */
  read(text: string, beside: KernelState): Partial<KernelState> & { readonly unread: readonly UnreadLine[] };
}

/** The files of a state, in the order in which they are read. A mode has the files for the kinds of objects that it programs. */
export const stateFiles = {
  'modules.conf': {
    kind: 'modules',
    print: 'modules',
    format: ({ modules }) => formatModules(modules),
    read: parseModules,
  },
  'sysctl.conf': {
    kind: 'sysctls',
    print: 'sysctl',
    format: ({ sysctls }) => formatSysctls(sysctls),
    read: (text) => {
      const { sysctls, unread } = parseSysctls(text);
      return { sysctls, unread };
    },
  },
  'ipset.restore': {
    kind: 'sets',
    print: 'ipset',
    format: ({ sets }) => formatSets(sets),
    read: parseIpsetSave,
  },
  'iptables.restore': rulesFile('ipv4', 'iptables'),
  'ip6tables.restore': rulesFile('ipv6', 'ip6tables'),
  'ipvsadm.restore': {
    kind: 'virtualServers',
    print: 'ipvsadm',
    format: ({ virtualServers }, texts) => joinPieces(virtualServers.map(texts.each(formatVirtualServer))),
    read: (text) => {
      const { virtualServers, unread } = parseIpvsadm(text);
      return { virtualServers, unread };
    },
  },
  'ip.batch': {
    kind: 'links',
    print: 'ip',
    format: ({ links }) => formatLinks(links),
    read: parseIpBatch,
  },
  'balancer.conf': {
    kind: 'proxyPorts',
    print: 'balancer',
    format: ({ proxyPorts }) => formatBalancer(proxyPorts),
    read: parseBalancer,
  },
  'nftables.nft': {
    kind: 'nftables',
    print: 'nftables',
    format: ({ nftables }, texts) => writeNftTables(nftables, texts.each(formatChain)),
    read: (text) => {
      const { tables, unread } = parseNftText(text);
      return { nftables: tables, unread };
    },
  },
} as const satisfies Readonly<Record<string, StateFile>>;

export type StateFileName = keyof typeof stateFiles;

/** The file names, in the manifest's order. */
export const stateFileNames = Object.keys(stateFiles) as readonly StateFileName[];

/** All files besides manifest.json. */
export type BundleFileName = StateFileName | 'services.json' | typeof networkFile;

/** The file names, in the order in which people should read the files. */
export const bundleFileNames: readonly BundleFileName[] = [...stateFileNames, 'services.json', networkFile];

export function isStateFile(name: string): boolean {
  return Object.hasOwn(stateFiles, name);
}

/** The file names in the order of interest: files with objects of Services first, files with objects that every node has last. */
export const filesToRead: readonly StateFileName[] = [
  ...(['nftables.nft', 'ipvsadm.restore', 'ip.batch', 'ipset.restore', 'balancer.conf'] as const),
  ...(['iptables.restore', 'ip6tables.restore', 'sysctl.conf', 'modules.conf'] as const),
];

export function readStateFile(name: StateFileName, text: string, into: KernelState) {
  const { unread, ...part } = stateFiles[name].read(text, into);
  return { state: { ...into, ...part }, unread };
}

function rulesFile<Print extends string>(family: Family, print: Print) {
  return {
    kind: 'iptables',
    print,
    format: ({ iptables }, texts) =>
      iptables[family] && writeIptablesTables(iptables[family], texts.each(formatAppends)),
    read: (text, { iptables }) => {
      const { tables, unread } = parseIptablesSave(text, { isInput: true });
      return { iptables: { ...iptables, [family]: tables }, unread };
    },
  } as const satisfies StateFile;
}
