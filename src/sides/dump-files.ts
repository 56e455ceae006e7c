import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { decodePrinted, type Decoded } from '../base/odd-texts.ts';
import { readNamedFile, readRegularFile, UnreadableFile } from '../base/read-file.ts';
import { describeError } from '../base/system-errors.ts';
import { diagnose, diagnoseFault, placeAtLine, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { expectDumpFile, holdsOutput, isDumpFileName, readDump } from '../dumps/read-dump.ts';
import type { Dump } from '../dumps/dump.ts';
import { isRefusedOnly } from './stored-side.ts';

/** A file that was named or found, before it is known to be of a dump. */
interface FoundFile {
  /** Its name in messages. */
  readonly name: string;
  readonly path: string;
  readonly file: Decoded;
  readonly isNamed: boolean;
}

/**
 * Reads what was taken from one node: folders, single files, and - for what came through stdin; `diagnostics` is what must be
 * said of its files. Undefined if nothing in them is a tool's output, nor meant to be.
 */
export function readDumpFiles(
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
      const details = { problem: 'no-text', expected, reason: file.reason } as const;
      passedOver.push(diagnose('unread-file', details, placeAtLine(path)));
    }
  }
  const dump = readDump(texts);
  // The addresses of a node lie next to manifests too, for --host-addresses.
  const isBeside = dump.files.every(({ kind }) => kind.startsWith('ip ') || kind === 'sysctl');
  const isElse = isBeside && (dump.files.length === 0 || sources.some(isFolder));
  if (!isMeant && isElse && !isRefusedOnly(dump)) return undefined;
  const faults = dump.faults.map((fault) =>
    diagnoseFault(fault, placeAtLine(paths.get(fault.file) ?? fault.file, fault.line)),
  );
  return { dump, diagnostics: [...passedOver, ...faults] };
}

/** What is no tool's output, by its name: documents and programs may quote some. */
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
