import { isObject } from '../../base/json/check.ts';
import { type Address, type Family, hostNetwork, type Network, parseAddress, parseNetwork } from '../address.ts';
import { linesOf, UnreadLines, type UnreadLine, type LineFault } from '../lines.ts';
import { parseIpJson } from '../link/link.ts';
import { parseNumber32 } from '../ports-and-marks.ts';
import {
  nameRoutingTable,
  routePreferences,
  routeTypes,
  type NextHop,
  type Route,
  type RouteAnswer,
  type RouteType,
} from './route.ts';

export interface ParsedRoutes {
  readonly routes: readonly Route[];
  readonly answers: readonly RouteAnswer[];
  readonly unread: readonly UnreadLine[];
}

/** The family and table in the command's arguments. The output does not always repeat them with each route. */
export interface RoutesAsked {
  readonly family: Family | undefined;
  readonly table: string | undefined;
}

interface WordedRoute {
  readonly type: RouteType;
  readonly destination: string;
  readonly values: ReadonlyMap<string, string>;
  readonly hops: readonly ReadonlyMap<string, string>[];
  readonly isAnswer: boolean;
  readonly line: number;
  readonly text: string;
}

export function parseRoutes(text: string, asked: RoutesAsked): ParsedRoutes {
  const worded: WordedRoute[] = [];
  let number = 0;
  for (const raw of linesOf(text)) {
    number++;
    const words = raw.trim().split(/\s+/);
    const last = worded.at(-1);
    if (words[0] === 'nexthop' && last) {
      worded[worded.length - 1] = { ...last, hops: [...last.hops, valuesOf(words.slice(1))] };
    } else if (words[0] === 'cache' && last) worded[worded.length - 1] = { ...last, isAnswer: true };
    else if (words[0] !== '') worded.push(readRouteWords(words, number, raw));
  }
  return readWordedRoutes(worded, asked);
}

const flags: ReadonlySet<string> = new Set(
  'onlink linkdown dead pervasive offload trap notify unresolved offload_failed rt_offload rt_trap cache'.split(' '),
);

/** The key for a gateway's family, which ip prints only if it differs from the route's. */
const otherFamily = 'family of via';

function wordsToMap(words: readonly string[]) {
  const values = new Map<string, string>();
  const set = new Set<string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (flags.has(word)) {
      set.add(word);
      continue;
    }
    if (/^(?:inet6?|lock)$/.test(words[at + 1] ?? '')) {
      at++;
      if (word === 'via') values.set(otherFamily, words[at] ?? '');
    }
    values.set(word === 'dsfield' ? 'tos' : word, words[++at] ?? '');
  }
  return { values, flags: set };
}

function valuesOf(words: readonly string[]): ReadonlyMap<string, string> {
  const { values, flags: own } = wordsToMap(words);
  return withDown(values, own);
}

function withDown(values: Map<string, string>, set: ReadonlySet<unknown>): ReadonlyMap<string, string> {
  const down = (['dead', 'linkdown'] as const).find((flag) => set.has(flag));
  return down === undefined ? values : values.set('down', down);
}

function readRouteWords(words: readonly string[], line: number, text: string): WordedRoute {
  const named = routeTypes.find((type) => type === words[0]);
  const [destination = '', ...rest] = named ? words.slice(1) : words;
  const { values, flags: own } = wordsToMap(rest);
  const isAnswer = own.has('cache') || values.has('uid');
  return { type: named ?? 'unicast', destination, values: withDown(values, own), hops: [], isAnswer, line, text };
}

export function parseRoutesJson(text: string, asked: RoutesAsked): ParsedRoutes {
  const items = readJsonItems(text);
  if (!items) return { routes: [], answers: [], unread: [notJson(text)] };
  const worded = items.flatMap((item): readonly WordedRoute[] => {
    const { dst, type, nexthops, ...others } = item;
    const own = others['flags'];
    if (typeof dst !== 'string') return [];
    const values = textValues(others);
    const hops = (Array.isArray(nexthops) ? (nexthops as readonly unknown[]) : []).map((hop) =>
      isObject(hop) ? renamed(hop) : new Map<string, string>(),
    );
    const isCached = values.has('uid') || (Array.isArray(own) && own.includes('cache'));
    const named = routeTypes.find((each) => each === type) ?? 'unicast';
    return [{ type: named, destination: dst, values: renamed(others), hops, isAnswer: isCached, line: 1, text: dst }];
  });
  return readWordedRoutes(worded, asked);
}

const otherNames: ReadonlyMap<string, string> = new Map([
  ['gateway', 'via'],
  ['prefsrc', 'src'],
  ['protocol', 'proto'],
]);

function renamed(item: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  const values = new Map(Array.from(textValues(item), ([name, value]) => [otherNames.get(name) ?? name, value]));
  const set = item['flags'];
  if (Array.isArray(set)) withDown(values, new Set(set));
  const via = item['via'];
  const { family, host } = isObject(via) ? Object.fromEntries(textValues(via)) : {};
  if (family !== undefined && host !== undefined) values.set('via', host).set(otherFamily, family);
  return values;
}

export function readJsonItems(text: string): readonly Readonly<Record<string, unknown>>[] | undefined {
  try {
    const items = parseIpJson(text);
    return Array.isArray(items) ? items.filter(isObject) : undefined;
  } catch {
    return undefined;
  }
}

export function notJson(text: string): UnreadLine {
  return { line: 1, text: text.slice(0, 80), reason: 'no-json' };
}

export function textValues(item: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(item).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' ? [[name, String(value)] as const] : [],
    ),
  );
}

function readWordedRoutes(worded: readonly WordedRoute[], asked: RoutesAsked): ParsedRoutes {
  const unread = new UnreadLines();
  const shown = worded.map(familyOfRoute);
  // A default route does not show its family, so it gets the family of the route before it. ip lists IPv4 first.
  let family = shown.find((each) => each !== undefined) ?? asked.family ?? 'ipv4';
  const routes: Route[] = [];
  const answers: RouteAnswer[] = [];
  for (const [at, each] of worded.entries()) {
    family = shown[at] ?? family;
    const refuse = (reason: LineFault) => unread.add(each.line, () => each.text, reason);
    const { type, values, hops: more, isAnswer, line: _ } = each;
    const own = more.length > 0 ? more : [values];
    const hops = own.map(hopOf);
    const to = each.destination === 'default' ? defaultOf(family) : parsePrefix(each.destination);
    const source = parseAddress(values.get('src') ?? '');
    if (!to) {
      refuse('other-line');
      continue;
    }
    if (isAnswer) {
      const from = parseAddress(values.get('from') ?? '');
      const mark = parseNumber32(values.get('mark') ?? '');
      const input = values.get('iif');
      answers.push({ family, to: to.address, from, mark, input, type, source, hop: hops[0] ?? {} });
      continue;
    }
    const table = nameRoutingTable(values.get('table') ?? asked.table ?? 'main');
    // ip always prints the metric of an IPv6 route. An IPv4 route without one has metric 0.
    const metric = Number(values.get('metric') ?? 0);
    const from = parsePrefix(values.get('from') ?? '');
    const preference = routePreferences.find((word) => word === values.get('pref'));
    const isRead = [values, ...more].every((words) => [...words.keys()].every((word) => routeWords.has(word)));
    const whole = isRead ? {} : { unread: each.text.trim() };
    routes.push({ family, table, type, destination: to, from, metric, preference, source, hops, ...whole });
  }
  return { routes, answers, unread: unread.all };
}

/** The words that identify a route, and the words that do not affect the path of packets. */
const routeWords: ReadonlySet<string> = new Set([
  otherFamily,
  'via',
  'dev',
  'down',
  'src',
  'from',
  'table',
  'metric',
  'pref',
  'proto',
  'scope',
  'weight',
  'nhid',
  'expires',
  'error',
  'realm',
  'realms',
  'mtu',
  'window',
  'rtt',
  'rttvar',
  'ssthresh',
  'cwnd',
  'advmss',
  'reordering',
  'hoplimit',
  'initcwnd',
  'initrwnd',
  'features',
  'rto_min',
  'quickack',
  'congctl',
  'fastopen_no_cookie',
  'ttl-propagate',
]);

function hopOf(values: ReadonlyMap<string, string>): NextHop {
  const hop = { gateway: parseAddress(values.get('via') ?? ''), link: values.get('dev') };
  const down = (['dead', 'linkdown'] as const).find((each) => values.get('down') === each);
  return down ? { ...hop, down } : hop;
}

function familyOfRoute({ destination, values, hops }: WordedRoute): Family | undefined {
  const own = familyOfTexts([destination, values.get('src'), values.get('from')]);
  if (own) return own;
  // Only IPv6 has preferences and router advertisements.
  if (values.has('pref') || values.get('proto') === 'ra') return 'ipv6';
  const ways = [values, ...hops];
  if (ways.some((each) => each.has(otherFamily))) return 'ipv4';
  return familyOfTexts(ways.map((each) => each.get('via')));
}

function parsePrefix(text: string): Network | undefined {
  if (text.includes('/')) return parseNetwork(text.includes(':') ? text : padded(text));
  const address = parseAddress(text);
  return address && hostNetwork(address);
}

/** Adds the trailing zeros that ip omits: 10/8, 192.168.0/24. */
function padded(text: string): string {
  const [address = '', length = ''] = text.split('/', 2);
  return `${[...address.split('.'), '0', '0', '0'].slice(0, 4).join('.')}/${length}`;
}

function defaultOf(family: Family): Network | undefined {
  return parseNetwork(family === 'ipv4' ? '0.0.0.0/0' : '::/0');
}

export function familyOfTexts(texts: readonly (string | undefined)[]): Family | undefined {
  const found = texts.map((text = ''): Address | undefined => parseAddress(text.split('/', 1)[0] ?? ''));
  return found.find((each) => each !== undefined)?.family;
}

export { parsePrefix as parseRouteNetwork };
