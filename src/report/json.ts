import { locate, type Diagnostic, type Fault } from '../diagnostics/diagnostic.ts';
import { isSame, type ServicePortDiff, type SideDiff } from '../diff/diff-sides.ts';
import type { ChangeKind, KernelChange } from '../diff/changes/kernel-change.ts';
import type { ServiceReason } from '../diff/service-reasons.ts';
import type { Side } from '../diff/compared-side.ts';
import { describeGaps } from '../diff/not-compared.ts';
import type { Location } from '../kernel/place.ts';

/** One thing of the kernel that differs; the kind decides the other fields. */
export interface ChangeJson {
  readonly kind: string;
  readonly change: ChangeKind;
  readonly [field: string]: unknown;
}

/** A reason; its kind decides the other fields. */
type ReasonJson = Pick<ServiceReason, 'kind' | 'text'> & { readonly [field: string]: unknown };

/** How two sides differ, for programs: --output json of kpc diff. */
export type DifferenceJson = ReturnType<typeof diffToJson>;

/** What differs in one Service port: why, if both sides show it, and what that is in the kernel. */
export type ServicePortDifference = ReturnType<typeof servicePortToJson>;

/** The whole difference for programs, without limits. */
export function diffToJson(from: Side, to: Side, diff: SideDiff) {
  const [dead, live] = [diff.dead.map(changeToJson), diff.live.map(changeToJson)];
  return {
    from: { kind: from.kind, name: from.name },
    to: { kind: to.kind, name: to.name },
    differs: !isSame(diff),
    /** What one of the sides does not show. */
    notCompared: describeGaps(diff.gaps),
    /** Sorted by name. */
    servicePorts: diff.servicePorts.map(servicePortToJson),
    /** What belongs to no Service. */
    base: diff.base.map(changeToJson),
    /** What is not kube-proxy's, if that was asked for. */
    foreign: diff.foreign.map(changeToJson),
    /** What may be kube-proxy's or another program's: the dump does not show which. */
    unaccounted: diff.unaccounted.map(changeToJson),
    /** What iptables mode left on the node of a dump, which is in another mode: chains that nothing jumps to, and others. */
    ...(dead.length + live.length > 0 ? { leftovers: { dead, live } } : {}),
    ...(diff.comments > 0 ? { rulesThatDifferInCommentsAlone: diff.comments } : {}),
  };
}

function servicePortToJson(port: ServicePortDiff) {
  const place = port.place?.locate();
  return {
    /** "namespace/name:port". */
    servicePort: port.label,
    ...(port.formerLabel === undefined ? {} : { formerServicePort: port.formerLabel }),
    change: port.change,
    ...(place ? { place } : {}),
    reasons: port.reasons.map(({ kind, fields, text }): ReasonJson => ({ kind, ...fields, text })),
    kernel: [...port.kernel, ...port.follows].map(changeToJson),
  };
}

function changeToJson({ kind, change, fields }: KernelChange): ChangeJson {
  return { kind, change, ...fields };
}

/** A diagnostic for programs: --output json. What it takes as arguments, its code says. */
export type JsonDiagnostic = Fault & Pick<Diagnostic, 'severity' | 'text' | 'help'> & Partial<Location>;

/** Diagnostics for programs, in the same order. */
export function diagnosticsToJson(diagnostics: readonly Diagnostic[]): JsonDiagnostic[] {
  return diagnostics.map(({ place, ...diagnostic }) => ({ ...diagnostic, ...locate(place) }));
}
