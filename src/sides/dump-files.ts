import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { decodePrinted, type Decoded } from '../base/odd-texts.ts';
import { readNamedFile, readRegularFile, UnreadableFile } from '../base/read-file.ts';
import { describeError } from '../bundle/errors.ts';
import { diagnose, diagnoseFault, placeAtLine, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { expectDumpFile, holdsOutput, isDumpFileName, readDump } from '../dumps/read-dump.ts';
import type { Dump } from '../dumps/dump.ts';

/** A dump, and what is to be said of its files. */
export interface DumpReading {
  readonly dump: Dump;
  readonly diagnostics: readonly Diagnostic[];
}

/** Files that were named or found, before they are known to be a dump. */
interface FoundFiles {
  /** By the name that is shown. */
  readonly texts: Map<string, string>;
  /** The paths of the texts. */
  readonly paths: Map<string, string>;
  readonly passedOver: { readonly name: string; readonly diagnostic: Diagnostic }[];
}

/**
 * Reads what was taken from one node: folders, single files, and - for what came through stdin. Undefined where nothing in them
 * is a tool's output, nor meant to be.
 */
export function readDumpFiles(
  sources: readonly string[],
  stdin: Uint8Array | string | undefined,
): DumpReading | undefined {
  const found: FoundFiles = { texts: new Map(), paths: new Map(), passedOver: [] };
  for (const source of sources) {
    if (source === '-') takeText(found, '-', '-', decodeStdin(stdin ?? ''), true);
    else if (statSync(source).isDirectory()) takeFolder(found, source, sources.length > 1);
    else takeText(found, sources.length > 1 ? source : basename(source), source, readNamed(source), true);
  }
  const { texts, paths, passedOver } = found;
  const dump = readDump(texts);
  const meant = [...texts.keys(), ...passedOver.map(({ name }) => name)].some((name) => isDumpFileName(basename(name)));
  const isFolder = sources.some((source) => source !== '-' && statSync(source).isDirectory());
  // The addresses of a node lie next to manifests too, for --host-addresses.
  const isBeside = ({ kind }: Dump['files'][number]) => kind.startsWith('ip ') || kind === 'sysctl';
  if (!meant && dump.files.every(isBeside) && (isFolder || dump.files.length === 0) && !isRefusedOnly(dump)) {
    return undefined;
  }
  const faults = dump.faults.map((fault) =>
    diagnoseFault(fault, placeAtLine(paths.get(fault.file) ?? fault.file, fault.line)),
  );
  return { dump, diagnostics: [...passedOver.map(({ diagnostic }) => diagnostic), ...faults] };
}

/** Whether a tool's output is there, but none that kpc reads. */
function isRefusedOnly({ files, faults }: Dump): boolean {
  return files.length === 0 && faults.some(({ code }) => code === 'unread-output');
}

/** What is no tool's output, by its name: documents and programs may quote some. */
const isDocument = /\.(?:ya?ml|md|markdown|adoc|rst|html?|sh|bash|py|go|js|ts|tf|toml|json5|tpl|gotmpl)$/i;

function takeFolder(found: FoundFiles, folder: string, isOneOfMany: boolean): void {
  for (const name of readdirSync(folder).toSorted()) {
    if (isDocument.test(name)) continue;
    const path = join(folder, name);
    takeText(found, isOneOfMany ? path : name, path, readAnyFile(path), false);
  }
}

function takeText(found: FoundFiles, name: string, path: string, file: Decoded, isNamed: boolean): void {
  const expected = expectDumpFile(basename(name));
  if (file.kind === 'text') {
    if (expected === undefined && !holdsOutput(file.text)) return;
    found.texts.set(name, file.text);
    found.paths.set(name, path);
  } else if (expected !== undefined || isNamed) {
    const details = { problem: 'no-text', expected, reason: file.reason } as const;
    found.passedOver.push({ name, diagnostic: diagnose('unread-file', details, placeAtLine(path)) });
  }
}

/** Anything may lie in a folder: links to nothing, other folders, files of another program. */
export function readAnyFile(file: string): Decoded {
  return readAs(() => readRegularFile(file));
}

function readNamed(file: string): Decoded {
  return readAs(() => readNamedFile(file));
}

function readAs(read: () => Uint8Array): Decoded {
  try {
    return decodePrinted(read());
  } catch (error) {
    if (error instanceof UnreadableFile) return { kind: 'none', reason: error.reason };
    return { kind: 'none', reason: `it cannot be read (${describeError(error)})` };
  }
}

function decodeStdin(stdin: Uint8Array | string): Decoded {
  return typeof stdin === 'string' ? { kind: 'text', text: stdin } : decodePrinted(stdin);
}
