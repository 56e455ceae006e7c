import { isLoopback, type Address } from '../../kernel/address.ts';
import { networkOfRange } from '../../kernel/address-range.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { baseChains, parseServiceChain, type ServiceChainKind } from '../../kube-proxy/chain-names.ts';
import { isNamedByKubeProxy } from '../../kube-proxy/chains.ts';
import { isKubeProxyTable, nftChains, parseNftName } from '../../kube-proxy/nft-table.ts';
import type { Fate } from '../../packet/packet.ts';
import type { Action, Hook, RouteDecision, RuleStep, Step } from '../../packet/step.ts';

/**
 * Says why a packet is dropped or refused. Only the rule that stops the packet decides:
 *
 * - no-endpoints: kube-proxy refuses the packet because its Service has no endpoints
 * - no-local-endpoints: kube-proxy drops the packet because its Service has policy Local and no endpoint on this node
 * - no-server: IPVS or a balancer has no endpoint to send the packet to, for one of the two reasons above
 * - source-ranges: the packet comes from outside a load balancer's source ranges
 * - unserved-port: the packet goes to a cluster IP without this port
 * - unserved-address: the packet goes to a cluster IP that no Service has
 * - kernel: routing drops the packet
 * - kube-proxy: another rule of kube-proxy stops the packet
 * - stranger: a rule or policy that is not kube-proxy's stops the packet
 */
export type Stop =
  | {
      readonly kind: 'no-endpoints' | 'no-local-endpoints' | 'no-server';
      readonly servicePort: string | undefined;
    }
  | { readonly kind: 'source-ranges' | 'unserved-port' | 'unserved-address' | 'kube-proxy' }
  | { readonly kind: 'kernel'; readonly decision: RouteDecision; readonly destination: Address }
  | { readonly kind: 'stranger'; readonly step: Step & { readonly kind: 'rule' | 'policy' } };

export const stopKinds = [
  'no-endpoints',
  'no-local-endpoints',
  'no-server',
  'source-ranges',
  'unserved-port',
  'unserved-address',
  'kube-proxy',
  'kernel',
  'stranger',
] as const satisfies readonly Stop['kind'][];

export function stopOf({ verdict, steps }: Pick<Fate, 'verdict' | 'steps'>): Stop | undefined {
  const last = steps.at(-1);
  if (!last || (verdict !== 'dropped' && verdict !== 'refused')) return undefined;
  switch (last.kind) {
    case 'virtual-server':
    case 'listener':
      return { kind: 'no-server', servicePort: last.server.origin?.servicePort };
    case 'carrier':
      return undefined;
    case 'route':
      return { kind: 'kernel', decision: last.decision, destination: last.destination };
    case 'policy':
      return { kind: 'stranger', step: last };
    case 'rule': {
      const rules = steps.filter((step) => step.kind === 'rule');
      const kind = isOfIptables(last) ? iptablesStop(markerOf(last, rules), rules) : nftStop(last);
      if (kind === 'stranger') return { kind, step: last };
      if (kind !== 'no-endpoints' && kind !== 'no-local-endpoints') return { kind };
      // In a chain that all Services share, the rule before this one names the Service port.
      return { kind, servicePort: (last.origin ?? rules.at(-2)?.origin)?.servicePort };
    }
  }
}

type RuleStop = Exclude<Stop['kind'], 'kernel' | 'no-server'>;

/** Returns the rule that decides to drop a packet. Up to 1.23, kube-proxy only marked packets, and the kubelet's chain dropped them. */
function markerOf(last: RuleStep, rules: readonly RuleStep[]): RuleStep {
  const isMarked = last.table === 'filter' && last.chain === baseChains.kubeletFirewall;
  const goesToMark = ({ action }: RuleStep) => action.kind === 'jump' && action.chain === baseChains.markDrop;
  return (isMarked ? rules.findLast(goesToMark) : undefined) ?? last;
}

/** Finds what stops a packet in iptables or IPVS mode (writeServiceToEndpointRules, and syncProxyRules in both proxiers). */
function iptablesStop({ table, chain, action }: RuleStep, rules: readonly RuleStep[]): RuleStop {
  switch (chain) {
    case baseChains.services:
    case baseChains.externalServices:
      return action.kind === 'reject' ? 'no-endpoints' : 'no-local-endpoints';
    case baseChains.proxyFirewall:
      // The firewall chain drops every packet that was not sent to an endpoint. This includes packets that the ranges admit, and packets
      // whose source was never tested.
      if (!rules.some((rule) => jumpsToKind(rule, 'firewall'))) return 'kube-proxy';
      return rules.some(admits) ? 'no-local-endpoints' : 'source-ranges';
    case baseChains.sourceRangesFirewall:
    // In IPVS mode, a node has load balancer addresses itself. This chain stops its packets to them if the ranges exclude it.
    case baseChains.accessOutFilter:
      return 'source-ranges';
    case baseChains.accessFilter:
      return 'unserved-port';
    case baseChains.kubeletFirewall:
      // Up to 1.23, IPVS mode had a chain with this name in table nat. It enforced source ranges.
      return table === 'nat' ? 'source-ranges' : 'kube-proxy';
  }
  const kind = parseServiceChain(chain)?.kind;
  if (kind === 'firewall') return 'source-ranges';
  if (kind === 'oldExternal') return 'no-local-endpoints';
  return isNamedByKubeProxy(chain) ? 'kube-proxy' : 'stranger';
}

function jumpsToKind({ action }: RuleStep, kind: ServiceChainKind): boolean {
  return action.kind === 'jump' && parseServiceChain(action.chain)?.kind === kind;
}

function admits(rule: RuleStep): boolean {
  return parseServiceChain(rule.chain)?.kind === 'firewall' && jumpsToKind(rule, 'external');
}

/** Reports whether a program other than kube-proxy made a rule, judging by the names of its table and chain. */
function isStrange(rule: RuleStep): boolean {
  return isOfIptables(rule) ? !isNamedByKubeProxy(rule.chain) : !isKubeProxyTable(rule.table);
}

/** Finds another program's rule that keeps a packet from kube-proxy's rules, which translate a tracked connection once. */
export function diversionIn(steps: readonly Step[]): RuleStep | undefined {
  const rules = steps.filter((step) => step.kind === 'rule');
  const own = rules.findIndex(leadsToKubeProxy);
  // A verdict that ends an iptables table does not end nft's tables.
  const isOfNft = rules.some((rule) => !isOfIptables(rule) && !isStrange(rule));
  const isBefore = (i: number): boolean => !isOfNft && (own < 0 || i < own);
  return rules.find((rule, i) => isStrange(rule) && (translates(rule) || (isBefore(i) && passesBy(rule))));
}

function leadsToKubeProxy({ action }: RuleStep): boolean {
  return (action.kind === 'jump' || action.kind === 'goto') && isNamedByKubeProxy(action.chain);
}

const translations: ReadonlySet<Action['kind']> = new Set(['notrack', 'redirect', 'dnat', 'dnat-random']);

function translates({ action }: RuleStep): boolean {
  return translations.has(action.kind);
}

/**
 * Finds a rule that ends a chain early, so that the packet bypasses the Service rules. `tables`: nat; also filter if the Service has no
 * endpoints, because kube-proxy then refuses the packets there.
 */
export function bypassIn(steps: readonly Step[], tables: readonly TableName[]): RuleStep | undefined {
  const rules = steps.filter((step) => step.kind === 'rule').filter(isOfIptables);
  const leads = (rule: RuleStep): boolean => 'chain' in rule.action && rule.action.chain === baseChains.services;
  return rules.find((rule, i) => {
    const { table, chain, hook, action } = rule;
    const own = tables.find((each) => each === table);
    if (!own || hook === 'postrouting' || leads(rule)) return false;
    if (chain === baseChains.services) return action.kind === 'return' && !returnsLoopback(rule);
    const ends =
      action.kind === 'accept' || (isBuiltInChain(own, chain) && (action.kind === 'return' || action.kind === 'goto'));
    return (
      ends &&
      isStrange(rule) &&
      !rules.slice(0, i).some((each) => each.table === table && each.hook === hook && leads(each))
    );
  });
}

/** Reports whether this is the RETURN rule that IPVS mode itself makes for packets from a loopback address. */
function returnsLoopback(rule: RuleStep): boolean {
  if (rule.tool !== 'iptables') return false;
  return rule.rule.args.some((arg) => arg.kind === 'source' && isLoopback(networkOfRange(arg.range).address));
}

/** Reports whether the rule ends table nat before the jump to kube-proxy's rules. */
function passesBy(rule: RuleStep): boolean {
  const { action, table, chain, hook } = rule;
  if (!isOfIptables(rule) || table !== 'nat' || (hook !== 'prerouting' && hook !== 'output')) return false;
  return action.kind === 'accept' || (action.kind === 'return' && isBuiltInChain(table, chain));
}

/** Returns the last chain of a Service port or endpoint that a packet enters. */
export function lastServiceChain(steps: readonly Step[]): string | undefined {
  const chains = steps.flatMap((step) => (step.kind === 'rule' && 'chain' in step.action ? step.action.chain : []));
  return chains.findLast((chain) => parseServiceChain(chain) ?? parseNftName(chain));
}

/** Reports whether kube-proxy leaves a packet as it is, even if something stops the packet after it passed kube-proxy's translation. */
export function isLeft({ verdict, steps }: Fate): boolean {
  if (verdict === 'local' || verdict === 'forwarded') return true;
  const stop = stopOf({ verdict, steps });
  const isAfter = stop?.kind === 'stranger' ? afterTranslation.has(stop.step.hook) : stop?.kind === 'kernel';
  return isAfter && lastServiceChain(steps) === undefined && steps.every(({ kind }) => kind !== 'virtual-server');
}

const afterTranslation: ReadonlySet<Hook> = new Set(['input', 'forward']);

function isOfIptables({ tool, table }: RuleStep): boolean {
  return tool === 'iptables' || tableNames.some((name) => name === table);
}

function nftStop({ table, chain, action }: RuleStep): RuleStop {
  if (!isKubeProxyTable(table)) return 'stranger';
  switch (chain) {
    case nftChains.reject:
      return 'no-endpoints';
    case nftChains.serviceEndpointsCheck:
    case nftChains.nodePortEndpointsCheck:
      return 'no-local-endpoints';
    case nftChains.clusterIPsCheck:
      return action.kind === 'reject' ? 'unserved-port' : 'unserved-address';
    default:
      return parseNftName(chain)?.kind === 'firewall' ? 'source-ranges' : 'kube-proxy';
  }
}
