import { labelInComment } from '../diff/changes/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import { singleAddress } from '../kernel/address-range.ts';
import { families, type Family } from '../kernel/family.ts';
import type { Chain, Rule, RuleArg, Tables, Target } from '../kernel/iptables/iptables.ts';
import { nameProtocol } from '../kernel/iptables/parse-rule.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains, parseServiceChain, type ServiceChainKind } from '../kube-proxy/chain-names.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import type { PortAddress } from '../diff/port-facts.ts';

import { PortDraft, type MasqueradedClients, type ShownPort } from './shown-port.ts';

/** A Service port while its rules are read. */
class RulesPort extends PortDraft {
  /** Which chains of its own rules lead to. */
  readonly prefixes = new Set<ServiceChainKind>();
  /** Whether its rules jump to a chain on the way to its endpoints that is not there: a kernel has all that rules jump to. */
  lacksChains = false;
}

type Chains = ReadonlyMap<string, Chain>;

/** Reads Service ports back from the rules of iptables mode: by what they do, and named by kube-proxy's comments. */
export function decompileIptables(state: KernelState): readonly ShownPort[] {
  return families.flatMap((family) => new RulesReader(state.iptables[family] ?? {}, family).read());
}

const noChains: Chains = new Map();

/** What the name of a Service port's own chain says; undefined for an endpoint's, and for any other. */
function serviceChain(name = ''): ReturnType<typeof parseServiceChain> {
  const parsed = parseServiceChain(name);
  return parsed?.kind === 'endpoint' ? undefined : parsed;
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
    const captures = rulesOf(this.#nat, baseChains.services);
    const nodePorts = rulesOf(this.#nat, baseChains.nodePorts);
    const leads = (rule: Rule): boolean => serviceChain(jumpChain(rule)) !== undefined;
    this.#showsCaptures = [...captures, ...nodePorts].some(leads);
    // A jump shows whose a rule is for sure: those rules come first.
    for (const isSure of [true, false]) {
      for (const rule of captures) if (leads(rule) === isSure) this.#readCapture(rule);
      for (const rule of nodePorts) if (leads(rule) === isSure) this.#readNodePort(rule);
    }
    for (const name of [baseChains.services, baseChains.externalServices]) {
      for (const rule of rulesOf(this.#filter, name)) this.#readRefusal(rule, name);
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
  #draftOf(rule: Rule): RulesPort | undefined {
    const { kind: prefix, hash } = serviceChain(jumpChain(rule)) ?? {};
    const address = addressOf(rule);
    const port = portOf(rule);
    const name = labelInComment(rule) ?? addressName(rule);
    if (name === undefined) return undefined;
    const known =
      this.#byHash.get(hash ?? '') ??
      this.#byName.get(name)?.find(
        (draft) =>
          // Names may have been made the same before the rules were shown.
          (prefix === undefined || !draft.prefixes.has(prefix)) &&
          (address === undefined || port === undefined || draft.port === undefined || draft.port === port),
      );
    const draft = known ?? this.#add(name);
    if (prefix !== undefined && hash !== undefined) {
      draft.prefixes.add(prefix);
      this.#byHash.set(hash, draft);
    }
    const protocol = protocolOf(rule);
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

  /** nat KUBE-SERVICES: the addresses, and by the chain that a packet goes to, the policy. */
  #readCapture(rule: Rule): void {
    const draft = addressOf(rule) === undefined && labelInComment(rule) === undefined ? undefined : this.#draftOf(rule);
    if (!draft) return;
    const kind = kindOf(rule, draft);
    if (jumpChain(rule) === baseChains.markMasquerade) {
      noteMasquerade(draft, kind === 'cluster-ip' ? 'clusterIP' : 'external', rule);
      if (kind === 'unknown') return;
    }
    const address = addressOf(rule);
    if (address !== undefined) {
      draft.addAddress(kind, address);
      draft.port ??= portOf(rule);
    }
    const target = serviceChain(jumpChain(rule))?.kind;
    if (kind === 'cluster-ip' && target) draft.internalTrafficPolicy = target === 'local' ? 'Local' : 'Cluster';
    if (target === 'oldExternal') draft.externalTrafficPolicy = 'Local';
    this.#checkWay(rule, draft);
  }

  #readNodePort(rule: Rule): void {
    const draft = portOf(rule) === undefined && labelInComment(rule) === undefined ? undefined : this.#draftOf(rule);
    if (!draft) return;
    draft.nodePort ??= portOf(rule);
    if (jumpChain(rule) === baseChains.markMasquerade) noteMasquerade(draft, 'external', rule);
    if (serviceChain(jumpChain(rule))?.kind === 'oldExternal') draft.externalTrafficPolicy = 'Local';
    this.#checkWay(rule, draft);
  }

  /** filter: packets that no rule takes. In KUBE-SERVICES they are for the cluster IP; elsewhere nothing tells for what. */
  #readRefusal(rule: Rule, chain: string): void {
    const refusal = refusalOf(rule);
    const draft = refusal && this.#draftOf(rule);
    if (!draft) return;
    draft.refusals.add(refusal);
    draft.showsEndpoints = true;
    if (find(rule, 'address-type')) {
      draft.nodePort ??= portOf(rule);
      if (refusal === 'drop') draft.externalTrafficPolicy ??= 'Local';
      return;
    }
    const address = addressOf(rule);
    if (address === undefined) return;
    const isInternal = chain === baseChains.services && !draft.hasClusterIP();
    const kind = draft.addresses.get(address)?.kind ?? (isInternal ? 'cluster-ip' : 'unknown');
    draft.addAddress(kind, address);
    draft.port ??= portOf(rule);
    if (refusal === 'drop')
      draft[kind === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy'] ??= 'Local';
  }

  /** filter KUBE-PROXY-FIREWALL: packets to a load balancer's address that come from outside of its source ranges. */
  #readFirewall(rule: Rule): void {
    const address = refusalOf(rule) && addressOf(rule);
    const draft = address === undefined ? undefined : this.#draftOf(rule);
    if (!draft || address === undefined) return;
    draft.addAddress('load-balancer-ip', address);
    draft.port ??= portOf(rule);
    draft.hasFirewall = true;
  }

  #readHealthCheck(rule: Rule): void {
    if (!commentOf(rule).endsWith(' health check node port')) return;
    const name = labelInComment(rule);
    if (name === undefined) return;
    const draft = this.#byName.get(name)?.[0] ?? this.#add(name);
    draft.healthCheckNodePort = portOf(rule);
  }

  /** The chains of one Service port: found by the hash in their names, by their comments, or by what jumps to them. */
  #readServiceChain(chain: Chain): void {
    const { kind, hash } = serviceChain(chain.name) ?? {};
    if (kind === undefined || hash === undefined) return;
    const draft = this.#byHash.get(hash) ?? this.#draftNamedIn(chain, kind);
    if (!draft) return;
    for (const rule of chain.rules) this.#checkWay(rule, draft);
    switch (kind) {
      case 'external':
        draft.externalTrafficPolicy = chain.rules.some((rule) => isFromNode(rule)) ? 'Local' : 'Cluster';
        break;
      case 'firewall':
        this.#readFirewallChain(chain, draft);
        break;
      case 'oldExternal':
        draft.externalTrafficPolicy = 'Local';
        if (chain.rules.some((rule) => jumpChain(rule) === baseChains.markDrop)) draft.refusals.add('drop');
        this.#readEndpoints(chain, 'Local', draft);
        break;
      default:
        this.#readEndpoints(chain, kind === 'cluster' ? 'Cluster' : 'Local', draft);
    }
    const path = kind === 'cluster' || kind === 'local' ? 'clusterIP' : 'external';
    for (const rule of chain.rules)
      if (jumpChain(rule) === baseChains.markMasquerade) noteMasquerade(draft, path, rule);
  }

  #draftNamedIn({ rules }: Chain, kind: ServiceChainKind): RulesPort | undefined {
    for (const rule of rules) {
      const drafts = this.#byName.get(labelInComment(rule) ?? '');
      if (drafts) return drafts.find(({ prefixes }) => !prefixes.has(kind));
    }
    const name = rules.flatMap((rule) => labelInComment(rule) ?? [])[0];
    return this.#showsCaptures || name === undefined ? undefined : this.#add(name);
  }

  /** What comes from a source range goes on. Where the node may, so does what comes from the guarded address itself. */
  #readFirewallChain(chain: Chain, draft: RulesPort): void {
    for (const rule of chain.rules) {
      const range = findPlain(rule, 'source')?.range;
      if (!range || jumpChain(rule) === undefined) continue;
      const single = singleAddress(range)?.text;
      if (single === undefined || !draft.addresses.has(single)) draft.sourceRanges.add(range.text);
    }
    if (draft.sourceRanges.size > 0) draft.hasFirewall = true;
  }

  #readEndpoints(chain: Chain, policy: TrafficPolicy, draft: RulesPort): void {
    for (const rule of chain.rules) {
      // Of a chain that grep found by an address there is the rule that marks packets alone.
      if (/ has no (?:local )?endpoints$/.test(commentOf(rule))) draft.showsEndpoints = true;
      const recent = find(rule, 'recent')?.action;
      if (recent?.kind === 'rcheck') draft.affinitySeconds = recent.seconds;
      const target = jumpChain(rule);
      if (target === undefined || parseServiceChain(target)?.kind !== 'endpoint') continue;
      const own = this.#nat.get(target);
      const endpoint = destinationOf(own) ?? destinationInComment(rule) ?? sourceOf(own);
      draft.showsEndpoints = true;
      if (endpoint === undefined) draft.lacksChains = true;
      else draft.addEndpoint(endpoint, policy);
    }
  }

  /** Notes where a rule jumps to a chain of the Service port's that is not there, or that has none of its rules. */
  #checkWay(rule: Rule, draft: RulesPort): void {
    const target = jumpChain(rule);
    if (target === undefined || !serviceChain(target)) return;
    if (rulesOf(this.#nat, target).length === 0) draft.lacksChains = true;
  }
}

/** A name beside a chain of its own that leads nowhere shows no Service port. */
function showsMore({ addresses, nodePort, healthCheckNodePort, endpoints, refusals }: RulesPort): boolean {
  const places = addresses.size + endpoints.size + refusals.size;
  return places > 0 || nodePort !== undefined || healthCheckNodePort !== undefined;
}

function rulesOf(chains: Chains, name: string): readonly Rule[] {
  return chains.get(name)?.rules ?? [];
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

/** What a Service port is called that nothing names. */
function addressName(rule: Rule): string | undefined {
  const address = addressOf(rule);
  const port = portOf(rule);
  const protocol = protocolOf(rule);
  if (port === undefined || protocol === undefined) return undefined;
  return address === undefined ? `node port ${port}/${protocol}` : `${joinHostPort(address, port)}/${protocol}`;
}

function protocolOf(rule: Rule): ShownPort['protocol'] | undefined {
  const arg = findPlain(rule, 'protocol');
  const protocol = arg && nameProtocol(arg.protocol).toUpperCase();
  return protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP' ? protocol : undefined;
}

function portOf(rule: Rule): number | undefined {
  const ports = findPlain(rule, 'destination-port')?.ports;
  return ports?.first === ports?.last ? ports?.first : undefined;
}

function addressOf(rule: Rule): string | undefined {
  const range = findPlain(rule, 'destination')?.range;
  return range && (singleAddress(range) ?? range).text;
}

/** What an address is to a Service, as the comment says, or else the chain that its packets go to. */
function kindOf(rule: Rule, draft: RulesPort): PortAddress['kind'] {
  const [, word] = / (cluster|external|loadbalancer) IP$/.exec(commentOf(rule)) ?? [];
  switch (word) {
    case 'cluster':
      return 'cluster-ip';
    case 'external':
      return 'external-ip';
    case 'loadbalancer':
      return 'load-balancer-ip';
    default: {
      const kind = serviceChain(jumpChain(rule))?.kind;
      if (kind === 'firewall') return 'load-balancer-ip';
      return (kind === 'cluster' || kind === 'local') && !draft.hasClusterIP() ? 'cluster-ip' : 'unknown';
    }
  }
}

function refusalOf(rule: Rule): 'reject' | 'drop' | undefined {
  const target = find(rule, 'jump')?.target;
  if (target?.kind === 'reject' || target?.kind === 'drop') return target.kind;
  return target?.kind === 'chain' && target.chain === baseChains.markDrop ? 'drop' : undefined;
}

/** Under policy Local the node's own packets take another way. */
function isFromNode(rule: Rule): boolean {
  const type = find(rule, 'address-type');
  return type?.which === 'source' && type.type === 'LOCAL';
}

function noteMasquerade(draft: RulesPort, path: 'clusterIP' | 'external', rule: Rule): void {
  const clients = clientsOf(rule);
  if (clients) draft.masquerade[path] ??= clients;
}

/** Whose packets a rule takes that has them masqueraded; undefined for those of one client, as of an endpoint. */
export function clientsOf(rule: Rule): MasqueradedClients | undefined {
  if (isFromNode(rule)) return { kind: 'node' };
  if (findPlain(rule, 'source') ?? findPlain(rule, 'in-interface')) return undefined;
  const source = find(rule, 'source');
  if (source) return { kind: 'all-but', clients: source.range.text };
  const from = find(rule, 'in-interface');
  return from ? { kind: 'all-but', clients: `interface ${from.name}` } : { kind: 'all' };
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
