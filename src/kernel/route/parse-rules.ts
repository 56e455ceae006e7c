import type { Family } from '../address.ts';
import { linesOf, UnreadLines, type UnreadLine } from '../lines.ts';
import { readMarkMask, type PortRange } from '../ports-and-marks.ts';
import { familyOfTexts, notJson, parseRouteNetwork, readJsonItems, textValues } from './parse-routes.ts';
import { nameRoutingTable, type RoutingAction, type RoutingRule } from './route.ts';

interface ParsedRules {
  readonly rules: readonly RoutingRule[];
  readonly unread: readonly UnreadLine[];
}

interface WordedRule {
  readonly priority: number;
  readonly values: ReadonlyMap<string, string>;
  readonly set: ReadonlySet<string>;
}

const alone: ReadonlySet<string> = new Set(
  'not nop blackhole unreachable prohibit l3mdev proto_any detached unresolved'.split(' '),
);

const idle: ReadonlySet<string> = new Set(['proto', 'protocol', 'realms', 'suppress_ifgroup']);

/** Reads `ip rule`. A rule that cannot be read is kept with an unknown condition. */
export function parseRoutingRules(text: string, asked: Family | undefined): ParsedRules {
  const unread = new UnreadLines();
  const worded: WordedRule[] = [];
  let number = 0;
  for (const raw of linesOf(text)) {
    number++;
    const [, priority, rest] = /^(\d+):[ \t]+(\S.*)$/.exec(raw.trim()) ?? [];
    if (priority === undefined) {
      if (raw.trim() !== '') unread.add(number, () => raw, 'other-line');
      continue;
    }
    const words = (rest ?? '').replaceAll(/\[(detached|unresolved)\]/g, '$1').split(/\s+/);
    const values = new Map<string, string>();
    const set = new Set<string>();
    for (let at = 0; at < words.length; at++) {
      const word = words[at] ?? '';
      if (alone.has(word)) set.add(word);
      else values.set(word === 'table' ? 'lookup' : word, words[++at] ?? '');
    }
    worded.push({ priority: Number(priority), values, set });
  }
  return { rules: readWordedRules(worded, asked), unread: unread.all };
}

export function parseRoutingRulesJson(text: string, asked: Family | undefined): ParsedRules {
  const items = readJsonItems(text);
  if (!items) return { rules: [], unread: [notJson(text)] };
  const worded = items.map((item): WordedRule => {
    const { priority, src, srclen, dst, dstlen, table, fwmark, fwmask, goto, action, ...others } = textsAsObject(item);
    const set = new Set(Object.keys(item).filter((name) => alone.has(name)));
    if (action !== undefined && alone.has(action)) set.add(action);
    const values = new Map<string, string>();
    const put = (name: string, value: string | undefined, size?: string): void => {
      if (value !== undefined) values.set(name, size === undefined ? value : `${value}/${size}`);
    };
    put('from', src, srclen);
    put('to', dst, dstlen);
    put('lookup', table);
    put('goto', goto);
    put('fwmark', fwmark, fwmask);
    for (const name of ['dport', 'sport', 'uid']) {
      const [first, last] = [others[`${name}_start`], others[`${name}_end`]];
      if (first !== undefined && last !== undefined) put(name === 'uid' ? 'uidrange' : name, `${first}-${last}`);
    }
    for (const [name, value] of Object.entries(others))
      if (!/_(?:start|end)$/.test(name)) put(longNames.get(name) ?? name, value);
    return { priority: Number(priority ?? 0), values, set };
  });
  return { rules: readWordedRules(worded, asked), unread: [] };
}

const longNames: ReadonlyMap<string, string> = new Map([['suppress_prefixlen', 'suppress_prefixlength']]);

function textsAsObject(item: Readonly<Record<string, unknown>>): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(textValues(item));
}

function readWordedRules(worded: readonly WordedRule[], asked: Family | undefined): readonly RoutingRule[] {
  // Only IPv4 has the table `default`.
  const isIPv4 = worded.some(({ values }) => values.get('lookup') === 'default');
  const addresses = worded.flatMap(({ values }) => [values.get('from'), values.get('to')]);
  const family = familyOfTexts(addresses) ?? asked ?? (isIPv4 ? 'ipv4' : 'ipv6');
  return worded.map(({ priority, values, set }): RoutingRule => {
    const other: string[] = [];
    const rule: { -readonly [K in keyof RoutingRule]: RoutingRule[K] } = {
      family,
      priority,
      negated: set.has('not'),
      action: readRoutingAction(values, set),
    };
    for (const [name, value] of values) {
      switch (name) {
        case 'from':
        case 'to': {
          if (value === 'all') break;
          const network = parseRouteNetwork(value);
          if (network) rule[name] = network;
          else other.push(`${name} ${value}`);
          break;
        }
        case 'fwmark':
          rule.mark = readMarkMask(value);
          if (!rule.mark) other.push(`${name} ${value}`);
          break;
        case 'iif':
          rule.input = value;
          break;
        case 'oif':
          rule.output = value;
          break;
        case 'ipproto':
          rule.protocol = protocols.get(value) ?? value;
          break;
        case 'dport':
        case 'sport': {
          const range = readPortRange(value);
          if (range) rule[name === 'dport' ? 'port' : 'sourcePort'] = range;
          else other.push(`${name} ${value}`);
          break;
        }
        case 'uidrange':
          rule.users = value;
          break;
        case 'suppress_prefixlength':
          rule.suppressed = Number(value);
          break;
        case 'lookup':
        case 'goto':
          break;
        default:
          if (!idle.has(name)) other.push(`${name} ${value}`.trim());
      }
    }
    if (set.has('l3mdev')) other.push('l3mdev');
    return other.length > 0 ? { ...rule, other: other.join(' ') } : rule;
  });
}

const protocols: ReadonlyMap<string, string> = new Map([
  ['6', 'tcp'],
  ['17', 'udp'],
  ['132', 'sctp'],
  ['1', 'icmp'],
  ['58', 'icmp'],
  ['ipv6-icmp', 'icmp'],
]);

function readPortRange(text: string): PortRange | undefined {
  const [, first, last] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  return first === undefined ? undefined : { first: Number(first), last: Number(last ?? first) };
}

function readRoutingAction(values: ReadonlyMap<string, string>, set: ReadonlySet<string>): RoutingAction {
  const goto = values.get('goto');
  if (goto !== undefined) return { kind: 'goto', priority: Number(goto) };
  const kind = (['nop', 'blackhole', 'unreachable', 'prohibit'] as const).find((each) => set.has(each));
  if (kind) return { kind };
  return { kind: 'lookup', table: nameRoutingTable(values.get('lookup') ?? 'main') };
}
