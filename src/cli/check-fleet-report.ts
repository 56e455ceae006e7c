import { printable } from '../base/printable.ts';
import type { OutputFormat } from './check-format.ts';
import type { CheckReport } from './check-report.ts';
import { annotation, checkToGithub, comparisonToJson, formatTestSuite } from './check-report.ts';
import { formatJson } from './format-json.ts';

/** A node whose folder is not what the input makes, and how. */
export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

/** How the folders of many nodes stand to what the input makes. */
export interface FleetReport {
  readonly folder: string;
  /** All nodes that were compiled for. */
  readonly nodes: readonly string[];
  readonly changed: readonly NodeChange[];
  /** Folders of nodes that are not in the input. */
  readonly stale: readonly NodeChange[];
  /** One of the nodes that change, Service by Service. */
  readonly example: CheckReport | undefined;
}

/** The report in the format asked for; '' where there is nothing to tell. */
export function formatFleetCheck(report: FleetReport, format: OutputFormat): string {
  switch (format) {
    case 'text':
      return toText(report);
    case 'json':
      return toJson(report);
    case 'github':
      return toGithub(report);
    case 'junit':
      return toJunit(report);
  }
}

function toText(report: FleetReport): string {
  const lines = [...report.changed, ...report.stale].map(({ node, what }) => `${node}: ${what}`);
  if (report.changed.length > 0) lines.push(summarize(report));
  return lines.map((line) => `${printable(line)}\n`).join('');
}

/** "3 of 40 nodes change". */
function summarize({ changed, nodes }: FleetReport): string {
  return `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
}

function toJson({ folder, nodes, changed, stale, example }: FleetReport): string {
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...comparisonToJson(example) } };
  return formatJson({ folder, same, nodes: nodes.length, changed, stale, ...diff });
}

/** How many nodes an annotation names. */
const mostNodes = 20;

function toGithub(report: FleetReport): string {
  const all = [...report.changed, ...report.stale];
  if (all.length === 0) return '';
  const lines = all.slice(0, mostNodes).map(({ node, what }) => `${node}: ${what}`);
  if (all.length > mostNodes) lines.push(`and ${(all.length - mostNodes).toLocaleString('en')} more`);
  const services = report.example ? checkToGithub({ ...report.example, folder: report.folder }, []) : '';
  return `${services}${annotation('error', summarize(report), lines.join('\n'), undefined)}\n`;
}

/** A test case for each node. */
function toJunit({ folder, nodes, changed, stale }: FleetReport): string {
  const failures = new Map([...changed, ...stale].map(({ node, what }) => [node, what]));
  return formatTestSuite(
    `kpc compile --check ${folder}`,
    [...new Set([...nodes, ...failures.keys()])].map((name) => {
      const what = failures.get(name);
      return { name, place: undefined, failure: what === undefined ? undefined : { title: what, lines: [] } };
    }),
  );
}
