import type { OutputFormat } from './check-format.ts';
import type { FleetReport } from './fleet-report.ts';
import { fleetToGithub } from './github.ts';
import { fleetToJson } from './json.ts';
import { fleetToJunit } from './junit.ts';
import { fleetToText } from './text.ts';

/** The report in the format asked for; '' where there is nothing to tell. */
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
