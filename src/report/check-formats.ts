import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { CheckResult } from '../sides/check-bundle.ts';
import type { CheckReport, FleetReport, OutputFormat } from './check-report.ts';
import { checkToGithub, fleetToGithub } from './github.ts';
import { checkToJson, fleetToJson } from './json.ts';
import { checkToJunit, fleetToJunit } from './junit.ts';
import { checkToText, fleetToText } from './text.ts';
import { formatFileDiffs } from './unified.ts';

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
