import { compareText } from '../compare.ts';
import { networkOfRange } from '../address-range.ts';
import { nameProtocol } from './rule-args.ts';
import { formatRule, type Rule, type RuleArg, type RuleTarget } from './iptables.ts';

/** Writes a rule in one form for all spellings by kube-proxy and iptables-save. Rules with equal texts treat every packet alike. */
export function ruleMeaning(rule: Rule): string {
  return formatRule(canonicalRule(rule));
}

export function canonicalRule(rule: Rule): Rule {
  return { args: canonicalArgs(rule.args) };
}

/** kube-proxy's counters, which it uses if the kernel has nfnetlink_acct (iptables/proxier.go, metrics/metrics.go). */
const droppedCounter = '-m nfacct --nfacct-name ct_state_invalid_dropped_pkts';
const localhostCounter = '-m nfacct --nfacct-name localhost_nps_accepted_pkts';

/**
 * Reports whether an argument is only a packet counter, which never affects matching. `-m nfacct` matches every packet, because
 * kube-proxy's counters have no quota.
 */
export function isNfacctCounter(arg: RuleArg): boolean {
  if (arg.kind !== 'other') return false;
  const text = arg.words.join(' ');
  return text === droppedCounter || text === localhostCounter;
}

/**
 * Drops rules that only count packets. One such rule of kube-proxy counts packets from localhost, and is a narrower copy of the rule after
 * it.
 */
export function actingRules(rules: readonly Rule[]): readonly Rule[] {
  const countsLocalhost = ({ args }: Rule): boolean =>
    args.some((arg) => arg.kind === 'other' && arg.words.join(' ') === localhostCounter);
  if (!rules.some(countsLocalhost)) return rules;
  const widened = ({ args }: Rule): Rule => ({ args: args.filter((arg) => arg.kind !== 'destination' || arg.negated) });
  return rules.filter((rule, i) => {
    const next = rules[i + 1];
    return !countsLocalhost(rule) || !next || ruleMeaning(widened(rule)) !== ruleMeaning(next);
  });
}

/**
 * The order of arguments in ruleMeaning: iptables' own options as iptables-save prints them, comment, matches, target. A match that
 * remembers or counts packets (recent, limit) sees only packets that passed the matches before it, so no other match must move across it.
 */
const order: readonly string[] = (
  'source destination in-interface out-interface protocol comment module source-port destination-port mark conntrack-state ' +
  'source-type destination-type match-set physdev-is-in virtual-server statistic recent other jump'
).split(' ');
const ranks = new Map(order.map((kind, rank) => [kind, rank]));
const lastHeader = order.indexOf('comment');
const firstStateful = order.indexOf('statistic');
const last = order.indexOf('jump');

function canonicalArgs(args: readonly RuleArg[]): RuleArg[] {
  const ranked: { readonly arg: RuleArg; readonly rank: number }[] = [];
  const lastGroup = 2 * args.length + 2;
  let group = 1;
  for (const written of args) {
    const arg = canonicalArg(written);
    if (!arg) continue;
    const rank = ranks.get(arg.kind) ?? last;
    const isStateful = rank >= firstStateful && rank < last;
    if (isStateful) group++;
    ranked.push({ arg, rank: (rank <= lastHeader ? 0 : rank === last ? lastGroup : group) * 32 + rank });
    if (isStateful) group++;
  }
  ranked.sort((a, b) => a.rank - b.rank || compareText(formatRule({ args: [a.arg] }), formatRule({ args: [b.arg] })));
  return ranked.map(({ arg }) => arg);
}

function canonicalArg(arg: RuleArg): RuleArg | undefined {
  switch (arg.kind) {
    case 'source':
    case 'destination': {
      const range = networkOfRange(arg.range);
      // iptables-save omits a network that contains every address.
      if (range.prefixLength === 0 && !arg.negated) return undefined;
      return range === arg.range ? arg : { ...arg, range };
    }
    case 'protocol': {
      const protocol = nameProtocol(arg.protocol);
      return protocol === 'all' && !arg.negated ? undefined : { ...arg, protocol };
    }
    case 'module':
      // `-m tcp` alone adds nothing to `-p tcp`, which iptables requires with it.
      return arg.name === 'tcp' || arg.name === 'udp' || arg.name === 'sctp' ? undefined : arg;
    case 'conntrack-state':
      return { ...arg, states: arg.states.length > 1 ? [...new Set(arg.states)].sort() : arg.states };
    case 'source-type':
    case 'destination-type':
      return arg.type.includes(',') ? { ...arg, type: arg.type.split(',').sort().join(',') } : arg;
    case 'virtual-server':
      return { ...arg, protocol: nameProtocol(arg.protocol) };
    case 'statistic':
      return { kind: 'statistic', probability: storedProbability(arg.probability) };
    case 'jump':
      return { ...arg, target: canonicalTarget(arg.target) };
    case 'in-interface':
    case 'out-interface':
      return arg.name === '+' && !arg.negated ? undefined : arg;
    case 'other':
      return isNfacctCounter(arg) ? undefined : arg;
    case 'comment':
    case 'destination-port':
    case 'source-port':
    case 'mark':
    case 'match-set':
    case 'physdev-is-in':
    case 'recent':
    case 'unshown-port':
      return arg;
    default:
      return arg satisfies never;
  }
}

/** Returns a probability as iptables-save prints it: the kernel stores 31 bits, printed with eleven decimals. */
function storedProbability(text: string): string {
  const probability = Number(text);
  return probability >= 0 && probability <= 1 ? (Math.round(probability * 2 ** 31) / 2 ** 31).toFixed(11) : text;
}

function canonicalTarget(target: RuleTarget): RuleTarget {
  if (target.kind === 'mark') return { ...target, operation: 'set' };
  const isDefault = target.kind === 'reject' && /^icmp6?-port-unreachable$/.test(target.with ?? '');
  return isDefault ? { kind: 'reject' } : target;
}
