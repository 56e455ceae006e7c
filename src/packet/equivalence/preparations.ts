import { count } from '../../base/format-count.ts';
import { families } from '../../kernel/family.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { Scene } from '../trace/scene.ts';

/** Something to do before a change of mode, and how to see whether it is done. */
export interface Preparation {
  readonly what: string;
  readonly why: string;
  /** A command on a node, or a line of kube-proxy's configuration. */
  readonly check: string;
}

/** The oldest kernel on which kube-proxy starts in nftables mode (NewProxier in nftables/proxier.go). */
const oldestKernel = '5.13';

/** What a node needs before it goes over to nftables mode, in the order to do it. */
export function preparationsFor(from: Scene, to: Scene): readonly Preparation[] {
  return [...neededBy(to), ...settingsLost(from, to), ...leftBehindBy(from)];
}

function neededBy({ mode }: Scene): readonly Preparation[] {
  switch (mode) {
    case 'nftables':
      return toolsNeeded();
    case 'ipvs':
    case 'iptables':
    case undefined:
      return [];
    default:
      return mode satisfies never;
  }
}

function leftBehindBy(from: Scene): readonly Preparation[] {
  switch (from.mode) {
    case 'ipvs':
      return [...sysctlsLost(from), ...ipvsLeft(from)];
    case 'iptables':
    case 'nftables':
    case undefined:
      return [];
    default:
      return from.mode satisfies never;
  }
}

function toolsNeeded(): readonly Preparation[] {
  const { nftables = '' } = modeFacts.nftables.tools;
  return [
    {
      what: `have Linux ${oldestKernel} or newer on every node`,
      why: 'kube-proxy does not start in nftables mode on an older kernel',
      check: 'uname -r',
    },
    {
      what: `have nft ${nftables} or newer where kube-proxy runs`,
      why: 'kube-proxy does not start in nftables mode with an older one; its own image has one',
      check: 'nft --version',
    },
  ];
}

/** Settings of the section iptables that nftables mode reads in its own section, or nowhere. */
function settingsLost(from: Scene, to: Scene): readonly Preparation[] {
  const [before, after] = [from.side.services?.settings, to.side.services?.settings];
  if (!before || !after) return [];
  const section = modeFacts[after.mode].masqueradeSection;
  const why = `${modeFacts[after.mode].title} reads the section ${section} of the configuration, not ${modeFacts[before.mode].masqueradeSection}`;
  const found = (['masqueradeAll', 'masqueradeBit'] as const)
    .filter((name) => before[name] !== after[name])
    .map((name): Preparation => {
      return { what: `set ${section}.${name}`, why, check: `${section}: {${name}: ${before[name]}}` };
    });
  if (before.nodePortAddresses.join() !== after.nodePortAddresses.join()) {
    const words = after.nodePortAddresses.join(', ');
    const hasNodePorts = from.ports.some(({ nodePort }) => nodePort !== undefined);
    if (hasNodePorts)
      found.push({
        what: 'set nodePortAddresses, if clients use other addresses of a node than its primary one',
        why: `if it is not set, it means ${words} in ${modeFacts[after.mode].title}, and all in ${modeFacts[before.mode].title}`,
        check: 'nodePortAddresses: ["0.0.0.0/0", "::/0"]',
      });
  }
  return found;
}

function sysctlsLost({ side }: Scene): readonly Preparation[] {
  return families
    .filter((family) => side.families.includes(family))
    .map((family) => {
      const name = family === 'ipv4' ? 'net.ipv4.ip_forward' : 'net.ipv6.conf.all.forwarding';
      return {
        what: `set ${name} to 1 on every node, and keep it over a reboot`,
        why:
          family === 'ipv4'
            ? 'kube-proxy sets it in IPVS mode, but not in nftables mode'
            : 'no mode of kube-proxy sets it, and packets to pods on other nodes need it',
        check: `sysctl ${name}`,
      };
    });
}

/** What of IPVS has no successor. */
function ipvsLeft({ side: { services, state } }: Scene): readonly Preparation[] {
  if (!services) return [];
  const { ipvs } = services.settings;
  const found: Preparation[] = [];
  const annotated = services.cluster.servicePorts.filter(({ scheduler }) => scheduler !== undefined);
  const schedulers = [...new Set([ipvs.scheduler, ...annotated.map(({ scheduler = '' }) => scheduler)])];
  found.push({
    what: `do without the ${schedulers.length === 1 ? 'scheduler' : 'schedulers'} ${schedulers.join(', ')}`,
    why: 'nftables mode chooses endpoints at random, each with the same chance; nothing counts connections or weighs endpoints',
    check: 'ipvsadm -Ln',
  });
  const timeouts = [ipvs.tcpTimeout, ipvs.tcpFinTimeout, ipvs.udpTimeout];
  if (timeouts.some((seconds) => seconds > 0)) {
    found.push({
      what: 'set the timeouts of connection tracking instead of those of IPVS',
      why: `tcpTimeout, tcpFinTimeout and udpTimeout (${timeouts.map((seconds) => `${seconds} s`).join(', ')}) count in IPVS mode only`,
      check: 'sysctl net.netfilter | grep timeout',
    });
  }
  const bound = state.links.find(({ name }) => name === serviceLink)?.addresses.length ?? 0;
  if (bound > 0) {
    found.push({
      what: `find programs that bind one of the ${count(bound, 'address', 'addresses')} of ${serviceLink}, or listen on all addresses and are reached through one of them`,
      why: `nftables mode gives the node no address of a Service: ${serviceLink} goes away`,
      check: 'ss -ltnup',
    });
  }
  if (ipvs.strictARP) {
    found.push({
      what: 'undo strictARP, unless a load balancer on the nodes still asks for it',
      why: 'without kube-ipvs0 the node holds no address that it must not answer ARP for; arp_ignore and arp_announce stay until they are reset',
      check: 'sysctl net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce',
    });
  }
  if (ipvs.excludeCIDRs.length > 0) {
    found.push({
      what: `find who owns the virtual servers in ${ipvs.excludeCIDRs.join(', ')}`,
      why: 'excludeCIDRs has no successor: in nftables mode kube-proxy looks at no virtual server, once it has cleaned up after IPVS mode',
      check: 'ipvsadm -Sn',
    });
  }
  return found;
}
