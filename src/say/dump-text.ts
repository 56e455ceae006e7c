import { count, cutLines, printable } from '../base/printable.ts';
import type { ShownPort } from '../cluster/model.ts';
import type { DecompiledPort } from '../snapshot/decompiled-port.ts';
import { descriptionLine, type DescriptionLine } from '../ask/describe/description-line.ts';
import type { SharedSubject } from '../ask/describe/find-items.ts';
import type { FlowChange } from '../ask/describe/follow-change.ts';
import type { DumpReading } from '../ask/describe/read-dumped.ts';
import { describeFlowChange, describeFlows } from './describe/flows.ts';
import { describeLeftovers, describeReach, leftBy } from './describe/leftovers.ts';
import { describeLog } from './describe/log.ts';
import { describeSkippedListings } from './way/dumps.ts';
import { describeDecompiled, describeSharedInWords } from './describe/service.ts';
import { formatRows, rowsOfDump } from './describe/table.ts';
import { more, type ReportBlock, type ReportLine } from './diff-report.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { formatDescription } from './formats/description.ts';

/** How to print: lines of a list, rows of a table, and the width of a terminal. */
interface DumpFormat {
  readonly limit: number;
  readonly rows: number;
  readonly width?: number | undefined;
  readonly isColoured: boolean;
}

/** A table of a dump's Services, then leftovers of another mode, stale flows, and findings from the log. */
export function formatDump(read: DumpReading, { limit, rows, width, isColoured }: DumpFormat): string {
  const {
    flows,
    dump: {
      shown: { mode, ports, leftovers },
      log,
    },
  } = read;
  const table = ports.length > 0 ? formatRows(rowsOfDump(ports), { rows, width }) : '';
  const total = mode && table !== '' ? `\n${count(ports.length, 'Service port')} in ${modeFacts[mode].title}\n` : '';
  const parts = [
    table + total,
    describeLeftovers(leftovers)
      .map((text) => `${printable(text)}\n`)
      .join(''),
    flows ? formatDescription([describeFlows(flows, limit)], isColoured) : '',
    log ? formatDescription([describeLog(log, limit)], isColoured) : '',
    describeSkippedListings(read.dump.doubts)
      .map((text) => `${printable(text)}\n`)
      .join(''),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

/** What happens to flows after a change, for kpc diff; empty if no flow is stale. */
export function reportFlows(change: FlowChange, limit: number): readonly ReportBlock[] {
  const described = describeFlowChange(change);
  if (!described) return [];
  const lines = described.lines.map((text): ReportLine => ({ role: 'reason', text }));
  return [[{ role: 'title', text: described.title }, ...cutLines(lines, limit, more)]];
}

/** Whether a Service port is one of these. */
export function isPortAmong(ports: readonly ShownPort[]): (port: ShownPort | undefined) => boolean {
  const labels = new Set(ports.map(({ label }) => label));
  return (port) => port !== undefined && labels.has(port.label);
}

/** Some Service ports of a dump with their stale flows, or chains and sets that belong to none or to all. */
export function describeFoundPorts(
  ports: readonly DecompiledPort[],
  subjects: readonly SharedSubject[],
  { dump, flows }: DumpReading,
  limit: number,
): readonly (readonly DescriptionLine[])[] {
  const { leftovers } = dump.shown;
  const skipped = describeSkippedListings(dump.doubts);
  const left = new Set(leftovers.ports);
  const leftLine = (text: string) => descriptionLine('plain', 1, `${leftBy('iptables').toLowerCase()}: ${text}`);
  return [
    ...ports.map((port) => [
      ...describeDecompiled(port, limit),
      ...(left.has(port) ? [leftLine('the node is in another mode now')] : []),
    ]),
    ...subjects.map((subject) => [
      ...describeSharedInWords(subject, limit),
      ...leftovers.chains
        .filter((each) => each.family === subject.family && each.table === subject.table)
        .filter(({ chain }) => chain.name === subject.name)
        .map((each) => leftLine(describeReach(each))),
    ]),
    ...(flows && ports.length > 0 ? [describeFlows(flows, limit, isPortAmong(ports))] : []),
    ...(skipped.length > 0 ? [skipped.map((text) => descriptionLine('plain', 0, text))] : []),
  ];
}
