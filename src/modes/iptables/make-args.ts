import type { Protocol } from '../../kernel/family.ts';
import type { RuleArg } from '../../kernel/iptables/iptables.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';

/** `-m tcp -p tcp` and so on, shared by all rules. */
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

/** `-j KUBE-MARK-MASQ`: POSTROUTING masquerades the packet. */
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
