import type { NodePortPlan } from '../../cluster/node-port-addresses.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { isLoopback, loopbackNetworks } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import type { Chain, Rule, RuleArg } from '../../kernel/iptables.ts';
import { localnetRule } from '../../kube-proxy/chains.ts';
import { baseChains } from './chain-names.ts';
import type { MasqueradeRules } from './masquerade-rules.ts';
import { comment, drop, jumpTo, toNode } from './rule-args.ts';

/** A jump from one of the kernel's chains to one of kube-proxy's. */
interface Jump {
  readonly to: string;
  readonly comment?: string;
  /** Only packets that open a connection: the rules there are many, and later packets need none of them. */
  readonly newOnly?: true;
}

const firewall: Jump = { to: baseChains.proxyFirewall, comment: 'kubernetes load balancer firewall', newOnly: true };
const portals: Jump = { to: baseChains.services, comment: 'kubernetes service portals', newOnly: true };
const externalPortals: Jump = {
  to: baseChains.externalServices,
  comment: 'kubernetes externally-visible service portals',
  newOnly: true,
};

/**
 * kube-proxy puts each jump before all other rules (iptablesJumpChains, iptablesKubeletJumpChains), so its last jump ends up
 * first. Here they are in the order in which packets meet them.
 */
const filterJumps: Readonly<Record<string, readonly Jump[]>> = {
  INPUT: [
    { to: baseChains.kubeletFirewall },
    firewall,
    { to: baseChains.nodePorts, comment: 'kubernetes health check service ports' },
    externalPortals,
  ],
  FORWARD: [firewall, { to: baseChains.forward, comment: 'kubernetes forwarding rules' }, portals, externalPortals],
  OUTPUT: [{ to: baseChains.kubeletFirewall }, firewall, portals],
};

const natPortals: Jump = { to: baseChains.services, comment: 'kubernetes service portals' };

const natJumps: Readonly<Record<string, readonly Jump[]>> = {
  PREROUTING: [natPortals],
  OUTPUT: [natPortals],
  POSTROUTING: [{ to: baseChains.postrouting, comment: 'kubernetes postrouting rules' }],
};

/** The kernel's own chains of each table, with the jumps that come before any other program's rules. */
export const builtInChains: { readonly filter: readonly Chain[]; readonly nat: readonly Chain[] } = {
  filter: jumpChains(filterJumps),
  nat: jumpChains(natJumps),
};

function jumpChains(jumps: Readonly<Record<string, readonly Jump[]>>): readonly Chain[] {
  return Object.entries(jumps).map(([name, ofChain]) => ({ name, rules: ofChain.map(jumpRule) }));
}

function jumpRule(jump: Jump): Rule {
  const args: RuleArg[] = [];
  if (jump.newOnly) args.push({ kind: 'conntrack-state', states: ['NEW'] });
  if (jump.comment !== undefined) args.push(comment(jump.comment));
  args.push(jumpTo(jump.to));
  return { args };
}

/** filter KUBE-FORWARD. */
export function forwardRules(
  { forward }: Pick<MasqueradeRules, 'forward'>,
  conntrack: Pick<ProxySettings['conntrack'], 'tcpBeLiberal'>,
): readonly Rule[] {
  // A late packet that conntrack finds out of window would reach the peer without NAT, and the peer would reset the
  // connection. With nf_conntrack_tcp_be_liberal conntrack finds none.
  if (conntrack.tcpBeLiberal) return forward;
  return [{ args: [{ kind: 'conntrack-state', states: ['INVALID'] }, drop] }, ...forward];
}

/** filter KUBE-FIREWALL. */
export function kubeletFirewallRules(localhostNodePorts: boolean): readonly Rule[] {
  return localhostNodePorts ? [localnetRule] : [];
}

/**
 * The end of nat KUBE-SERVICES: packets to the node's addresses that node ports listen on. Those of loopback only where
 * they work: in IPv4, with route_localnet.
 */
export function nodePortJumps(
  { addresses }: NodePortPlan,
  family: Family,
  localhostNodePorts: boolean,
): readonly Rule[] {
  const about = comment('kubernetes service nodeports; NOTE: this must be the last rule in this chain');
  const jump = jumpTo(baseChains.nodePorts);
  if (!addresses) {
    const args = [about, toNode, ...(localhostNodePorts ? [] : [exceptLoopback[family]]), jump];
    return [{ args }];
  }
  return addresses
    .filter((address) => localhostNodePorts || !isLoopback(address))
    .map((address) => ({ args: [about, { kind: 'destination', range: address }, jump] }));
}

const exceptLoopback: { readonly [F in Family]: RuleArg } = {
  ipv4: { kind: 'destination', range: loopbackNetworks.ipv4, negated: true },
  ipv6: { kind: 'destination', range: loopbackNetworks.ipv6, negated: true },
};
