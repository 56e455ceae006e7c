import type { Family } from '../kernel/family.ts';

/** The number of an echo request, the only message of ICMP that is traced. */
const echoRequests: { readonly [F in Family]: number } = { ipv4: 8, ipv6: 128 };

/** The names of types of ICMP and ICMPv6, as iptables and nft print them, of messages that are not echo requests. */
const otherTypes: ReadonlySet<string> = new Set(
  (
    'echo-reply destination-unreachable source-quench redirect router-advertisement router-solicitation time-exceeded ' +
    'parameter-problem timestamp-request timestamp-reply info-request info-reply address-mask-request address-mask-reply ' +
    'packet-too-big mld-listener-query mld-listener-report mld-listener-done mld-listener-reduction nd-router-solicit ' +
    'nd-router-advert nd-neighbor-solicit nd-neighbor-advert nd-redirect router-renumbering ind-neighbor-solicit ' +
    'ind-neighbor-advert mld2-listener-report pong ttl-exceeded ttl-zero-during-transit ttl-zero-during-reassembly ' +
    'fragmentation-needed host-unreachable network-unreachable port-unreachable protocol-unreachable ' +
    'neighbour-solicitation neighbor-solicitation neighbour-advertisement neighbor-advertisement no-route ' +
    'communication-prohibited address-unreachable beyond-scope bad-header unknown-header-type unknown-option'
  ).split(' '),
);

/** Whether a type, by its name or number and perhaps a code ("8/0"), is that of an echo request; undefined for an unknown name. */
export function isEchoRequest(text: string, family: Family): boolean | undefined {
  const [type = '', code = '0'] = text.split('/');
  if (type === 'echo-request' || type === 'ping') return true;
  if (/^\d+$/.test(type)) return Number(type) === echoRequests[family] && Number(code) === 0;
  return otherTypes.has(type) ? false : undefined;
}
