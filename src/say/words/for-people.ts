import { formatCount, nameSome } from '../../base/printable.ts';
import { diagnose, isError } from '../../base/findings/finding.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { sayFindings, type SaidFinding } from './said.ts';

/** Findings as people get them: what is said of several things in the same words said once, and no more than they can read. */
export function findingsForPeople(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  return limitShown(foldAlike(findings));
}

/** The same for a list that is the result: of each code as many as `limit` says, then the number and names of the others. */
export function listForPeople(findings: readonly SaidFinding[], limit: number): readonly SaidFinding[] {
  if (limit === Number.POSITIVE_INFINITY) return findings;
  const folded = foldAlike(findings);
  const ofCodes = groupBy(folded, ({ severity, code }) => `${severity} ${code}`);
  const cut = new Map(
    [...ofCodes.values()].flatMap((own) => {
      // The line that counts the others takes as much room as one of them.
      const others = own.length > limit + 1 ? own.slice(limit) : [];
      return others.map((each, i) => [each, i === 0 ? [countOthers(each, others)] : []] as const);
    }),
  );
  return folded.flatMap((each) => cut.get(each) ?? each);
}

/** A line in the place of the others of a code. */
function countOthers(first: SaidFinding, others: readonly SaidFinding[]): SaidFinding {
  const names = [...new Set(others.flatMap((each) => nameOf(each) ?? []))];
  const named = names.length === 0 ? '' : `: ${nameSome(names, mostNames)}`;
  const { severity, code, arguments: details } = first;
  const text = `${formatCount(others.length)} more like this${named} (--limit 0 shows all)`;
  return { severity, code, arguments: details, text } as SaidFinding;
}

/** How many names are printed after the first. */
const mostNames = 5;

const mostShown = 200;

/** The first ones, errors before all others, then one line per severity with the number of the rest. */
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
 * A warning or a note that is said of several Services or Nodes in the same words is said once, where it
 * is said first, with the names of the others. Errors are reported one by one, for each has a place to go to.
 */
function foldAlike(findings: readonly SaidFinding[]): readonly SaidFinding[] {
  const keyed = findings.map((finding, i) => ({ finding, key: sameWords(finding) ?? String(i) }));
  return [...groupBy(keyed, ({ key }) => key).values()].map(([{ finding: first }, ...others]) => {
    const names = new Set(others.flatMap(({ finding }) => nameOf(finding) ?? []));
    names.delete(nameOf(first) ?? '');
    return names.size === 0
      ? first
      : { ...first, text: `${first.text}; the same for ${nameSome([...names], mostNames)}` };
  });
}

/** What a finding says but for the name of what it is about; undefined for an error, and for a sentence that does not begin with it. */
function sameWords(finding: SaidFinding): string | undefined {
  const { severity, code, text, help = '' } = finding;
  const name = nameOf(finding);
  if (severity === 'error' || name === undefined) return undefined;
  if (!isOfFile.has(code) && !text.startsWith(name)) return undefined;
  return JSON.stringify([severity, code, text.replaceAll(name, ''), help.replaceAll(name, '')]);
}

/** Findings about a whole file, which their sentence does not name. */
const isOfFile: ReadonlySet<string> = new Set(['empty-file', 'unknown-kind']);

function nameOf({ code, arguments: details, place, about }: SaidFinding): string | undefined {
  if (isOfFile.has(code)) return place?.file;
  const { servicePort, service } = details as { readonly servicePort?: string; readonly service?: string };
  return servicePort ?? service ?? (about?.kind === 'service' ? about.name : undefined);
}
