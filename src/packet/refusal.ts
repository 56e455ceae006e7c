import { sysctlOfLink } from '../kernel/sysctls-and-modules.ts';
import { lostBefore, otherWay } from './answer.ts';
import type { Flow } from './flow.ts';
import type { Way } from './packet.ts';
import { circumstance, lacks, type Reason } from './reason.ts';
import type { World } from './visitors.ts';

/** Returns why the sender of a refused packet might not learn of the refusal; undefined if the sender certainly does. */
export function doubtOfRefusal(world: World, { verdict, end }: Way<Flow>): Reason | undefined {
  const refusal = verdict === 'refused' ? end?.refusal : undefined;
  if (!end || !refusal) return undefined;
  const entering = { ...end, output: '', hop: undefined };
  const lost = lostBefore(world, entering) ?? lostBefore(world, refusal) ?? otherWay(end, refusal);
  return lost ? circumstance('refusal', lost.kind) : doubtByRedirect(end, refusal);
}

/**
 * Reports a redirect that may suppress the refusal. If a packet leaves by the link where it came in, the node sends a redirect before rules
 * in FORWARD see the packet (ip_forward). The redirect uses up the sender's allowance of ICMP errors, even if rules or NAT stop the
 * redirect (ip_rt_send_redirect, inet_peer_xrlim_allow). IPv6 allows more than one error.
 */
function doubtByRedirect(
  { family, hook, input, output, isBridged, source, destination, asked, routing }: Flow,
  refusal: Flow,
): Reason | undefined {
  const isBack = hook === 'forward' && input === output && refusal.protocol === 'icmp';
  if (family !== 'ipv4' || !isBack || input === undefined || !routing.isListed) return undefined;
  // A packet that a bridge carries is not routed (br_nf_pre_routing_finish), so it causes no redirect.
  const isMoved = destination.text !== asked.address.text;
  if (isBridged || (isMoved && routing.showsBridged(input) === true)) return undefined;
  // The kernel sends redirects only to senders on the same link (err of __mkroute_input).
  if (!routing.hopsTo(source).some(({ link, gateway }) => link === input && gateway === undefined)) return undefined;
  const names = ['all', input].map((name) => sysctlOfLink(name, 'send_redirects'));
  if (names.some((name) => routing.sysctl(name) === '1')) return circumstance('redirect', input);
  const name = names.find((each) => routing.sysctl(each) === undefined);
  return name === undefined ? undefined : lacks({ kind: 'sysctl', name });
}
