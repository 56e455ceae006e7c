import { TextBudget } from '../../base/bounds.ts';
import { diagnose, diagnoseFault, placeAtLine, type Finding } from '../../base/findings/finding.ts';
import { baseName, bundleHead, folderOf, goldenHead } from '../../base/names.ts';
import type { Decoded } from '../../base/odd-texts.ts';
import { isGoldenFile } from '../../bundle/golden.ts';
import { bundleFileNames } from '../../bundle/state-files.ts';
import type { Dump } from '../../dumps/dump.ts';
import { expectDumpFile, isDumpFileName, isOfComments, readDump } from '../../dumps/read-dump.ts';
import { holdsOutput } from '../../dumps/split-outputs.ts';
import { type FolderOrigin, TextFile } from '../../input/documents/text-file.ts';
import { holdsObject } from '../../input/files/not-manifests.ts';
import {
  type Recognised,
  isRefusedOnly,
  manifests,
  sideOfBundle,
  sideOfDump,
  sideOfGolden,
  unreadable,
} from './stored-side.ts';

/** `origin`: the folder in which the file was found. */
export interface GivenText {
  readonly name: string;
  readonly text: string;
  readonly origin?: FolderOrigin | undefined;
}

export interface FoundFile {
  readonly name: string;
  readonly path: string;
  readonly file: Decoded;
  readonly isNamed: boolean;
  readonly isManifest?: boolean;
}

export interface DumpFiles {
  readonly dump: Dump;
  readonly texts: ReadonlyMap<string, string>;
  readonly diagnostics: readonly Finding[];
  readonly manifests: readonly TextFile[];
}

/** Matches the file names of documents and programs, because these may quote the output of a tool. */
export const isDocument = /\.(?:ya?ml|md|markdown|adoc|rst|html?|sh|bash|py|go|js|ts|tf|toml|json5|tpl|gotmpl)$/i;

export class DumpTexts {
  readonly #texts = new Map<string, string>();
  readonly #paths = new Map<string, string>();
  readonly #passedOver: Finding[] = [];
  readonly #manifests: TextFile[] = [];
  readonly #budget = new TextBudget();
  #isMeant = false;

  /** Adds a file. Returns false as soon as the files together are too long to read. */
  add({ name, path, file, isNamed, isManifest }: FoundFile): boolean {
    if (isManifest) {
      if (file.kind === 'text' && /^\s*\{/.test(file.text)) this.#manifests.push(new TextFile(path, file.text));
      return true;
    }
    const expected = expectDumpFile(baseName(name));
    if (file.kind === 'text' ? expected === undefined && !holdsOutput(file.text) : !isNamed && !expected) return true;
    this.#isMeant ||= isDumpFileName(baseName(name));
    if (file.kind !== 'text') {
      this.#passedOver.push(diagnose('unread-file', { expected, reason: file.reason }, placeAtLine(path)));
      return true;
    }
    const exceeded = this.#budget.add(file.text);
    if (exceeded) {
      this.#passedOver.push(diagnose('too-long', exceeded, placeAtLine(path)));
      this.#isMeant = true;
      return false;
    }
    this.#texts.set(name, file.text);
    this.#paths.set(name, path);
    return true;
  }

  /** Reads the files. Undefined unless a file is, or should be, a tool's output. `isMixed`: whether manifests may be among the files. */
  read(isMixed: boolean): DumpFiles | undefined {
    const dump = readDump(this.#texts);
    // A list of a node's addresses may also be meant for manifests, as with --host-addresses.
    const isBeside = dump.files.every(({ kind }) => kind.startsWith('ip ') || kind === 'sysctl');
    const isElse = isBeside && (dump.files.length === 0 || isMixed);
    if (!this.#isMeant && isElse && !isRefusedOnly(dump)) return undefined;
    const faults = dump.faults.map((fault) =>
      diagnoseFault(fault, placeAtLine(this.#paths.get(fault.file) ?? fault.file, fault.line)),
    );
    return {
      dump,
      texts: this.#texts,
      diagnostics: [...this.#passedOver, ...faults],
      manifests: this.#manifests,
    };
  }
}

const ofBundle: ReadonlySet<string> = new Set([bundleHead, ...bundleFileNames]);

/**
 * Recognises a folder's texts. They are a bundle, a golden, manifests or a dump, each possibly with other tools' output and manifests
 * beside it. `called`: the user's name for the texts; the default is the name of their folder or files.
 */
export function recogniseTexts(called: string | undefined, given: readonly GivenText[]): Recognised {
  const texts = new Map(given.map(({ name, text }) => [name, text]));
  const heads = [...texts].flatMap(([path, text]) => (isHead(path, text) ? [path] : []));
  const [folder, second] = new Set(heads.map(folderOf));
  const name = called ?? (folder === '.' ? 'bundle' : folder);
  if (name !== undefined && folder !== undefined && second !== undefined)
    return unreadable([diagnose('nodes-folder', { path: name, example: folder, of: 'bundles' })]);
  const isGolden = heads.some((path) => baseName(path) === goldenHead);
  const isOwn = isGolden ? isGoldenFile : (file: string) => ofBundle.has(file);
  const isStored = (path: string): boolean => folderOf(path) === folder && isOwn(baseName(path));
  const stored = new Map([...texts].flatMap(([path, text]) => (isStored(path) ? [[baseName(path), text]] : [])));
  if (name !== undefined && isGolden) return sideOfGolden(name, stored);
  const others = given.filter((each) => !isStored(each.name));
  const found = dumpAmong(others);
  const unlisted = others.filter((each) => !found?.texts.has(each.name));
  const beside = unlisted.filter(mayBeManifest).map((each) => each.name);
  if (name === undefined || folder === undefined) {
    if (!found) return withStrangers(manifests, others);
    const side = sideOfDump(called ?? [...found.texts.keys()].join(', '), found.dump, found.diagnostics);
    return withStrangers({ ...side, beside }, unlisted);
  }
  const side = sideOfBundle(name, stored);
  const whole = found && side.kind === 'dump' ? side.withMore?.(found.texts, found.diagnostics) : undefined;
  return withStrangers({ ...(whole ?? side), beside }, unlisted);
}

/**
 * Reports each text beside a dump that is neither a listing nor a manifest. In a folder, such files are expected. Without a dump, refuses a
 * text that holds nothing, because it may be a listing that failed.
 */
export function withStrangers(read: Recognised, unlisted: readonly GivenText[]): Recognised {
  if (read.kind !== 'dump' && read.kind !== 'manifests') return read;
  const faults = unlisted.flatMap((each) => {
    const isEmpty = isOfComments(each.text);
    if (each.origin || mayBeManifest(each) || (read.kind !== 'dump' && !isEmpty)) return [];
    return diagnose('unread-file', { isNoListing: true, ...(isEmpty && { isEmpty }) }, placeAtLine(each.name));
  });
  if (read.kind === 'dump') return { ...read, diagnostics: [...read.diagnostics, ...faults] };
  return faults.length > 0 ? { ...unreadable(faults), beside: read.beside } : read;
}

export function mayBeManifest({ name, text, origin }: GivenText): boolean {
  return /\.(?:ya?ml|json)$/i.test(name) || (!origin && holdsObject(text));
}

/** Reports whether a file is the first of a bundle or golden. A Kubernetes manifest may have the same file name, but lacks the version. */
function isHead(path: string, text: string): boolean {
  const file = baseName(path);
  return (
    (file === goldenHead && text.includes('"goldenVersion"')) ||
    (file === bundleHead && text.includes('"formatVersion"'))
  );
}

function dumpAmong(texts: readonly GivenText[]): DumpFiles | undefined {
  const dump = new DumpTexts();
  const files = texts.filter(({ name, origin }) => !(origin ? isDocument : /\.ya?ml$/i).test(name));
  files.every(({ name, text }) => dump.add({ name, path: name, file: { kind: 'text', text }, isNamed: true }));
  return dump.read(texts.some((each) => !files.includes(each) || !holdsOutput(each.text)));
}
