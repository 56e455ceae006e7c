import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { CheckResult } from '../sides/check-folder.ts';
import type { CheckReport, FleetReport, OutputFormat, FolderForm } from './check-report.ts';
import { checkToGithub, fleetToGithub } from './github.ts';
import { checkToJson, fleetToJson } from './json.ts';
import { checkToJunit, fleetToJunit } from './junit.ts';
import { checkToText, fleetToText } from './text.ts';
import { formatFileDiffs } from './unified.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import { diffSides } from '../diff/diff-sides.ts';
import { readStoredSide } from '../sides/read-side.ts';
import { sideOfManifests } from '../sides/stored-side.ts';

/** Compares the bundle in a folder with what was compiled, Service by Service. */
export async function reportCheck(
  folder: string,
  files: readonly string[],
  content: BundleContent,
  form: FolderForm,
): Promise<CheckReport> {
  const places = new Map(content.cluster.servicePorts.map(({ label, places: at }) => [label, at?.port]));
  const compiled = [...places].map(([label, place]) => ({ label, place: place?.locate() }));
  if (files.length === 0) return { folder, form, files, comparison: undefined, problems: [], compiled };
  const stored = await readStoredSide(folder);
  const reading = stored.kind === 'bundle' || stored.kind === 'unreadable' ? stored.reading : undefined;
  if (!reading?.side) {
    const problems = reading?.diagnostics.map(({ text }) => text) ?? [`${folder} holds no bundle`];
    return { folder, form, files, comparison: undefined, problems, compiled };
  }
  const to = sideOfManifests('input', content);
  const diff = diffSides(reading.side, to, { foreign: false });
  return { folder, form, files, comparison: { from: reading.side, to, diff }, problems: [], compiled };
}

/** What `--check` prints of one node: the result, and a note for people. */
export function formatCheck(
  report: CheckReport,
  result: CheckResult,
  format: OutputFormat,
  diagnostics: readonly Diagnostic[],
): { readonly printed: string; readonly note: string } {
  switch (format) {
    case 'text':
      return {
        printed: result.kind === 'differs' ? formatFileDiffs(report.folder, result) : '',
        note: checkToText(report),
      };
    case 'json':
      return { printed: checkToJson(report, diagnostics), note: '' };
    case 'github':
      return { printed: checkToGithub(report, diagnostics), note: '' };
    case 'junit':
      return { printed: checkToJunit(report), note: '' };
  }
}

/** What `--check` prints of many nodes; '' if there is nothing to say. */
export function formatFleetCheck(report: FleetReport, format: OutputFormat): string {
  switch (format) {
    case 'text':
      return fleetToText(report);
    case 'json':
      return fleetToJson(report);
    case 'github':
      return fleetToGithub(report);
    case 'junit':
      return fleetToJunit(report);
  }
}
