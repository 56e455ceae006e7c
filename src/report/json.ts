import { locate, type Diagnostic, type Fault } from '../diagnostics/diagnostic.ts';
import { isSame, type ServicePortDiff, type SideDiff } from '../diff/diff-sides.ts';
import type { ChangeKind, KernelChange } from '../diff/changes/kernel-change.ts';
import type { ServiceReason } from '../diff/service-reasons.ts';
import type { Side } from '../diff/compared-side.ts';
import { describeGaps } from '../diff/not-compared.ts';
import type { Location } from '../kernel/place.ts';
import type { CheckReport, FleetReport } from './check-report.ts';
import { formatJson } from './format-json.ts';

/** How two sides differ, for programs: --output json of kpc diff. */
export interface DifferenceJson {
  readonly from: Pick<Side, 'kind' | 'name'>;
  readonly to: Pick<Side, 'kind' | 'name'>;
  readonly differs: boolean;
  /** What one of the sides does not show. */
  readonly notCompared: readonly string[];
  /** Sorted by name. */
  readonly servicePorts: readonly ServicePortDifference[];
  /** What belongs to no Service. */
  readonly base: readonly ChangeJson[];
  /** What is not kube-proxy's, where that was asked for. */
  readonly foreign: readonly ChangeJson[];
  /** What may be kube-proxy's or another program's: the dump does not show which. */
  readonly unaccounted: readonly ChangeJson[];
}

/** One thing of the kernel that differs; the kind says which fields there are besides. */
export interface ChangeJson {
  readonly kind: string;
  readonly change: ChangeKind;
  readonly [field: string]: unknown;
}

/** What differs in one Service port: why, if both sides show it, and what that is in the kernel. */
export interface ServicePortDifference {
  /** "namespace/name:port". */
  readonly servicePort: string;
  readonly formerServicePort?: string;
  readonly change: ChangeKind;
  readonly place?: Location;
  readonly reasons: readonly ReasonJson[];
  readonly kernel: readonly ChangeJson[];
}

/** A reason; its kind says which fields there are besides. */
type ReasonJson = Pick<ServiceReason, 'kind' | 'text'> & { readonly [field: string]: unknown };

/** The whole difference for programs, without limits. */
export function diffToJson(from: Side, to: Side, diff: SideDiff): DifferenceJson {
  const { base, foreign, unaccounted, dead, live } = diff;
  return {
    from: { kind: from.kind, name: from.name },
    to: { kind: to.kind, name: to.name },
    differs: !isSame(diff),
    notCompared: describeGaps(diff.gaps),
    servicePorts: diff.servicePorts.map(servicePortToJson),
    base: base.map(changeToJson),
    foreign: foreign.map(changeToJson),
    unaccounted: unaccounted.map(changeToJson),
    ...(dead.length + live.length > 0
      ? { leftovers: { dead: dead.map(changeToJson), live: live.map(changeToJson) } }
      : {}),
    ...(diff.comments > 0 ? { rulesThatDifferInCommentsAlone: diff.comments } : {}),
  };
}

function servicePortToJson(port: ServicePortDiff): ServicePortDifference {
  const place = port.place?.locate();
  return {
    servicePort: port.label,
    ...(port.formerLabel === undefined ? {} : { formerServicePort: port.formerLabel }),
    change: port.change,
    ...(place ? { place } : {}),
    reasons: port.reasons.map(({ kind, fields, text }) => ({ kind, ...fields, text })),
    kernel: [...port.kernel, ...port.follows].map(changeToJson),
  };
}

function changeToJson({ kind, change, fields }: KernelChange): ChangeJson {
  return { kind, change, ...fields };
}

/** The comparison and what was said of the input, for programs. */
export function checkToJson(report: CheckReport, diagnostics: readonly Diagnostic[]): string {
  const { folder, files } = report;
  const same = files.length === 0;
  const result = { folder, same, ...comparisonToJson(report), diagnostics: diagnosticsToJson(diagnostics) };
  return formatJson(result);
}

/** What differs, as an object to be written as JSON. */
function comparisonToJson({ files, comparison, problems }: CheckReport): object {
  return {
    files,
    problems,
    ...(comparison ? { diff: diffToJson(comparison.from, comparison.to, comparison.diff) } : {}),
  };
}

/** What --check finds in the folders of many nodes. */
export function fleetToJson({ folder, nodes, changed, stale, example }: FleetReport): string {
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...comparisonToJson(example) } };
  return formatJson({ folder, same, nodes: nodes.length, changed, stale, ...diff });
}

/** A diagnostic for programs: --output json. What it takes as arguments, its code says. */
export type JsonDiagnostic = Fault & Pick<Diagnostic, 'severity' | 'text' | 'help'> & Partial<Location>;

/** Diagnostics for programs, in the same order. */
export function diagnosticsToJson(diagnostics: readonly Diagnostic[]): JsonDiagnostic[] {
  return diagnostics.map(({ place, ...diagnostic }) => ({ ...diagnostic, ...locate(place) }));
}
