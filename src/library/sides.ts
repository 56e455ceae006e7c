import type { Shaped } from '../base/json-shape.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { readDumped, readingJson } from '../describe/read-dumped.ts';
import type { describedDump } from '../report/outputs/describe.ts';
import { summarizeServices, type ServiceSummary } from '../describe/service-table.ts';
import { diagnose, diagnoseFault, placeAtLine } from '../diagnostics/diagnostic.ts';
import type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { reportDiff } from '../diff/diff-report.ts';
import { diffSides } from '../diff/diff-sides.ts';
import { findExcess } from '../base/bounds.ts';
import { expectDumpFile, readDump } from '../dumps/read-dump.ts';
import { holdsOutput } from '../dumps/split-outputs.ts';
import { diffToJson, type DifferenceJson, type JsonDiagnostic } from '../report/json.ts';
import { formatMarkdown, formatText } from '../report/text-and-markdown.ts';
import { formatSideDiffs } from '../report/unified.ts';
import { sideOfBundle, sideOfDump } from '../snapshot/open/stored-side.ts';
import { checkOptionNames, mapOf, type Texts } from './texts.ts';
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
  const excess = findExcess(texts.map(([file, text]) => ({ file, text })));
  const dump = readDump(new Map(excess ? [] : texts));
  const faults = [
    ...(excess ? [diagnose('too-long', { of: excess.of, most: excess.most }, placeAtLine(excess.at.file))] : []),
    ...dump.faults.map((fault) => diagnoseFault(fault, placeAtLine(fault.file, fault.line))),
  ];
  const read = sideOfDump(name, dump, faults);
  return {
    side: read.kind === 'dump' && dump.files.length > 0 ? read.side : undefined,
    diagnostics: diagnosticsOf(read.diagnostics),
  };
}

/** How to compare two sides. */
export interface DiffOptions {
  /** Also compare what is not kube-proxy's. */
  readonly foreign?: boolean | undefined;
}

/** Compares two sides by meaning: what `kpc diff --output json` prints. */
export function diff(from: Snapshot, to: Snapshot, options: DiffOptions = {}): DifferenceJson {
  checkOptionNames(options, ['foreign']);
  const { foreign = false } = options;
  return diffToJson(from, to, diffSides(from, to, { foreign }));
}

/** How to compare two sides and print the result. */
export interface FormatOptions extends DiffOptions {
  /** Lines of a list to write before "and 230 more". */
  readonly limit?: number | undefined;
}

/** Compares two sides, and writes what differs as `kpc diff --output` does. */
export function formatDiff(
  from: Snapshot,
  to: Snapshot,
  format: 'text' | 'markdown' | 'unified',
  options: FormatOptions = {},
): string {
  checkOptionNames(options, ['foreign', 'limit']);
  const { foreign = false, limit = 20 } = options;
  const report = () => reportDiff(diffSides(from, to, { foreign }), { servicePorts: limit, lines: limit });
  switch (format) {
    case 'text':
      return formatText(report(), (_, text) => text);
    case 'markdown':
      return formatMarkdown(report());
    case 'unified':
      return formatSideDiffs(from, to);
  }
}

/** The Services of a dump, as `kpc describe --output json` prints them. */
export type DumpDescription = Shaped<typeof describedDump>;

/**
 * The Services of a side, as `kpc describe --output json` prints them.
 *
 * ```ts
 * import { describe, parseDump } from 'kube-proxy-compiler';
 *
 * const { side } = parseDump('node', { 'ipvsadm.txt': '-A -t 10.96.0.10:80 -s rr\\n' });
 * if (side) console.log(describe(side).ports.map(({ name }) => name).join()); // 10.96.0.10:80/TCP
 * ```
 */
export function describe(side: DumpedSnapshot): DumpDescription;
export function describe(side: CompiledSnapshot): readonly ServiceSummary[];
export function describe(side: Snapshot): readonly ServiceSummary[] | DumpDescription;
export function describe(side: Snapshot): readonly ServiceSummary[] | DumpDescription {
  return side.kind === 'dump' ? readingJson(readDumped(side)) : summarizeServices(side);
}
