import type { Command } from 'commander';
import { Option } from 'commander';
import { ipFamilyChoices } from '../../compile/compile-node.ts';
import { proxyModeNames } from '../../kube-proxy/modes.ts';
import { newestRelease, releaseRange } from '../../kube-proxy/releases.ts';

/** Adds the options that say what is compiled and how kube-proxy would be set up, under kube-proxy's names. */
export function addInputOptions(command: Command): Command {
  return command
    .option('-f, --file <path>', 'manifests: a file, a folder, or - for stdin (repeat for more)', append)
    .option(
      '--exclude <pattern>',
      'leave out files in folders, by a pattern as in .gitignore (repeat for more)',
      append,
    )
    .option('-n, --namespace <name>', 'the namespace of objects that name none (default: default)')
    .option(
      '--config <file>',
      "kube-proxy's configuration: a KubeProxyConfiguration, the ConfigMap that holds one, or that of kubeadm, kind or k3s",
    )
    .option('--kpc-yaml <file>', 'the file to read flags from, or none (default: kpc.yaml in this folder or above)')
    .option(
      '--service-cluster-ip-range <cidrs>',
      'choose cluster IPs from here for Services that have none yet (default: from the ServiceCIDR objects)',
    )
    .option('--service-node-port-range <range>', 'choose node ports from here, such as 30000-32767')
    .option('--load-balancer-ip-range <cidrs>', 'choose addresses from here for load balancers that have none yet')
    .option(
      '--assume-endpoints [cidrs]',
      "assume ready Pods for workloads, in these networks (default: the Nodes' podCIDRs, or else the cluster CIDR)",
    )
    .option('--host-addresses <file>', 'what `ip -j addr` prints on the node: the addresses NodePorts listen on')
    .addOption(
      new Option('--ip-family <family>', 'address families to compile; auto: those the Services and the node use')
        .choices(ipFamilyChoices)
        .default('auto'),
    )
    .option(
      '--kubernetes-version <version>',
      `follow the kube-proxy of this release, ${releaseRange}; auto: the one that the Node names (default: ${newestRelease})`,
    )
    .option(
      '--proxy-mode <mode>',
      `${proxyModeNames} (default: as the config says, iptables if it names none, ipvs without a config)`,
    )
    .option('--masquerade-all [bool]', 'masquerade all traffic to cluster IPs')
    .option('--cluster-cidr <cidrs>', "the pods' CIDRs: other traffic to cluster IPs is masqueraded")
    .option('--detect-local-mode <mode>', 'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix')
    .option('--pod-bridge-interface <name>', 'the bridge of the pods, for BridgeInterface')
    .option('--pod-interface-name-prefix <prefix>', "the prefix of the pods' interface names, for InterfaceNamePrefix")
    .option('--nodeport-addresses <cidrs>', 'where NodePorts listen: CIDRs, or the word primary')
    .option('--iptables-masquerade-bit <bit>', 'the bit of the packet mark for masquerading, 0 to 31')
    .option('--iptables-localhost-nodeports [bool]', 'let iptables mode serve NodePorts on 127.0.0.1')
    .option('--ipvs-scheduler <name>', 'rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh, fo, ovf or twos')
    .option('--ipvs-strict-arp [bool]', 'do not answer ARP for addresses on kube-ipvs0')
    .option('--ipvs-exclude-cidrs <cidrs>', 'never remove virtual servers in these CIDRs')
    .option('--ipvs-tcp-timeout <duration>', 'timeout of idle TCP connections, such as 15m')
    .option('--ipvs-tcpfin-timeout <duration>', 'timeout of TCP connections after FIN')
    .option('--ipvs-udp-timeout <duration>', 'timeout of UDP packets')
    .option('--conntrack-max-per-core <number>', 'connections to track for each CPU core; 0 leaves the limit as it is')
    .option('--conntrack-min <number>', 'the least number of connections to track')
    .option('--conntrack-tcp-timeout-established <duration>', 'timeout of idle TCP connections in conntrack')
    .option('--conntrack-tcp-timeout-close-wait <duration>', 'timeout of TCP connections in state CLOSE_WAIT')
    .option('--conntrack-tcp-be-liberal [bool]', 'also track TCP packets that are out of window')
    .option('--conntrack-udp-timeout <duration>', 'timeout of UDP connections without a reply')
    .option('--conntrack-udp-timeout-stream <duration>', 'timeout of UDP connections with replies')
    .option('--bind-address <ip>', "the node's own address, instead of the Node object's")
    .option('--feature-gates <gates>', "kube-proxy's feature gates, such as AllowServiceExternalIPs=false", append)
    .option('--hostname-override <name>', 'the name that kube-proxy uses for the node');
}

/** Collects an option that may be given more than once. */
export function append(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}
