import { amount, boolean, listOf, objectOf, text, type Shaped } from '../../base/json-shape.ts';
import type { KernelDelta } from '../../kernel/delta.ts';
import { families, type Family } from '../../kernel/family.ts';
import { diffNftTables, type NftChange } from '../../kernel/nftables/delta.ts';
import type { Verdict } from '../../kernel/nftables/element.ts';
import { formatTables, nftFamily } from '../../kernel/nftables/format.ts';
import { parseNftText } from '../../kernel/nftables/parse-text.ts';
import { findTable, isLearned, type NftChain, type NftTable } from '../../kernel/nftables/table.ts';
import { nftTableName } from '../../kube-proxy/nftables.ts';
import type { Host } from '../node/host.ts';
import { saveTools } from '../node/node-reading.ts';
import {
  aboutTables,
  askKernel,
  elementIn,
  formatQuestions,
  keysIn,
  netlinkProgram,
  readAnswers,
  type NftQuestion,
} from '../node/nft-netlink.ts';

/** A stamp as a file has it. */
export const nftStampShape = objectOf({
  /** The network namespace: see nft-netlink.ts. */
  network: text,
  generation: amount,
  /** Answers to aboutTables: see nft-netlink.ts. */
  tables: listOf(text),
  /** Whether iptables keeps its rules in nftables too, so that they are the same at two moments of one count. */
  hasRules: boolean,
});

/**
 * A moment of the rules of nftables. Any program that changes any of them makes the kernel count one generation more. So
 * where the count is the same at two moments, kube-proxy's tables are, but for the clients that session affinity learns.
 */
export type NftStamp = Shaped<typeof nftStampShape>;

/** Undefined where the kernel does not tell. `hasRules`: whether the stamp has rules, where that was asked just now. */
export async function readNftStamp(host: Host, hasRules?: boolean): Promise<NftStamp | undefined> {
  const asked = await askKernel(host, aboutTables);
  if (!asked) return undefined;
  const { network, generation, answers } = asked;
  return { network, generation, tables: answers, hasRules: hasRules ?? (await areRulesInNftables(host)) };
}

/** Whether the tools of both families are the nft variant: "iptables-save v1.8.9 (nf_tables)". */
async function areRulesInNftables(host: Host): Promise<boolean> {
  const results = await Promise.all(
    families.map((family) => host.run({ tool: saveTools[family], args: ['--version'] })),
  );
  return results.every((result) => result.kind === 'ended' && result.stdout.trimEnd().endsWith('(nf_tables)'));
}

/** Whether nothing has been changed between the two, but by so many transactions of our own. */
export function isSameMoment(before: NftStamp | undefined, after: NftStamp | undefined, transactions = 0): boolean {
  if (!before || !after) return false;
  return (
    before.network === after.network &&
    before.hasRules === after.hasRules &&
    after.generation === before.generation + transactions
  );
}

/**
 * Proves a change that was made just now, without a list of the whole table. It is rehearsed where everything can be read back;
 * then each chain, set and element that it was to change is read back from the node's kernel and must be
 * the same as there. No more may have come or gone, and no other transaction may have been made since `before`. Gives the
 * moment for which it is proven; undefined where it is not, which says nothing against it.
 */
export async function proveNftChange(
  host: Host,
  before: NftStamp,
  rehearsal: NftRehearsal,
): Promise<NftStamp | undefined> {
  const rehearsed = await rehearseNftChange(host, rehearsal);
  if (!rehearsed) return undefined;
  const found = await askKernel(host, [...aboutTables, ...rehearsed.questions]);
  if (!found) return undefined;
  const tables = found.answers.slice(0, aboutTables.length);
  const { network, generation } = found;
  const after = { network, generation, tables, hasRules: before.hasRules };
  const isAsRehearsed = rehearsed.answers.every((answer, i) => answer === found.answers[aboutTables.length + i]);
  return isAsRehearsed &&
    isSameMoment(before, after, rehearsal.inputs.length) &&
    grewAsRehearsed(rehearsed, before.tables, tables)
    ? after
    : undefined;
}

/** A change to a few chains and sets of kube-proxy's tables, and what nft is given to make it: one input a transaction. */
export interface NftRehearsal {
  readonly present: readonly NftTable[];
  readonly wanted: readonly NftTable[];
  readonly delta: KernelDelta['nftables'];
  readonly inputs: readonly string[];
}

/** What a kernel must answer once the change is made: the same as this one. */
export interface RehearsedChange {
  readonly questions: readonly NftQuestion[];
  readonly answers: readonly string[];
  /** Answers to aboutTables, before and after. */
  readonly tables: { readonly before: readonly string[]; readonly after: readonly string[] };
}

/**
 * Makes the change by the same nft, in an empty network namespace of the same kernel that ends with this. There reading
 * everything back costs little: where nft lists what is wanted, what the kernel holds is the meaning of what is wanted.
 * Undefined where that is not so, and where it cannot be tried.
 */
export async function rehearseNftChange(host: Host, rehearsal: NftRehearsal): Promise<RehearsedChange | undefined> {
  const subjects = listSubjects(rehearsal.delta);
  if (!subjects) return undefined;
  const present = addStubs(rehearsal.present, rehearsal);
  const wanted = addStubs(rehearsal.wanted, rehearsal);
  const before = [...aboutTables, ...subjects.elements];
  const after = [...before, ...subjects.objects];
  try {
    const stdin = writeScript(present, rehearsal.inputs, before, after);
    const result = await host.run({ tool: 'unshare', args: ['--net', 'sh', '-s'], stdin });
    if (result.kind === 'missing' || result.status !== 0) return undefined;
    const [first = '', second = '', listed = ''] = result.stdout.split(/^=\n/m);
    const { tables, unread } = parseNftText(listed);
    if (unread.length > 0 || diffNftTables(tables, wanted).length > 0) return undefined;
    const [start, end] = [readAnswers(first, before.length), readAnswers(second, after.length)];
    // The kernel does not count a transaction that changes nothing. Another program's must not pass for one of these.
    if (!start || !end || end.generation !== start.generation + rehearsal.inputs.length) return undefined;
    return compare(subjects, start.answers, end.answers);
  } catch {
    return undefined;
  }
}

/** What to ask about: chains and sets as they are, and of sets the elements that changed. */
interface Subjects {
  readonly objects: readonly NftQuestion[];
  readonly elements: readonly (NftQuestion & { readonly about: 'elements' })[];
}

/** Undefined where more changes than chains and sets. */
function listSubjects(deltas: KernelDelta['nftables']): Subjects | undefined {
  const objects: NftQuestion[] = [];
  const elements: (NftQuestion & { readonly about: 'elements' })[] = [];
  for (const delta of deltas) {
    if (delta.kind !== 'change-table') return undefined;
    const { family } = delta;
    for (const change of delta.changes) {
      const subject = subjectOf(change);
      if (!subject) return undefined;
      const { about, name, hasElements } = subject;
      objects.push({ family, about, name });
      if (hasElements) elements.push({ family, about: 'elements', name });
    }
  }
  return { objects, elements };
}

interface Subject {
  readonly about: 'chain' | 'set';
  readonly name: string;
  readonly hasElements: boolean;
}

/** Undefined for what there is no question about. */
function subjectOf(change: NftChange): Subject | undefined {
  switch (change.kind) {
    case 'add-counter':
    case 'delete-counter':
      return undefined;
    case 'add-chain':
    case 'delete-chain':
    case 'refill-chain':
      return { about: 'chain', name: change.chain.name, hasElements: false };
    case 'replace-chain':
      return { about: 'chain', name: change.to.name, hasElements: false };
    case 'add-set':
    case 'change-elements':
      return { about: 'set', name: change.set.name, hasElements: !isLearned(change.set) };
    case 'delete-set':
      return { about: 'set', name: change.set.name, hasElements: false };
    case 'replace-set':
      return { about: 'set', name: change.to.name, hasElements: !isLearned(change.to) };
    default:
      return change satisfies never;
  }
}

/** With an empty chain for each that something leads to and that is out of sight: it neither comes nor goes. */
function addStubs(tables: readonly NftTable[], { present, wanted }: NftRehearsal): readonly NftTable[] {
  return tables.map((table) => {
    const versions = [present, wanted].flatMap((version) => findTable(version, table.family, table.name) ?? []);
    const stubs = versions
      .flatMap(listTargets)
      .filter((name) => versions.every(({ chains }) => !chains.has(name)))
      .map((name): [string, NftChain] => [name, { name, rules: [] }]);
    return { ...table, chains: new Map([...stubs, ...table.chains]) };
  });
}

/** The chains that rules and elements lead to. */
function listTargets({ chains, sets }: NftTable): readonly string[] {
  const targetsOf = (verdict: Verdict) => ('chain' in verdict ? [verdict.chain] : []);
  const ofRules = [...chains.values()].flatMap(({ rules }) =>
    rules.flatMap(({ expressions }) =>
      expressions.flatMap((expression) => {
        if (expression.kind === 'goto-random') return expression.chains;
        return expression.kind === 'verdict' ? targetsOf(expression.verdict) : [];
      }),
    ),
  );
  const ofElements = [...sets.values()].flatMap(({ elements }) =>
    elements.flatMap(({ value }) => (value && value.kind !== 'data' ? targetsOf(value) : [])),
  );
  return [...ofRules, ...ofElements];
}

function writeScript(
  present: readonly NftTable[],
  inputs: readonly string[],
  before: readonly NftQuestion[],
  after: readonly NftQuestion[],
): string {
  const feed = (command: string, input: string) => `${command} <<'${endOfInput}'\n${input}${endOfInput}\n`;
  const ask = (questions: readonly NftQuestion[]) =>
    feed(`perl -e "$kernel" ${nftTableName}`, formatQuestions(questions));
  return [
    'set -e\n',
    `kernel='${netlinkProgram}'\n`,
    feed('nft -f -', formatTables(present)),
    ask(before),
    'echo =\n',
    ...inputs.map((input) => feed('nft -f -', input)),
    ask(after),
    'echo =\n',
    ...present.map(({ family, name }) => `nft -s list table ${nftFamily[family]} ${name}\n`),
  ].join('');
}

/** No line that kpc writes for nft is this one. */
const endOfInput = 'END-OF-INPUT';

function compare(
  { objects, elements }: Subjects,
  first: readonly string[],
  second: readonly string[],
): RehearsedChange | undefined {
  const questions: NftQuestion[] = [...objects];
  const answers = second.slice(aboutTables.length + elements.length);
  for (const [i, { family, name }] of elements.entries()) {
    const [old = '', now = ''] = [first[aboutTables.length + i], second[aboutTables.length + i]];
    const [before, after] = [keysIn(old), keysIn(now)];
    if (!before || !after) return undefined;
    for (const key of new Set([...before, ...after])) {
      questions.push({ family, about: 'element', name, key });
      answers.push(elementIn(now, key));
    }
  }
  const tables = { before: first.slice(0, aboutTables.length), after: second.slice(0, aboutTables.length) };
  return { questions, answers, tables };
}

/** How many more chains and sets a table has; undefined where it came or went, or its flags changed. */
function growth(before: string, after: string): number | undefined {
  if (before === after) return 0;
  const [old, now] = [before, after].map((answer) => /^table (\S*) (\d+)\n$/.exec(answer));
  return old && now && old[1] === now[1] ? Number(now[2]) - Number(old[2]) : undefined;
}

/** Whether tables changed as they did when this was rehearsed: by as many chains and sets. */
export function grewAsRehearsed(
  { tables }: RehearsedChange,
  before: readonly string[],
  after: readonly string[],
): boolean {
  return families.every((_: Family, i) => {
    const real = growth(before[i] ?? '', after[i] ?? '');
    return real !== undefined && real === growth(tables.before[i] ?? '', tables.after[i] ?? '');
  });
}
