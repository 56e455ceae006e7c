import type { CheckReport } from './check-report.ts';
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

/** "3 of 40 nodes change". */
export function summarizeFleet({ changed, nodes }: FleetReport): string {
  return `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
}
