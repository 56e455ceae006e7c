import { families, protocols, type Family, type Protocol } from '../kernel/family.ts';
import type { ObjectKind } from '../kernel/state.ts';

export const proxyModes = ['ipvs', 'iptables', 'nftables', 'userspace'] as const;

/** A mode of kube-proxy, as its configuration names it. */
export type ProxyMode = (typeof proxyModes)[number];

export const proxyModeNames = proxyModes.join(', ').replace(/, (?=[^,]*$)/, ' or ');

/** Behind the name of a mode that kpc chose. */
export const unnamedMode = '(nothing names a mode)';

/** Where the mode comes from, if nobody named it: words that follow it in a summary. `named`: what there was to name it. */
export function modeFromWords(named: 'empty-flag' | 'configuration' | 'nothing' | undefined): string {
  if (named === undefined) return '';
  return named === 'nothing' ? ` ${unnamedMode}` : " (kube-proxy's default)";
}

/** The modes that have a section of the configuration with masquerade settings. */
const masqueradeSections = ['iptables', 'nftables'] as const;

/** What a manifest counts of a kernel's objects. */
export type CountName =
  'virtualServers' | 'realServers' | 'proxyPorts' | 'addresses' | 'sets' | 'setEntries' | 'chains' | 'rules';

/** The facts of a mode. Whatever differs between modes, and needs no code of its own, is a field here. */
export interface ModeFacts {
  /** What people call it, in a sentence. */
  readonly title: string;
  /** The kinds of objects that kube-proxy programs. A bundle has the files of these kinds and no others. */
  readonly kinds: ReadonlySet<ObjectKind>;
  /** The kind that shows most of a node's Services. */
  readonly mainKind: ObjectKind;
  readonly serviceKinds: readonly ObjectKind[];
  /** The families of Services that kube-proxy serves. */
  readonly families: readonly Family[];
  /** The protocols of Service ports that it serves. */
  readonly protocols: readonly Protocol[];
  /** Tools that put the objects into a kernel, with the oldest versions whose formats kpc writes. */
  readonly tools: Readonly<Record<string, string>>;
  /** Kernel modules that any Service may need. */
  readonly modules: readonly string[];
  /** Sysctls that kube-proxy sets in this mode. */
  readonly sysctls: readonly string[];
  /** Further sysctls, which it sets if the configuration or the kernel's release asks for it. */
  readonly conditionalSysctls: readonly string[];
  /** What the summary line counts, with the words for one and for several. */
  readonly summary: readonly (readonly [count: CountName, one: string, more?: string])[];
  /** How many of the kernel's objects name the Services that they stem from, in comments or in names. */
  readonly namesServices: 'all' | 'some' | 'none';
  /** Whether rules have an iptables chain for each Service port: KUBE-SVC- and so on. */
  readonly hasServiceChains: boolean;
  /** What stays empty, or does not work, without the name of the node. */
  readonly gapsWithoutNode: readonly string[];
  /** Where node ports listen: on addresses that must be known, or on any local one unless --nodeport-addresses picks some. */
  readonly nodePorts: 'known-addresses' | 'any-local-address';
  /** Families in which node ports can be reached on loopback addresses, unless the settings forbid it. */
  readonly loopbackNodePorts: readonly Family[];
  /** Where traffic of policy Local goes on a node without local endpoints, if other nodes have some. */
  readonly localWithoutEndpoints: 'local-to-all' | 'local-drops';
  /** nodePortAddresses if nothing sets them (platformApplyDefaults in cmd/kube-proxy/app/server_linux.go). */
  readonly defaultNodePortAddresses: readonly string[];
  /** The part of the configuration that masqueradeAll and masqueradeBit are read from (v1alpha1 conversion.go). */
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
    // --random-fully came with iptables 1.6.2. ipset 6 is what kube-proxy asks for; ipvsadm learnt mh's flags in 1.30.
    tools: { iptables: '1.6.2', ipset: '6.0', ipvsadm: '1.30' },
    modules: ['ip_vs', 'ip_vs_rr', 'nf_conntrack', 'ip_set', 'xt_set', 'dummy'],
    // NewProxier in ipvs/proxier.go.
    sysctls: [
      'net.ipv4.vs.conntrack',
      'net.ipv4.vs.expire_nodest_conn',
      'net.ipv4.vs.expire_quiescent_template',
      'net.ipv4.ip_forward',
    ],
    conditionalSysctls: [
      'net.ipv4.conf.all.arp_announce',
      'net.ipv4.conf.all.arp_ignore',
      'net.ipv4.vs.conn_reuse_mode',
    ],
    summary: [
      ['virtualServers', 'virtual server'],
      ['realServers', 'real server'],
      ['addresses', 'address', 'addresses'],
      ['setEntries', 'set entry', 'set entries'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'none',
    hasServiceChains: false,
    gapsWithoutNode: ['the hairpin set stays empty'],
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
    conditionalSysctls: [],
    summary: [
      ['chains', 'chain'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'all',
    hasServiceChains: true,
    gapsWithoutNode: [],
    nodePorts: 'any-local-address',
    loopbackNodePorts: ['ipv4'],
    localWithoutEndpoints: 'local-drops',
    defaultNodePortAddresses: [],
    masqueradeSection: 'iptables',
  },
  nftables: {
    title: 'nftables mode',
    // 1.31 and 1.32 have it as a beta, with other rules.
    kinds: new Set(['nftables']),
    mainKind: 'nftables',
    serviceKinds: ['nftables'],
    families,
    protocols,
    // What kube-proxy asks for (newInternal in nftables.go of sigs.k8s.io/knftables).
    tools: { nftables: '1.0.1' },
    modules: ['nf_conntrack'],
    sysctls: [],
    conditionalSysctls: [],
    summary: [
      ['chains', 'chain'],
      ['rules', 'nftables rule'],
      ['setEntries', 'set element'],
    ],
    namesServices: 'some',
    hasServiceChains: false,
    gapsWithoutNode: ['the hairpin set stays empty'],
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
    // newProxySocket in userspace/proxysocket.go.
    protocols: ['TCP', 'UDP'],
    // nginx learnt proxy_socket_keepalive in 1.15.6.
    tools: { iptables: '1.6.2', nginx: '1.15.6' },
    modules: ['nf_conntrack', 'xt_comment', 'xt_addrtype', 'xt_REDIRECT', 'xt_state'],
    sysctls: [],
    conditionalSysctls: [],
    summary: [
      ['proxyPorts', 'proxy port'],
      ['rules', 'iptables rule'],
    ],
    namesServices: 'all',
    hasServiceChains: false,
    gapsWithoutNode: ['the node itself reaches no Service'],
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

/**
 * The words that name networks in --nodeport-addresses (pkg/proxy/apis/config/types.go): `primary` for the node's own
 * addresses, `localhost` for 127.0.0.0/8 and ::1/128, `all` for 0.0.0.0/0 and ::/0.
 */
export const nodePortWords = ['primary', 'localhost', 'all'] as const;

/** A word of --nodeport-addresses, in the place of networks. */
export type NodePortWord = (typeof nodePortWords)[number];

export function isNodePortWord(text: string): text is NodePortWord {
  return nodePortWords.some((word) => word === text);
}
