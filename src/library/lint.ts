import { asStrict, endLast, mostForPrograms, isError, type Finding } from '../base/findings/finding.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { Ignore } from '../ask/lint/ignores.ts';
import { loadTexts, type LoadOptions, type LoadedInputs } from '../snapshot/open/load-texts.ts';
import type { NodeOptions } from '../snapshot/open/compile.ts';
import { findingCodes, type FindingCode } from '../base/findings/codes.ts';
import { lintInputs, type LintOutcome as Linting } from '../ask/lint/lint.ts';
import { isModeOf } from '../kube-proxy/releases.ts';
import { lintJson, type LintReport } from '../say/lint.ts';
import type { Speak } from '../say/words/rows.ts';
import { findingReporter, type SaidFinding } from '../say/words/said.ts';
import type { SnapshotJson } from '../say/outputs/envelope.ts';
import type { linted } from '../say/outputs/compile-and-compare.ts';
import { snapshotsJson } from '../say/snapshots.ts';
import { shownOptions, readInputTexts, listTexts } from './inputs.ts';
import { checkPacketOptions, type ManifestsOfNodes } from './open.ts';
import { traceWords } from './options.ts';
import { adviseInOptions, answerInOptions, diagnosticsOf, misuse } from './words.ts';

export type { Ignore };

export function optionsOfLint<Options extends LoadOptions>(options: Options) {
  return { ...options, assume: options.assume ?? 'by-default', traffic: true, mostOfCode: mostForPrograms } as const;
}

/** `trace`: a `kpc trace` command for the manifests, still without a packet. `weigh` changes a finding's severity. */
export function lintLoaded(
  loaded: LoadedInputs,
  named: NodeOptions,
  { ignores, trace, weigh = (each) => each, speak }: LintWords,
): { readonly report: LintReport; readonly passed: boolean } {
  const found = lintInputs(loaded, named, ignores);
  const all = withoutDefaults(found, loaded, named).map(weigh);
  const isRead = !all.some(isUnread);
  // If nothing was read, that error comes last, because other findings may explain it.
  const findings = isRead ? all : endLast(all);
  const reported = findingReporter(trace, found.below, speak);
  const report = { ...found, isRead, findings: findings.map(reported), ignored: found.ignored.map(reported) };
  return { report, passed: !findings.some(isError) };
}

interface LintWords {
  readonly ignores: readonly Ignore[];
  readonly trace: readonly string[];
  readonly weigh?: (diagnostic: Finding) => Finding;
  readonly speak?: Speak;
}

function isUnread({ severity, code }: Pick<Finding, 'severity' | 'code'>): boolean {
  return severity === 'error' && (code === 'no-input' || code === 'unreadable-file');
}

/** If no mode is named, keeps only those findings that the input has in every usual mode of the release. */
function withoutDefaults(found: Linting, loaded: LoadedInputs, named: NodeOptions): Linting['findings'] {
  const { namesMode, hasRun, mode, findings } = found;
  if (namesMode || !hasRun) return findings;
  const { release } = loaded.settings;
  const others = usualModes.filter((each) => each !== mode && isModeOf(each, release));
  const inOthers = others
    .map((each) => lintInputs(loaded.inMode(each), named, []))
    .flatMap((other) => (other.hasRun ? [new Set(other.findings.map(subjectOf))] : []));
  return findings.filter(
    (finding) => finding.code === 'idle-ignore' || inOthers.every((subjects) => subjects.has(subjectOf(finding))),
  );
}

const usualModes = ['ipvs', 'iptables', 'nftables'] as const;

function subjectOf({ code, place, about }: Finding): string {
  return JSON.stringify([code, place?.locate(), about]);
}

/** The flags of `kpc lint`. Checks all Nodes in the manifests, or only `node`. */
export interface LintOptions extends Omit<ManifestsOfNodes, 'allNodes'> {
  /** The codes to ignore, for all Services or for one Service. Errors are reported even if their code is ignored. */
  readonly ignore?: readonly (FindingCode | (Omit<Ignore, 'by'> & Partial<Pick<Ignore, 'by'>>))[] | undefined;
  /** Turns warnings into errors. */
  readonly strict?: boolean | undefined;
}

/** The result of `kpc lint --output json`. */
export type Linted = Shaped<typeof linted>;

export interface LintResult {
  /** Whether the check found no errors. */
  readonly passed: boolean;
  readonly findings: readonly SaidFinding[];
  /** Undefined if no input could be read. */
  readonly report: Linted | undefined;
  /** The checked nodes. Empty if an error in the input prevented the check. */
  readonly snapshots: readonly SnapshotJson[];
  /** Notes about the input. */
  readonly diagnostics: readonly SaidFinding[];
}

/**
 * Checks manifests on all nodes. Reports errors, warnings, and valid Services that do not work as their fields suggest.
 *
 * ```ts
 * import { lint } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 99999 }] } }' };
 * const { passed, findings } = lint({ manifests });
 * console.log(passed, findings[0]?.code); // false bad-value
 * ```
 */
export function lint(options: LintOptions): LintResult {
  checkPacketOptions(options, ['ignore', 'strict']);
  const { ignore = [], strict = false, ...input } = options;
  const ignores = ignore.map((each) => ({ by: 'ignore', ...(typeof each === 'string' ? { code: each } : each) }));
  const strange = ignores.find(({ code }) => !findingCodes.some((each) => each === code))?.code;
  if (strange !== undefined) misuse({ problem: 'unknown-code', name: strange });
  const request = shownOptions(input);
  const loaded = loadTexts(readInputTexts(input, input.hostAddresses), optionsOfLint(request));
  const files = listTexts(input.manifests, 'manifests').map(({ name }) => name);
  const { passed, report } = lintLoaded(
    loaded,
    { node: input.node, ipFamily: request.ipFamily },
    { ignores, trace: traceWords(files, input), speak: adviseInOptions, ...(strict ? { weigh: asStrict } : {}) },
  );
  const { findings, notes } = report;
  const snapshots = snapshotsJson(report.snapshots);
  return { passed, findings, report: answerInOptions(lintJson(report)), snapshots, diagnostics: diagnosticsOf(notes) };
}
