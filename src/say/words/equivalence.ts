import type { equivalenceFindings } from '../../base/findings/equivalence.ts';
import { formatCount, joinWords } from '../../base/printable.ts';
import { announcedDefault } from '../../kube-proxy/announced.ts';
import { announcedEndWords, kepLink } from './behaviours.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { modeFacts, type ProxyMode, titleOfMode } from '../../kube-proxy/modes.ts';
import { newSetsWords, readsAllNft } from '../../kube-proxy/nft-table.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { byCase, type WordsOf, nameSome } from './rows.ts';

const tooOld = 'kube-proxy does not start in nftables mode on an older kernel';
const inConfiguration = "in kube-proxy's configuration:";
const searchConfiguration = 'check: kubectl get configmap -n kube-system kube-proxy -o yaml | grep';
const itsGates = "kube-proxy's feature gates before the upgrade";
const ways = 'with a route to a node, MetalLB or kube-vip, or on a link of one node';

function lostAnswersWords(to: ProxyMode | undefined): string {
  return `in IPVS mode these addresses are on ${serviceLink}, so every node answers ARP requests for them (strictARP is false); in ${titleOfMode(to)} no node has them, and hosts on their network can no longer reach them`;
}

/** Words for each preparation. Each comes with a command that checks it, or with the line to add to the configuration. */
export const equivalenceWords: WordsOf<typeof equivalenceFindings> = {
  preparation: byCase('step', {
    gate: ({ fault }, say) => {
      const { text: why, help } = say({ code: 'bad-feature-gate', arguments: fault });
      const what =
        fault.problem === 'needs' ? `correct ${itsGates} (${help})` : `take ${fault.gate} out of ${itsGates}`;
      return [`${what}: ${why}`, `${searchConfiguration} -A9 featureGates:`];
    },
    'leave-mode': ({ mode, minor }) => [
      `leave ${titleOfMode(mode)} before the upgrade: it is ${announcedEndWords('ipvs-mode', minor)}`,
      `${searchConfiguration} mode:`,
    ],
    'replace-external-ips': ({ services, minor }) => [
      `give ${nameSome(services, 5)} another address, such as that of a load balancer (MetalLB, kube-vip) or a Gateway: externalIPs are ${announcedEndWords('external-ips', minor)}`,
      'check: kubectl get services -A -o jsonpath=\'{range .items[?(@.spec.externalIPs)]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}\'',
    ],
    'set-mode': ({ mode }) => [
      `set mode in kube-proxy's configuration: the default changes from iptables to ${announcedDefault.mode} in 1.${announcedDefault.since} (announced: KEP-${announcedDefault.kep}, ${kepLink(announcedDefault.kep)})`,
      `${inConfiguration} mode: ${mode}`,
    ],
    'nft-version': [
      `use nft ${modeFacts.nftables.tools['nftables'] ?? ''} or newer where kube-proxy runs: kube-proxy does not start in nftables mode with an older nft; its own image has a new enough one`,
      'check: nft --version',
    ],
    'kube-proxy-version': [
      `run kube-proxy ${readsAllNft} or newer where the host has a newer nft than kube-proxy's image: ${newSetsWords}`,
      'check: nft --version',
    ],
    kernel: ({ oldest, nodes }) => [
      `use Linux ${oldest} or newer on ${nodes.length > 0 ? nameSome(nodes) : 'every node'}: ${tooOld}`,
      'check: uname -r',
    ],
    'announce-external-ips': ({ addresses, to }) => [
      `announce the external IPs ${nameSome(addresses)} ${ways}: ${lostAnswersWords(to)}`,
      `check: arping -c 1 ${addresses[0]}`,
    ],
    'announce-load-balancer-ips': ({ addresses, to }) => [
      `check what announces the load balancer addresses ${nameSome(addresses)}: ${lostAnswersWords(to)}, unless the load balancer announces them`,
      `check: arping -c 1 ${addresses[0]}`,
    ],
    'masquerade-setting': ({ name, value, from, to }) => {
      const [old, fresh] = [modeFacts[from], modeFacts[to]];
      const section = fresh.masqueradeSection;
      return [
        `set ${section}.${name}: ${fresh.title} reads the section ${section} of the configuration, not ${old.masqueradeSection}`,
        `${inConfiguration} ${section}: {${name}: ${value}}`,
      ];
    },
    'node-port-addresses': ({ from, to, was, is }) => {
      const opensAll = is === 'all';
      const [why, addresses] = opensAll
        ? ['node ports must not answer on every address of a node', '"primary"']
        : ['clients use other addresses of a node than its primary one', '"0.0.0.0/0", "::/0"'];
      return [
        `set nodePortAddresses, if ${why}: without this setting, node ports use ${is} addresses in ${modeFacts[to].title}, and ${was} in ${modeFacts[from].title}`,
        `${inConfiguration} nodePortAddresses: [${addresses}]`,
      ];
    },
    forwarding: ({ sysctl, isSetBefore, to }) => {
      const why = isSetBefore
        ? 'kube-proxy sets this sysctl in IPVS mode, but not in'
        : 'packets to pods on other nodes need this sysctl, and kube-proxy sets it neither in IPVS mode nor in';
      return [
        `set ${sysctl} to 1 on every node, and keep it across reboots: ${why} ${titleOfMode(to)}`,
        `check: sysctl ${sysctl}`,
      ];
    },
    scheduler: ({ schedulers, to }) => [
      `stop relying on the ${schedulers.length === 1 ? 'scheduler' : 'schedulers'} ${joinWords(schedulers)}: ${titleOfMode(to)} chooses endpoints at random, each with the same chance; nothing counts connections or weighs endpoints`,
      'check: ipvsadm -Ln',
    ],
    timeouts: ({ seconds }) => [
      `set the timeouts of connection tracking instead of the IPVS timeouts: tcpTimeout, tcpFinTimeout and udpTimeout (${seconds.map((each) => `${each} s`).join(', ')}) apply in IPVS mode only`,
      'check: sysctl net.netfilter | grep timeout',
    ],
    'bound-addresses': ({ addresses, to }) => [
      `find programs that listen on a Service address of ${serviceLink} (it has ${formatCount(addresses)}), or on all addresses: ${titleOfMode(to)} removes ${serviceLink}, so the node no longer has Service addresses`,
      'check: ss -ltnup',
    ],
    route: ({ address, to }) => [
      `check that every node has a route to the cluster IPs, such as a default route: in ${titleOfMode(to)}, packets of the node and of hostNetwork Pods are routed before they are rewritten, and fail with "network is unreachable" without one; in IPVS mode the addresses are the node's own`,
      `check: ip route get ${address}`,
    ],
    'accept-health-checks': ({ ports, from, to }) => [
      `let the firewall of the nodes accept the health check node ${ports.length === 1 ? 'port' : 'ports'} ${nameSome(ports.map(String))}: rules of ${titleOfMode(from)} accept them, those of ${titleOfMode(to)} do not`,
      'check: iptables -S INPUT; nft list ruleset',
    ],
    'accept-forwarded': ({ from, to }) => [
      `let the firewall of the nodes accept packets that they forward to endpoints: ${titleOfMode(from)} accepts those that it masquerades, such as from node ports, in ${baseChains.forward}; ${titleOfMode(to)} leaves all to the firewall, such as Docker's policy DROP`,
      'check: iptables -S FORWARD; nft list ruleset',
    ],
    'invalid-packets': ({ from, to }) => [
      `set conntrack.tcpBeLiberal, if long-lived connections to Services are reset: ${titleOfMode(from)} drops packets that connection tracking calls invalid, ${titleOfMode(to)} does not, and endpoints may then answer such packets with a reset`,
      'check: curl -s localhost:10249/metrics | grep iptables_ct_state_invalid_dropped_packets_total',
    ],
    'strict-arp': [
      `undo strictARP unless a load balancer on the nodes needs it: without ${serviceLink} it has no purpose, and arp_ignore and arp_announce stay until they are reset`,
      'check: sysctl net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce',
    ],
    'excluded-networks': ({ networks, to }) => [
      `find the owner of the virtual servers in ${networks.join(', ')}: ${titleOfMode(to)} has no excludeCIDRs; after kube-proxy has cleaned up IPVS mode, it no longer touches virtual servers`,
      'check: ipvsadm -Sn',
    ],
  }),
};
