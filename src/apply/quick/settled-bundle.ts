import { hashHex } from '#hash';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { listOf, objectOf, optional, text, type Shaped } from '../../base/json-shape.ts';
import type { Host } from '../node/host.ts';
import { nftStampShape, type NftStamp } from './nft-generation.ts';
import type { NodeReading } from '../node/node-reading.ts';
import { readJson, writeJson, type StateFolder } from '../state/record.ts';

/**
 * A bundle that was found to hold what kpc writes and nothing else, and what the tools printed of the node when all that
 * is kpc-apply's there was as this bundle says. What has not changed since in either need not be looked at again.
 */
export interface Settled {
  readonly id: string;
  readonly bundle: BundleFiles;
  readonly reading: Pick<NodeReading, SettledPart>;
  /** When the tables of nftables were as the bundle says; undefined where that is unknown. */
  readonly nftables?: NftStamp | undefined;
  /** Tools that were found fit for their work. */
  readonly fitTools: readonly string[];
}

/** The parts of a reading that are kept. */
type SettledPart = 'iptables' | 'ipset' | 'ipvsadm';

const indexShape = objectOf({
  id: text,
  bootId: text,
  version: text,
  /** The names of the bundle's files. */
  files: listOf(text),
  nftables: optional(nftStampShape),
  /** SHA-256 of what iptables-save and ip6tables-save printed, where that may be all that is read of them. */
  rules: optional(text),
  fitTools: listOf(text),
});

/** Which one it is, and of what: another version might write a bundle otherwise, and a reboot leaves nothing. */
type SettledIndex = Shaped<typeof indexShape>;

const bundleFile = (folder: StateFolder, name: string): string => `${folder.settled}/bundle-${name}`;
const indexFile = (folder: StateFolder): string => `${folder.settled}/index.json`;

const parts = ['ipv4', 'ipv6', 'ipset', 'ipvsadm'] as const;

/** What was settled last, since the node booted and by this version; undefined where nothing was, or since was changed. */
export async function readSettled(
  host: Host,
  folder: StateFolder,
  bootId: string,
  version: string,
): Promise<Settled | undefined> {
  const index = await readIndex(host, folder);
  if (index?.bootId !== bootId || index.version !== version) return undefined;
  const bundle = new Map<string, string>();
  for (const name of index.files) {
    const file = await host.readFile(bundleFile(folder, name));
    if (file === undefined) return undefined;
    bundle.set(name, file);
  }
  const [ipv4, ipv6, ipset, ipvsadm] = await Promise.all(
    parts.map((part) => host.readFile(`${folder.settled}/${part}`)),
  );
  if (ipv4 === undefined || ipv6 === undefined || ipset === undefined || ipvsadm === undefined) return undefined;
  const { id, nftables, fitTools } = index;
  // No lock is held: another process may have replaced some of these files meanwhile.
  if ((await readIndex(host, folder))?.id !== id) return undefined;
  if (nftables?.hasRules && hashRules({ ipv4, ipv6 }) !== index.rules) return undefined;
  return { id, bundle, reading: { iptables: { ipv4, ipv6 }, ipset, ipvsadm }, nftables, fitTools };
}

function hashRules({ ipv4, ipv6 }: NodeReading['iptables']): string {
  return `${hashHex(ipv4)} ${hashHex(ipv6)}`;
}

/** Whether it still is what was settled last. Ask with the lock held. */
export async function isStillSettled(host: Host, folder: StateFolder, { id }: Settled): Promise<boolean> {
  return (await readIndex(host, folder))?.id === id;
}

function readIndex(host: Host, folder: StateFolder): Promise<SettledIndex | undefined> {
  return readJson<SettledIndex>(host, indexFile(folder), indexShape, 'remove it').catch(() => undefined);
}

/** Says that nothing is settled any more: before the node is changed. */
export function unsettle(host: Host, folder: StateFolder): Promise<void> {
  return host.remove(indexFile(folder));
}

/** Frees the space that it takes: it is worth less than a journal. */
export function discardSettled(host: Host, folder: StateFolder): Promise<void> {
  return host.remove(folder.settled);
}

/** Keeps what is settled from now on. The index comes last: until then, nothing is. `known` is what the files hold, and need
 * not be written again. */
export async function writeSettled(
  host: Host,
  folder: StateFolder,
  { id, bundle, reading, nftables, fitTools }: Settled,
  {
    bootId,
    version,
    known,
  }: { readonly bootId: string; readonly version: string; readonly known?: Settled | undefined },
): Promise<void> {
  await unsettle(host, folder);
  const write = async (path: string, content: string, before: string | undefined) => {
    if (content !== before) await host.replaceFile(path, content);
  };
  const texts = (of: Settled['reading'] | undefined) =>
    [of?.iptables.ipv4, of?.iptables.ipv6, of?.ipset, of?.ipvsadm] as const;
  const before = texts(known?.reading);
  await Promise.all([
    ...[...bundle].map(([name, content]) => write(bundleFile(folder, name), content, known?.bundle.get(name))),
    ...texts(reading).map((content = '', i) => write(`${folder.settled}/${parts[i]}`, content, before[i])),
  ]);
  const rules = nftables?.hasRules ? hashRules(reading.iptables) : undefined;
  const index: SettledIndex = { id, bootId, version, files: [...bundle.keys()], nftables, rules, fitTools };
  await writeJson(host, indexFile(folder), index);
}
