import type { Address } from '../kernel/address.ts';
import { actionOfPolicies, type IpsecPolicy } from '../kernel/route/ipsec.ts';
import { isBetweenNeighbours, isReply, type Flow } from './flow.ts';
import { isUnknownHost, unknown, type UnknownEnd } from './packet.ts';
import { circumstance } from './reason.ts';
import { loopbackInterface } from './routing/routing.ts';

/**
 * Applies IPsec policies to a packet that goes out, comes in for the node or is forwarded (xfrm_lookup, __xfrm_policy_check). Nothing
 * shows whether keys exist, so it is unknown whether a protected packet gets through.
 */
export function checkPolicies(flow: Flow, direction: IpsecPolicy['direction']): 'blocked' | UnknownEnd | undefined {
  const { routing, source, protocol, family, sourcePort, mark } = flow;
  const link = direction === 'out' ? flow.output : flow.input;
  if (routing.policies.length === 0 || link === loopbackInterface || isBetweenNeighbours(flow)) return undefined;
  const name = protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
  const { to, port } = direction === 'out' ? targetNow(flow) : targetBefore(flow);
  const [from, target] = [source, to].map((address) => (isUnknownHost(address) ? undefined : address));
  const question = { direction, from, to: target, port, sourcePort, protocol: name, mark, link };
  const action = actionOfPolicies(routing.policies, question);
  if (action === 'protect') return unknown(circumstance('encryption', direction));
  return action === 'block' ? 'blocked' : undefined;
}

interface Target {
  readonly to: Address;
  readonly port: number | undefined;
}

function targetNow({ destination: to, port }: Flow): Target {
  return { to, port };
}

function targetBefore(flow: Flow): Target {
  const { connection, asked } = flow;
  const isAnswer = isReply(flow);
  if (connection?.rewritten.has(isAnswer ? 'source' : 'destination') !== true) return targetNow(flow);
  const { address: to, port } = isAnswer ? { address: connection.source?.address, port: undefined } : asked;
  return to ? { to, port } : targetNow(flow);
}
