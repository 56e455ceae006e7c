import { singleAddress } from '../kernel/address-range.ts';
import { families } from '../kernel/family.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import { isKubeProxyTable, nftSets } from './nft-names.ts';

/**
 * The addresses that kube-proxy's rules show to be the node's own, as text: those on which it says that node ports listen
 * (GetNodeIPs), and those to which userspace mode sends the node's own packets, where kube-proxy itself listens.
 */
export function findOwnAddresses({ iptables, nftables }: KernelState): ReadonlySet<string> {
  const ofTables = nftables
    .filter(({ name }) => isKubeProxyTable(name))
    .flatMap(({ sets }) => sets.get(nftSets.nodePortIPs)?.elements ?? [])
    .map(({ key }) => formatKey(key));
  const ofRules = families.flatMap((family) => {
    const rulesOf = (chain: string): readonly Rule[] => iptables[family]?.nat?.get(chain)?.rules ?? [];
    return [
      ...rulesOf(baseChains.services)
        .filter((rule) => jumpChain(rule) === baseChains.nodePorts)
        .flatMap(addressAsked),
      ...[baseChains.portalsHost, baseChains.nodePortHost].flatMap(rulesOf).flatMap(addressGiven),
    ];
  });
  return new Set([...ofTables, ...ofRules]);
}

/** The one address that a rule asks for as destination. */
function addressAsked({ args }: Rule): readonly string[] {
  const to = args.find((arg) => arg.kind === 'destination' && arg.negated !== true);
  const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
  return address ? [address.text] : [];
}

/** The address that a rule sends packets to. */
function addressGiven({ args }: Rule): readonly string[] {
  return args.flatMap((arg) => (arg.kind === 'jump' && arg.target.kind === 'dnat' ? [arg.target.address.text] : []));
}
