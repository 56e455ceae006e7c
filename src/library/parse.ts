import { diagnoseFault, placeAtLine } from '../diagnostics/diagnostic.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { expectDumpFile, holdsOutput, readDump } from '../dumps/read-dump.ts';
import type { Side } from '../diff/compared-side.ts';
import { diagnosticsToJson } from '../report/json.ts';
import { sideOfBundle, sideOfDump } from '../sides/stored-side.ts';
import { mapOf, type LibraryDiagnostic, type Texts } from './texts.ts';

export interface ParsedBundle {
  /** Undefined if a diagnostic is an error. */
  readonly side: Side | undefined;
  /** Undefined if there is no side, and for what `kpc-apply dump` wrote. */
  readonly manifest: Manifest | undefined;
  readonly diagnostics: readonly LibraryDiagnostic[];
}

/** Reads the files of a bundle back, checksums and all. `name` is what diagnostics and differences call it. */
export function parseBundle(name: string, files: Texts): ParsedBundle {
  const stored = sideOfBundle(name, mapOf(files, name));
  const { side, diagnostics } = stored.reading;
  return {
    side,
    manifest: stored.kind === 'bundle' ? stored.manifest : undefined,
    diagnostics: diagnosticsToJson(diagnostics),
  };
}

export interface ParsedDump {
  /** Undefined if no text is the output of one of the tools. */
  readonly side: Side | undefined;
  readonly diagnostics: readonly LibraryDiagnostic[];
}

/**
 * Reads what iptables-save, ipset save, ipvsadm -Sn, nft list ruleset, ip -j addr, sysctl -a and the like print on a node, in files of
 * whatever name. Other text is left out.
 */
export function parseDump(name: string, files: Texts): ParsedDump {
  const texts = [...mapOf(files, name)].filter(
    ([file, text]) => expectDumpFile(file) !== undefined || holdsOutput(text),
  );
  const dump = readDump(new Map(texts));
  const faults = dump.faults.map((fault) => diagnoseFault(fault, placeAtLine(fault.file, fault.line)));
  const { side, diagnostics } = sideOfDump(name, dump, faults).reading;
  return { side: dump.files.length === 0 ? undefined : side, diagnostics: diagnosticsToJson(diagnostics) };
}
