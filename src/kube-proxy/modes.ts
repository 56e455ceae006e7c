import { families, type Family, type Protocol, protocols } from '../kernel/address.ts';
import type { ObjectKind } from '../kernel/state.ts';

export const proxyModes = ['ipvs', 'iptables', 'nftables', 'userspace'] as const;

export type ProxyMode = (typeof proxyModes)[number];

export const proxyModeNames = proxyModes.join(', ').replace(/, (?=[^,]*$)/, ' or ');

/** What leaves a mode unnamed: an empty --proxy-mode, a configuration without a mode, or an input with neither. */
export type UnnamedBy = 'empty-flag' | 'configuration' | 'nothing';

/** The source of a mode that the user did not name. */
export type ModeSource = UnnamedBy | 'dump';

export function titleOfMode(mode: ProxyMode | undefined): string {
  return mode ? modeFacts[mode].title : 'kube-proxy';
}

const masqueradeSections = ['iptables', 'nftables'] as const;

export type CountName =
  'virtualServers' | 'realServers' | 'proxyPorts' | 'addresses' | 'sets' | 'setEntries' | 'chains' | 'rules';

/** The facts of a mode. Every difference between modes that needs no code is a field here. */
export interface ModeFacts {
  readonly title: string;
  readonly kinds: ReadonlySet<ObjectKind>;
  readonly mainKind: ObjectKind;
  readonly serviceKinds: readonly ObjectKind[];
  readonly families: readonly Family[];
  readonly protocols: readonly Protocol[];
  /** Tools that load the objects, with the oldest versions that read the formats kpc writes. */
  readonly tools: Readonly<Record<string, string>>;
  readonly modules: readonly string[];
  readonly sysctls: readonly string[];
  /**
   * The effects of rules in table filter on packets before a firewall's rules: accept health checks (KUBE-NODEPORTS), accept masqueraded
   * packets that the node forwards (KUBE-FORWARD), and drop packets that connection tracking calls invalid.
   */
  readonly filters: readonly ('health-checks' | 'forwarded' | 'invalid')[];
  /** Further sysctls, which are set only for some configurations or kernels. */
  readonly conditionalSysctls: readonly string[];
  readonly summary: readonly (readonly [count: CountName, one: string])[];
  /** How many objects name their Services, in comments or in names. */
  readonly namesServices: 'all' | 'some' | 'none';
  /** Whether each Service port has chains of its own: KUBE-SVC- and so on. */
  readonly hasServiceChains: boolean;
  /** Where node ports listen: on known addresses, or on any local address unless --nodeport-addresses selects some. */
  readonly nodePorts: 'known-addresses' | 'any-local-address';
  /** Families with node ports on loopback addresses, unless settings exclude them. */
  readonly loopbackNodePorts: readonly Family[];
  readonly localWithoutEndpoints: 'local-to-all' | 'local-drops';
  /** The default for nodePortAddresses (platformApplyDefaults in cmd/kube-proxy/app/server_linux.go). */
  readonly defaultNodePortAddresses: readonly string[];
  /** The configuration section with masqueradeAll and masqueradeBit (v1alpha1 conversion.go). */
  readonly masqueradeSection: (typeof masqueradeSections)[number];
}

export const modeFacts: Readonly<Record<ProxyMode, ModeFacts>> = {
  ipvs: {
    title: 'IPVS mode',
    kinds: new Set(['iptables', 'sets', 'virtualServers', 'links', 'sysctls', 'ipvsTimeouts', 'modules']),
    mainKind: 'virtualServers',
    serviceKinds: ['sets', 'virtualServers'],
    families,
    protocols,
    // iptables has --random-fully since 1.6.2. kube-proxy requires ipset 6. ipvsadm has the flags for mh since 1.30.
    tools: { iptables: '1.6.2', ipset: '6.0', ipvsadm: '1.30' },
    modules: ['ip_vs', 'ip_vs_rr', 'nf_conntrack', 'ip_set', 'xt_set', 'dummy'],
    sysctls: [
      'net.ipv4.vs.conntrack',
      'net.ipv4.vs.expire_nodest_conn',
      'net.ipv4.vs.expire_quiescent_template',
      'net.ipv4.ip_forward',
    ],
    filters: ['health-checks', 'forwarded'],
    conditionalSysctls: [
      'net.ipv4.conf.all.arp_announce',
      'net.ipv4.conf.all.arp_ignore',
      'net.ipv4.vs.conn_reuse_mode',
    ],
    summary: [
      ['virtualServers', 'virtual server'],
      ['realServers', 'real server'],
      ['addresses', 'address'],
      ['setEntries', 'set entry'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'none',
    hasServiceChains: false,
    nodePorts: 'known-addresses',
    loopbackNodePorts: [],
    localWithoutEndpoints: 'local-to-all',
    defaultNodePortAddresses: [],
    masqueradeSection: 'iptables',
  },
  iptables: {
    title: 'iptables mode',
    kinds: new Set(['iptables', 'sysctls', 'modules']),
    mainKind: 'iptables',
    serviceKinds: ['iptables'],
    families,
    protocols,
    tools: { iptables: '1.6.2' },
    modules: ['nf_conntrack', 'xt_comment', 'xt_mark', 'xt_addrtype', 'xt_statistic'],
    sysctls: ['net.ipv4.conf.all.route_localnet'],
    filters: ['health-checks', 'forwarded', 'invalid'],
    conditionalSysctls: [],
    summary: [
      ['chains', 'chain'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'all',
    hasServiceChains: true,
    nodePorts: 'any-local-address',
    loopbackNodePorts: ['ipv4'],
    localWithoutEndpoints: 'local-drops',
    defaultNodePortAddresses: [],
    masqueradeSection: 'iptables',
  },
  nftables: {
    title: 'nftables mode',
    // In 1.31 and 1.32 this mode is beta and has other rules.
    kinds: new Set(['nftables']),
    mainKind: 'nftables',
    serviceKinds: ['nftables'],
    families,
    protocols,
    // kube-proxy requires this version (newInternal in nftables.go of sigs.k8s.io/knftables).
    tools: { nftables: '1.0.1' },
    modules: ['nf_conntrack'],
    sysctls: [],
    filters: [],
    conditionalSysctls: [],
    summary: [
      ['chains', 'chain'],
      ['rules', 'nftables rule'],
      ['setEntries', 'set element'],
    ],
    namesServices: 'some',
    hasServiceChains: false,
    nodePorts: 'any-local-address',
    loopbackNodePorts: [],
    localWithoutEndpoints: 'local-drops',
    defaultNodePortAddresses: ['primary'],
    masqueradeSection: 'nftables',
  },
  userspace: {
    title: 'userspace mode',
    kinds: new Set(['iptables', 'proxyPorts', 'modules']),
    mainKind: 'iptables',
    serviceKinds: ['iptables', 'proxyPorts'],
    families: ['ipv4'],
    protocols: ['TCP', 'UDP'],
    // nginx has proxy_socket_keepalive since 1.15.6.
    tools: { iptables: '1.6.2', nginx: '1.15.6' },
    modules: ['nf_conntrack', 'xt_comment', 'xt_addrtype', 'xt_REDIRECT', 'xt_state'],
    sysctls: [],
    filters: [],
    conditionalSysctls: [],
    summary: [
      ['proxyPorts', 'proxy port'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'all',
    hasServiceChains: false,
    nodePorts: 'any-local-address',
    loopbackNodePorts: ['ipv4'],
    localWithoutEndpoints: 'local-to-all',
    defaultNodePortAddresses: [],
    masqueradeSection: 'iptables',
  },
};

export function programs(mode: ProxyMode, kind: ObjectKind): boolean {
  return modeFacts[mode].kinds.has(kind);
}

/** `primary` stands for the node's own addresses, `localhost` for 127.0.0.0/8 and ::1/128, `all` for 0.0.0.0/0 and ::/0. */
export const nodePortWords = ['primary', 'localhost', 'all'] as const;

export type NodePortWord = (typeof nodePortWords)[number];

export function isNodePortWord(text: string): text is NodePortWord {
  return nodePortWords.some((word) => word === text);
}
