import type { Coverage } from '../dumps/coverage.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { labelInComment } from '../kube-proxy/owners.ts';
import type { PortAddress } from '../cluster/model.ts';
import { families, type Family, joinHostPort, protocols } from '../kernel/address.ts';
import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import {
  tableNames,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
} from '../kernel/iptables/iptables.ts';
import { nameProtocol } from '../kernel/iptables/rule-args.ts';
import { conditionsOf } from '../kernel/iptables/rule-terms.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains, parseServiceChain, serviceChainName } from '../kube-proxy/chain-names.ts';
import { findEndless } from '../kube-proxy/unshown.ts';
import {
  endpointAt,
  endpointNamed,
  endpointOn,
  markedClients,
  nodePortPlace,
  PortDraft,
  type DecompiledPort,
  type DraftEndpoint,
} from './decompiled-port.ts';

type Chains = ReadonlyMap<string, Chain>;

/** Reads Service ports from the rules of iptables mode, whose comments name the ports. `shown`: the tables that are complete. */
export function decompileIptables(
  state: KernelState,
  shown: Coverage['iptables'] = { ipv4: tableNames, ipv6: tableNames },
): readonly DecompiledPort[] {
  return families.flatMap((family) => new RulesReader(state.iptables[family] ?? {}, family, shown[family]).read());
}

class RulesReader {
  readonly #nat: Chains;
  readonly #filter: Chains;
  readonly #family: Family;
  readonly #hasWholeNat: boolean;
  readonly #endless: ReadonlySet<string>;
  readonly #hasWholeFilter: boolean;
  readonly #guarded = new Set<string>();
  /** Keyed by name. Several Service ports may have the same name, if names were anonymised before pasting. */
  readonly #byName = new Map<string, PortDraft[]>();
  readonly #byHash = new Map<string, PortDraft>();
  /** Service ports with a jump to a chain that the dump lacks. The kernel has the chain, because it has the chain of every jump. */
  readonly #lackChains = new Set<PortDraft>();

  constructor({ nat = new Map(), filter = new Map() }: Tables, family: Family, shown: readonly TableName[]) {
    this.#nat = nat;
    this.#filter = filter;
    this.#family = family;
    this.#hasWholeNat = shown.includes('nat');
    this.#endless = this.#hasWholeNat ? findEndless(nat) : new Set();
    this.#hasWholeFilter = shown.includes('filter');
  }

  read(): readonly DecompiledPort[] {
    const rulesOf = (chains: Chains, name: string) => (chains.get(name)?.rules ?? []).map(readServiceRule);
    const captures = [
      ...rulesOf(this.#nat, baseChains.services).map((rule) => ({ rule, isNodePort: false })),
      ...rulesOf(this.#nat, baseChains.nodePorts).map((rule) => ({ rule, isNodePort: true })),
    ];
    // Rules with a jump go first, because the chain that they jump to shows with certainty which Service port they belong to.
    const [leading, others] = [
      captures.filter(({ rule }) => rule.leadsTo),
      captures.filter(({ rule }) => !rule.leadsTo),
    ];
    for (const { rule, isNodePort } of [...leading, ...others]) this.#readCapture(rule, isNodePort);
    for (const name of [baseChains.services, baseChains.externalServices]) {
      for (const rule of rulesOf(this.#filter, name)) this.#readRefusal(rule, name === baseChains.services);
    }
    for (const rule of rulesOf(this.#filter, baseChains.proxyFirewall)) this.#readFirewall(rule);
    for (const { label, comment, port } of rulesOf(this.#filter, baseChains.nodePorts)) {
      if (label === undefined || !comment.endsWith(' health check node port')) continue;
      this.#namedOrNew(label).healthCheckNodePort = port;
    }
    // If any rule leads to the chain of a Service port, then a chain without such a rule belongs to no Service.
    for (const chain of this.#nat.values()) this.#readServiceChain(chain, leading.length > 0);
    return [...this.#byName.values()]
      .flat()
      .filter(showsMore)
      .map((draft) => {
        draft.showsEndpoints &&= !this.#lackChains.has(draft);
        draft.hidesAddresses = !this.#hasWholeNat;
        // Without comments, a rule that drops packets was read as a Service port of its own, so the ranges may still be enforced.
        draft.showsFirewall =
          this.#hasWholeFilter && ![...draft.addresses.keys()].some((each) => this.#guarded.has(each));
        return draft.finish();
      });
  }

  #draftOf({ label, leadsTo, address, port, protocol }: ReadRule): PortDraft | undefined {
    const place = joinHostPort(address?.text ?? nodePortPlace, port ?? 0);
    const name = label ?? (port === undefined || protocol === undefined ? undefined : `${place}/${protocol}`);
    if (name === undefined) return undefined;
    const draft =
      (leadsTo
        ? this.#byHash.get(leadsTo.hash)
        : this.#named(name).find((known) => address === undefined || (port ?? known.port) === (known.port ?? port))) ??
      this.#add(name);
    if (leadsTo) this.#byHash.set(leadsTo.hash, draft);
    if (protocol !== undefined) draft.protocol = protocol;
    return draft;
  }

  #named(name: string): readonly PortDraft[] {
    return this.#byName.get(name) ?? [];
  }

  #namedOrNew(name: string): PortDraft {
    return this.#named(name)[0] ?? this.#add(name);
  }

  #add(name: string): PortDraft {
    const draft = new PortDraft(name, this.#family, 'TCP');
    const others = this.#byName.get(name);
    if (others) others.push(draft);
    else this.#byName.set(name, [draft]);
    return draft;
  }

  /** Reads a rule in nat KUBE-SERVICES or KUBE-NODEPORTS: its address or node port, and the policy shown by the chain it leads to. */
  #readCapture(rule: ReadRule, isNodePort: boolean): void {
    const { label, address, port, leadsTo } = rule;
    const draft = label === undefined && (isNodePort ? port : address) === undefined ? undefined : this.#draftOf(rule);
    if (!draft) return;
    const kind = isNodePort ? undefined : addressKindOf(rule, draft);
    if (rule.clients) draft.masquerade[kind === 'cluster-ip' ? 'clusterIP' : 'external'] ??= rule.clients;
    if (rule.marks && kind === 'unknown') return;
    if (kind === undefined) draft.nodePort ??= port;
    else if (address !== undefined) draft.addAddress(kind, address, port);
    if (kind === 'cluster-ip' && leadsTo) draft.internalPolicyLocal = leadsTo.kind === 'local';
    if (leadsTo?.kind === 'oldExternal') draft.externalPolicyLocal = true;
    this.#checkWay(rule, draft);
  }

  /**
   * Reads a rule in table filter that refuses packets. In KUBE-SERVICES, the packets are for the cluster IP. In other chains, the rule does
   * not show what kind of address the packets are for.
   */
  #readRefusal(rule: ReadRule, isOfServices: boolean): void {
    const { refusal, address, port } = rule;
    const draft = refusal && this.#draftOf(rule);
    if (!draft) return;
    draft.refusals.add(refusal);
    // Dropped packets do not show that there are no endpoints. Other nodes may have some, or this node may for the other policy.
    draft.showsEndpoints ||= refusal === 'reject' || this.#hasWholeNat;
    let kind: PortAddress['kind'] | undefined;
    if (rule.isOfAddressType) draft.nodePort ??= port;
    else if (address === undefined) return;
    else {
      const isInternal = isOfServices && !draft.hasClusterIP();
      kind = draft.addresses.get(address.text)?.kind ?? (isInternal ? 'cluster-ip' : 'unknown');
      draft.addAddress(kind, address, port);
    }
    if (refusal === 'drop') {
      draft[kind === 'cluster-ip' ? 'internalPolicyLocal' : 'externalPolicyLocal'] ??= true;
    }
  }

  #readFirewall(rule: ReadRule): void {
    const { address, port, refusal } = rule;
    if (refusal === undefined || address === undefined) return;
    this.#guarded.add(address.text);
    const draft = this.#draftOf(rule);
    draft?.addAddress('load-balancer-ip', address, port);
    if (draft) draft.hasFirewall = true;
  }

  #readServiceChain(chain: Chain, showsCaptures: boolean): void {
    const { kind, hash } = serviceChain(chain.name) ?? {};
    if (kind === undefined || hash === undefined) return;
    const rules = chain.rules.map(readServiceRule);
    const [name] = showsCaptures ? [] : rules.flatMap(({ label }) => label ?? []);
    const draft = this.#byHash.get(hash) ?? (name === undefined ? undefined : this.#namedOrNew(name));
    if (!draft) return;
    this.#byHash.set(hash, draft);
    if (this.#endless.has(chain.name)) draft.endless.set(chain.name, undefined);
    const path = kind === 'cluster' || kind === 'local' ? 'clusterIP' : 'external';
    for (const rule of rules) {
      this.#checkWay(rule, draft);
      if (rule.clients) draft.masquerade[path] ??= rule.clients;
    }
    switch (kind) {
      case 'external':
        draft.externalPolicyLocal = rules.some(({ isFromNode }) => isFromNode);
        if (draft.externalPolicyLocal) this.#checkLocal(chain, serviceChainName('local', hash), draft);
        break;
      case 'firewall':
        readFirewallChain(rules, draft);
        break;
      case 'oldExternal':
        draft.externalPolicyLocal = true;
        if (rules.some(({ refusal }) => refusal === 'drop')) draft.refusals.add('drop');
        this.#readEndpoints(rules, 'Local', draft);
        break;
      default:
        this.#readEndpoints(rules, kind === 'cluster' ? 'Cluster' : 'Local', draft);
    }
  }

  #readEndpoints(rules: readonly ReadRule[], policy: TrafficPolicy, draft: PortDraft): void {
    this.#readAffinity(rules, draft);
    for (const { comment, jumpsTo } of rules) {
      if (/ has no (?:local )?endpoints$/.test(comment)) {
        draft.showsEndpoints ||= this.#hasWholeNat || !comment.endsWith(' local endpoints');
      }
      if (jumpsTo === undefined || parseServiceChain(jumpsTo)?.kind !== 'endpoint') continue;
      const own = this.#nat.get(jumpsTo);
      const endpoint = dnatEndpoint(own?.rules ?? []) ?? commentedEndpoint(comment) ?? endpointBySource(own);
      draft.showsEndpoints = true;
      const isEndless = this.#endless.has(jumpsTo);
      if (isEndless) draft.endless.set(jumpsTo, endpoint?.label);
      if (endpoint === undefined) this.#lackChains.add(draft);
      else if (!isEndless) draft.addEndpoint(endpoint, policy);
    }
  }

  #readAffinity(rules: readonly ReadRule[], draft: PortDraft): void {
    const led = rules.flatMap(({ jumpsTo: chain = '', recent }) =>
      parseServiceChain(chain)?.kind === 'endpoint' ? [{ chain, recent }] : [],
    );
    const lookups = led.flatMap(({ chain, recent }) =>
      recent?.action.kind === 'rcheck' ? [{ chain, list: recent.name, seconds: recent.action.seconds }] : [],
    );
    const drawn = led.filter(({ recent }) => !recent).map(({ chain }) => chain);
    const writes = (chain: string, list: string): boolean => {
      const own = this.#nat.get(chain)?.rules ?? [];
      const adds = own.some((rule) => {
        const recent = findArg(rule, 'recent');
        return recent?.action.kind === 'set' && recent.name === list;
      });
      return adds || own.length === 0 || !this.#hasWholeNat;
    };
    if (lookups.length > 0 || (drawn.length > 0 && this.#hasWholeNat)) draft.noteAffinity(drawn, lookups, writes);
  }

  /** Records that a chain for outside clients does not lead to the chain `local`, which exists for the endpoints on the node. */
  #checkLocal({ name, rules }: Chain, local: string, draft: PortDraft): void {
    const isShown = this.#hasWholeNat && this.#hasWholeFilter && this.#nat.has(local);
    if (isShown && !rules.some((rule) => jumpChain(rule) === local)) draft.lackLocal(name, local);
  }

  /** Records that a chain of the Service port is missing or empty although a rule jumps to it. The dump then lacks endpoints. */
  #checkWay({ leadsTo, jumpsTo = '' }: ReadRule, draft: PortDraft): void {
    if (leadsTo && (this.#nat.get(jumpsTo)?.rules ?? []).length === 0) this.#lackChains.add(draft);
  }
}

/** Reports whether a draft shows a Service port. A chain that leads nowhere does not show one, even if its comment names one. */
function showsMore({ addresses, nodePort, healthCheckNodePort, endpoints, refusals }: PortDraft): boolean {
  const places = addresses.size + endpoints.size + refusals.size;
  return places > 0 || nodePort !== undefined || healthCheckNodePort !== undefined;
}

function serviceChain(name: string | undefined): ReturnType<typeof parseServiceChain> {
  const parsed = name === undefined ? undefined : parseServiceChain(name);
  return parsed?.kind === 'endpoint' ? undefined : parsed;
}

type ReadRule = ReturnType<typeof readServiceRule>;

export function readServiceRule(rule: Rule) {
  const jumpsTo = jumpChain(rule);
  const target = findArg(rule, 'jump')?.target.kind;
  const destination = findPlain(rule, 'destination')?.range;
  const ports = findPlain(rule, 'destination-port')?.ports;
  const number = findPlain(rule, 'protocol')?.protocol;
  const name = number === undefined ? undefined : nameProtocol(number).toUpperCase();
  const marks = jumpsTo === baseChains.markMasquerade;
  const conditions = conditionsOf(rule.args);
  return {
    comment: findArg(rule, 'comment')?.text ?? '',
    label: labelInComment(rule),
    jumpsTo,
    leadsTo: serviceChain(jumpsTo),
    marks,
    address: destination && singleAddress(destination),
    port: ports?.first === ports?.last ? ports?.first : undefined,
    protocol: protocols.find((each) => each === name),
    source: findPlain(rule, 'source')?.range,
    clients: marks ? markedClients(conditions) : undefined,
    isPlain: conditions.length === 0,
    /** Whether the rule matches only the node's own packets, which take another path under policy Local. */
    isFromNode: findArg(rule, 'source-type')?.type === 'LOCAL',
    isOfAddressType: rule.args.some(({ kind }) => kind === 'source-type' || kind === 'destination-type'),
    recent: findArg(rule, 'recent'),
    refusal: target === 'reject' || target === 'drop' ? target : jumpsTo === baseChains.markDrop ? 'drop' : undefined,
  } as const;
}

export function findArg<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return rule.args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
}

function findPlain<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return findArg({ args: rule.args.filter((arg) => !('negated' in arg && arg.negated === true)) }, kind);
}

function addressKindOf({ comment, leadsTo }: ReadRule, draft: PortDraft): PortAddress['kind'] {
  if (comment.endsWith(' cluster IP')) return 'cluster-ip';
  if (comment.endsWith(' external IP')) return 'external-ip';
  if (comment.endsWith(' loadbalancer IP') || leadsTo?.kind === 'firewall') return 'load-balancer-ip';
  return (leadsTo?.kind === 'cluster' || leadsTo?.kind === 'local') && !draft.hasClusterIP() ? 'cluster-ip' : 'unknown';
}

/** Reads the source ranges that the chain admits. Skips the Service's own address, which the chain may admit too. */
function readFirewallChain(rules: readonly ReadRule[], draft: PortDraft): void {
  for (const { source, jumpsTo, leadsTo, isPlain, refusal } of rules) {
    // Without ranges, kube-proxy up to 1.24 admits all clients before the last rule, which drops packets.
    if (leadsTo && isPlain) return;
    if (refusal !== undefined) draft.hasFirewall = true;
    const isGuarded = source && draft.addresses.has((singleAddress(source) ?? source).text);
    if (source && jumpsTo !== undefined && !isGuarded) draft.admit(networkOfRange(source));
  }
}

export function dnatEndpoint(rules: readonly Rule[]): DraftEndpoint | undefined {
  for (const rule of rules) {
    const target = findArg(rule, 'jump')?.target;
    if (target?.kind !== 'dnat') continue;
    return target.port === undefined ? endpointOn(target.address) : endpointAt({ ...target, port: target.port });
  }
  return undefined;
}

/** Reads the endpoint from the comment on a jump to an endpoint chain, which has one since 1.24: "default/web -> 10.244.0.2:8080". */
function commentedEndpoint(comment: string): DraftEndpoint | undefined {
  const [, named] = / -> (\S+:\d{1,5})$/.exec(comment) ?? [];
  return named === undefined ? undefined : endpointNamed(named);
}

/** Reads the endpoint from the rule for its own packets. iptables-save may not print targets of another iptables version. */
function endpointBySource(chain: Chain | undefined): DraftEndpoint | undefined {
  const range = chain?.rules.map((rule) => findPlain(rule, 'source')?.range).find((each) => each !== undefined);
  const address = range && singleAddress(range);
  return address && endpointOn(address);
}
