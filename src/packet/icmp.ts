import type { Family } from '../kernel/family.ts';
import type { Flow } from './flow.ts';

/** The numbers of an echo request and of its answer, the only messages of ICMP that are traced. */
const echoNumbers: { readonly [F in Family]: { readonly request: number; readonly reply: number } } = {
  ipv4: { request: 8, reply: 0 },
  ipv6: { request: 128, reply: 129 },
};

/** The names of types of ICMP and ICMPv6, as iptables and nft print them, of messages that are not echo requests. */
const otherTypes: ReadonlySet<string> = new Set(
  (
    'destination-unreachable source-quench redirect router-advertisement router-solicitation time-exceeded ' +
    'parameter-problem timestamp-request timestamp-reply info-request info-reply address-mask-request address-mask-reply ' +
    'packet-too-big mld-listener-query mld-listener-report mld-listener-done mld-listener-reduction nd-router-solicit ' +
    'nd-router-advert nd-neighbor-solicit nd-neighbor-advert nd-redirect router-renumbering ind-neighbor-solicit ' +
    'ind-neighbor-advert mld2-listener-report ttl-exceeded ttl-zero-during-transit ttl-zero-during-reassembly ' +
    'fragmentation-needed host-unreachable network-unreachable port-unreachable protocol-unreachable ' +
    'neighbour-solicitation neighbor-solicitation neighbour-advertisement neighbor-advertisement no-route ' +
    'communication-prohibited address-unreachable beyond-scope bad-header unknown-header-type unknown-option'
  ).split(' '),
);

/** Whether a type, by its name or number and perhaps a code ("8/0"), is that of a ping or its answer; undefined for an unknown name. */
export function isEchoMessage(text: string, { turn, family }: Pick<Flow, 'turn' | 'family'>): boolean | undefined {
  const [type = '', code = '0'] = text.split('/');
  const isAnswer = turn === 'answer';
  if (type === 'echo-request' || type === 'ping') return !isAnswer;
  if (type === 'echo-reply' || type === 'pong') return isAnswer;
  const { request, reply } = echoNumbers[family];
  if (/^\d+$/.test(type)) return Number(type) === (isAnswer ? reply : request) && Number(code) === 0;
  return otherTypes.has(type) ? false : undefined;
}
