import { families, type Family, isLinkLocal, isLoopback, parseAddress } from '../kernel/address.ts';
import { addressFlags, makeLinkAddress, traitsOfLine, type LinkAddress, type LinkTraits } from '../kernel/link/link.ts';
import { readTunnelLine, type Tunnel } from '../kernel/link/tunnel.ts';
import { linesOf, UnreadLines, type UnreadLine, type LineFault } from '../kernel/lines.ts';
import { parseRoutes, parseRoutesJson } from '../kernel/route/parse-routes.ts';
import { parseRoutingRules, parseRoutingRulesJson } from '../kernel/route/parse-rules.ts';
import { parseIpsecPolicies, type IpsecPolicy } from '../kernel/route/ipsec.ts';
import {
  routeKey,
  routePlace,
  ruleKey,
  type ProxiedAddress,
  type Route,
  type RouteAnswer,
  type Routes,
  type RoutingRule,
} from '../kernel/route/route.ts';
import type { ReadableKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';

interface PrintedLink {
  readonly name: string;
  kind?: string;
  master?: string;
  traits: LinkTraits;
  tunnel?: Tunnel;
  readonly addresses: LinkAddress[];
}

/**
 * Reads the text of `ip addr` in any of its forms: blocks, lines (-o), columns (-br), and lines that grep selected from blocks, if they
 * name their link. Accepts any text. `unread`: the addresses that could not be read.
 */
export function parseIpAddrText(text: string) {
  const links = new Map<string, PrintedLink>();
  const unread = new UnreadLines();
  let number = 0;
  let current: PrintedLink | undefined;
  /** Returns the link that a printed name stands for. "eth0@if7" is eth0, one end of a pair. */
  const linkOf = (printed: string): PrintedLink => {
    const [name = printed] = printed.split('@', 1);
    const link = links.get(name) ?? { name, traits: {}, addresses: [] };
    links.set(name, link);
    return link;
  };
  for (const raw of linesOf(text)) {
    number++;
    const line = raw.trim();
    if (line === '') continue;
    const refuse = (reason: LineFault) => unread.add(number, () => raw, reason);
    const add = (link: PrintedLink, word: string, scope: string | undefined, flags: readonly string[] = []): void => {
      const [address = '', length = ''] = word.split('/', 2);
      const made = /^\d{1,3}$/.test(length) ? makeLinkAddress(address, Number(length), scope) : undefined;
      if (made) link.addresses.push({ ...made, ...addressFlags((flag) => flags.includes(flag)) });
      else refuse('no-prefix');
    };
    const [, header, master] = /^\d+: ([^\s:]+): <[^>]*>(?:.* master (\S+))?/.exec(line) ?? [];
    const [, named, columns] = brief.exec(line) ?? [];
    const [, own, address, ofPeer = ''] = inet.exec(line) ?? [];
    if (header !== undefined) {
      current = linkOf(header);
      current.traits = { ...current.traits, ...traitsOfLine(line) };
      if (master !== undefined) current.master = master;
    } else if (named !== undefined) {
      const link = linkOf(named);
      for (const [word] of columns?.matchAll(/(?<!\S|peer )[\da-f.:]+\/\d+(?!\S)/gi) ?? [])
        add(link, word, scopeOf(word));
    } else if (address !== undefined) {
      const label = labelled.exec(line)?.[1];
      const link = own !== undefined ? linkOf(own) : (current ?? (label === undefined ? undefined : linkOf(label)));
      const scope = / scope (\S+)/.exec(line)?.[1];
      if (!link) refuse('no-head');
      else add(link, address.includes('/') ? address : address + ofPeer, scope, line.split(' '));
    } else if (/^\d+:/.test(line)) refuse('other-line');
    else if (current) {
      const kind = detailed.exec(line)?.[1];
      if (kind !== undefined) current.kind = kind;
      current.traits = { ...current.traits, ...traitsOfLine(line) };
      const tunnel = readTunnelLine(line);
      if (tunnel) current.tunnel = tunnel;
      if (kind === undefined && !ofLink.test(line)) refuse('other-line');
    }
  }
  return { links: [...links.values()], unread: unread.all };
}

const detailed =
  /^(bridge|dummy|veth|vxlan|geneve|ipip|sit|gre|gretap|ip6tnl|wireguard|vlan|bond|team|openvswitch|macvlan|ipvlan|tun|vrf)(?: |$)/;

/** Matches properties and statistics of a link. ip prints them below the link. */
const ofLink = /^(?:[a-z][\w/-]* \S|[RT]X(?::| errors:)|\d)/;

const brief = /^([^\s:]+)\s+(?:UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT|TESTING)(?:\s+(.*))?$/;

/** If an address has a peer, the prefix length belongs to the peer's address. */
const inet = /^(?:\d+: (\S+)\s+)?inet6? (\S+)(?: peer [^\s/]+(\/\d+))?/;

/** Matches an IPv4 address that ends with a label. The label is the link's name, or an alias such as "eth0:1". */
const labelled =
  /^inet .* scope \S+(?: (?:secondary|dynamic|noprefixroute|tentative|deprecated|nodad|home|dadfailed|permanent|optimistic))* (?!valid_lft)([^\s/\\:]+)/;

function scopeOf(word: string): string | undefined {
  const address = parseAddress(word.split('/', 1)[0] ?? '');
  if (!address) return undefined;
  if (isLoopback(address)) return 'host';
  return isLinkLocal(address) ? 'link' : undefined;
}

export type KnownRoutes = { readonly [F in Family]?: Routes };

export type RoutingKind = Extract<
  ReadableKind,
  'ip route' | 'ip -j route' | 'ip rule' | 'ip -j rule' | 'ip neigh show proxy' | 'ip xfrm policy'
>;

export function isRoutingKind(kind: ReadableKind): kind is RoutingKind {
  return /^ip (?:(?:-j )?(?:route|rule)|neigh show proxy|xfrm policy)$/.test(kind);
}

function parseProxied(text: string): readonly ProxiedAddress[] {
  return Array.from(linesOf(text)).flatMap((line) => {
    const [, to = '', link = ''] = /^(\S+) dev (\S+) +proxy\b/.exec(line.trim()) ?? [];
    const address = parseAddress(to);
    return address ? [{ address, link }] : [];
  });
}

interface Drafted {
  readonly routes: Map<string, Route>;
  readonly tables: Set<string>;
  isAll: boolean;
  readonly rules: Map<string, RoutingRule>;
  hasRules: boolean;
  readonly answers: RouteAnswer[];
  readonly proxied: ProxiedAddress[];
  readonly policies: IpsecPolicy[];
}

function tableKey({ family, table }: Route): string {
  return `${family} ${table}`;
}

/** Adds a listing of rules. If both this listing and an earlier one are whole but differ, adds nothing and returns the differences. */
function addRules(draft: Drafted, rules: readonly RoutingRule[], isWhole: boolean): readonly string[] {
  const given = new Map(rules.map((rule) => [ruleKey(rule), rule]));
  if (isWhole && draft.hasRules) {
    const both = [...draft.rules, ...given].filter(([key]) => !draft.rules.has(key) || !given.has(key));
    if (both.length > 0) return both.map(([, { priority }]) => `rule ${priority}`);
  }
  for (const [key, rule] of given) draft.rules.set(key, rule);
  draft.hasRules ||= isWhole;
  return [];
}

function waysOf(routes: readonly Route[]): ReadonlyMap<string, ReadonlySet<string>> {
  const ways = new Map<string, Set<string>>();
  for (const route of routes) {
    const place = routePlace(route);
    ways.set(place, (ways.get(place) ?? new Set()).add(routeKey(route)));
  }
  return ways;
}

/** Splits two listings pasted as one, at the first repeated route. Old releases of ip print a line for each IPv6 next hop. */
function splitListings(routes: readonly Route[]): readonly [first: readonly Route[], again: readonly Route[]] {
  const listed = new Set<string>();
  const at = routes.findIndex((route) => {
    const key = route.family === 'ipv4' ? routePlace(route) : routeKey(route);
    return listed.size === listed.add(key).size;
  });
  return at < 0 ? [routes, []] : [routes.slice(0, at), routes.slice(at)];
}

/** What was read from an output. `differences`: the routes that contradict earlier ones. If there are any, this listing does not count. */
interface ReadRoutes {
  readonly unread: readonly UnreadLine[];
  readonly differences: readonly string[];
}

/** Collects routes and rules. Merges duplicates, which occur, for example, if routes were printed both as text and as JSON. */
export class DraftedRoutes {
  readonly empty = new Set<Family>();
  readonly #drafts: { [F in Family]?: Drafted } = {};
  /** The routes at each place in a table. */
  readonly #ways = new Map<string, ReadonlySet<string>>();

  read({ text, command, isPart }: ToolOutput, kind: RoutingKind, file: string): ReadRoutes {
    const named = /(?:^|[-_./])(?:ip)?v?6(?:[-_.]|$)/.test(file) ? ('ipv6' as const) : undefined;
    const family = command?.routing?.family ?? named;
    if (kind === 'ip neigh show proxy') {
      for (const each of parseProxied(text)) this.#of(each.address.family).proxied.push(each);
      return { unread: [], differences: [] };
    }
    if (kind === 'ip xfrm policy') {
      const { policies, unread } = parseIpsecPolicies(text);
      for (const each of policies) this.#of(each.family).policies.push(each);
      return { unread, differences: [] };
    }
    if (kind === 'ip rule' || kind === 'ip -j rule') {
      const { rules, unread } =
        kind === 'ip rule' ? parseRoutingRules(text, family) : parseRoutingRulesJson(text, family);
      const [first] = rules;
      const isWhole = !isPart && unread.length === 0;
      return { unread, differences: first ? addRules(this.#of(first.family), rules, isWhole) : [] };
    }
    const asked = { family, table: command?.routing?.table };
    const { routes, answers, unread } = kind === 'ip route' ? parseRoutes(text, asked) : parseRoutesJson(text, asked);
    for (const answer of answers) this.#of(answer.family).answers.push(answer);
    // A command prints a single listing. In that listing, an appended route may have the same place as another route.
    const [first, again] = command?.tool === 'ip' ? [routes, []] : splitListings(routes);
    // If the command is unknown, a single route may be only a part of the output.
    const isWhole = !isPart && unread.length === 0 && (command?.tool === 'ip' || routes.length > 1);
    const differences = [...new Set([...this.#add(first, isWhole), ...this.#add(again, isWhole)])];
    if (!isWhole || differences.length > 0) return { unread, differences };
    for (const each of families) {
      const tables = new Set(routes.flatMap((route) => (route.family === each ? [route.table] : [])));
      if (tables.has('local') && (tables.size > 1 || command?.routing?.isAll === true)) this.#of(each).isAll = true;
    }
    return { unread, differences };
  }

  /**
   * Adds a listing's routes. Adds none and returns the networks if the routes lead another way than those read before, or if one of two
   * whole listings of a table lacks a network.
   */
  #add(routes: readonly Route[], isWhole: boolean): readonly string[] {
    const ways = waysOf(routes);
    // A listing that is only a part may lack some next hops.
    const differ = ([place, keys]: readonly [string, ReadonlySet<string>]): boolean => {
      const before = this.#ways.get(place) ?? keys;
      return [...keys].filter((key) => before.has(key)).length < Math.min(keys.size, before.size);
    };
    const places = new Set([...ways].filter(differ).map(([place]) => place));
    const tables = new Set(routes.map(tableKey));
    const isListed = (route: Route): boolean => isWhole && this.#drafts[route.family]?.tables.has(route.table) === true;
    const known = Object.values(this.#drafts).flatMap((draft) => [...draft.routes.values()]);
    const differing = [
      ...routes.filter((each) => places.has(routePlace(each)) || (isListed(each) && !this.#ways.has(routePlace(each)))),
      ...known.filter((each) => tables.has(tableKey(each)) && isListed(each) && !ways.has(routePlace(each))),
    ];
    if (differing.length > 0) return differing.map(({ destination }) => `route ${destination.text}`);
    for (const { family, table } of isWhole ? routes : []) this.#of(family).tables.add(table);
    for (const [place, keys] of ways) this.#ways.set(place, new Set([...(this.#ways.get(place) ?? []), ...keys]));
    for (const route of routes) this.#of(route.family).routes.set(routeKey(route), route);
    return [];
  }

  #of(family: Family): Drafted {
    return (this.#drafts[family] ??= {
      routes: new Map(),
      tables: new Set(),
      isAll: false,
      rules: new Map(),
      hasRules: false,
      answers: [],
      proxied: [],
      policies: [],
    });
  }

  /**
   * `isBare` reports whether the node has no address in a family. A node that has addresses also has routes. If such a node's listing is
   * empty, the listing does not count.
   */
  known(isBare: (family: Family) => boolean): KnownRoutes {
    const known = families.flatMap((family): readonly (readonly [Family, Routes])[] => {
      const isNone = this.empty.has(family) && isBare(family);
      const draft = isNone ? this.#of(family) : this.#drafts[family];
      if (!draft) return [];
      const { routes, tables, rules, hasRules, ...others } = draft;
      const isAll = draft.isAll || (isNone && routes.size === 0);
      const listed = hasRules ? [...rules.values()] : undefined;
      const isKnown = isAll ? undefined : tables;
      return [[family, { ...others, routes: [...routes.values()], tables: isKnown, rules: listed }]];
    });
    return Object.fromEntries(known);
  }
}
