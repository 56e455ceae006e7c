import { hashName } from '../../base/hash-name.ts';
import { projectUrl } from '../../base/version.ts';
import { type FindingCode, isLintCode } from '../../base/findings/codes.ts';
import { locate, type About, type Fault, type Finding } from '../../base/findings/finding.ts';
import type { Severity } from '../../base/findings/rows.ts';
import { joinHostPort } from '../../kernel/address.ts';
import type { Located } from '../../kernel/place.ts';
import { traceCommand } from './trace-command.ts';
import { wordsOf } from './words.ts';

/** A finding in words, as programs get it, and all formats print it. The code determines the arguments. */
export type SaidFinding = Fault & {
  readonly severity: Severity;
  readonly text: string;
  readonly help?: string;
  readonly about?: About;
  /** A command that prints the way of a packet that shows it, and how that ends. */
  readonly trace?: { readonly command: string; readonly verdict: string };
  /** Where the code is explained, if the project's pages are published. */
  readonly page?: string | undefined;
  /** The same as long as the finding is about the same, wherever its lines are. */
  readonly fingerprint?: string;
  /** Absent if it is about no file. */
  readonly place?: Located;
};

/** What a format prints of a finding. */
export type ShownFinding = Omit<SaidFinding, 'arguments' | 'about'>;

export function sayFindings(findings: readonly Finding[]): SaidFinding[] {
  return findings.map((each) => sayFinding(each));
}

export function sayFinding(finding: Finding): SaidFinding {
  const { severity, code, arguments: details, about } = finding;
  const { text, help } = wordsOf(finding);
  const place = locate(finding.place);
  const said = { severity, code, text, ...(help === undefined ? {} : { help }), arguments: details };
  return { ...said, ...(place ? { place } : {}), ...(about ? { about } : {}) } as SaidFinding;
}

/**
 * Says findings, each with what programs keep of them: the command that shows it, its page and its fingerprint. `trace` are the
 * words of a kpc trace over the same input, without the packet, and `below` the names of files below what was named.
 */
export function findingReporter(
  trace: readonly string[],
  below: ReadonlyMap<string, string>,
): (finding: Finding) => SaidFinding {
  const numbered = numberer();
  return (finding) => {
    const { code, evidence } = finding;
    return {
      ...sayFinding(finding),
      ...(evidence ? { trace: { command: commandOf(evidence, trace), verdict: evidence.verdict } } : {}),
      page: pageOf(code),
      fingerprint: numbered(fingerprintOf(finding, below)),
    };
  };
}

/** The findings of an answer, each with its page and a fingerprint of its own. */
export function identify(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  const numbered = numberer();
  return findings.map((finding) => ({
    ...finding,
    page: finding.page ?? pageOf(finding.code),
    fingerprint: finding.fingerprint ?? numbered(fingerprintOf(finding, new Map())),
  }));
}

/** Tells equal fingerprints apart by a number. */
function numberer(): (print: string) => string {
  const prints = new Map<string, number>();
  return (print) => {
    const before = prints.get(print) ?? 0;
    prints.set(print, before + 1);
    return before === 0 ? print : `${print}-${before + 1}`;
  };
}

/** The page and section that explain a code; undefined if the project has no address. */
export function pageOf(code: FindingCode, project: string | undefined = projectUrl): string | undefined {
  return project && `${project}/blob/main/docs/${isLintCode(code) ? 'lint' : 'codes'}.md#${code}`;
}

function commandOf(
  { from, to, port, protocol, node }: NonNullable<Finding['evidence']>,
  trace: readonly string[],
): string {
  const socket = joinHostPort(to.text, port);
  return traceCommand(trace, { from, to: socket, protocol: protocol.toLowerCase(), interface: undefined, node });
}

/** Arguments that change though the finding is the same: lists of nodes, lines, and the names of folders. */
const passing: ReadonlySet<string> = new Set(['nodes', 'of', 'first', 'among', 'line', 'folder']);

/** Depends on the code, on what it is about and on its arguments, but on no line, no list of nodes and no folder that was named. */
function fingerprintOf(
  {
    code,
    arguments: details,
    place,
    about,
  }: Fault & { readonly place?: { readonly file: string } | undefined; readonly about?: About | undefined },
  below: ReadonlyMap<string, string>,
): string {
  const others = Object.entries(details).filter(([name]) => !passing.has(name));
  const file = place && (below.get(place.file) ?? place.file);
  return hashName(JSON.stringify([code, about?.name ?? file ?? '', Object.fromEntries(others)]), 16);
}

/** What to do, with the command that shows it, in formats that have no other place for that. */
export function helpWithTrace({ help, trace }: Pick<SaidFinding, 'help' | 'trace'>): string | undefined {
  if (!trace) return help;
  return `${help === undefined ? '' : `${help}\n`}trace: ${trace.command}`;
}
