import { countState, countServices, type BundleFiles } from '../bundle/make-bundle.ts';
import { groundsOf } from '../snapshot/grounds.ts';
import type { CompiledSnapshot } from '../snapshot/snapshot.ts';
import type { Manifest } from '../bundle/manifest.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { stateFileNames, stateFiles, type BundleFileName, type StateFileName } from '../bundle/state-files.ts';
import { modeFacts, proxyModes, type ModeSource, type ProxyMode } from '../kube-proxy/modes.ts';
import { count, formatCount, printable } from '../base/printable.ts';
import { groundsWords } from './grounds.ts';
import { nameSome } from './words/rows.ts';
import { formatJson, type SaidByCommand } from './formats/json.ts';
import type { compiled } from './outputs/compile-and-compare.ts';
import { snapshotsJson } from './snapshots.ts';

/** What each file contains, and the tool that reads it. Files with objects of Services come first, files that every node has last. */
const titles: Readonly<Record<StateFileName | 'services.json' | 'manifest.json', string>> = {
  'nftables.nft': 'rules of both families, for nft -f',
  'ipvsadm.restore': 'virtual servers and the endpoints behind them, for ipvsadm -R',
  'ip.batch': 'virtual addresses on kube-ipvs0, for ip -batch',
  'ipset.restore': 'sets of addresses and ports that the rules match, for ipset restore',
  'balancer.conf': 'proxy ports and the endpoints behind them, for nginx -c',
  'iptables.restore': 'IPv4 rules, for iptables-restore --noflush',
  'ip6tables.restore': 'IPv6 rules, for ip6tables-restore --noflush',
  'sysctl.conf': 'sysctls, for sysctl -p',
  'modules.conf': 'kernel modules, for modules-load.d',
  'services.json': 'the Services and endpoints that the other files are made from',
  'manifest.json': 'what was compiled, and the checksums of the files',
};

/** Joins all files of a bundle into one text, each under a heading, in the order of `titles`. */
function formatAll(files: BundleFiles): string {
  return Object.entries(titles)
    .flatMap(([name, what]) => {
      const text = files.get(name);
      return text === undefined ? [] : [`==> ${name}: ${what} <==\n${text}`];
    })
    .join('\n');
}

/** The values of --print, each with the file that it prints. */
export const printNames: ReadonlyMap<string, BundleFileName | 'manifest.json'> = new Map([
  ...stateFileNames.map((name) => [stateFiles[name].print, name] as const),
  ['manifest', 'manifest.json'] as const,
  ['services', 'services.json'] as const,
]);

/** Returns the mode that writes the file for a --print name. Undefined if mode `usual` writes this file too. */
export function modeOfPrint(print: string, usual: ProxyMode): ProxyMode | undefined {
  const name = stateFileNames.find((each) => stateFiles[each].print === print);
  if (name === undefined || modeFacts[usual].kinds.has(stateFiles[name].kind)) return undefined;
  return proxyModes.find((mode) => modeFacts[mode].kinds.has(stateFiles[name].kind));
}

/** Returns the --print name of a bundle's main file. */
export function mainFile({ mode, files }: Manifest): string {
  const main = stateFileNames.find((name) => name in files && stateFiles[name].kind === modeFacts[mode].mainKind);
  return main ? stateFiles[main].print : 'manifest';
}

/** Formats a compiled bundle. `printed` is the output; `said` is text for people. `folder`: where the bundle was written, if it was. */
export function formatCompiled(
  side: CompiledSnapshot,
  { manifest, folder, files }: CompiledFiles,
  format: 'text' | 'json',
  { said: beside, modeFrom }: { readonly said: SaidByCommand; readonly modeFrom: ModeSource | undefined },
) {
  const summary = summarize(side, manifest.counts, modeFrom);
  const written = folder === undefined ? '' : `${summary}\nWritten to ${folder}.\n`;
  if (format === 'json') {
    // If there is a folder, it already holds the files.
    const content = folder === undefined ? { files: Object.fromEntries(files()) } : { folder };
    const result = { manifest, ...content };
    const printed = formatJson<typeof compiled>({ ...beside, snapshots: snapshotsJson([side]), result });
    return { printed, said: written };
  }
  if (folder !== undefined) return { printed: '', said: written };
  const said = `${summary}\nTo write the files, add -o DIR; to see one, add --print ${mainFile(manifest)}.\n`;
  return { printed: formatAll(files()), said };
}

interface CompiledFiles {
  readonly manifest: Manifest;
  readonly folder: string | undefined;
  readonly files: () => BundleFiles;
}

/** Describes what was written for many nodes. `stale`: folders of nodes that have no Node object. */
export function fleetWords(
  {
    nodes,
    total,
    shard,
  }: {
    readonly nodes: readonly string[];
    readonly total: number;
    readonly shard?: { readonly index: number; readonly count: number } | undefined;
  },
  { written, unchanged, path }: { readonly written: number; readonly unchanged: number; readonly path: string },
  stale: readonly string[],
  isPruned = false,
): string {
  const all = formatCount(nodes.length);
  const of = shard
    ? `${all} of ${formatCount(total)} nodes (shard ${shard.index}/${shard.count})`
    : count(nodes.length, 'node');
  const folders = `the folders ${nameSome(stale, 5)}`;
  const gone = isPruned
    ? `Removed ${folders}, for which there is no Node object\n`
    : `No Node object for ${folders}: --prune removes them\n`;
  return `${of}: ${written} written, ${unchanged} unchanged, in ${path}\n${stale.length === 0 ? '' : gone}`;
}

interface Digested {
  readonly bytes: number;
  readonly digest: string;
  readonly keyId?: string | undefined;
}

function digestWords(what: string, { bytes, digest, keyId }: Digested, checked = ''): string {
  const signer = keyId === undefined ? 'not signed' : `signed by key ${keyId}${checked}`;
  return `${what}, ${formatCount(bytes)} bytes, ${signer}\ndigest ${digest}\n`;
}

export function packedWords(path: string, node: string, files: Digested): string {
  return digestWords(`${path}: the bundle${node === '' ? '' : ` for node ${node}`}`, files);
}

/** `serial` is undefined if no key was given to check the bundle's signature. */
export function verifiedWords(
  what: string,
  { manifest, snapshot }: StoredBundle,
  files: Digested,
  serial: number | undefined,
): string {
  const checked = serial === undefined ? ', which is not checked (no --trust)' : `, serial ${serial}`;
  const head = digestWords(`${printable(what)} as kpc ${manifest.kpcVersion} writes it`, files, checked);
  return `${head}${printable(summarize(snapshot, manifest.counts))}\n`;
}

/** Works like summarize, for a side that was compiled but not written. */
export function summarizeSide(side: CompiledSnapshot, modeFrom?: ModeSource): string {
  return summarize(side, { ...countServices(side.cluster), ...countState(side.state) }, modeFrom);
}

/** Returns one line. */
function summarize(side: CompiledSnapshot, counts: Manifest['counts'], modeFrom?: ModeSource): string {
  const many = (name: string, one: string) => count(counts[name] ?? 0, one);
  const parts = modeFacts[side.mode].summary.map((part) => many(...part));
  const where = groundsWords(groundsOf(side, modeFrom));
  return `${many('services', 'Service')} (${many('servicePorts', 'port')}) on ${where}: ${parts.join(', ')}`;
}
