import type { Chain, Rule, Tables } from '../kernel/iptables/iptables.ts';
import { jumpChain } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import { listJumps } from './chains.ts';
import type { ProxyMode } from './modes.ts';

/** What masquerades packets and is not shown, as kube-proxy makes it. */
interface UnshownMasquerading {
  readonly chains: readonly Chain[];
  /** What leads to the chains that no shown rule leads to. */
  readonly jumps: ReturnType<typeof listJumps>;
}

/** The bit by which packets are marked unless a setting names another one (masqueradeBit). */
const usualMark = 0x4000;

/**
 * What a table nat lacks to masquerade the packets that its rules send to KUBE-MARK-MASQ. `isWhole`: whether all of it was printed; a
 * rule that goes to no chain shows that some was taken out.
 */
export function findUnshownMasquerading({ nat }: Tables, mode: ProxyMode, isWhole: boolean): UnshownMasquerading {
  const isUnshown = (name: string): boolean => {
    const chain = nat?.get(name);
    return isWhole ? !chain : (chain?.rules ?? []).length === 0;
  };
  const rules = [...(nat?.values() ?? [])].flatMap((chain) => chain.rules);
  const isAsked = rules.some((rule) => jumpChain(rule) === baseChains.markMasquerade);
  if (!isAsked || !isUnshown(baseChains.markMasquerade)) return { chains: [], jumps: [] };
  const value = markOf(nat?.get(baseChains.postrouting)?.rules ?? []) ?? usualMark;
  const marks: Rule = { args: [{ kind: 'jump', target: { kind: 'mark', operation: 'or', value, mask: value } }] };
  const masquerades: Rule = {
    args: [
      { kind: 'mark', value, mask: value },
      { kind: 'jump', target: { kind: 'masquerade', randomFully: true } },
    ],
  };
  const mark = { name: baseChains.markMasquerade, rules: [marks] };
  if (!isUnshown(baseChains.postrouting)) return { chains: [mark], jumps: [] };
  const isLed = rules.some((rule) => jumpChain(rule) === baseChains.postrouting);
  return {
    chains: [mark, { name: baseChains.postrouting, rules: [masquerades] }],
    jumps: isLed ? [] : listJumps(mode).filter(({ to }) => to === baseChains.postrouting),
  };
}

function markOf(rules: readonly Rule[]): number | undefined {
  const [mark] = rules.flatMap(({ args }) => args.flatMap((arg) => (arg.kind === 'mark' ? [arg.value] : [])));
  return mark;
}
