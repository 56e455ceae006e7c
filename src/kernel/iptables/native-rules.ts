// Rules that another program put into an iptables table with nft. iptables-save 1.8.9 leaves them out or prints them wrongly.
import type { Expression, NftChain, NftRule, NftTable } from '../nftables/table.ts';
import { iptablesPriorities, type Chain, type Rule, type TableName } from './iptables.ts';

/** Reports whether iptables-save can show a base chain: nft_is_chain_compatible of iptables compares name, hook and priority. */
export function isBaseOfIptables(table: TableName, { name, base }: Pick<NftChain, 'name' | 'base'>): boolean {
  const hooks: ReadonlyMap<string, number> = new Map(Object.entries(iptablesPriorities[table]));
  const priority = base && (table === 'security' ? nftSecurity : hooks.get(base.hook));
  return base?.hook.toUpperCase() === name && hooks.has(base.hook) && base.priority === priority;
}

/** iptables-nft's priority for table security, which differs from the kernel's NF_IP_PRI_SECURITY (xtables_ipv4 in iptables/nft.c). */
const nftSecurity = 150;

/**
 * Replaces each rule that iptables-save printed only in part with nft's listing of this rule. Returns the chains, and nft's rule for each
 * replaced rule. Takes the whole chain from nft if a rule in the chain holds a list and the two listings differ in length.
 */
export function withNativeRules(given: ReadonlyMap<string, Chain>, { chains: listed }: NftTable) {
  const natives = new Map<Rule, NftRule>();
  const chains = new Map(given);
  for (const { name, rules } of listed.values()) {
    const chain = given.get(name);
    if (!chain || !rules.some((rule) => countLists(rule.expressions) > 0)) continue;
    const isSame = rules.length === chain.rules.length;
    const whole = rules.map((native, at) => {
      const rule = isSame ? chain.rules[at] : undefined;
      if (rule && countLists(native.expressions) <= countListArgs(rule)) return rule;
      const shown: Rule = { args: [] };
      natives.set(shown, native);
      return shown;
    });
    chains.set(name, { ...chain, rules: whole });
  }
  return { chains, natives };
}

/** Counts the parts of a rule that iptables cannot express: sets, maps and ranges. */
function countLists(expressions: readonly Expression[]): number {
  return expressions.filter((each) => {
    if (!('right' in each)) return each.kind === 'unknown' && /[{@]/.test(each.text);
    if ('set' in each.right || each.right.isBraced) return true;
    return each.right.elements.some(({ key }) => key.some(({ kind }) => kind === 'range' || kind === 'numbers'));
  }).length;
}

/** Counts the options of iptables that nft may print as sets or ranges, such as --dports and --src-range. */
function countListArgs({ args }: Rule): number {
  return args.filter((arg) => {
    if (arg.kind === 'other') return arg.words.some((word) => !word.startsWith('-') && /[:,]|\d-\d/.test(word));
    return arg.kind === 'match-set' || ('ports' in arg && arg.ports.first !== arg.ports.last);
  }).length;
}
