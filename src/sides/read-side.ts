import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, basename } from 'node:path';
import { describeError } from '../base/system-errors.ts';
import { readFolder } from '../bundle/folder.ts';
import { isGoldenFile } from '../bundle/golden.ts';
import { loadInputs, type FileOptions, type ReadStdin } from '../compile/read-texts.ts';
import { diagnose, isError, type Diagnostic, diagnoseFault, placeAtLine } from '../diagnostics/diagnostic.ts';
import { listFolder } from '../input/files/list-files.ts';
import { lookInto } from './check-folder.ts';
import {
  manifests,
  sideOfBundle,
  sideOfDump,
  sideOfGolden,
  unreadable,
  type StoredSide,
  isRefusedOnly,
} from './stored-side.ts';
import { decodePrinted, type Decoded } from '../base/odd-texts.ts';
import { readNamedFile, readRegularFile, UnreadableFile } from '../base/read-file.ts';
import { expectDumpFile, holdsOutput, isDumpFileName, readDump } from '../dumps/read-dump.ts';
import type { Dump } from '../dumps/dump.ts';

/** The options that shape what manifests compile to. */
export interface SideOptions extends FileOptions {
  readonly node?: string;
}

/** What helps to find out what a path is. */
export interface SideContext {
  /** The node whose bundle is meant of a folder with those of a fleet. */
  readonly node?: string | undefined;
  /** Reads standard input, for the path "-". */
  readonly readStdin?: ReadStdin | undefined;
}

/** Finds out what a path is: a folder with a manifest.json or a pack is a bundle, and what holds a tool's output a dump. */
export async function readStoredSide(path: string, context: SideContext = {}): Promise<StoredSide> {
  if (path !== '-' && !existsSync(path)) return manifests;
  try {
    const found = isFolder(path) ? await readStoredFolder(path) : undefined;
    if (found) return found;
    if (/\.(?:tgz|tar\.gz)$/.test(path)) {
      const { readPack } = await import('../bundle/pack/pack.ts');
      const packed = await readPack(path);
      if (packed) return sideOfBundle(path, packed);
    }
    const dump = await readStoredDump([path], context);
    if (dump) return dump;
    return isFolder(path) && listFolder(path, []).files.length === 0 ? await readOneOfMany(path, context) : manifests;
  } catch (error) {
    return unreadable([diagnose('unreadable', { path, reason: describeError(error) })]);
  }
}

/** The bundle or golden in a folder; undefined if there is none. */
async function readStoredFolder(path: string): Promise<StoredSide | undefined> {
  switch (lookInto(path).kind) {
    case 'bundle':
      return sideOfBundle(path, await readFolder(path));
    case 'golden':
      return sideOfGolden(path, await readFolder(path, isGoldenFile));
    case 'fleet':
    case 'other':
      return undefined;
  }
}

/** Reads the named node's bundle from a fleet folder; unreadable if there is none, or for a folder of several dumps. */
async function readOneOfMany(path: string, { node }: SideContext): Promise<StoredSide> {
  const content = lookInto(path);
  if (content.kind === 'fleet') {
    const own = node === undefined || /[/\\]/.test(node) ? undefined : join(path, node);
    const found = own !== undefined && existsSync(own) ? await readStoredFolder(own) : undefined;
    return found ?? unreadable([diagnose('nodes-folder', { path, example: content.example, of: 'bundles' })]);
  }
  const example = readdirSync(path)
    .toSorted()
    .map((name) => join(path, name))
    .find((inside) => statSync(inside, { throwIfNoEntry: false })?.isDirectory() && readDumpFiles([inside], undefined));
  return example === undefined ? manifests : unreadable([diagnose('nodes-folder', { path, example, of: 'dumps' })]);
}

/** Reads what was taken from one node, in one file or several; undefined if none holds the output of a tool. */
async function readStoredDump(paths: readonly string[], { readStdin }: SideContext): Promise<StoredSide | undefined> {
  const found = readDumpFiles(paths, paths.includes('-') ? await readStdin?.() : undefined);
  return found && sideOfDump(paths.join(', '), found.dump, found.diagnostics);
}

/** What the named files and folders are, taken together. `beside`: the paths of manifests beside a dump. */
export type NamedInput = StoredSide & { readonly beside: readonly string[] };

/** Finds out by their content what the paths are. Nothing is said of what cannot be read as manifests: their reader does. */
export async function recogniseInputs(paths: readonly string[], context: SideContext): Promise<NamedInput> {
  const beside: string[] = [];
  const dumps: string[] = [];
  let dump: StoredSide | undefined;
  for (const path of paths) {
    const stored = await readUnlessManifests(path, context);
    const other = paths.find((each) => each !== path);
    if (stored.kind === 'bundle' && other !== undefined) {
      return { ...unreadable([diagnose('no-manifests', { what: 'bundle', path, beside: other })]), beside };
    }
    if (stored.kind === 'bundle' || stored.kind === 'unreadable') return { ...stored, beside };
    if (stored.kind === 'dump') dump ??= stored;
    (stored.kind === 'dump' ? dumps : beside).push(path);
  }
  // Several files that were taken from one node are one dump.
  const whole = dumps.length > 1 ? await readStoredDump(dumps, context) : dump;
  return { ...(whole ?? dump ?? manifests), beside };
}

/** What is wrong with paths of which one is something else than manifests; undefined where each may be some. */
export async function describeNoManifests(
  paths: readonly string[],
  context: SideContext,
): Promise<Diagnostic | undefined> {
  for (const path of paths) {
    const { kind, diagnostics } = await readUnlessManifests(path, context);
    if (kind === 'unreadable') return diagnostics[0];
    if (kind !== 'manifests') return diagnose('no-manifests', { what: kind, path });
  }
  return undefined;
}

/** Manifests are large, and their names show what they are. */
async function readUnlessManifests(path: string, context: SideContext): Promise<StoredSide> {
  const isNamed = path !== '-' && /\.ya?ml$/i.test(path) && existsSync(path) && !statSync(path).isDirectory();
  return isNamed ? manifests : readStoredSide(path, context);
}

/**
 * Reads the Services of manifests, which name what a dump holds; `cluster` is undefined if the manifests have errors.
 * Other diagnostics do not matter here.
 */
export async function readNames(options: FileOptions, readStdin: ReadStdin) {
  const { diagnostics, files, prepared } = await loadInputs(options, readStdin);
  const errors = diagnostics.filter(isError);
  return { cluster: errors.length > 0 ? undefined : prepared.cluster, diagnostics: errors, files };
}

/** A file that was named or found, and may belong to a dump. */
interface FoundFile {
  /** Its name in messages. */
  readonly name: string;
  readonly path: string;
  readonly file: Decoded;
  readonly isNamed: boolean;
}

/**
 * Reads what was taken from one node: folders, single files, and - for stdin; `diagnostics` is about its files.
 * Undefined if none of them is, or is meant to be, the output of a tool.
 */
function readDumpFiles(
  sources: readonly string[],
  stdin: Uint8Array | string | undefined,
): { readonly dump: Dump; readonly diagnostics: readonly Diagnostic[] } | undefined {
  const texts = new Map<string, string>();
  const paths = new Map<string, string>();
  const passedOver: Diagnostic[] = [];
  let isMeant = false;
  for (const { name, path, file, isNamed } of findFiles(sources, stdin)) {
    const expected = expectDumpFile(basename(name));
    if (file.kind === 'text' ? expected === undefined && !holdsOutput(file.text) : !isNamed && !expected) continue;
    isMeant ||= isDumpFileName(basename(name));
    if (file.kind === 'text') {
      texts.set(name, file.text);
      paths.set(name, path);
    } else {
      const details = { expected, reason: file.reason } as const;
      passedOver.push(diagnose('unread-file', details, placeAtLine(path)));
    }
  }
  const dump = readDump(texts);
  // A node's addresses may also lie next to manifests, for --host-addresses.
  const isBeside = dump.files.every(({ kind }) => kind.startsWith('ip ') || kind === 'sysctl');
  const isElse = isBeside && (dump.files.length === 0 || sources.some(isFolder));
  if (!isMeant && isElse && !isRefusedOnly(dump)) return undefined;
  const faults = dump.faults.map((fault) =>
    diagnoseFault(fault, placeAtLine(paths.get(fault.file) ?? fault.file, fault.line)),
  );
  return { dump, diagnostics: [...passedOver, ...faults] };
}

/** Names of files that are not a tool's output: documents and programs may quote it. */
const isDocument = /\.(?:ya?ml|md|markdown|adoc|rst|html?|sh|bash|py|go|js|ts|tf|toml|json5|tpl|gotmpl)$/i;

function* findFiles(sources: readonly string[], stdin: Uint8Array | string = ''): Generator<FoundFile> {
  const isOneOfMany = sources.length > 1;
  for (const source of sources) {
    if (source === '-') {
      const file = typeof stdin === 'string' ? ({ kind: 'text', text: stdin } as const) : decodePrinted(stdin);
      yield { name: '-', path: '-', file, isNamed: true };
    } else if (isFolder(source)) {
      for (const name of readdirSync(source).toSorted()) {
        const path = join(source, name);
        if (isDocument.test(name)) continue;
        yield { name: isOneOfMany ? path : name, path, file: readAs(() => readRegularFile(path)), isNamed: false };
      }
    } else {
      const file = readAs(() => readNamedFile(source));
      yield { name: isOneOfMany ? source : basename(source), path: source, file, isNamed: true };
    }
  }
}

function isFolder(source: string): boolean {
  return source !== '-' && statSync(source).isDirectory();
}

function readAs(read: () => Uint8Array): Decoded {
  try {
    return decodePrinted(read());
  } catch (error) {
    if (error instanceof UnreadableFile) return { kind: 'none', reason: error.reason };
    return { kind: 'none', reason: `it cannot be read (${describeError(error)})` };
  }
}
