import { allBits, type MarkHolder, type RuleVerdict, formatMark, formatSocketAddress } from '../ports-and-marks.ts';
import { bareMeta } from './parse-match.ts';
import type {
  Element,
  ElementValue,
  Value,
  Expression,
  Field,
  Match,
  Selector,
  NftRule,
  BaseChain,
  NftChain,
  NftCounter,
  NftMap,
  NftSet,
  NftTable,
} from './table.ts';
import { LongText } from '../lines.ts';
import type { Family } from '../address.ts';

export function formatNftRule(rule: NftRule): string {
  let text = '';
  for (let i = 0; i < rule.expressions.length; i++) {
    if (i > 0) text += ' ';
    text += formatExpression(rule.expressions[i] as Expression);
  }
  return rule.comment === undefined ? text : `${text} comment ${quoteForNft(rule.comment)}`;
}

export function formatElement({ key, value, comment }: Element): string {
  let text = formatKey(key);
  if (comment !== undefined) text += ` comment ${quoteForNft(comment)}`;
  return value === undefined ? text : `${text} : ${formatElementValue(value)}`;
}

export function formatKey(key: readonly Value[]): string {
  let text = key[0] ? formatValue(key[0]) : '';
  for (let i = 1; i < key.length; i++) text += ` . ${formatValue(key[i] as Value)}`;
  return text;
}

export function formatElementValue(value: ElementValue): string {
  return value.kind === 'data' ? formatKey(value.values) : formatVerdict(value);
}

/**
 * Puts a text in quotes. Throws if the text has a quote or line break, because nft's syntax cannot express them. The input checks refuse
 * both.
 */
export function quoteForNft(text: string): string {
  if (/["\n\r\0]/.test(text)) throw new Error(`not a string for nft: ${JSON.stringify(text)}`);
  return `"${text}"`;
}

function formatExpression(expression: Expression): string {
  if ('text' in expression) return expression.text;
  switch (expression.kind) {
    case 'match':
      return `${formatSelector(expression.left)} ${formatOperator(expression)}${formatRight(expression)}`;
    case 'verdict-map':
      return `${formatSelector(expression.left)} vmap ${formatRight(expression)}`;
    case 'goto-random': {
      const { chains } = expression;
      const chances = chains.map((chain, index) => `${index} : goto ${chain}`).join(', ');
      return `numgen random mod ${chains.length} vmap { ${chances} }`;
    }
    case 'dnat':
      return `dnat to ${formatSocketAddress(expression.target)}`;
    case 'dnat-random': {
      const { targets } = expression;
      const family = targets[0]?.address.family === 'ipv6' ? 'ip6' : 'ip';
      const chances = targets.map(({ address, port }, i) => `${i} : ${address.text} . ${port}`).join(', ');
      return `dnat ${family} addr . port to numgen random mod ${targets.length} map { ${chances} }`;
    }
    case 'change-mark':
      return `${holders[expression.of]} set ${formatChange(expression)}`;
    case 'masquerade':
      return expression.fullyRandom ? 'masquerade fully-random' : 'masquerade';
    case 'reject':
      return expression.with === undefined ? 'reject' : `reject with ${expression.with}`;
    case 'write-set':
      return `${expression.operation} @${expression.set} { ${formatSelector(expression.key)} }`;
    case 'counter':
      return `counter name ${quoteForNft(expression.counter)}`;
    default:
      return formatVerdict(expression);
  }
}

const holders: { readonly [H in MarkHolder]: string } = { packet: 'mark', connection: 'ct mark' };

function formatChange({ of, change: { stays, start, flip } }: Expression & { readonly kind: 'change-mark' }): string {
  const { from, keep } = start ?? { from: of, keep: stays };
  if (keep === 0) return formatMark(flip);
  if (keep === ~flip >>> 0) return `${holders[from]} or ${formatMark(flip)}`;
  const kept = keep === allBits ? holders[from] : `${holders[from]} and ${formatMark(keep)}`;
  return flip === 0 ? kept : `${kept} xor ${formatMark(flip)}`;
}

/** Writes `==` only after a mask, because nft would otherwise read the value as part of the mask. */
function formatOperator({ left, operator }: Match): string {
  if (operator) return `${operator} `;
  return left[0]?.mask === undefined ? '' : '== ';
}

function formatSelector(selector: Selector): string {
  return selector.map(formatField).join(' . ');
}

function formatField({ name, mask }: Field): string {
  return mask === undefined ? name : `${name} and ${formatMark(mask)}`;
}

function formatRight({ left, right }: Pick<Match, 'left' | 'right'>): string {
  if ('set' in right) return `@${right.set}`;
  let text = '';
  for (const { key, value } of right.elements) {
    for (let i = 0; i < key.length; i++)
      text += `${i > 0 ? ' . ' : text === '' ? '' : ', '}${formatValueOf(left[i], key[i] as Value)}`;
    if (value) text += ` : ${formatElementValue(value)}`;
  }
  return right.isBraced ? `{ ${text} }` : text;
}

/**
 * Quotes an interface name that has another meaning in nft's syntax. Words in other fields are meant as nft's words, so they stay unquoted.
 */
function formatValueOf(field: Field | undefined, value: Value): string {
  if (field && bareMeta.has(field.name) && field.mask === undefined) {
    if (value.kind === 'number' && field.name === 'mark') return formatMark(value.value);
    if (value.kind === 'word' && !isBareInterfaceName(value.text)) return quoteForNft(value.text);
  }
  return formatValue(value);
}

function formatVerdict(verdict: RuleVerdict): string {
  return 'chain' in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}

function formatValue(value: Value): string {
  switch (value.kind) {
    case 'address':
      return value.address.text;
    case 'network':
      return value.network.text;
    case 'range':
      return `${value.first.text}-${value.last.text}`;
    case 'number':
      return String(value.value);
    case 'numbers':
      return `${value.first}-${value.last}`;
    case 'word':
      return formatNftWord(value.text);
    default:
      return value satisfies never;
  }
}

/** Matches text that nft reads as one word: a name, optionally with a final `*`, or digits. */
const plainWord = /^(?:[A-Za-z_.][\w./-]*\*?|\d+)$/;

function formatNftWord(text: string): string {
  return plainWord.test(text) ? text : quoteForNft(text);
}

/** Words of nft's scanner (1.0.6 to 1.1.6) that may also be interface names. nft reads most of them as names only in quotes. */
const scannerWords: ReadonlySet<string> = new Set(
  `
    a-rwnd abort accept ackseq add addr ah alert all and arp asconf asconf-ack audit auto-merge avgpkt bridge
    broute burst bypass bytes cfi cgroup cgroupv2 chain chains check checksum chunk class classid comment comp
    constant continue cookie-ack cookie-echo count counter counters cpi cpu create crit csumcov ct cum-tsn-ack cwr
    daddr data day dccp debug define dei delete describe destroy device devices direction dnat doff dport drop
    dscp dst dup dynamic echo ecn ecne egress element elements emerg eol eq err error erspan esp ether event
    exists expectation expiration expires export exthdr fanout fastopen fib filter flags flow flowlabel flowtable
    flowtables flush forward-tsn frag frag-off fully-random fwd gateway gbp gc-interval ge geneve get goto gre
    gretap group gt handle hbh hdrlength heartbeat heartbeat-ack helper helpers hlen hook hooks hoplimit hour
    htype ibrhwaddr ibriport ibrname ibrpvid ibrvproto icmp icmpv6 icmpx id igmp iif iifgroup iifkind iifname
    iiftype import in inc include index inet info ingress init init-ack init-tag initial-tsn insert interval ip
    ip6 ipsec jhash json jump kbytes l3proto l4proto label last last-entry le left length level limit limits list
    ll log loose lowest-tsn lshift lsrr lt map maps mark masquerade max-delay maxseg mbytes md5sig memory meta
    meter meters mh minute missing mod monitor more-fragments mptcp mrt mss mtu name nat ne netdev never new
    new-cum-tsn nexthdr nexthop nfproto nftrace nh noop nop not notice notrack num num-dup-tsns numgen obriport
    obrname offload offset oif oifgroup oifkind oifname oiftype operation opt-type option options or original osf
    out over packets param-problem path pcp performance persistent pkttype plen policy port position ppid prefix
    priority proto-dst proto-src protocol ptr ptype queue queue-threshold quota quotas ra random rate redefine
    redirect reject rename replace reply reqid reserved reserved2 reset return right route rr rshift rt rt0 rt2
    rtclassid rule rules ruleset sack sack-perm sack-permitted sack0 sack1 sack2 sack3 saddr sctp sdif sdifname
    secmark secmarks second secpath seed seg-left seqno sequence set sets shutdown shutdown-ack sid size skgid
    skip skuid snaplen snat socket spi spnum sport srh ssn ssrr state status stream subtype symhash synproxy
    synproxys table tables taddr tag tcp th time timeout timestamp to tos tproxy trace transparent tsecr tsn tsval
    ttl tunnel tunnels type typeof udp udplite undefine until update urgptr used value version vlan vm vmap vni
    vtag vxlan warn week wildcard window with wscale xml xor xt zone
  `
    .trim()
    .split(/\s+/),
);

const plainName = /^[A-Za-z_][\w.-]*\*?$/;

/**
 * Reports whether nft reads the unquoted text as an interface name. nft does not accept `define` as a name, and reads `0x10` as the number
 * of an interface.
 */
function isBareInterfaceName(text: string): boolean {
  return plainName.test(text) && !scannerWords.has(text);
}

export const nftFamily: { readonly [F in Family]: 'ip' | 'ip6' } = { ipv4: 'ip', ipv6: 'ip6' };

/** Formats the input of `nft -f` that replaces tables in one transaction, with one line for each rule and element; '' for no tables. */
export function formatTables(tables: readonly NftTable[]): string {
  return writeNftTables(tables, formatChain).join('');
}

/** Returns the text of formatTables in pieces, to avoid joining a long text. `formatOwn` is formatChain or a cache of it. */
export function writeNftTables(tables: readonly NftTable[], formatOwn: (chain: NftChain) => string): readonly string[] {
  const text = new LongText();
  for (const table of tables) {
    const name = `${nftFamily[table.family]} ${table.name}`;
    // Add the table first, because deleting a missing one would fail.
    text.add(`table ${name}\ndelete table ${name}\n`);
    addParts(text, table, [...table.chains.values()].map(formatOwn));
  }
  return text.pieces();
}

export type ChainlessTable = Omit<NftTable, 'chains' | 'strange'>;

/** Formats the input of `nft -f` that adds parts to a table and creates what is missing. `chains` come from formatChain. */
export function formatParts(table: ChainlessTable, chains: readonly string[]): string {
  const text = new LongText();
  addParts(text, table, chains);
  return text.toString();
}

function addParts(
  text: LongText,
  { family, name, comment, counters, sets }: ChainlessTable,
  chains: readonly string[],
): void {
  text.add(`table ${nftFamily[family]} ${name} {\n`);
  if (comment !== undefined) text.add(`\tcomment ${quoteForNft(comment)}\n`);
  for (const counter of counters.values()) text.add(formatCounter(counter));
  for (const set of sets.values()) addNftSet(text, set);
  chains.forEach((chain) => text.add(`\n${chain}`));
  text.add('}\n');
}

function formatCounter({ name, comment }: NftCounter): string {
  const inside = comment === undefined ? '' : `\t\tcomment ${quoteForNft(comment)}\n`;
  return `\n\tcounter ${name} {\n${inside}\t}\n`;
}

function addNftSet(text: LongText, set: NftSet | NftMap): void {
  text.add(`\n\t${set.kind} ${set.name} {\n`);
  for (const property of formatSetProperties(set)) text.add(`\t\t${property}\n`);
  if (set.elements.length > 0) {
    text.add('\t\telements = {\n');
    set.elements.forEach((element) => text.add(`\t\t\t${formatElement(element)},\n`));
    text.add('\t\t}\n');
  }
  text.add('\t}\n');
}

export function formatSetProperties(set: NftSet | NftMap): readonly string[] {
  const value = set.kind === 'map' ? ` : ${set.valueType.join(' . ')}` : '';
  const properties = [`type ${set.keyType.join(' . ')}${value}`];
  if (set.flags.length > 0) properties.push(`flags ${set.flags.join(', ')}`);
  if (set.timeoutSeconds !== undefined) properties.push(`timeout ${set.timeoutSeconds}s`);
  if (set.size !== undefined) properties.push(`size ${set.size}`);
  if (set.comment !== undefined) properties.push(`comment ${quoteForNft(set.comment)}`);
  return properties;
}

export function formatChain(chain: NftChain): string {
  let text = `\tchain ${chain.name} {\n`;
  if (chain.base) text += `\t\t${formatBaseChain(chain.base)}\n`;
  if (chain.comment !== undefined) text += `\t\tcomment ${quoteForNft(chain.comment)}\n`;
  chain.rules.forEach((rule) => {
    text += `\t\t${formatNftRule(rule)}\n`;
  });
  return `${text}\t}\n`;
}

export function formatBaseChain({ type, hook, devices, priority, policy }: BaseChain): string {
  const at = devices ? ` devices = { ${devices.map(quoteForNft).join(', ')} }` : '';
  return `type ${type} hook ${hook}${at} priority ${priority}; policy ${policy ?? 'accept'};`;
}
