import { formatCount } from '../base/format-count.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { about, boolean, objectOf, text as anyText, type Shaped } from '../base/json-shape.ts';
import { forwardingSysctls } from '../kernel/sysctl.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import { newSetsWords, readsAllNft } from '../kube-proxy/nft-versions.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import type { Node } from '../cluster/objects.ts';
import type { Scene } from '../trace/scene.ts';
import { titleOf } from '../trace/stop-words.ts';

export const preparationShape = objectOf({
  what: anyText,
  why: anyText,
  check: about("a command on a node, or a line of kube-proxy's configuration", anyText),
  /** If not, only the nodes can tell. */
  isRequired: about('the input shows that something is lost without it', boolean),
});

/** A step before a change of mode, and how to check it. */
export type Preparation = Shaped<typeof preparationShape>;

/** What to do before nodes change mode, and settings that change with the mode or the release; required steps first. */
export function preparationsFor(from: Scene, to: Scene): readonly Preparation[] {
  const rows = [...(from.side.mode === to.side.mode ? [] : modeNeeds(from, to)), ...settingsLost(from, to)];
  return [...rows.filter(({ isRequired }) => isRequired), ...rows.filter(({ isRequired }) => !isRequired)];
}

function modeNeeds(from: Scene, to: Scene): readonly Preparation[] {
  const nodes = to.side.objects.nodes.map(({ object }) => object);
  return [
    ...(from.side.mode && modeFacts[from.side.mode].kinds.has('links') ? answersLost(from, to) : []),
    ...((to.side.mode && neededBy[to.side.mode]?.(nodes)) ?? []),
    ...((from.side.mode && leftBehindBy[from.side.mode]?.(from, to)) ?? []),
  ];
}

const neededBy: { readonly [M in ProxyMode]?: (nodes: readonly Node[]) => readonly Preparation[] } = {
  nftables: (nodes) => [
    ...kernelsNeeded(nodes),
    {
      what: `use nft ${modeFacts.nftables.tools['nftables'] ?? ''} or newer where kube-proxy runs`,
      why: 'kube-proxy does not start in nftables mode with an older one; its own image has one',
      check: 'nft --version',
      isRequired: false,
    },
    {
      what: `run kube-proxy ${readsAllNft} or newer where the host has a newer nft than its image`,
      why: newSetsWords,
      check: 'nft --version',
      isRequired: false,
    },
  ],
};

/** The oldest kernel on which kube-proxy starts in nftables mode (nftables/proxier.go). */
const oldestKernel = [5, 13] as const;

/** Empty if the kernels of all Nodes are known to be new enough. */
function kernelsNeeded(nodes: readonly Node[]): readonly Preparation[] {
  const known = nodes.map(({ metadata: { name }, kernelVersion = '' }) => {
    const [, major, minor] = /^(\d{1,4})\.(\d{1,4})/.exec(kernelVersion) ?? [];
    const isOld =
      major !== undefined &&
      (Number(major) < oldestKernel[0] || (Number(major) === oldestKernel[0] && Number(minor) < oldestKernel[1]));
    return { name, kernelVersion, isOld, isKnown: major !== undefined };
  });
  const why = 'kube-proxy does not start in nftables mode on an older kernel';
  const what = `use Linux ${oldestKernel.join('.')} or newer on`;
  const old = known.filter(({ isOld }) => isOld);
  if (old.length > 0) {
    const names = nameSome(old.map(({ name, kernelVersion }) => `${name} (${kernelVersion})`));
    return [{ what: `${what} ${names}`, why, check: 'uname -r', isRequired: true }];
  }
  if (known.length > 0 && known.every(({ isKnown }) => isKnown)) return [];
  return [{ what: `${what} every node`, why, check: 'uname -r', isRequired: false }];
}

const leftBehindBy: { readonly [M in ProxyMode]?: (from: Scene, to: Scene) => readonly Preparation[] } = {
  ipvs: ipvsLeft,
};

/**
 * Addresses for which nodes answer ARP requests in IPVS mode alone, because kube-ipvs0 has them: Linux answers on any
 * link for an address of any other, unless strictARP forbids it. For IPv6, a link answers for its own addresses only.
 */
function answersLost(from: Scene, to: Scene): readonly Preparation[] {
  const { side } = from;
  if (side.kind === 'dump' || side.settings.ipvs.strictARP) return [];
  const own = new Set(from.links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)));
  const listAddresses = (kind: 'externalIPs' | 'loadBalancerIPs'): readonly string[] => {
    const all = side.cluster.servicePorts.flatMap((port) => port[kind]);
    return [...new Set(all.filter(({ family, text }) => family === 'ipv4' && !own.has(text)).map(({ text }) => text))];
  };
  const [external, balanced] = [listAddresses('externalIPs'), listAddresses('loadBalancerIPs')];
  const why = `in IPVS mode they are on ${serviceLink}, so every node answers ARP requests for them (strictARP is false); in ${titleOf(to)} no node has them, and hosts on their network can no longer reach them`;
  const ways = 'with a route to a node, MetalLB or kube-vip, or on a link of one node';
  return [
    ...(external.length > 0
      ? [
          {
            what: `announce the external IPs ${nameSome(external)} ${ways}`,
            why,
            check: `arping -c 1 ${external[0]}`,
            isRequired: true,
          },
        ]
      : []),
    ...(balanced.length > 0
      ? [
          {
            what: `check what announces the load balancer addresses ${nameSome(balanced)}`,
            why: `${why}, unless the load balancer announces them`,
            check: `arping -c 1 ${balanced[0]}`,
            isRequired: false,
          },
        ]
      : []),
  ];
}

/** Settings that the new mode reads in its own section, or not at all. */
function settingsLost(from: Scene, to: Scene): readonly Preparation[] {
  const [before, after] = [from.side.settings, to.side.settings];
  if (!before || !after) return [];
  const [old, fresh] = [modeFacts[before.mode], modeFacts[after.mode]];
  const section = fresh.masqueradeSection;
  const why = `${fresh.title} reads the section ${section} of the configuration, not ${old.masqueradeSection}`;
  const lost = (['masqueradeAll', 'masqueradeBit'] as const).filter((name) => before[name] !== after[name]);
  const rows = lost.map((name) => {
    return { what: `set ${section}.${name}`, why, check: `${section}: {${name}: ${before[name]}}`, isRequired: true };
  });
  const [was, is] = [before, after].map(({ nodePortAddresses }) => nodePortAddresses.join(', ') || 'all');
  if (was === is || from.side.ports.every(({ nodePort }) => !nodePort)) return rows;
  const opensAll = is === 'all';
  const nodePortAddresses = {
    what: opensAll
      ? 'set nodePortAddresses, if node ports must not answer on every address of a node'
      : 'set nodePortAddresses, if clients use other addresses of a node than its primary one',
    why: `without it, ${fresh.title} means ${is}, and ${old.title} ${was}`,
    check: opensAll ? 'nodePortAddresses: ["primary"]' : 'nodePortAddresses: ["0.0.0.0/0", "::/0"]',
    isRequired: false,
  };
  return [...rows, nodePortAddresses];
}

const forwarding = {
  ipv4: { name: forwardingSysctls.ipv4, why: 'kube-proxy sets it in IPVS mode, but not in' },
  ipv6: {
    name: forwardingSysctls.ipv6,
    why: 'packets to pods on other nodes need it, and kube-proxy sets it neither in IPVS mode nor in',
  },
} as const;

function ipvsLeft({ side }: Scene, to: Scene): readonly Preparation[] {
  const rows: Preparation[] = [];
  const add = (what: string, why: string, check: string): number => rows.push({ what, why, check, isRequired: false });
  const mode = titleOf(to);
  for (const { name, why } of side.families.map((family) => forwarding[family]))
    add(`set ${name} to 1 on every node, and keep it across reboots`, `${why} ${mode}`, `sysctl ${name}`);
  if (side.kind === 'dump') return rows;
  const { ipvs } = side.settings;
  const annotated = side.cluster.servicePorts.flatMap(({ scheduler }) => scheduler || []);
  const schedulers = [...new Set([ipvs.scheduler, ...annotated])];
  add(
    `stop relying on the ${schedulers.length === 1 ? 'scheduler' : 'schedulers'} ${joinWords(schedulers)}`,
    `${mode} chooses endpoints at random, each with the same chance; nothing counts connections or weighs endpoints`,
    'ipvsadm -Ln',
  );
  const timeouts = [ipvs.tcpTimeout, ipvs.tcpFinTimeout, ipvs.udpTimeout];
  if (timeouts.some((seconds) => seconds > 0))
    add(
      'set the timeouts of connection tracking instead of those of IPVS',
      `tcpTimeout, tcpFinTimeout and udpTimeout (${timeouts.map((seconds) => `${seconds} s`).join(', ')}) apply in IPVS mode only`,
      'sysctl net.netfilter | grep timeout',
    );
  const bound = side.state.links.find(({ name }) => name === serviceLink)?.addresses.length ?? 0;
  if (bound > 0)
    add(
      `find programs that bind an address of ${serviceLink} (it has ${formatCount(bound)}), or listen on all addresses and are reached through one of these`,
      `${mode} gives the node no address of a Service: ${serviceLink} goes away`,
      'ss -ltnup',
    );
  const [clusterIP] = side.cluster.servicePorts.map((port) => port.clusterIP.text);
  if (clusterIP !== undefined)
    add(
      'make sure that every node has a route to the cluster IPs, such as a default route',
      `${mode} rewrites what the node itself sends only after routing: without a route, connections of the node and of hostNetwork Pods fail with "network is unreachable"; in IPVS mode the addresses are the node's own`,
      `ip route get ${clusterIP}`,
    );
  if (ipvs.strictARP)
    add(
      'undo strictARP, unless a load balancer on the nodes still needs it',
      `without ${serviceLink} the node holds no address that it must not answer ARP for; arp_ignore and arp_announce stay until they are reset`,
      'sysctl net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce',
    );
  if (ipvs.excludeCIDRs.length > 0)
    add(
      `find who owns the virtual servers in ${ipvs.excludeCIDRs.join(', ')}`,
      `excludeCIDRs has no successor: in ${mode} kube-proxy no longer touches virtual servers, once it has cleaned up after IPVS mode`,
      'ipvsadm -Sn',
    );
  return rows;
}
