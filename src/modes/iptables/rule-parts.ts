import { type Family, isLoopback, loopbackNetworks, type Protocol } from '../../kernel/address.ts';
import type { Chain, RuleArg, Rule } from '../../kernel/iptables/iptables.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { LocalTraffic, MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { NodePortPlan } from '../../cluster/node-context.ts';
import type { ProxySettings } from '../../cluster/objects.ts';

export const protocolArgs: { readonly [P in Protocol]: readonly [RuleArg, RuleArg] } = {
  TCP: argsOf('tcp'),
  UDP: argsOf('udp'),
  SCTP: argsOf('sctp'),
};

function argsOf(name: string): readonly [RuleArg, RuleArg] {
  return [
    { kind: 'module', name },
    { kind: 'protocol', protocol: name },
  ];
}

export const markForMasquerade = jumpTo(baseChains.markMasquerade);

export const accept: RuleArg = { kind: 'jump', target: { kind: 'accept' } };

export const drop: RuleArg = { kind: 'jump', target: { kind: 'drop' } };

export const returnToCaller: RuleArg = { kind: 'jump', target: { kind: 'return' } };

export const reject: RuleArg = { kind: 'jump', target: { kind: 'reject' } };

export const toNode: RuleArg = { kind: 'destination-type', type: 'LOCAL' };

export const fromNode = { kind: 'source-type', type: 'LOCAL' } as const satisfies RuleArg;

export function jumpTo(chain: string): RuleArg {
  return { kind: 'jump', target: { kind: 'chain', chain } };
}

export function comment(text: string): RuleArg {
  return { kind: 'comment', text };
}

export function destinationPort(port: number): RuleArg {
  return { kind: 'destination-port', ports: { first: port, last: port } };
}

/** The rules of the masquerade mark in iptables and IPVS mode. A marked packet leaves with the node's address. */
export interface MasqueradeRules {
  readonly mark: readonly Rule[];
  /** nat KUBE-POSTROUTING: masquerades marked packets, and clears the mark, because a packet may pass this chain again. */
  readonly postrouting: readonly Rule[];
  /** filter KUBE-FORWARD: accepts marked packets and their connections, even if the policy of FORWARD is DROP. */
  readonly forward: readonly Rule[];
}

export function masqueradeRules({ mark: value }: Pick<MasqueradePlan, 'mark'>): MasqueradeRules {
  const marked = { kind: 'mark', value, mask: value } as const;
  return {
    mark: [{ args: [{ kind: 'jump', target: { kind: 'mark', operation: 'or', value, mask: value } }] }],
    postrouting: [
      { args: [{ ...marked, negated: true }, returnToCaller] },
      { args: [{ kind: 'jump', target: { kind: 'mark', operation: 'xor', value, mask: 0 } }] },
      {
        args: [
          comment('kubernetes service traffic requiring SNAT'),
          // kube-proxy writes --random-fully if iptables has it, as every iptables since 1.6.2 does.
          { kind: 'jump', target: { kind: 'masquerade', randomFully: true } },
        ],
      },
    ],
    forward: [
      { args: [comment('kubernetes forwarding rules'), marked, accept] },
      {
        args: [
          comment('kubernetes forwarding conntrack rule'),
          { kind: 'conntrack-state', states: ['RELATED', 'ESTABLISHED'] },
          accept,
        ],
      },
    ],
  };
}

export function ifLocal(localTraffic: LocalTraffic): RuleArg {
  switch (localTraffic.kind) {
    case 'from-network':
      return { kind: 'source', range: localTraffic.network };
    case 'from-interface':
      return { kind: 'in-interface', name: localTraffic.name };
    case 'from-interfaces':
      return { kind: 'in-interface', name: `${localTraffic.prefix}+` };
  }
}

export function ifNotLocal(localTraffic: LocalTraffic): RuleArg {
  return { ...ifLocal(localTraffic), negated: true } as RuleArg;
}

export function forwardRules(
  { forward }: Pick<MasqueradeRules, 'forward'>,
  conntrack: Pick<ProxySettings['conntrack'], 'tcpBeLiberal'>,
): readonly Rule[] {
  // A late packet outside conntrack's window would reach the peer without NAT, and reset the connection.
  if (conntrack.tcpBeLiberal) return forward;
  return [{ args: [{ kind: 'conntrack-state', states: ['INVALID'] }, drop] }, ...forward];
}

/**
 * Makes the last rules of nat KUBE-SERVICES, for node ports. Includes loopback addresses only where they work: in IPv4 with route_localnet.
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

export function chainsByName(chains: readonly Chain[]): ReadonlyMap<string, Chain> {
  return new Map(chains.map((chain) => [chain.name, chain]));
}
