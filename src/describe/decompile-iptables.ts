import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { labelInComment } from '../diff/changes/owners.ts';
import type { PortAddress } from '../diff/port-facts.ts';
import { joinHostPort } from '../kernel/address.ts';
import { singleAddress, type AddressRange } from '../kernel/address-range.ts';
import { families, protocols, type Family } from '../kernel/family.ts';
import type { Chain, Rule, RuleArg, Tables, Target } from '../kernel/iptables/iptables.ts';
import { nameProtocol } from '../kernel/iptables/parse-rule.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains, parseServiceChain, type ServiceChainKind } from '../kube-proxy/chain-names.ts';
import { PortDraft, type MasqueradedClients, type ShownPort } from './shown-port.ts';

/** A Service port while its rules are read. */
class RulesPort extends PortDraft {
  /** Which chains of its own rules lead to. */
  readonly prefixes = new Set<ServiceChainKind>();
  /** Whether its rules jump to a chain on the way to its endpoints that is not there: a kernel has all that rules jump to. */
  lacksChains = false;
}

type Chains = ReadonlyMap<string, Chain>;

const noChains: Chains = new Map();

/** Reads Service ports back from the rules of iptables mode: by what they do, and named by kube-proxy's comments. */
export function decompileIptables(state: KernelState): readonly ShownPort[] {
  return families.flatMap((family) => new RulesReader(state.iptables[family] ?? {}, family).read());
}

/** Reads the tables of one family. */
class RulesReader {
  readonly #nat: Chains;
  readonly #filter: Chains;
  readonly #family: Family;
  readonly #drafts: RulesPort[] = [];
  readonly #byName = new Map<string, RulesPort[]>();
  readonly #byHash = new Map<string, RulesPort>();
  /** Whether rules lead to Service ports' chains: a chain that none leads to is no Service's then. */
  #showsCaptures = false;

  constructor({ nat = noChains, filter = noChains }: Tables, family: Family) {
    this.#nat = nat;
    this.#filter = filter;
    this.#family = family;
  }

  read(): readonly ShownPort[] {
    const rulesOf = (chains: Chains, name: string) => (chains.get(name)?.rules ?? []).map(readRule);
    const captures = rulesOf(this.#nat, baseChains.services);
    const nodePorts = rulesOf(this.#nat, baseChains.nodePorts);
    this.#showsCaptures = [...captures, ...nodePorts].some(({ leadsTo }) => leadsTo);
    // A jump shows whose a rule is for sure: those rules come first.
    for (const isSure of [true, false]) {
      for (const rule of captures) if ((rule.leadsTo !== undefined) === isSure) this.#readCapture(rule, false);
      for (const rule of nodePorts) if ((rule.leadsTo !== undefined) === isSure) this.#readCapture(rule, true);
    }
    for (const name of [baseChains.services, baseChains.externalServices]) {
      for (const rule of rulesOf(this.#filter, name)) this.#readRefusal(rule, name === baseChains.services);
    }
    for (const rule of rulesOf(this.#filter, baseChains.proxyFirewall)) this.#readFirewall(rule);
    for (const rule of rulesOf(this.#filter, baseChains.nodePorts)) this.#readHealthCheck(rule);
    for (const chain of this.#nat.values()) this.#readServiceChain(chain);
    return this.#drafts.filter(showsMore).map((draft) => {
      draft.showsEndpoints &&= !draft.lacksChains;
      return draft.finish();
    });
  }

  /** The Service port that a rule of a chain is there for that all share. */
  #draftOf({ label, leadsTo, address, port, protocol }: ReadRule): RulesPort | undefined {
    // What a Service port is called that nothing names.
    const place = address === undefined ? `node port ${port}` : joinHostPort(address, port ?? 0);
    const name = label ?? (port === undefined || protocol === undefined ? undefined : `${place}/${protocol}`);
    if (name === undefined) return undefined;
    const draft =
      this.#byHash.get(leadsTo?.hash ?? '') ??
      this.#byName.get(name)?.find(
        (known) =>
          // Names may have been made the same before the rules were shown.
          (leadsTo === undefined || !known.prefixes.has(leadsTo.kind)) &&
          (address === undefined || port === undefined || known.port === undefined || known.port === port),
      ) ??
      this.#add(name);
    if (leadsTo) {
      draft.prefixes.add(leadsTo.kind);
      this.#byHash.set(leadsTo.hash, draft);
    }
    if (protocol !== undefined) draft.protocol = protocol;
    return draft;
  }

  #add(name: string): RulesPort {
    const draft = new RulesPort(name, this.#family, 'TCP');
    this.#drafts.push(draft);
    const others = this.#byName.get(name);
    if (others) others.push(draft);
    else this.#byName.set(name, [draft]);
    return draft;
  }

  /** nat KUBE-SERVICES and KUBE-NODEPORTS: the addresses or node ports, and by the chain that a packet goes to, the policy. */
  #readCapture(rule: ReadRule, isNodePort: boolean): void {
    const { label, address, port, leadsTo } = rule;
    const draft = label === undefined && (isNodePort ? port : address) === undefined ? undefined : this.#draftOf(rule);
    if (!draft) return;
    const kind = isNodePort ? undefined : kindOf(rule, draft);
    if (rule.marks) {
      noteMasquerade(draft, kind === 'cluster-ip' ? 'clusterIP' : 'external', rule);
      if (kind === 'unknown') return;
    }
    if (kind === undefined) draft.nodePort ??= port;
    else if (address !== undefined) {
      draft.addAddress(kind, address);
      draft.port ??= port;
    }
    if (kind === 'cluster-ip' && leadsTo) draft.internalTrafficPolicy = leadsTo.kind === 'local' ? 'Local' : 'Cluster';
    if (leadsTo?.kind === 'oldExternal') draft.externalTrafficPolicy = 'Local';
    this.#checkWay(rule, draft);
  }

  /** filter: packets that no rule takes. In KUBE-SERVICES they are for the cluster IP; elsewhere nothing shows for what. */
  #readRefusal(rule: ReadRule, isOfServices: boolean): void {
    const { refusal, address, port } = rule;
    const draft = refusal && this.#draftOf(rule);
    if (!draft) return;
    draft.refusals.add(refusal);
    draft.showsEndpoints = true;
    if (rule.isOfAddressType) {
      draft.nodePort ??= port;
      if (refusal === 'drop') draft.externalTrafficPolicy ??= 'Local';
      return;
    }
    if (address === undefined) return;
    const isInternal = isOfServices && !draft.hasClusterIP();
    const kind = draft.addresses.get(address)?.kind ?? (isInternal ? 'cluster-ip' : 'unknown');
    draft.addAddress(kind, address);
    draft.port ??= port;
    if (refusal === 'drop') {
      draft[kind === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy'] ??= 'Local';
    }
  }

  /** filter KUBE-PROXY-FIREWALL: packets to a load balancer's address that come from outside of its source ranges. */
  #readFirewall(rule: ReadRule): void {
    const { address, port, refusal } = rule;
    const draft = refusal === undefined || address === undefined ? undefined : this.#draftOf(rule);
    if (!draft || address === undefined) return;
    draft.addAddress('load-balancer-ip', address);
    draft.port ??= port;
    draft.hasFirewall = true;
  }

  #readHealthCheck({ comment, label, port }: ReadRule): void {
    if (label === undefined || !comment.endsWith(' health check node port')) return;
    const draft = this.#byName.get(label)?.[0] ?? this.#add(label);
    draft.healthCheckNodePort = port;
  }

  /** The chains of one Service port: found by the hash in their names, by their comments, or by what jumps to them. */
  #readServiceChain(chain: Chain): void {
    const { kind, hash } = serviceChain(chain.name) ?? {};
    if (kind === undefined || hash === undefined) return;
    const rules = chain.rules.map(readRule);
    const draft = this.#byHash.get(hash) ?? this.#draftNamedIn(rules, kind);
    if (!draft) return;
    const path = kind === 'cluster' || kind === 'local' ? 'clusterIP' : 'external';
    for (const rule of rules) {
      this.#checkWay(rule, draft);
      if (rule.marks) noteMasquerade(draft, path, rule);
    }
    switch (kind) {
      case 'external':
        draft.externalTrafficPolicy = rules.some(({ isFromNode }) => isFromNode) ? 'Local' : 'Cluster';
        break;
      case 'firewall':
        readFirewallChain(rules, draft);
        break;
      case 'oldExternal':
        draft.externalTrafficPolicy = 'Local';
        if (rules.some(({ jumpsTo }) => jumpsTo === baseChains.markDrop)) draft.refusals.add('drop');
        this.#readEndpoints(rules, 'Local', draft);
        break;
      default:
        this.#readEndpoints(rules, kind === 'cluster' ? 'Cluster' : 'Local', draft);
    }
  }

  #draftNamedIn(rules: readonly ReadRule[], kind: ServiceChainKind): RulesPort | undefined {
    const names = rules.flatMap(({ label }) => label ?? []);
    const known = names.find((name) => this.#byName.has(name));
    if (known !== undefined) return this.#byName.get(known)?.find(({ prefixes }) => !prefixes.has(kind));
    const [name] = names;
    return this.#showsCaptures || name === undefined ? undefined : this.#add(name);
  }

  #readEndpoints(rules: readonly ReadRule[], policy: TrafficPolicy, draft: RulesPort): void {
    for (const { comment, affinitySeconds, jumpsTo } of rules) {
      // Of a chain that grep found by an address there is the rule that marks packets alone.
      if (/ has no (?:local )?endpoints$/.test(comment)) draft.showsEndpoints = true;
      draft.affinitySeconds = affinitySeconds ?? draft.affinitySeconds;
      if (jumpsTo === undefined || parseServiceChain(jumpsTo)?.kind !== 'endpoint') continue;
      const own = this.#nat.get(jumpsTo);
      // Since 1.24 the jump to an endpoint's chain says where that sends packets: "default/web -> 10.244.0.2:8080".
      const endpoint = destinationOf(own) ?? / -> (\S+:\d{1,5})$/.exec(comment)?.[1] ?? sourceOf(own);
      draft.showsEndpoints = true;
      if (endpoint === undefined) draft.lacksChains = true;
      else draft.addEndpoint(endpoint, policy);
    }
  }

  /** Notes where a rule jumps to a chain of the Service port's that is not there, or that has none of its rules. */
  #checkWay({ leadsTo, jumpsTo = '' }: ReadRule, draft: RulesPort): void {
    if (leadsTo && (this.#nat.get(jumpsTo)?.rules ?? []).length === 0) draft.lacksChains = true;
  }
}

/** A name beside a chain of its own that leads nowhere shows no Service port. */
function showsMore({ addresses, nodePort, healthCheckNodePort, endpoints, refusals }: RulesPort): boolean {
  const places = addresses.size + endpoints.size + refusals.size;
  return places > 0 || nodePort !== undefined || healthCheckNodePort !== undefined;
}

/** What the name of a Service port's own chain says; undefined for an endpoint's, and for any other. */
function serviceChain(name: string | undefined): ReturnType<typeof parseServiceChain> {
  const parsed = name === undefined ? undefined : parseServiceChain(name);
  return parsed?.kind === 'endpoint' ? undefined : parsed;
}

/** What there is to read of a rule of kube-proxy's. */
type ReadRule = ReturnType<typeof readRule>;

function readRule(rule: Rule) {
  const comment = find(rule, 'comment')?.text ?? '';
  const jumpsTo = jumpChain(rule);
  const target = find(rule, 'jump')?.target.kind;
  const destination = findPlain(rule, 'destination')?.range;
  const ports = findPlain(rule, 'destination-port')?.ports;
  const number = findPlain(rule, 'protocol')?.protocol;
  const name = number === undefined ? undefined : nameProtocol(number).toUpperCase();
  const recent = find(rule, 'recent')?.action;
  return {
    comment,
    label: labelInComment(rule),
    jumpsTo,
    /** A Service port's own chain that it jumps to. */
    leadsTo: serviceChain(jumpsTo),
    marks: jumpsTo === baseChains.markMasquerade,
    address: destination && textOf(destination),
    port: ports?.first === ports?.last ? ports?.first : undefined,
    protocol: protocols.find((each) => each === name),
    source: findPlain(rule, 'source')?.range,
    /** Whose packets it marks to be masqueraded. */
    clients: jumpsTo === baseChains.markMasquerade ? clientsOf(rule) : undefined,
    isFromNode: comesFromNode(rule),
    isOfAddressType: find(rule, 'address-type') !== undefined,
    affinitySeconds: recent?.kind === 'rcheck' ? recent.seconds : undefined,
    refusal: target === 'reject' || target === 'drop' ? target : jumpsTo === baseChains.markDrop ? 'drop' : undefined,
  } as const;
}

function find<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return rule.args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
}

/** As find, except for what a packet must have: a rule with "!" takes those that have anything else. */
function findPlain<K extends RuleArg['kind']>(rule: Rule, kind: K): (RuleArg & { readonly kind: K }) | undefined {
  return rule.args.find(
    (arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind && !('negated' in arg && arg.negated === true),
  );
}

function textOf(range: AddressRange): string {
  return (singleAddress(range) ?? range).text;
}

/** What an address is to a Service, as the comment says, or else the chain that its packets go to. */
function kindOf({ comment, leadsTo }: ReadRule, draft: RulesPort): PortAddress['kind'] {
  if (comment.endsWith(' cluster IP')) return 'cluster-ip';
  if (comment.endsWith(' external IP')) return 'external-ip';
  if (comment.endsWith(' loadbalancer IP') || leadsTo?.kind === 'firewall') return 'load-balancer-ip';
  return (leadsTo?.kind === 'cluster' || leadsTo?.kind === 'local') && !draft.hasClusterIP() ? 'cluster-ip' : 'unknown';
}

/** What comes from a source range goes on. Where the node may, so does what comes from the guarded address itself. */
function readFirewallChain(rules: readonly ReadRule[], draft: RulesPort): void {
  for (const { source, jumpsTo } of rules) {
    if (!source || jumpsTo === undefined) continue;
    const single = singleAddress(source)?.text;
    if (single === undefined || !draft.addresses.has(single)) draft.sourceRanges.add(source.text);
  }
  if (draft.sourceRanges.size > 0) draft.hasFirewall = true;
}

/** Under policy Local the node's own packets take another way. */
function comesFromNode(rule: Rule): boolean {
  const type = find(rule, 'address-type');
  return type?.which === 'source' && type.type === 'LOCAL';
}

function noteMasquerade(draft: RulesPort, path: 'clusterIP' | 'external', { clients }: ReadRule): void {
  if (clients) draft.masquerade[path] ??= clients;
}

/** Whose packets a rule takes that has them masqueraded; undefined for those of one client, as of an endpoint. */
export function clientsOf(rule: Rule): MasqueradedClients | undefined {
  if (comesFromNode(rule)) return { kind: 'node' };
  if (findPlain(rule, 'source') ?? findPlain(rule, 'in-interface')) return undefined;
  const source = find(rule, 'source');
  if (source) return { kind: 'all-but', clients: source.range.text };
  const from = find(rule, 'in-interface');
  return from ? { kind: 'all-but', clients: `interface ${from.name}` } : { kind: 'all' };
}

/**
 * The address of an endpoint, of the rule of its chain for packets that come from it. That is all there is of it where
 * iptables-save cannot print the target of rules that another version of it wrote.
 */
function sourceOf(chain: Chain | undefined): string | undefined {
  const source = chain?.rules.map((rule) => findPlain(rule, 'source')).find((arg) => arg !== undefined);
  return source && textOf(source.range);
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
  // With --random or --persistent, which change nothing if there is one address. Any other option may.
  if (target.kind !== 'other') return undefined;
  const [name, option, value = '', ...flags] = target.words;
  const isHarmless = flags.every((flag) => flag === '--random' || flag === '--persistent');
  const socket = name === 'DNAT' && option === '--to-destination' && isHarmless ? parseSocketAddress(value) : undefined;
  return socket && joinHostPort(socket.address.text, socket.port);
}
