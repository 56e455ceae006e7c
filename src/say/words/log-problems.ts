import { baseChains } from '../../kube-proxy/chain-names.ts';
import { canaryChain } from '../../kube-proxy/chains.ts';
import type { KnownProblem } from '../../kube-proxy/log-lines.ts';

/** What each problem in kube-proxy's log means, and what to do about it. */
export const logProblemWords: Readonly<Record<KnownProblem['code'], readonly [meaning: string, advice: string]>> = {
  lock: [
    'another program held the iptables lock for longer than kube-proxy waits',
    'find it with "fuser /run/xtables.lock"; fewer rules, or nftables mode, hold the lock for less time',
  ],
  'missing-chain': [
    `a chain that kubelet makes, such as ${baseChains.markDrop}, is missing, so nothing for that IP family is programmed`,
    "see in kubelet's log why it cannot make its chains: its own iptables or ip6tables may be missing or fail",
  ],
  'restore-extension': [
    'iptables lacks a match or target that kube-proxy needs, or the kernel lacks its module',
    'load the module that the error names (ip_tables, xt_conntrack, xt_comment, xt_statistic, xt_set …)',
  ],
  canary: [
    'kube-proxy cannot see whether another program flushes the rules',
    `run iptables -t mangle -S ${canaryChain} on the node to see what is wrong`,
  ],
  flushed: [
    'another program flushed iptables, and kube-proxy wrote its rules again: connections failed meanwhile',
    'find out which program restarts a firewall at that time (firewalld, ufw, iptables-restore)',
  ],
  'nft-crash': [
    "the image's nft crashes on tables that a newer nft of the node wrote (kubernetes 136786)",
    'use a kube-proxy with nft 1.0.6.1 in its image, or remove the table that the newer nft wrote',
  ],
  'nft-comment': [
    'the names of a Service make a comment of more than 128 characters, so nothing is programmed (kubernetes 139515)',
    'shorten the name of that Service, its port or its namespace, or use a kube-proxy of 1.37',
  ],
  'nft-syntax': [
    'this nft does not know what kube-proxy writes, or lacks JSON support: nothing is programmed',
    'use nft 1.0.1 or later, built with JSON, where kube-proxy runs',
  ],
  'nft-kernel': [
    'the kernel refused a part of a rule, most often because a module is missing, so nothing is programmed',
    'try the rule in that line with nft on the node, and load the modules that it needs: nft_fib, nft_numgen, nft_masq, nft_reject',
  ],
  'nft-sync': [
    'nft refused a transaction, so none of its changes are programmed',
    'the error shows the line that nft refused; "kpc compile --print nftables | nft -c -f -" on the node shows whether nft accepts such rules',
  ],
  'nft-list': [
    'nft could not list or clear up tables: objects may be left behind',
    'run "nft list table ip kube-proxy" on the node to see what is wrong',
  ],
  cleanup: [
    'kube-proxy could not look for rules of other modes: if there are any, they stay',
    'kpc describe names such rules in a dump of the node; if the node was never in another mode, nothing is wrong',
  ],
  'restore-incompatible': [
    'another program wrote rules that iptables cannot read into one of its tables',
    'find them with "nft list ruleset", and have that program use a table of its own',
  ],
  restore: [
    'iptables-restore refused the rules, so none of that sync is programmed',
    'the error names the line; kube-proxy tries again after its sync period',
  ],
  save: [
    'kube-proxy could not list its chains, so the chains of removed Services stay',
    'run iptables-save -t nat on the node to see what is wrong',
  ],
  ensure: [
    'kube-proxy could not put its jumps into the built-in chains, and programs nothing in that sync',
    'run the command that the error names on the node',
  ],
  'sync-failed': [
    'a sync failed: changes of Services and endpoints since the last good one are not programmed',
    'the error before this line says why',
  ],
  'node-port-addresses': [
    'nodePortAddresses matches no address of the node, or one that this mode does not serve',
    'correct nodePortAddresses; kpc trace shows where node ports answer',
  ],
  'bridge-netfilter': [
    'packets between Pods on one Linux bridge bypass kube-proxy: a Pod gets no answer from a Service whose endpoint is on its bridge',
    'if Pods are on a Linux bridge, load br_netfilter and set net.bridge.bridge-nf-call-iptables = 1',
  ],
  'no-conntrack': [
    'the program conntrack is missing, and stale UDP flows stay: clients may keep sending to a pod that is gone',
    'install conntrack (conntrack-tools) where kube-proxy runs',
  ],
  'conntrack-max': [
    'kube-proxy could not set a conntrack limit, and exited',
    'load nf_conntrack before kube-proxy starts; if kube-proxy may not write sysctls, set conntrack.maxPerCore and conntrack.min to 0',
  ],
  'conntrack-list': [
    'stale UDP flows were not deleted: clients may keep sending to a pod that is gone',
    'give kpc describe the output of conntrack -L with the dump: it names the stale flows',
  ],
  'kernel-too-old': [
    'this node is too old for nftables mode, so kube-proxy exited',
    'use a kernel of 5.13 or later with nft 1.0.1, or iptables mode on this node',
  ],
  'no-ipvs': [
    'the kernel lacks IPVS or ipset, so kube-proxy exited',
    "load ip_vs, its scheduler's module and ip_set, or choose another mode",
  ],
  'ipvs-needs': [
    'a kernel module that IPVS mode needs, or ipset, is missing',
    'install the module or tool that the line names',
  ],
  fallback: [
    'the configured IPVS mode does not work here, so kube-proxy uses iptables mode',
    "load ip_vs, its scheduler's module and ip_set; later releases exit instead",
  ],
  'ipvs-servers': [
    'a virtual server, real server, address or set entry could not be programmed',
    'compare the node with the manifests: kpc diff DUMP MANIFESTS',
  ],
  'no-node': [
    'no Node has the name that kube-proxy uses for its own node, so no endpoint counts as local',
    'set hostnameOverride to the name of the Node object',
  ],
  'node-changed': [
    'the addresses or pod CIDRs of the node changed, so kube-proxy exited, to restart with the new ones',
    'find out why the Node object changed',
  ],
  ended: ['kube-proxy exited with an error: the node keeps the rules that it had', 'the error says why'],
  'loopback-ip': [
    'kube-proxy does not know the address of its node, so it uses 127.0.0.1',
    'set hostnameOverride to the name of the Node object, or bindAddress',
  ],
  'bad-config': [
    'kube-proxy warns that a part of its configuration may be incomplete or wrong',
    'the error names the part; "kpc compile --config FILE" checks all of it',
  ],
  lenient: [
    'the configuration has a field that this kube-proxy does not know and ignores',
    '"kpc compile --config FILE" names it',
  ],
  'no-iptables': [
    'iptables does not work for one IP family, so kube-proxy programs nothing for it',
    'load ip_tables or ip6_tables and their table nat, unless the cluster does not use that family',
  ],
  'no-detect-local': [
    'kube-proxy cannot tell pod traffic from other traffic, so it masquerades nothing because of its source',
    'set clusterCIDR, or choose another detectLocalMode; in a single-stack cluster, ignore this for the unused family',
  ],
  'ipvs-deprecated': [
    'IPVS mode is deprecated: off by default in 1.40, removed in 1.43',
    'kpc migrate lists what moving to nftables mode changes',
  ],
  'default-mode': [
    'no mode is configured: iptables is the default up to 1.39, nftables from 1.40 on',
    'set mode in the configuration',
  ],
  'health-check-port': [
    'another program listens on a health check port, and answers the load balancer there',
    'find it with "ss -ltnp"; for a healthCheckNodePort, choose another',
  ],
  watch: [
    'kube-proxy receives no changes to Services, endpoints or nodes, so its rules become outdated',
    "check that the node reaches the API server, and kube-proxy's permissions there",
  ],
};
