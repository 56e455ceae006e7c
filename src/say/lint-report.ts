import { hashName } from '../base/hash-name.ts';
import { projectUrl } from '../base/version.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Finding } from '../lint/finding.ts';
import type { LintResult } from '../lint/lint.ts';
import { ruleOf } from '../lint/rules.ts';
import { traceCommand } from './equivalence.ts';

/** A finding in the words of all formats. */
export interface ReportedFinding {
  readonly diagnostic: Diagnostic;
  readonly service: string | undefined;
  readonly trace: { readonly command: string; readonly verdict: string } | undefined;
  /** Where the rule is explained, if the project's pages are published. */
  readonly page: string | undefined;
  /** The same as long as the finding is about the same, wherever its lines are. */
  readonly fingerprint: string;
}

export interface LintReport extends Omit<LintResult, 'findings' | 'ignored'> {
  readonly findings: readonly ReportedFinding[];
  readonly ignored: readonly ReportedFinding[];
}

/** The page and section that explain a code; undefined if the project has no address. */
export function pageOf(code: DiagnosticCode, project: string | undefined = projectUrl): string | undefined {
  return project && `${project}/blob/main/docs/${ruleOf(code) ? 'lint' : 'codes'}.md#${code}`;
}

/** `trace` are the words of a kpc trace over the same input, without the packet. */
export function reportLint(result: LintResult, trace: readonly string[]): LintReport {
  const prints = new Map<string, number>();
  const reported = ({ diagnostic, service, object, shown }: Finding): ReportedFinding => {
    const { code } = diagnostic;
    const base = fingerprintOf(diagnostic, service ?? object, result.below);
    const before = prints.get(base) ?? 0;
    prints.set(base, before + 1);
    return {
      diagnostic,
      service,
      trace: shown && { command: commandOf(shown.packet, trace), verdict: shown.verdict },
      page: pageOf(code),
      fingerprint: before === 0 ? base : `${base}-${before + 1}`,
    };
  };
  return { ...result, findings: result.findings.map(reported), ignored: result.ignored.map(reported) };
}

function commandOf(
  { from, to, port, protocol, node }: NonNullable<Finding['shown']>['packet'],
  trace: readonly string[],
): string {
  const socket = joinHostPort(to.text, port);
  return traceCommand(trace, { from, to: socket, protocol: protocol.toLowerCase(), interface: undefined, node });
}

/** Arguments that change though the finding is the same: lists of nodes, lines, and the names of folders. */
const passing: ReadonlySet<string> = new Set(['nodes', 'of', 'first', 'among', 'line', 'folder']);

/** Depends on the code, on what it is about and on its words, but on no line, no list of nodes and no folder that was named. */
function fingerprintOf(
  { code, arguments: details, place }: Diagnostic,
  subject: string | undefined,
  below: LintResult['below'],
): string {
  const others = Object.entries(details).filter(([name]) => !passing.has(name));
  const file = place && (below.get(place.file) ?? place.file);
  return hashName(JSON.stringify([code, subject ?? file ?? '', Object.fromEntries(others)]), 16);
}

/** The diagnostic with the command in its help, for formats that have no other place for it. */
export function withTrace({ diagnostic, trace }: ReportedFinding): Diagnostic {
  if (!trace) return diagnostic;
  const help = diagnostic.help === undefined ? '' : `${diagnostic.help}\n`;
  return { ...diagnostic, help: `${help}trace: ${trace.command}` };
}
