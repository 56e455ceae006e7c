import type { Family } from '../kernel/address.ts';
import type { Flow, Turn } from './flow.ts';

const messages: { readonly [T in Turn]?: ReadonlySet<string> } = {
  solicitation: new Set('nd-neighbor-solicit neighbour-solicitation neighbor-solicitation 135'.split(' ')),
  advertisement: new Set('nd-neighbor-advert neighbour-advertisement neighbor-advertisement 136'.split(' ')),
};

const echoTypes: ReadonlySet<string> = new Set(['echo-request', 'ping', 'echo-reply', 'pong']);

const unreachable: { readonly [F in Family]: string } = { ipv4: '3', ipv6: '1' };

const echoNumbers: { readonly [F in Family]: { readonly request: number; readonly reply: number } } = {
  ipv4: { request: 8, reply: 0 },
  ipv6: { request: 128, reply: 129 },
};

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

/** Reports whether a ping, its answer, a refusal or a neighbour message has this ICMP type ("8/0", or a name). Undefined if unknown. */
export function isEchoMessage(text: string, { turn, family }: Pick<Flow, 'turn' | 'family'>): boolean | undefined {
  const [type = '', code = '0'] = text.split('/');
  if (turn === 'refusal') {
    if (type === 'destination-unreachable' || type === unreachable[family]) return text === type ? true : undefined;
    return /-unreachable$|^no-route$|^communication-prohibited$/.test(type) ? undefined : false;
  }
  const names = messages[turn];
  if (names) {
    if (names.has(type)) return true;
    return otherTypes.has(type) || echoTypes.has(type) || /^\d+$/.test(type) ? false : undefined;
  }
  const isAnswer = turn === 'answer';
  if (type === 'echo-request' || type === 'ping') return !isAnswer;
  if (type === 'echo-reply' || type === 'pong') return isAnswer;
  const { request, reply } = echoNumbers[family];
  if (/^\d+$/.test(type)) return Number(type) === (isAnswer ? reply : request) && Number(code) === 0;
  return otherTypes.has(type) ? false : undefined;
}
