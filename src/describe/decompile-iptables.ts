import { labelInComment } from '../changes/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import { isNetwork, singleAddress } from '../kernel/address-range.ts';
import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { Chain, Rule, RuleArg, Target } from '../kernel/iptables.ts';
import { nameProtocol } from '../kernel/iptables-rule.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import type { DecompiledAddress, DecompiledPort, TrafficPolicy } from './decompile.ts';
import { finishDraft, startDraft } from './port-draft.ts';
import type { PortDraft } from './port-draft.ts';

/** A Service port while its rules are read. */
interface Draft extends PortDraft {
  /** Whether a chain that chooses among its endpoints is there, or a rule that says that it has none. */
  hasEndpointsTold: boolean;
  /** Whether its rules jump to a chain on the way to its endpoints that is not there: a kernel has all that rules jump to. */
  lacksChains: boolean;
}

type Chains = ReadonlyMap<string, Chain>;

/** Reads Service ports back from the rules of iptables mode. Only rules with kube-proxy's comments can be read. */
export function decompileIptables(state: KernelState): readonly DecompiledPort[] {
  return families.flatMap((family) => {
    const nat = state.iptables[family]?.nat ?? noChains;
    const filter = state.iptables[family]?.filter ?? noChains;
    const drafts = new Map<string, Draft>();
    for (const rule of nat.get('KUBE-SERVICES')?.rules ?? []) {
      readCapture(rule, drafts, family);
      checkWay(rule, nat, labelInComment(rule), drafts);
    }
    for (const name of ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES']) {
      for (const rule of filter.get(name)?.rules ?? []) readRefusal(rule, drafts, family);
    }
    for (const rule of nat.get('KUBE-NODEPORTS')?.rules ?? []) {
      readNodePort(rule, drafts, family);
      checkWay(rule, nat, labelInComment(rule), drafts);
    }
    for (const rule of filter.get('KUBE-NODEPORTS')?.rules ?? []) readHealthCheck(rule, drafts, family);
    const labels = labelsOfJumps(nat);
    for (const chain of nat.values()) readServiceChain(chain, nat, labels, drafts);
    return [...drafts.values()].map(finish);
  });
}

const noChains: Chains = new Map();

function finish({ hasEndpointsTold, lacksChains, ...draft }: Draft): DecompiledPort {
  const finished = finishDraft(draft);
  return hasEndpointsTold && !lacksChains ? finished : { ...finished, endpoints: undefined };
}

function draftOf(rule: Rule, drafts: Map<string, Draft>, family: Family): Draft | undefined {
  const name = labelInComment(rule);
  if (name === undefined) return undefined;
  const known = drafts.get(name);
  if (known) return known;
  const draft: Draft = { ...startDraft(name, family, 'TCP'), hasEndpointsTold: false, lacksChains: false };
  drafts.set(name, draft);
  return draft;
}

function find<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return rule.args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
}

/** As find, but for what a packet must have: a rule with "!" takes those that have anything else. */
function findPlain<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return rule.args.find(
    (arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind && !('negated' in arg && arg.negated === true),
  );
}

function commentOf(rule: Rule): string {
  return find(rule, 'comment')?.text ?? '';
}

function readProtocol(rule: Rule, draft: Draft): void {
  const arg = findPlain(rule, 'protocol');
  const protocol = arg && nameProtocol(arg.protocol).toUpperCase();
  if (protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP') draft.protocol = protocol;
}

/** Notes where a rule jumps to a chain of the Service port's that is not there, or that has none of its rules. */
function checkWay(rule: Rule, nat: Chains, label: string | undefined, drafts: Map<string, Draft>): void {
  const target = jumpChain(rule);
  const draft = drafts.get(label ?? '');
  if (!draft || target === undefined || !/^KUBE-(SVC|SVL|EXT|XLB|FW)-/.test(target)) return;
  if ((nat.get(target)?.rules.length ?? 0) === 0) draft.lacksChains = true;
}

function portOf(rule: Rule): number | undefined {
  const ports = findPlain(rule, 'destination-port')?.ports;
  return ports?.first === ports?.last ? ports?.first : undefined;
}

function addAddress(rule: Rule, draft: Draft, kind: DecompiledAddress['kind']): void {
  const range = findPlain(rule, 'destination')?.range;
  if (!range) return;
  const address = (singleAddress(range) ?? range).text;
  const known = draft.addresses.get(address);
  if (!known || known.kind === 'unknown') draft.addresses.set(address, { kind, address });
  draft.port ??= portOf(rule);
}

/** nat KUBE-SERVICES: the addresses, and by the chain that a packet goes to, the internal policy. */
function readCapture(rule: Rule, drafts: Map<string, Draft>, family: Family): void {
  const draft = draftOf(rule, drafts, family);
  if (!draft) return;
  readProtocol(rule, draft);
  const comment = commentOf(rule);
  if (comment.endsWith(' cluster IP')) {
    addAddress(rule, draft, 'cluster-ip');
    draft.internalTrafficPolicy = jumpChain(rule)?.startsWith('KUBE-SVL-') ? 'Local' : 'Cluster';
  } else if (comment.endsWith(' external IP')) addAddress(rule, draft, 'external-ip');
  else if (comment.endsWith(' loadbalancer IP')) addAddress(rule, draft, 'load-balancer-ip');
  else if (jumpChain(rule) !== 'KUBE-MARK-MASQ') addAddress(rule, draft, 'unknown');
}

/** filter: packets that no rule takes. In KUBE-SERVICES they are for the cluster IP; elsewhere nothing tells for what. */
function readRefusal(rule: Rule, drafts: Map<string, Draft>, family: Family): void {
  const draft = draftOf(rule, drafts, family);
  if (!draft) return;
  readProtocol(rule, draft);
  if (/ has no (?:local )?endpoints$/.test(commentOf(rule))) draft.hasEndpointsTold = true;
  if (find(rule, 'address-type')) {
    draft.nodePort ??= portOf(rule);
    return;
  }
  addAddress(rule, draft, draft.addresses.size === 0 ? 'cluster-ip' : 'unknown');
}

function readNodePort(rule: Rule, drafts: Map<string, Draft>, family: Family): void {
  const draft = draftOf(rule, drafts, family);
  if (!draft) return;
  readProtocol(rule, draft);
  draft.nodePort ??= portOf(rule);
}

function readHealthCheck(rule: Rule, drafts: Map<string, Draft>, family: Family): void {
  if (!commentOf(rule).endsWith(' health check node port')) return;
  const draft = draftOf(rule, drafts, family);
  if (draft) draft.healthCheckNodePort = portOf(rule);
}

/** The chains of one Service port: found by the jumps of the chains above, but each also tells its own name. */
function readServiceChain(
  chain: Chain,
  nat: Chains,
  labels: ReadonlyMap<string, string>,
  drafts: Map<string, Draft>,
): void {
  const kind = /^KUBE-(SVC|SVL|EXT|FW)-/.exec(chain.name)?.[1];
  if (kind === undefined) return;
  const label = labelOfRules(chain) ?? labels.get(chain.name);
  const draft = drafts.get(label ?? '');
  if (!draft) return;
  for (const rule of chain.rules) checkWay(rule, nat, label, drafts);
  if (kind === 'EXT') draft.externalTrafficPolicy = isLocalExternal(chain) ? 'Local' : 'Cluster';
  else if (kind === 'FW') {
    for (const rule of chain.rules) {
      const range = findPlain(rule, 'source')?.range;
      if (range && isNetwork(range)) draft.sourceRanges.push(range.text);
    }
  } else readEndpoints(chain, kind === 'SVC' ? 'Cluster' : 'Local', nat, draft);
}

function labelOfRules(chain: Chain): string | undefined {
  for (const rule of chain.rules) {
    const label = labelInComment(rule);
    if (label !== undefined) return label;
  }
  return undefined;
}

/**
 * In large clusters the rules that name an endpoint have no comments; the jumps to a Service port's chains still have.
 * Chain → label.
 */
function labelsOfJumps(nat: Chains): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const rule of nat.get('KUBE-SERVICES')?.rules ?? []) {
    const target = jumpChain(rule);
    const label = labelInComment(rule);
    if (target !== undefined && label !== undefined && !labels.has(target)) labels.set(target, label);
  }
  return labels;
}

function isLocalExternal(chain: Chain): boolean {
  return chain.rules.some((rule) => / LOCAL traffic for /.test(commentOf(rule)));
}

function readEndpoints(chain: Chain, policy: TrafficPolicy, nat: Chains, draft: Draft): void {
  for (const rule of chain.rules) {
    // Of a chain that grep found by an address there is the rule that marks packets alone.
    if (/ has no (?:local )?endpoints$/.test(commentOf(rule))) draft.hasEndpointsTold = true;
    const recent = find(rule, 'recent')?.action;
    if (recent?.kind === 'rcheck') draft.affinitySeconds = recent.seconds;
    const target = jumpChain(rule);
    if (target === undefined || !target.startsWith('KUBE-SEP-')) continue;
    const endpoint = destinationOf(nat.get(target)) ?? destinationInComment(rule) ?? sourceOf(nat.get(target));
    draft.hasEndpointsTold = true;
    if (endpoint === undefined) {
      draft.lacksChains = true;
      continue;
    }
    const takes = draft.endpoints.get(endpoint) ?? new Set<TrafficPolicy>();
    takes.add(policy);
    draft.endpoints.set(endpoint, takes);
  }
}

/** Since 1.24 the jump to an endpoint's chain says where that sends packets: "default/web -> 10.244.0.2:8080". */
function destinationInComment(rule: Rule): string | undefined {
  return / -> (\S+:\d{1,5})$/.exec(commentOf(rule))?.[1];
}

/**
 * The address of an endpoint, of the rule of its chain for packets that come from it. That is all there is of it where
 * iptables-save cannot print the target of rules that another version of it wrote.
 */
function sourceOf(chain: Chain | undefined): string | undefined {
  for (const rule of chain?.rules ?? []) {
    const source = findPlain(rule, 'source');
    if (source) return (singleAddress(source.range) ?? source.range).text;
  }
  return undefined;
}

/** Where an endpoint's chain sends packets: "ip:port". */
export function destinationOf(chain: Chain | undefined): string | undefined {
  for (const rule of chain?.rules ?? []) {
    const target = find(rule, 'jump')?.target;
    const destination = target && destinationOfTarget(target);
    if (destination !== undefined) return destination;
  }
  return undefined;
}

function destinationOfTarget(target: Target): string | undefined {
  if (target.kind === 'dnat') {
    const { address, port } = target;
    return port === undefined ? address.text : joinHostPort(address.text, port);
  }
  // With --random or --persistent, which change nothing where there is one address. Any other option may.
  if (target.kind !== 'other') return undefined;
  const [name, option, value = '', ...flags] = target.words;
  if (name !== 'DNAT' || option !== '--to-destination' || !flags.every((flag) => harmless.has(flag))) return undefined;
  const socket = parseSocketAddress(value);
  return socket && joinHostPort(socket.address.text, socket.port);
}

const harmless: ReadonlySet<string> = new Set(['--random', '--persistent']);
