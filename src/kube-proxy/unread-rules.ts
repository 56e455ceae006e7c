// Finds kube-proxy's rules that a listing does not show in full.
import { tableNames, type Chain, type Rule, type Tables } from '../kernel/iptables/iptables.ts';
import { conditionsOf } from '../kernel/iptables/rule-terms.ts';
import { baseChains } from './chain-names.ts';
import { classifyChain } from './chains.ts';

/** The chains in which each rule for one protocol is for one port. */
const chainsOfPorts: ReadonlySet<string> = new Set([
  baseChains.services,
  baseChains.externalServices,
  baseChains.nodePorts,
  baseChains.proxyFirewall,
]);

/**
 * Marks the rules that lack their port. iptables up to 1.8.7 does not print the port matches of a newer iptables-nft, such as that in
 * kube-proxy's image.
 */
export function withLostPorts(tables: Tables): Tables {
  const read = (chain: Chain): Chain =>
    chainsOfPorts.has(chain.name) ? { ...chain, rules: chain.rules.map(withPort) } : chain;
  const marked = tableNames.flatMap((name) => {
    const chains = tables[name];
    if (!chains) return [];
    const own = [...chainsOfPorts].flatMap((key) => chains.get(key) ?? []);
    return own.some(({ rules }) => rules.some(lacksPort))
      ? [[name, new Map(Array.from(chains, ([key, chain]) => [key, read(chain)]))]]
      : [[name, chains]];
  });
  return Object.fromEntries(marked);
}

function withPort(rule: Rule): Rule {
  return lacksPort(rule) ? { ...rule, args: rule.args.toSpliced(-1, 0, { kind: 'unshown-port' }) } : rule;
}

function lacksPort({ args }: Rule): boolean {
  const kinds = new Set(args.map(({ kind }) => kind));
  // In IPVS mode, the port may be that of a set.
  return (
    kinds.has('protocol') && !(['destination-port', 'match-set', 'other'] as const).some((kind) => kinds.has(kind))
  );
}

/** Finds the first of kube-proxy's rules with a match that kpc cannot read, and counts these rules. */
export function findUnreadRules(tables: Tables) {
  const unread = tableNames.flatMap((table) =>
    [...(tables[table]?.values() ?? [])].flatMap(({ name: chain, rules }) =>
      (classifyChain(table, chain) ? rules : []).flatMap(({ args }, i) => {
        const lacksPorts = args.some(({ kind }) => kind === 'unshown-port');
        return conditionsOf(args).some(({ kind }) => kind === 'unread')
          ? [{ table, chain, rule: i + 1, lacksPorts }]
          : [];
      }),
    ),
  );
  const [first] = unread;
  return first && { ...first, rules: unread.length };
}
