import { amount, boolean, listOf, objectOf, text, type Shaped } from '../../base/json-shape.ts';
import { families } from '../../kernel/family.ts';
import type { Host } from '../node/host.ts';
import { aboutTables, askKernel } from '../node/nft-netlink.ts';
import { saveTools } from '../node/node-reading.ts';
import { grewAsRehearsed, rehearseNftChange, type NftRehearsal } from './rehearse-nftables.ts';

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
