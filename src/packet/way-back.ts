import { isLinkLocal, type Address } from '../kernel/address.ts';
import type { RouteQuestion } from '../kernel/route/route.ts';
import {
  answersForNeighbours,
  answersForOthers,
  forceForwarding,
  forwardingSysctls,
  sysctlOfLink,
} from '../kernel/sysctls-and-modules.ts';
import { transportOf, type Flow } from './flow.ts';
import { circumstance, lacks, type Answer, type Reason } from './reason.ts';
import { isUnknownHost, isUnknownOwn, type ArpSilence, type Beyond } from './packet.ts';
import { loopbackInterface, type RouteFound } from './routing/routing.ts';

/** Finds the route back to a packet's sender, for reverse-path checks. `asked`: properties of the packet that would take this route. */
export function linksBack(
  flow: Flow,
  countsMark: boolean,
  asked?: Pick<RouteQuestion, 'input' | 'transport'>,
): RouteFound {
  const { routing, source, destination, mark, input, family } = flow;
  // A link-local address is looked up on the packet's link only (rpfilter_lookup_reverse6, nft_fib6_flowi_init).
  if (family === 'ipv6' && isLinkLocal(source) && input !== undefined) return { kind: 'out', hops: [{ link: input }] };
  return routing.find({
    to: source,
    from: destination,
    mark: countsMark ? mark : 0,
    input: loopbackInterface,
    ...asked,
  });
}

/** Returns a route's links. Returns none if no route leads to another host, and the reason if the route is unknown. */
export function linksOf(found: RouteFound): readonly string[] | Reason {
  switch (found.kind) {
    case 'out':
      return found.hops.flatMap(({ link }) => link ?? []);
    case 'either':
    case 'unknown':
      return found.reason;
    case 'local':
    case 'none':
      return [];
  }
}

/**
 * Reports whether a route leads back to the sender, for -m rpfilter (ipt_rpfilter.c) and nft's fib. Flags: `iif`, only by the packet's
 * input link; `mark`, counting the packet's mark; `local`, also to the node. Without listed routes, the answer is unknown unless addresses
 * show the input link.
 */
export function passesReverse(flow: Flow, flags: readonly string[]): Answer {
  const { input, isOwn, routing, source: address } = flow;
  if (isOwn || input === loopbackInterface) return true;
  const found = linksBack(flow, flags.includes('mark'));
  if (found.kind === 'local') return flags.includes('local');
  const links = linksOf(found);
  if ('kind' in links) return links;
  if (input === undefined || links.includes(input)) return true;
  if (!routing.isListed) return lacks({ kind: 'route', address });
  return !flags.includes('iif') && found.kind === 'out';
}

export function isOfInterface(flow: Flow, address: Address, type: string, end: 'input' | 'output'): Answer {
  const link = flow[end];
  if (type.toLowerCase() !== 'local') return circumstance('content');
  return link === undefined ? lacks({ kind: 'route', address }) : flow.routing.isLocalAt(address, link);
}

/** Returns why the kernel drops an outside packet when routing it (fib_validate_source); undefined if the packet passes. */
export function checkReverse(flow: Flow): 'martian' | 'reverse-path' | Reason | undefined {
  const { routing, input, source, family } = flow;
  // The kernel has no such check for IPv6.
  if (
    family === 'ipv6' ||
    isUnknownHost(source) ||
    !routing.isListed ||
    input === undefined ||
    input === '' ||
    input === loopbackInterface
  )
    return undefined;
  const [ofAll, ofLink] = ['all', input].map((name) => routing.sysctl(sysctlOfLink(name, 'rp_filter')));
  const strictness = Math.max(Number(ofAll ?? 0), Number(ofLink ?? 0));
  const countsMark = ['all', input].some((name) => routing.sysctl(sysctlOfLink(name, 'src_valid_mark')) === '1');
  const isShown = ofAll !== undefined && ofLink !== undefined;
  if (routing.isLocal(source) === true) {
    const isAccepted = ['all', input].some((name) => routing.sysctl(sysctlOfLink(name, 'accept_local')) === '1');
    if (!isAccepted) return 'martian';
    // For an address of the node itself, the link that has the address counts as the way back.
    if (strictness !== 1) return undefined;
    return routing.isLocalAt(source, input) === false ? 'reverse-path' : undefined;
  }
  if (strictness === 0 && isShown) return undefined;
  const { port, sourcePort, protocol, output } = flow;
  const found = linksBack(flow, countsMark, {
    input: output === '' ? loopbackInterface : output,
    transport: transportOf({ protocol, port: sourcePort, sourcePort: port }),
  });
  const links = linksOf(found);
  if ('kind' in links) return links;
  if (links.includes(input) || (found.kind === 'out' && strictness !== 1 && isShown)) return undefined;
  if (strictness === 1 || (strictness === 2 && found.kind === 'none')) return 'reverse-path';
  const name = sysctlOfLink(ofAll === undefined ? 'all' : input, 'rp_filter');
  // Without a route back, an rp_filter that is not shown counts as off.
  return isShown || found.kind === 'none' ? undefined : lacks({ kind: 'sysctl', name }, `sysctl ${name}`);
}

/**
 * Returns why the ARP request before an outside packet gets no answer (arp_process in arp.c); undefined if there is an answer or the
 * asking host is unknown.
 */
export function findUnansweredArp(first: Flow): Extract<Beyond, { readonly kind: 'no-arp' }> | undefined {
  const { routing, entered: link, sender, asked, family } = first;
  const { places } = routing;
  if (!routing.isListed || link === undefined || link === '' || first.isBridged) return undefined;
  const hop = routing.hopTo(sender.address);
  const isBeside = places.isAround(sender.address, link);
  // If the client is further away, a router sends the request.
  const asker = isBeside ? sender.address : hop?.link === link ? (hop.gateway ?? sender.address) : undefined;
  if (
    asker &&
    routing.isLocal(asked.address) === false &&
    (asked.address.text !== first.destination.text || first.output !== link) &&
    !answersAsProxy(first, link) &&
    places.isAround(asked.address, link)
  )
    return { kind: 'no-arp', address: asked.address, link, why: 'on-no-link' };
  const isAsked = routing.isLocal(asked.address) === true && places.isAround(asked.address, link);
  const address = isAsked ? asked.address : routing.ownAddress(link);
  if (!asker || isUnknownOwn(address)) return undefined;
  // In IPv6, only the link that has the address answers a neighbour solicitation (ndisc_recv_ns).
  if (family === 'ipv6')
    return isAsked && routing.isOnLink(address, link) === false && !places.isTunnel(link)
      ? { kind: 'no-arp', address, link, why: routing.isShown(address) ? 'on-another-link' : 'on-no-link' }
      : undefined;
  const strictest = (key: string): number =>
    Math.max(...['all', link].map((name) => Number(routing.sysctl(sysctlOfLink(name, key)) ?? 0)));
  const unanswered = (why: ArpSilence) => ({ kind: 'no-arp', address, link, why }) as const;
  const silence = silenceOf(routing, link, address);
  if (silence) return unanswered(silence);
  if (strictest('arp_ignore') === 8) return unanswered('arp_ignore');
  const isThere = routing.isOnLink(address, link) ?? routing.isLocalAt(address, link);
  if (strictest('arp_ignore') > 0 && isThere === false) return unanswered('arp_ignore');
  const request = { ...first, source: asker, destination: address, mark: 0, input: link, output: '' };
  const back = linksOf(linksBack(request, false));
  if (strictest('arp_filter') > 0 && !('kind' in back) && !back.includes(link)) return unanswered('arp_filter');
  return checkReverse(request) === 'reverse-path' ? unanswered('rp_filter') : undefined;
}

/** Reports whether a link answers as a proxy for an address that routes reach by another link (arp_process in arp.c, ndisc_recv_ns). */
function answersAsProxy(first: Flow, link: string): boolean {
  const { routing, asked, family } = first;
  const isOn = ['all', link].some((name) => routing.sysctl(answersForOthers(name)[family]) === '1');
  const isListed = routing.isProxied(asked.address, link);
  const way = routing.find({ to: asked.address, from: undefined, mark: 0, input: link });
  const isElsewhere = way.kind === 'out' && way.hops.some((hop) => hop.link !== link);
  if (!forwardsFrom(first, link)) return false;
  if (family === 'ipv6') return isOn && isListed;
  const isBack = way.kind === 'out' && way.hops.some((hop) => hop.link === link);
  return ((isOn || isListed) && isElsewhere) || (isBack && routing.sysctl(answersForNeighbours(link)) === '1');
}

/** Reports whether packets from a link are forwarded. For IPv4, the link's sysctl decides; for IPv6, the node's or the link's. */
export function forwardsFrom(flow: Flow, link: string): boolean {
  const { routing, family } = flow;
  const isOn = routing.sysctl(forwardingSysctlOf(flow, link)) !== '0';
  return isOn || (family === 'ipv6' && routing.sysctl(forceForwarding(link)) === '1');
}

/** Returns the sysctl that allows forwarding: in IPv4 the link's, which `ip_forward` sets too, or else `ip_forward` itself. */
export function forwardingSysctlOf({ routing, family }: Flow, link: string): string {
  const ofLink = sysctlOfLink(link, 'forwarding');
  return family === 'ipv4' && routing.sysctl(ofLink) !== undefined ? ofLink : forwardingSysctls[family];
}

/** Returns why a link cannot resolve a neighbour's address. A tunnel resolves none, because it broadcasts nothing. */
export function silenceOf(
  { places, trait, inputOf, isTentative }: Flow['routing'],
  link: string,
  address: Address,
): Extract<ArpSilence, 'NOARP' | 'port' | 'tentative'> | undefined {
  if (inputOf(link) !== link) return 'port';
  if (isTentative(address)) return 'tentative';
  return trait(link, 'NOARP') === true && trait(link, 'BROADCAST') === true && !places.isTunnel(link)
    ? 'NOARP'
    : undefined;
}
