import { count } from '../../base/format-count.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import type { Scene } from '../trace/scene.ts';

/** Something to do before a change of mode, and how to see whether it is done. */
export interface Preparation {
  readonly what: string;
  readonly why: string;
  /** A command on a node, or a line of kube-proxy's configuration. */
  readonly check: string;
}

/** What a node needs before it goes over to another mode, in the order to do it. */
export function preparationsFor(from: Scene, to: Scene): readonly Preparation[] {
  return [
    ...((to.mode && neededBy[to.mode]) ?? []),
    ...settingsLost(from, to),
    ...((from.mode && leftBehindBy[from.mode]?.(from)) ?? []),
  ];
}

/** By mode, what it needs; 5.13 is the oldest kernel on which kube-proxy starts in nftables mode (nftables/proxier.go). */
const neededBy: { readonly [M in ProxyMode]?: readonly Preparation[] } = {
  nftables: [
    {
      what: 'have Linux 5.13 or newer on every node',
      why: 'kube-proxy does not start in nftables mode on an older kernel',
      check: 'uname -r',
    },
    {
      what: `have nft ${modeFacts.nftables.tools['nftables'] ?? ''} or newer where kube-proxy runs`,
      why: 'kube-proxy does not start in nftables mode with an older one; its own image has one',
      check: 'nft --version',
    },
  ],
};

/** By mode, what of it has no successor. */
const leftBehindBy: { readonly [M in ProxyMode]?: (from: Scene) => readonly Preparation[] } = { ipvs: ipvsLeft };

/** Settings that another mode reads in its own section, or nowhere. */
function settingsLost(from: Scene, to: Scene): readonly Preparation[] {
  const [before, after] = [from.side.services?.settings, to.side.services?.settings];
  if (!before || !after) return [];
  const [old, fresh] = [modeFacts[before.mode], modeFacts[after.mode]];
  const section = fresh.masqueradeSection;
  const why = `${fresh.title} reads the section ${section} of the configuration, not ${old.masqueradeSection}`;
  const lost = (['masqueradeAll', 'masqueradeBit'] as const).filter((name) => before[name] !== after[name]);
  const rows = lost.map((name) => {
    return { what: `set ${section}.${name}`, why, check: `${section}: {${name}: ${before[name]}}` };
  });
  const meant = after.nodePortAddresses.join(', ');
  if (before.nodePortAddresses.join(', ') === meant || from.ports.every(({ nodePort }) => nodePort === undefined))
    return rows;
  const nodePortAddresses = {
    what: 'set nodePortAddresses, if clients use other addresses of a node than its primary one',
    why: `if it is not set, it means ${meant} in ${fresh.title}, and all in ${old.title}`,
    check: 'nodePortAddresses: ["0.0.0.0/0", "::/0"]',
  };
  return [...rows, nodePortAddresses];
}

const forwarding = {
  ipv4: { name: 'net.ipv4.ip_forward', why: 'kube-proxy sets it in IPVS mode, but not in nftables mode' },
  ipv6: {
    name: 'net.ipv6.conf.all.forwarding',
    why: 'no mode of kube-proxy sets it, and packets to pods on other nodes need it',
  },
} as const;

/** What of IPVS mode has no successor. */
function ipvsLeft({ side: { families, services, state } }: Scene): readonly Preparation[] {
  const rows: Preparation[] = [];
  const add = (what: string, why: string, check: string): number => rows.push({ what, why, check });
  for (const { name, why } of families.map((family) => forwarding[family]))
    add(`set ${name} to 1 on every node, and keep it over a reboot`, why, `sysctl ${name}`);
  if (!services) return rows;
  const { ipvs } = services.settings;
  const annotated = services.cluster.servicePorts.flatMap(({ scheduler }) => scheduler ?? []);
  const schedulers = [...new Set([ipvs.scheduler, ...annotated])];
  add(
    `do without the ${schedulers.length === 1 ? 'scheduler' : 'schedulers'} ${schedulers.join(', ')}`,
    'nftables mode chooses endpoints at random, each with the same chance; nothing counts connections or weighs endpoints',
    'ipvsadm -Ln',
  );
  const timeouts = [ipvs.tcpTimeout, ipvs.tcpFinTimeout, ipvs.udpTimeout];
  if (timeouts.some((seconds) => seconds > 0))
    add(
      'set the timeouts of connection tracking instead of those of IPVS',
      `tcpTimeout, tcpFinTimeout and udpTimeout (${timeouts.map((seconds) => `${seconds} s`).join(', ')}) count in IPVS mode only`,
      'sysctl net.netfilter | grep timeout',
    );
  const bound = state.links.find(({ name }) => name === serviceLink)?.addresses.length ?? 0;
  if (bound > 0)
    add(
      `find programs that bind one of the ${count(bound, 'address', 'addresses')} of ${serviceLink}, or listen on all addresses and are reached through one of them`,
      `nftables mode gives the node no address of a Service: ${serviceLink} goes away`,
      'ss -ltnup',
    );
  if (ipvs.strictARP)
    add(
      'undo strictARP, unless a load balancer on the nodes still asks for it',
      'without kube-ipvs0 the node holds no address that it must not answer ARP for; arp_ignore and arp_announce stay until they are reset',
      'sysctl net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce',
    );
  if (ipvs.excludeCIDRs.length > 0)
    add(
      `find who owns the virtual servers in ${ipvs.excludeCIDRs.join(', ')}`,
      'excludeCIDRs has no successor: in nftables mode kube-proxy looks at no virtual server, once it has cleaned up after IPVS mode',
      'ipvsadm -Sn',
    );
  return rows;
}
