import { parseAddressRange } from '../address-range.ts';
import { portNumber } from '../ports-and-marks.ts';
import { readLines, type LineFault } from '../lines.ts';
import type { Rule, Chain } from './iptables.ts';
import { parseRuleWords } from './parse-rule.ts';
import { nameProtocol } from './rule-args.ts';

interface Columns {
  readonly numbers: boolean;
  readonly verbose: boolean;
}

interface ListedChain extends Chain {
  readonly rules: Rule[];
  readonly references: number | undefined;
}

/**
 * Reads `iptables -L`, with -v, -n, -x or --line-numbers. A list has no end mark, so a table counts as `whole` only if the list shows
 * interfaces and as many jumps to each chain as the chain's title says. Keeps unknown text after the columns as words of the rule.
 */
export function parseIptablesList(text: string) {
  const chains = new Map<string, ListedChain>();
  let current: ListedChain | undefined;
  let columns: Columns | undefined;
  let isVerbose = true;
  const unread = readLines(text, [], (line) => {
    const chain = readTitle(line);
    if (chain) {
      if (chains.has(chain.name)) return 'duplicate';
      chains.set(chain.name, (current = chain));
      return undefined;
    }
    const titles = readTitles(line);
    if (titles) {
      columns = titles;
      isVerbose &&= titles.verbose;
      return undefined;
    }
    if (!current || !columns) return 'no-head';
    const rule = readRow(line, columns);
    if (typeof rule === 'string') return rule;
    current.rules.push(rule);
    return undefined;
  });
  const whole = isVerbose && unread.length === 0 && hasAllJumps(chains);
  return { chains, unread, whole, showsInterfaces: isVerbose };
}

function hasAllJumps(chains: ReadonlyMap<string, ListedChain>): boolean {
  const jumps = new Map<string, number>();
  for (const { rules } of chains.values()) {
    for (const arg of rules.flatMap(({ args }) => args)) {
      if (arg.kind !== 'jump' || arg.target.kind !== 'chain') continue;
      jumps.set(arg.target.chain, (jumps.get(arg.target.chain) ?? 0) + 1);
    }
  }
  const isCounted = ({ name, references }: ListedChain) =>
    references === undefined || references === (jumps.get(name) ?? 0);
  return [...jumps.keys()].every((name) => chains.has(name)) && [...chains.values()].every(isCounted);
}

function readTitle(line: string): ListedChain | undefined {
  const [, name, policy, references] =
    /^Chain (\S+) \((?:policy ([A-Z]+)(?: \S+ packets, \S+ bytes)?|(\d+) references)\)$/.exec(line) ?? [];
  if (name === undefined) return undefined;
  const known = policy === 'ACCEPT' || policy === 'DROP' ? policy : undefined;
  return { name, rules: [], policy: known, references: references === undefined ? undefined : Number(references) };
}

function readTitles(line: string): Columns | undefined {
  const titles = line.split(/ +/);
  if (!titles.includes('target') || !titles.includes('prot') || !titles.includes('source')) return undefined;
  return { numbers: titles[0] === 'num', verbose: titles.includes('in') };
}

const optionColumn: ReadonlySet<string> = new Set(['--', '-f', '!f']);
const anyValue: ReadonlySet<string> = new Set(['*', 'any', 'anywhere', 'all', '0', '0.0.0.0/0', '::/0']);
const protocolColumn = /^!?(?:all|tcp|udp|udplite|icmp|ipv6-icmp|icmpv6|sctp|dccp|esp|ah|gre|\d{1,3})$/;

function readRow(line: string, { numbers, verbose }: Columns): Rule | LineFault {
  const cells = [...line.slice(0, 1000).matchAll(/\S+/g)].slice(0, 12).map((found) => ({
    text: found[0],
    end: found.index + found[0].length,
  }));
  let at = (numbers ? 1 : 0) + (verbose ? 2 : 0);
  const text = (index: number): string => cells[index]?.text ?? '';
  const hasTarget =
    !optionColumn.has(text(at + 1)) && (optionColumn.has(text(at + 2)) || protocolColumn.test(text(at + 1)));
  const target = hasTarget ? text(at++) : undefined;
  const protocol = text(at++);
  const option = optionColumn.has(text(at)) ? text(at++) : '--';
  const [input, output] = verbose ? [text(at), text(at + 1)] : ['*', '*'];
  at += verbose ? 2 : 0;
  const [source, destination, end] = [text(at), text(at + 1), cells[at + 1]?.end];
  if (end === undefined || !protocolColumn.test(protocol)) return 'other-line';
  if (option !== '--') return 'fragments';
  if (!isRange(source) || !isRange(destination)) return 'named-address';
  const words = [
    ...optionWords('-s', source),
    ...optionWords('-d', destination),
    ...optionWords('-i', input),
    ...optionWords('-o', output),
    ...optionWords('-p', protocol, nameProtocol),
  ];
  return { args: parseRuleWords([...words, ...readExtras(line.slice(end), target)], 0) };
}

function isRange(text: string): boolean {
  return anyValue.has(text) || parseAddressRange(text.replace(/^!/, '')) !== undefined;
}

function optionWords(option: string, cell: string, name = (value: string) => value): readonly string[] {
  const value = cell.replace(/^!/, '');
  if (cell === value) return anyValue.has(value) ? [] : [option, name(value)];
  return ['!', option, name(value)];
}

/**
 * Patterns for text after the columns, each with its words in iptables-save; a target's words begin with "target". $1 is the first group,
 * !1 a ! if that group matched, #1 its ports as numbers, ~1 its bits inverted.
 */
const extras: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/^\/\* (.*?) \*\//, '-m comment --comment $1'],
  [/^(tcp|udp|sctp)(?= |$)/, '-m $1'],
  [/^(d|s)pts?:(!?)(\S+)/, '!2 --$1port #3'],
  [/^(! )?ctstate (\S+)/, '-m conntrack !1 --ctstate $2'],
  [/^(! )?match-set (\S+) ([a-z,]+)/, '-m set !1 --match-set $2 $3'],
  [/^mark match (! ?)?(\S+)/, '-m mark !1 --mark $2'],
  [/^statistic mode random probability ([\d.]+)/, '-m statistic --mode random --probability $1'],
  [/^ADDRTYPE match (dst|src)-type (!?)([A-Z,]+)/, '-m addrtype !2 --$1-type $3'],
  [/^recent: SET name: (\S+) side: source(?: mask: \S+)?/, '-m recent --name $1 --set'],
  [
    /^recent: CHECK seconds: (\d+) name: (\S+) side: source(?: mask: \S+)?/,
    '-m recent --name $2 --rcheck --seconds $1',
  ],
  [
    /^recent: CHECK seconds: (\d+) reap name: (\S+) side: source(?: mask: \S+)?/,
    '-m recent --name $2 --rcheck --seconds $1 --reap',
  ],
  [/^PHYSDEV match (! )?--physdev-is-in/, '-m physdev !1 --physdev-is-in'],
  [/^nfacct-name +(\S+)/, '-m nfacct --nfacct-name $1'],
  [/^multiport (dports|sports|ports) (!?)([\d,:]+)/, '-m multiport !2 --$1 $3'],
  [/^to:(\S+)/, 'target --to $1'],
  [/^MARK (or|xor) (0x[\da-f]+)/, 'target --$1-mark $2'],
  [/^MARK x?set (0x[\da-f]+(?:\/0x[\da-f]+)?)/, 'target --set-xmark $1'],
  [/^MARK and (0x[\da-f]+)/, 'target --set-xmark 0x0/~1'],
  [/^reject-with (\S+)/, 'target --reject-with $1'],
  [/^random-fully/, 'target --random-fully'],
];

function fillIn(words: string, found: readonly (string | undefined)[]): readonly string[] | undefined {
  let isKnown = true;
  const filled = words.split(' ').flatMap((word) => {
    const negation = /^!(\d)$/.exec(word)?.[1];
    if (negation !== undefined) return found[Number(negation)] ? ['!'] : [];
    return [
      word.replace(/([$#~])(\d)/, (_, kind: string, group: string) => {
        const text = found[Number(group)] ?? '';
        if (kind === '$') return text;
        if (kind === '~') return `0x${(~Number(text) >>> 0).toString(16)}`;
        const ports = text.split(':').map(portNumber);
        isKnown &&= !ports.includes(undefined);
        return ports.join(':');
      }),
    ];
  });
  return isKnown ? filled : undefined;
}

function readExtras(text: string, target: string | undefined): readonly string[] {
  const matches: string[] = [];
  const ofTarget: string[] = [];
  let rest = text.trim();
  const isGoto = rest.startsWith('[goto]');
  if (isGoto) rest = rest.slice('[goto]'.length).trim();
  while (rest !== '') {
    const step = readExtra(rest);
    if (!step) break;
    const [words, length] = step;
    if (words[0] === 'target') ofTarget.push(...words.slice(1));
    else matches.push(...words);
    rest = rest.slice(length).trim();
  }
  if (rest !== '') matches.push('-m', 'listed', '--as', rest);
  if (target === undefined) return matches;
  const options = ofTarget.map((word) =>
    word === '--to' ? `--to-${target === 'SNAT' ? 'source' : 'destination'}` : word,
  );
  return [...matches, isGoto ? '-g' : '-j', target, ...options];
}

function readExtra(text: string): readonly [words: readonly string[], length: number] | undefined {
  for (const [pattern, template] of extras) {
    const found = pattern.exec(text);
    const words = found && fillIn(template, found);
    if (words) return [words, found[0].length];
  }
  return undefined;
}
