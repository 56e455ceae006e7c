import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readRegularFile, UnreadableFile } from '../base/read-file.ts';
import { describeError } from '../bundle/errors.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Dump, DumpFault } from '../diff/read-dump.ts';
import { expectDumpFile, isDumpFileName, readDump, recognizeDumpFile } from '../diff/read-dump.ts';

/** A dump, and what is to be said of its files. */
export interface DumpReading {
  readonly dump: Dump;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a dump: a folder, or a single file. Undefined where nothing in it is a tool's output, nor meant to be. */
export function readDumpFiles(path: string): DumpReading | undefined {
  const folder = statSync(path).isDirectory();
  const at = (name: string) => (folder ? join(path, name) : path);
  const texts = new Map<string, string>();
  const passedOver: { readonly name: string; readonly diagnostic: Diagnostic }[] = [];
  for (const name of folder ? readdirSync(path).toSorted() : [basename(path)]) {
    if (/\.ya?ml$/i.test(name)) continue;
    const expected = expectDumpFile(name);
    const file = readAnyFile(at(name));
    if (file.kind === 'text') {
      if (expected !== undefined || recognizeDumpFile(name, file.text) !== undefined) texts.set(name, file.text);
    } else if (expected !== undefined) {
      const text = `not what ${expected} prints: ${file.reason}, and left out`;
      passedOver.push({ name, diagnostic: warnOfFile(at(name), 'unread-file', text) });
    }
  }
  const dump = readDump(texts);
  const meant = [...texts.keys(), ...passedOver.map(({ name }) => name)].some(isDumpFileName);
  // The addresses of a node lie next to manifests too, for --host-addresses.
  if (!meant && dump.files.every(({ kind }) => kind === 'ip -j addr' || kind === 'sysctl')) return undefined;
  const faults = dump.faults.map((fault) => describeFault(fault, at(fault.file)));
  return { dump, diagnostics: [...passedOver.map(({ diagnostic }) => diagnostic), ...faults] };
}

export type FileReading =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'none'; readonly reason: string };

/** Anything may lie in a folder: links to nothing, other folders, files of somebody else. */
export function readAnyFile(file: string): FileReading {
  try {
    return { kind: 'text', text: readRegularFile(file).toString('utf8') };
  } catch (error) {
    if (error instanceof UnreadableFile) return { kind: 'none', reason: error.reason };
    return { kind: 'none', reason: `it cannot be read (${describeError(error)})` };
  }
}

function describeFault(fault: DumpFault, file: string): Diagnostic {
  switch (fault.kind) {
    case 'unread-line':
      return warnOfFile(file, 'unread-line', `left out: ${fault.line.reason}`, fault.line.line);
    case 'no-output':
      return warnOfFile(file, 'unread-file', `not what ${fault.expected} prints: it is left out`);
    case 'cut-off':
      return warnOfFile(
        file,
        'cut-off-file',
        `a table without COMMIT: what ${fault.expected} printed was cut off, and is not compared; print it again`,
      );
  }
}

function warnOfFile(file: string, code: string, text: string, line = 1): Diagnostic {
  return { severity: 'warning', code, text, place: { file, locate: () => ({ file, line, column: 1 }) } };
}
