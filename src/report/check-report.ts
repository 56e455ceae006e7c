import { formatCount } from '../base/format-count.ts';
import type { ServicePortDiff, SideDiff } from '../diff/diff-sides.ts';
import type { Side } from '../diff/compared-side.ts';
import { describeKernelChange } from '../diff/changes/kernel-change.ts';
import type { Location } from '../kernel/place.ts';

/** What kpc compile writes into a folder: by --golden, or by -o. */
export type FolderForm = 'bundle' | 'golden';

/** How a folder with a golden bundle compares with what the input compiles to, for reports. */
export interface CheckReport {
  readonly folder: string;
  /** What the folder holds. */
  readonly form: FolderForm;
  /** Files whose bytes differ; empty where nothing does. */
  readonly files: readonly string[];
  /** Undefined where the folder holds no bundle that can be read: it is not clear then what differs. */
  readonly comparison: Comparison | undefined;
  /** Why there is no comparison. */
  readonly problems: readonly string[];
  /** Every Service port that was compiled, with its place. */
  readonly compiled: readonly { readonly label: string; readonly place: Location | undefined }[];
}

interface Comparison {
  readonly from: Side;
  readonly to: Side;
  readonly diff: SideDiff;
}

/** One thing that is not as in the golden bundle. */
export interface Failure {
  readonly label: string | undefined;
  readonly title: string;
  readonly lines: readonly string[];
  readonly place: Location | undefined;
}

/** All that is not as in the golden bundle. */
export function findFailures({ folder, files, comparison, problems }: CheckReport): readonly Failure[] {
  if (files.length === 0) return [];
  const whole = (title: string, lines: readonly string[]): Failure => ({
    label: undefined,
    title,
    lines,
    place: undefined,
  });
  if (!comparison) return [whole(`${folder} cannot be compared`, problems)];
  const { servicePorts, base } = comparison.diff;
  const failures = [
    ...servicePorts.map(failureOf),
    ...(base.length > 0 ? [whole('What belongs to no Service', limit(base.map(describeKernelChange)))] : []),
  ];
  // Another version of kpc, say, or a setting that does not show in the kernel.
  return failures.length > 0 ? failures : [whole(`${folder} differs`, [`in ${files.join(', ')}`])];
}

function failureOf({ label, change, reasons, kernel, place }: ServicePortDiff): Failure {
  const lines = reasons.length > 0 ? reasons.map(({ text }) => text) : kernel.map(describeKernelChange);
  return { label, title: `${label} ${change}`, lines: limit(lines), place: place?.locate() };
}

function limit(lines: readonly string[]): readonly string[] {
  const most = 20;
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), `and ${formatCount(lines.length - most)} more`];
}

/** Two for people and programs, and two that report to a CI what --check found. */
export type OutputFormat = 'text' | 'json' | 'github' | 'junit';

/** A node whose folder differs, and how. */
export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

/** How the folders of many nodes compare with what the input compiles to. */
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

/** "3 of 40 nodes change". */
export function summarizeFleet({ changed, nodes }: FleetReport): string {
  return `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
}
