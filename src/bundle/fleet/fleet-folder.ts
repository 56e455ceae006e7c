import { parseJson } from '../../base/bounds.ts';
import { unreadOf, type Unread } from '../../base/unread.ts';
import { hasCode, isSystemError } from '../../base/system-errors.ts';
import { build } from '../../base/version.ts';
import { isSameInGolden } from '../golden.ts';
import type { BundleTexts, BundleInputs, BundleFiles } from '../make-bundle.ts';
import { writeManifestNode, writeServiceCidrs, type Manifest } from '../manifest.ts';
import type { BundleFileName } from '../state-files.ts';
import { removeTree, withFolder, replaceFileIn } from '../../base/open-folder.ts';
import { readRegularFile } from '../../base/read-file.ts';
import type { FolderProblem } from '../../base/findings/calls.ts';
import { isRemainOf, listStrangers, replaceFolder, readOwnFile } from '../folder.ts';
import { bundleHead, goldenHead } from '../../base/names.ts';
import { hashHex } from '#hash';
import { createHash } from 'node:crypto';
import type { BigIntStats, Dirent } from 'node:fs';
import { link, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface NodeFiles {
  readonly files: BundleFiles;
  /** The SHA-256 of each file that other nodes may share, by file name. */
  readonly digests: Manifest['files'];
}

export type WrittenNode = 'written' | 'unchanged';

export type NodeDifference =
  | { readonly kind: 'same' | 'missing' }
  | { readonly kind: 'differs'; readonly files: readonly string[] }
  | { readonly kind: 'unreadable'; readonly reason: Unread };

type CompareUntil = 'unless-equal' | 'unless-alike';

/**
 * A folder that holds one bundle folder for each node. Equal files are hard links to one file. A node's folder is replaced as a whole, so
 * if a run is killed, the next run skips the folders that are finished and writes the rest.
 */
export class FleetFolder {
  readonly folder: string;
  readonly #paths: Map<string, string>;
  /** Maps the identity of a file that was read to its SHA-256. Other links to the same file then need not be read. */
  readonly #verified = new Map<string, string>();

  /** What the folder held when it was first looked at: whether it is itself a bundle, and its few names that begin with a dot. */
  #found: Promise<{ readonly isBundle: boolean; readonly hidden: readonly string[] }> | undefined;

  constructor(folder: string, links: ReadonlyMap<string, string> = new Map()) {
    this.folder = folder;
    this.#paths = new Map(links);
  }

  get links(): ReadonlyMap<string, string> {
    return this.#paths;
  }

  /** Writes a node's folder. `inputs`: the SHA-256 of the inputs. If it is given, writes only if the inputs or the folder changed. */
  async write(node: string, make: () => NodeFiles, inputs?: string): Promise<WrittenNode | FolderProblem> {
    try {
      const { isBundle, hidden } = await (this.#found ??= this.#look());
      if (isBundle) return { kind: 'is-a-bundle', folder: this.folder };
      // Removes only what a killed run left of this node, because another run may be writing other nodes.
      for (const entry of hidden.filter((name) => isRemainOf(node, name))) {
        removeTree(join(this.folder, entry));
      }
      if (inputs !== undefined && (await this.#isMadeOf(node, inputs))) return 'unchanged';
      const bundle = make();
      const result = await this.#write(node, bundle);
      if (inputs === undefined || typeof result === 'object') return result;
      await this.#keepStamp(node, stampOf(inputs, bundle.files.get(bundleHead) ?? ''));
      return result;
    } catch (error) {
      if (!isSystemError(error)) throw error;
      return { kind: 'io', folder: this.folder, reason: unreadOf(error, this.folder) };
    }
  }

  async #keepStamp(node: string, stamp: string): Promise<void> {
    const path = this.#stampPath(node);
    await mkdir(dirname(path), { recursive: true });
    await withFolder(dirname(path), { isLink: 'refused' }, (folder) =>
      replaceFileIn(folder, basename(path), stamp, { mode: 0o644, isDurable: false }),
    );
  }

  /** Reports whether a folder was made from these inputs. The stamp vouches for the manifest, and the manifest for the other files. */
  async #isMadeOf(node: string, inputs: string): Promise<boolean> {
    const target = join(this.folder, node);
    try {
      const stamp = readRegularFile(this.#stampPath(node), longestStamp).toString('latin1');
      const manifest = readOwnFile(target, bundleHead);
      if (stampOf(inputs, manifest) !== stamp) return false;
      const { files } = parseJson(manifest.toString('utf8')) as Pick<Manifest, 'files'>;
      const digests = new Map(Object.entries(files));
      const present = await readdir(target);
      if (present.length !== digests.size + 1) return false;
      for (const [name, digest] of digests) if (!(await this.#holds(target, name, digest))) return false;
      return true;
    } catch {
      return false;
    }
  }

  async #holds(target: string, name: string, digest: string): Promise<boolean> {
    const path = join(target, name);
    const identity = identifyFile(await stat(path, { bigint: true }));
    if (this.#verified.get(identity) === digest) return true;
    if (hashOf(readOwnFile(target, name)) !== digest) return false;
    this.#verified.set(identity, digest);
    if (!this.#paths.has(digest)) this.#paths.set(digest, path);
    return true;
  }

  /** Returns the path of a node's stamp. Stamps are beside the nodes' folders, because a bundle's folder holds only what the node needs. */
  #stampPath(node: string): string {
    // With "~" at the end, nobody reads the stamp of a node called services.json as manifests.
    return join(this.folder, stamps, `${node}~`);
  }

  async #write(node: string, bundle: NodeFiles): Promise<WrittenNode | FolderProblem> {
    const target = join(this.folder, node);
    if ((await this.#compare(node, bundle, 'unless-equal')).kind === 'same') return 'unchanged';
    // Files are not flushed one by one, because the next run finds and rewrites files that a power cut left incomplete.
    const place = (path: string, text: string, name: string) => this.#place(path, text, bundle, name);
    const problem = await replaceFolder(target, bundle.files, place);
    if (problem) return problem;
    for (const [name, digest] of Object.entries(bundle.digests)) {
      if (digest !== undefined && !this.#paths.has(digest)) this.#paths.set(digest, join(target, name));
    }
    return 'written';
  }

  async check(node: string, bundle: NodeFiles): Promise<NodeDifference> {
    return this.#compare(node, bundle, 'unless-alike');
  }

  /** `unless-equal` compares bytes, up to the first file that differs. `unless-alike` compares all files, as a check of a golden does. */
  async #compare(node: string, bundle: NodeFiles, differs: CompareUntil): Promise<NodeDifference> {
    const target = join(this.folder, node);
    try {
      const present = new Set(await readdir(target));
      const differing: string[] = [];
      // The manifest comes first, because it nearly always decides.
      for (const name of new Set([...bundle.files.keys(), ...present])) {
        const same = present.has(name) && (await this.#isSame(target, name, bundle, differs));
        if (same) continue;
        differing.push(name);
        if (differs === 'unless-equal') break;
      }
      return differing.length === 0 ? { kind: 'same' } : { kind: 'differs', files: differing };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return { kind: 'missing' };
      return { kind: 'unreadable', reason: unreadOf(error, target) };
    }
  }

  async #isSame(target: string, name: string, { files, digests }: NodeFiles, differs: CompareUntil): Promise<boolean> {
    const text = files.get(name);
    if (text === undefined) return false;
    const digest = digests[name as BundleFileName];
    if (digest !== undefined) return this.#holds(target, name, digest);
    const present = readOwnFile(target, name);
    if (present.equals(Buffer.from(text))) return true;
    return differs === 'unless-alike' && isSameInGolden(name, present.toString('utf8'), text);
  }

  async #place(path: string, text: string, { digests }: NodeFiles, name: string): Promise<void> {
    const digest = digests[name as BundleFileName];
    const known = digest === undefined ? undefined : this.#paths.get(digest);
    if (known !== undefined && digest !== undefined) {
      try {
        return await link(known, path);
      } catch {
        // The link failed: the file is gone, has too many links, or cannot be linked. Later files may link to the new file instead.
        this.#paths.delete(digest);
      }
    }
    await writeFile(path, text, { flag: 'wx', mode: 0o644 });
  }

  async #look() {
    const entries = await this.#entries();
    return {
      // A node may be called manifest.json, but then the entry is a folder. Test: bundle/fleet/node-names.test.ts.
      isBundle: entries.some((entry) => heads.has(entry.name) && !entry.isDirectory()),
      hidden: entries.map(({ name }) => name).filter((name) => name.startsWith('.')),
    };
  }

  async #entries(): Promise<readonly Dirent[]> {
    return readdir(this.folder, { withFileTypes: true }).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    });
  }

  /** Lists the folders that `isMeant` accepts and that hold nothing but a bundle or golden. */
  async list(isMeant: (name: string) => boolean): Promise<readonly string[]> {
    const folders = (await this.#entries()).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'));
    const own: string[] = [];
    for (const { name } of folders.filter((entry) => isMeant(entry.name))) {
      const path = join(this.folder, name);
      // A folder that cannot be read, such as lost+found, is skipped, because it belongs to another program.
      const files = await readdir(path).catch((): string[] => []);
      if (files.some((file) => heads.has(file)) && (await listStrangers(path)).length === 0) own.push(name);
    }
    return own.toSorted();
  }

  async remove(node: string): Promise<void> {
    removeTree(join(this.folder, node));
    removeTree(this.#stampPath(node));
  }
}

const heads: ReadonlySet<string> = new Set([bundleHead, goldenHead]);

const stamps = '.compiled';

const longestStamp = 64;

function stampOf(inputs: string, manifest: string | Buffer): string {
  return hashOf(`${inputs}\n`, manifest);
}

function hashOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** Returns a key for a file and its content. The key changes when the file is rewritten, but not when the file gets another link. */
function identifyFile({ dev, ino, size, mtimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs].join(' ');
}

/** Returns the SHA-256 of this program and of all inputs of a node's bundle. services.json stands for all Services and endpoints. */
export function hashInputs(inputs: BundleInputs, gates: ReadonlyMap<string, boolean>, texts: BundleTexts): string {
  const { cluster, node, settings, families, assigned, assumedEndpoints, kpcVersion, assumed } = inputs;
  const services = texts.digest('services.json', texts.writeServices(cluster));
  const serviceCidrs = writeServiceCidrs(cluster);
  const hashed = {
    build,
    services,
    serviceCidrs,
    node: writeManifestNode(node),
    gates: [...gates],
    settings,
    families,
  };
  const isNodeAssumed = assumed?.node || undefined;
  return hashHex(JSON.stringify({ ...hashed, assigned, assumedEndpoints, kpcVersion, isNodeAssumed }));
}
