import { amount, boolean, listOf, objectOf, text, type Shaped } from '../../base/json-shape.ts';
import type { KernelDelta } from '../../kernel/delta.ts';
import { itemOf } from '../../kernel/diff-by-key.ts';
import { families } from '../../kernel/family.ts';
import { diffNftTables } from '../../kernel/nftables/nft-delta.ts';
import { formatTables, nftFamily } from '../../kernel/nftables/format.ts';
import { parseNftText } from '../../kernel/nftables/parse-text.ts';
import {
  findTable,
  isLearned,
  type NftChain,
  type NftMap,
  type NftSet,
  type NftTable,
} from '../../kernel/nftables/table.ts';
import { nftTableName } from '../../kube-proxy/nft-names.ts';
import type { Plan } from '../plan/plan.ts';
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
 * if the count is the same at two moments, so are kube-proxy's tables, except for the clients that session affinity learns.
 */
export type NftStamp = Shaped<typeof nftStampShape>;

/** Undefined if the kernel does not answer. `hasRules`: whether the stamp has rules, if that was asked just now. */
export async function readNftStamp(host: Host, hasRules?: boolean): Promise<NftStamp | undefined> {
  const asked = await askKernel(host, aboutTables);
  if (!asked) return undefined;
  const { network, generation, answers } = asked;
  return { network, generation, tables: answers, hasRules: hasRules ?? (await areRulesInNftables(host)) };
}

/** Whether the tools of both families are the nft variant: "iptables-save v1.8.9 (nf_tables)". */
async function areRulesInNftables(host: Host): Promise<boolean> {
  const asked = families.map((family) => host.run({ tool: saveTools[family], args: ['--version'] }));
  const results = await Promise.all(asked);
  return results.every((result) => result.kind === 'ended' && result.stdout.trimEnd().endsWith('(nf_tables)'));
}

/** Whether nothing has been changed between the two, but by so many transactions of our own. */
export function isSameMoment(before: NftStamp | undefined, after: NftStamp | undefined, transactions = 0): boolean {
  return (
    before !== undefined &&
    before.network === after?.network &&
    before.hasRules === after.hasRules &&
    before.generation + transactions === after.generation
  );
}

/**
 * Proves a change that was made just now, without a list of the whole table. It is rehearsed where everything can be read back;
 * then each chain, set and element that it was to change is read back from the node's kernel and must be
 * the same as there. No more may have come or gone, and no other transaction may have been made since `before`. Gives the
 * moment for which it is proven; undefined if it is not: it may still be right.
 */
export async function proveNftChange(
  host: Host,
  before: NftStamp,
  plan: Plan,
  inputs: readonly string[],
): Promise<NftStamp | undefined> {
  const rehearsed = await rehearse(host, plan, inputs).catch(() => undefined);
  const found = rehearsed && (await askKernel(host, [...aboutTables, ...rehearsed.questions]));
  if (!found) return undefined;
  const { network, generation, answers } = found;
  const tables = answers.slice(0, aboutTables.length);
  const after = { network, generation, tables, hasRules: before.hasRules };
  const isProven =
    isSameMoment(before, after, inputs.length) &&
    rehearsed.answers.every((answer, i) => answer === answers[aboutTables.length + i]) &&
    tables.every((table, i) => {
      const grown = growth(before.tables[i] ?? '', table);
      return grown !== undefined && grown === rehearsed.growth[i];
    });
  return isProven ? after : undefined;
}

/** How many more chains and sets a table has; undefined if it came or went, or its flags changed. */
function growth(before: string, after: string): number | undefined {
  if (before === after) return 0;
  const [old, now] = [before, after].map((answer) => /^table (\S*) (\d+)\n$/.exec(answer));
  return old && now && old[1] === now[1] ? Number(now[2]) - Number(old[2]) : undefined;
}

/**
 * Makes the change with the same nft, in a temporary empty network namespace of the same kernel. Reading everything
 * back is cheap there: if nft lists the wanted state, what the kernel holds is that state. Returns what the node's
 * kernel must answer after the change, and the growth of each of aboutTables; undefined if the listing differs or the
 * change cannot be tried.
 */
async function rehearse(host: Host, plan: Plan, inputs: readonly string[]) {
  const subjects = listSubjects(plan.delta.nftables);
  if (!subjects) return undefined;
  const [before, after] = [plan.present.nftables, plan.state.nftables];
  const [present, wanted] = [addStubs(before, before, after), addStubs(after, before, after)];
  const sets = subjects.filter(({ hasElements }) => hasElements);
  const asked: readonly NftQuestion[] = [
    ...aboutTables,
    ...sets.map(({ question }) => ({ ...question, about: 'elements' as const })),
  ];
  const objects = subjects.map(({ question }) => question);
  const askedAfter = [...asked, ...objects];
  const stdin = writeScript(present, inputs, asked, askedAfter);
  const result = await host.run({ tool: 'unshare', args: ['--net', 'sh', '-s'], stdin });
  if (result.kind !== 'ended' || result.status !== 0) return undefined;
  const [first = '', second = '', listed = ''] = result.stdout.split(/^=\n/m);
  const { tables, unread } = parseNftText(listed);
  if (unread.length > 0 || diffNftTables(tables, wanted).length > 0) return undefined;
  const [start, end] = [readAnswers(first, asked.length), readAnswers(second, askedAfter.length)];
  // The kernel does not count a transaction that changes nothing. Another program's must not pass for one of these.
  if (!start || !end || end.generation !== start.generation + inputs.length) return undefined;
  const questions: NftQuestion[] = [...objects];
  const answers = end.answers.slice(asked.length);
  for (const [i, { question }] of sets.entries()) {
    const [old = '', now = ''] = [start, end].map((each) => each.answers[aboutTables.length + i]);
    for (const key of new Set([...keysIn(old), ...keysIn(now)])) {
      questions.push({ ...question, about: 'element', key });
      answers.push(elementIn(now, key));
    }
  }
  const grown = aboutTables.map((_, i) => growth(start.answers[i] ?? '', end.answers[i] ?? ''));
  return { questions, answers, growth: grown };
}

/** A changed chain or set; `hasElements`: whether a set's elements may have changed. */
interface Subject {
  readonly question: NftQuestion & { readonly about: 'chain' | 'set' };
  readonly hasElements: boolean;
}

/** Undefined if anything but chains and sets changes: no question covers a counter. */
function listSubjects(deltas: KernelDelta['nftables']): readonly Subject[] | undefined {
  const subjects: Subject[] = [];
  for (const delta of deltas) {
    if (delta.kind !== 'change-table') return undefined;
    for (const change of delta.changes) {
      if (change.kind === 'counter') return undefined;
      const object = change.kind === 'elements' ? change.set : itemOf<NftChain | NftSet | NftMap>(change);
      const about = 'rules' in object ? 'chain' : 'set';
      const hasElements = 'elements' in object && !isLearned(object);
      subjects.push({ question: { family: delta.family, about, name: object.name }, hasElements });
    }
  }
  return subjects;
}

/** With an empty chain for each that something in either leads to and that is out of sight: it neither comes nor goes. */
function addStubs(tables: readonly NftTable[], ...either: readonly (readonly NftTable[])[]): readonly NftTable[] {
  return tables.map((table) => {
    const versions = either.flatMap((version) => findTable(version, table.family, table.name) ?? []);
    const stubs = [...formatTables(versions).matchAll(/\b(?:goto|jump) ([^\s,;]+)/g)]
      .map(([, name = '']) => name)
      .filter((name) => versions.every(({ chains }) => !chains.has(name)))
      .map((name): [string, NftChain] => [name, { name, rules: [] }]);
    return { ...table, chains: new Map([...stubs, ...table.chains]) };
  });
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
