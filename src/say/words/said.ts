// Puts findings into words, with the command that traces a packet, and shortens lists for people.
import { hashName } from '../../base/hash-name.ts';
import { projectUrl } from '../../base/version.ts';
import { isLintCode, type FindingCode } from '../../base/findings/codes.ts';
import { locate, diagnose, isError, type About, type Fault, type Finding } from '../../base/findings/finding.ts';
import type { Severity } from '../../base/findings/rows.ts';
import { joinHostPort } from '../../kernel/address.ts';
import type { Located } from '../../kernel/place.ts';
import { wordsOf } from './words.ts';
import { shellWord, formatCount } from '../../base/printable.ts';
import { nameSome, type Speak } from './rows.ts';
import { groupBy } from '../../cluster/grouping.ts';

/** A finding in words, for programs and all formats. The code determines the type of the arguments. */
export type SaidFinding = Fault & {
  readonly severity: Severity;
  readonly text: string;
  readonly help?: string;
  readonly about?: About;
  /** A command that traces a packet to show the finding, and the verdict of that trace. */
  readonly trace?: { readonly command: string; readonly verdict: string };
  /** The page that explains the code, if the project's pages are published. */
  readonly page?: string | undefined;
  /** The fingerprint stays the same if the finding only moves to other lines. */
  readonly fingerprint?: string;
  /** Unset if the finding concerns no file. */
  readonly place?: Located;
};

/** The parts of a finding that a format prints. */
export type ShownFinding = Omit<SaidFinding, 'arguments' | 'about'>;

export function sayFindings(findings: readonly Finding[]): SaidFinding[] {
  return findings.map((each) => sayFinding(each));
}

export function sayFinding(finding: Finding, speak?: Speak): SaidFinding {
  const { severity, code, arguments: details, about } = finding;
  const { text, help } = wordsOf(finding, speak);
  const place = locate(finding.place);
  const said = { severity, code, text, ...(help === undefined ? {} : { help }), arguments: details };
  return { ...said, ...(place ? { place } : {}), ...(about ? { about } : {}) } as SaidFinding;
}

/**
 * Returns a function that puts findings into words, each with a trace command, a page and a fingerprint. `trace`: a `kpc trace` command for
 * the same input, to which the packet's flags are still to be added. `below`: file names relative to the folder that the user named.
 */
export function findingReporter(
  trace: readonly string[],
  below: ReadonlyMap<string, string>,
  speak?: Speak,
): (finding: Finding) => SaidFinding {
  const numbered = numberer();
  return (finding) => {
    const { code, evidence } = finding;
    return {
      ...sayFinding(finding, speak),
      ...(evidence ? { trace: { command: commandOf(evidence, trace), verdict: evidence.verdict } } : {}),
      page: pageOf(code),
      fingerprint: numbered(fingerprintOf(finding, below)),
    };
  };
}

/** Gives each finding of an answer its page, and a fingerprint that no other finding of the answer has. */
export function identify(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  const numbered = numberer();
  return findings.map((finding) => ({
    ...finding,
    page: finding.page ?? pageOf(finding.code),
    fingerprint: finding.fingerprint ?? numbered(fingerprintOf(finding, new Map())),
  }));
}

/** Returns a function that adds a number to repeated fingerprints, so that each is distinct. */
function numberer(): (print: string) => string {
  const prints = new Map<string, number>();
  return (print) => {
    const before = prints.get(print) ?? 0;
    prints.set(print, before + 1);
    return before === 0 ? print : `${print}-${before + 1}`;
  };
}

/** Returns the address of the page and section that explain a code. Undefined if the project has no address. */
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

/** The arguments that may change although the finding is the same: lists of nodes, lines, and folder names. */
const passing: ReadonlySet<string> = new Set(['nodes', 'of', 'first', 'among', 'line', 'folder']);

/** Makes a fingerprint from the code, the subject and the arguments. Leaves out lines, lists of nodes and the named folder. */
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

/** Returns the help together with the trace command, for formats without a separate place for that command. */
export function helpWithTrace({ help, trace }: Pick<SaidFinding, 'help' | 'trace'>): string | undefined {
  if (!trace) return help;
  return `${help === undefined ? '' : `${help}\n`}trace: ${trace.command}`;
}

/** A packet in the form of kpc trace's flags. */
export interface TracedPacket {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly interface?: string | undefined;
  /** '' if no node is named. */
  readonly node: string;
}

/**
 * Returns a command that traces a packet and can be pasted as it is. `words`: the command for the input, to which the packet's flags are
 * still to be added. If the input is from stdin, the command says to give the input again.
 */
export function traceCommand(words: readonly string[], example: TracedPacket): string {
  const flags = [
    ...(example.node === '' ? [] : ['--node', example.node]),
    '--from',
    example.from,
    '--to',
    example.to,
    '--proto',
    example.protocol,
    ...(example.interface === undefined ? [] : ['--in-interface', example.interface]),
  ];
  const at = example.node === '' ? -1 : words.indexOf('--node');
  const input = at < 0 ? words : words.toSpliced(at, 2);
  const again = words.includes('-') ? ' < THE-SAME-INPUT' : '';
  return `${[...input, ...flags].map(shellWord).join(' ')}${again}`;
}

/** Shortens findings for people. Equal sentences about several things appear once, and long lists are cut. */
export function findingsForPeople(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  return limitShown(foldAlike(findings));
}

/** Shortens a list that is itself the result. Shows at most `limit` findings of each code, then the number and names of the others. */
export function listForPeople(findings: readonly SaidFinding[], limit: number): readonly SaidFinding[] {
  if (limit === Number.POSITIVE_INFINITY) return findings;
  const folded = foldAlike(findings);
  const ofCodes = groupBy(folded, ({ severity, code }) => `${severity} ${code}`);
  const cut = new Map(
    [...ofCodes.values()].flatMap((own) => {
      // A line that counts findings takes as much space as one finding.
      const others = own.length > limit + 1 ? own.slice(limit) : [];
      return others.map((each, i) => [each, i === 0 ? [countOthers(each, others)] : []] as const);
    }),
  );
  return folded.flatMap((each) => cut.get(each) ?? each);
}

/** Returns a line in place of the remaining findings of a code. */
function countOthers(first: SaidFinding, others: readonly SaidFinding[]): SaidFinding {
  const names = [...new Set(others.flatMap((each) => nameOfSubject(each) ?? []))];
  const named = names.length === 0 ? '' : `: ${nameSome(names, mostNames)}`;
  const { severity, code, arguments: details } = first;
  const text = `${formatCount(others.length)} more like this${named} (--limit 0 shows all)`;
  return { severity, code, arguments: details, text } as SaidFinding;
}

/** The most names to print after the first one. */
const mostNames = 5;

const mostShown = 200;

/** Returns the first findings, with errors first. For each severity, adds a line with the number of those left out. */
function limitShown(all: readonly SaidFinding[]): readonly SaidFinding[] {
  const made = all.filter(({ code }) => code !== 'not-shown');
  if (made.length <= mostShown) return all;
  const shown = new Set([...made.filter(isError), ...made.filter((each) => !isError(each))].slice(0, mostShown));
  const others = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const hidden = all.filter((each) => each.severity === severity && !shown.has(each));
    const count = hidden.reduce((sum, each) => sum + (each.code === 'not-shown' ? each.arguments.count : 1), 0);
    return count === 0 ? [] : [diagnose('not-shown', { severity, count })];
  });
  return [...made.filter((each) => shown.has(each)), ...sayFindings(others)];
}

/**
 * Prints equal warnings or notes about several Services or Nodes once, at the first of them, and adds the names of the others. Does not
 * merge errors, because each must be fixed in its own place.
 */
function foldAlike(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  const keyed = findings.map((finding, i) => ({ finding, key: sameWords(finding) ?? String(i) }));
  return [...groupBy(keyed, ({ key }) => key).values()].map(([{ finding: first }, ...others]) => {
    const names = new Set(others.flatMap(({ finding }) => nameOfSubject(finding) ?? []));
    names.delete(nameOfSubject(first) ?? '');
    return names.size === 0
      ? first
      : { ...first, text: `${first.text}; the same for ${nameSome([...names], mostNames)}` };
  });
}

/** Returns a finding's words without the name of its subject. Undefined for an error, and if the words do not begin with that name. */
function sameWords(finding: SaidFinding): string | undefined {
  const { severity, code, text, help = '' } = finding;
  const name = nameOfSubject(finding);
  if (severity === 'error' || name === undefined) return undefined;
  if (!isOfFile.has(code) && !text.startsWith(name)) return undefined;
  return JSON.stringify([severity, code, text.replaceAll(name, ''), help.replaceAll(name, '')]);
}

/** Codes of findings about a whole file. Their sentences do not name the file. */
const isOfFile: ReadonlySet<string> = new Set(['empty-file', 'unknown-kind']);

function nameOfSubject({ code, arguments: details, place, about }: SaidFinding): string | undefined {
  if (isOfFile.has(code)) return place?.file;
  const { servicePort, service } = details as { readonly servicePort?: string; readonly service?: string };
  return servicePort ?? service ?? (about?.kind === 'service' ? about.name : undefined);
}
