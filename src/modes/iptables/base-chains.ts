import type { NodePortPlan } from '../../cluster/node-port-addresses.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { isLoopback, loopbackNetworks } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { MasqueradeRules } from './masquerade-rules.ts';
import { comment, drop, jumpTo, toNode } from './rule-args.ts';

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
  if (addresses) {
    return addresses
      .filter((address) => localhostNodePorts || !isLoopback(address))
      .map((address) => ({ args: [about, { kind: 'destination', range: address }, jump] }));
  }
  if (localhostNodePorts) return [{ args: [about, toNode, jump] }];
  return [{ args: [about, toNode, { kind: 'destination', range: loopbackNetworks[family], negated: true }, jump] }];
}
