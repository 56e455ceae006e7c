import type { Manifest } from '../bundle/manifest.ts';
import { diagnose, diagnoseFault, placeAtLine } from '../diagnostics/diagnostic.ts';
import type { DumpedSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { LineBudget, mostLines } from '../base/bounds.ts';
import { expectDumpFile, readDump } from '../dumps/read-dump.ts';
import { holdsOutput } from '../dumps/split-outputs.ts';
import type { JsonDiagnostic } from '../report/json.ts';
import { sideOfBundle, sideOfDump } from '../snapshot/open/stored-side.ts';
import { mapOf, type Texts } from './texts.ts';
import { diagnosticsOf } from './words.ts';

/** A bundle that was read, or why it could not be. */
export interface ParsedBundle {
  /** Undefined if a diagnostic is an error. */
  readonly side: Snapshot | undefined;
  /** Undefined if there is no side, and for what `kpc-apply dump` wrote. */
  readonly manifest: Manifest | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

/** Reads the files of a bundle back, checksums and all. `name` is what diagnostics and differences call it. */
export function parseBundle(name: string, files: Texts): ParsedBundle {
  const stored = sideOfBundle(name, mapOf(files, name));
  const { side, diagnostics } = stored;
  return {
    side,
    manifest: stored.kind === 'bundle' ? stored.manifest : undefined,
    diagnostics: diagnosticsOf(diagnostics),
  };
}

/** A dump that was read, with what was left out. */
export interface ParsedDump {
  /** Undefined if no text is the output of one of the tools. */
  readonly side: DumpedSnapshot | undefined;
  readonly diagnostics: readonly JsonDiagnostic[];
}

/**
 * Reads what iptables-save, ipset save, ipvsadm -Sn, nft list ruleset, ip -j addr, sysctl -a and the like print on a node, in files of
 * whatever name. Other text is left out.
 */
export function parseDump(name: string, files: Texts): ParsedDump {
  const texts = [...mapOf(files, name)].filter(
    ([file, text]) => expectDumpFile(file) !== undefined || holdsOutput(text),
  );
  const lines = new LineBudget();
  const firstTooLong = texts.find(([, text]) => !lines.takes(text));
  const dump = readDump(new Map(firstTooLong ? [] : texts));
  const faults = [
    ...(firstTooLong ? [diagnose('too-long', { of: 'lines', most: mostLines }, placeAtLine(firstTooLong[0]))] : []),
    ...dump.faults.map((fault) => diagnoseFault(fault, placeAtLine(fault.file, fault.line))),
  ];
  const read = sideOfDump(name, dump, faults);
  return {
    side: read.kind === 'dump' && dump.files.length > 0 ? read.side : undefined,
    diagnostics: diagnosticsOf(read.diagnostics),
  };
}
