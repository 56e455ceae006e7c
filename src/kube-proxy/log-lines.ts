export interface KnownProblem {
  readonly code: string;
  /** Matches the message, a space, and the error and other values. */
  readonly pattern: RegExp;
  readonly meaning: string;
  readonly advice: string;
  /** The releases from 1.30 to 1.37 that log the message. */
  readonly releases: string;
  /** The Kubernetes source file, below pkg/proxy or another named folder. */
  readonly source: string;
}

type LogLineRow = readonly [pattern: RegExp, meaning: string, advice: string, releases?: string];

function from(source: string, rows: Readonly<Record<string, LogLineRow>>): readonly KnownProblem[] {
  return Object.entries(rows).map(([code, [pattern, meaning, advice, releases = '1.30–1.37']]) => {
    return { code, pattern, meaning, advice, releases, source };
  });
}

/** Narrower rows come first. A line about an error that ends kube-proxy counts as "command failed" if no narrower row matches. */
const problems: readonly KnownProblem[] = [
  ...from('pkg/util/iptables/iptables.go', {
    lock: [
      /^(?:Failed to |Could not |error ).*(?:xtables lock|xtables\. ?lock|iptables lock)/,
      'another program held the lock of iptables for longer than kube-proxy waits',
      'find it with "fuser /run/xtables.lock"; fewer rules, or nftables mode, hold the lock for less time',
    ],
    'missing-chain': [
      /^Failed to execute iptables-restore.*Couldn't load target [`']KUBE-/,
      'a chain that kubelet makes, such as KUBE-MARK-DROP, is missing, and nothing of that family is programmed',
      "see in kubelet's log why it cannot make its chains: its own iptables or ip6tables may be missing or fail",
      'up to 1.25',
    ],
    'restore-extension': [
      /^(?:Failed to (?:execute iptables-restore|ensure )|Could not ).*(?:Couldn't (?:load|find) (?:match|target)|No chain\/target\/match|Extension .{0,40} not supported|unknown option|can't initialize ip6?tables table)/,
      'iptables lacks a match or target that kube-proxy needs, or the kernel lacks its module',
      'load the module that the error names (ip_tables, xt_conntrack, xt_comment, xt_statistic, xt_set …)',
    ],
    canary: [
      /^Could not (?:set up|check for) iptables canary/,
      'kube-proxy cannot see whether another program flushes the rules',
      'run iptables -t mangle -S KUBE-PROXY-CANARY on the node to see what is wrong',
    ],
    flushed: [
      /^(?:IPTables canary deleted|Reloading after iptables flush|Inconsistent iptables state detected)/,
      'another program flushed iptables, and kube-proxy wrote its rules again: connections failed meanwhile',
      'find what restarts a firewall at that time (firewalld, ufw, iptables-restore)',
    ],
  }),
  ...from('nftables/proxier.go', {
    'nft-crash': [
      /^(?:nftables sync failed|Failed to list ).*(?:segmentation fault|signal: aborted)/,
      "the image's nft crashes on tables that a newer nft of the node wrote (kubernetes 136786)",
      'use a kube-proxy with nft 1.0.6.1 in its image, or remove the table that the newer nft wrote',
    ],
    'nft-comment': [
      /^nftables sync failed.*comment too long/,
      'the names of a Service give a comment of more than 128 characters, and nothing is programmed (kubernetes 139515)',
      'shorten the name of that Service, its port or its namespace, or use a kube-proxy of 1.37',
      '1.30–1.36',
    ],
    'nft-syntax': [
      /^(?:nftables sync failed|Failed to list ).*(?:syntax error|JSON support not compiled-in)/,
      'this nft does not know what kube-proxy writes, or lacks JSON: nothing is programmed',
      'use nft 1.0.1 or later, built with JSON, where kube-proxy runs',
    ],
    'nft-kernel': [
      /^nftables sync failed.*(?:No such file or directory|not supported|Protocol not available)/i,
      'the kernel refused a part of a rule, most often because a module is missing: nothing is programmed',
      'try the rule that the line shows with nft on the node, and load what it needs: nft_fib, nft_numgen, nft_masq, nft_reject',
    ],
    'nft-sync': [
      /^nftables sync failed/,
      'nft refused a transaction, and nothing of it is programmed',
      'the line that nft names is in the error; "kpc compile --print nftables | nft -c -f -" on the node shows if nft takes such rules',
    ],
    'nft-list': [
      /^(?:Failed to list (?:existing chains|existing sets|nftables )|Unable to delete stale chains)/,
      'nft could not list or clear up tables: objects may be left behind',
      'run "nft list table ip kube-proxy" on the node to see what is wrong',
    ],
    cleanup: [
      /^Error cleaning up (?:nftables|iptables|ipvs|IPVS) /,
      'kube-proxy could not look for rules of a mode that it is not in: they stay, if there are any',
      'kpc describe, with a dump, names rules of another mode; if the node never was in one, nothing is wrong',
    ],
  }),
  ...from('iptables/proxier.go', {
    'restore-incompatible': [
      /^(?:Failed to (?:execute iptables-|ensure )|Could not ).*is incompatible, use 'nft' tool/,
      'another program wrote rules into a table of iptables that iptables cannot read',
      'find them with "nft list ruleset", and have that program use a table of its own',
    ],
    restore: [
      /^Failed to execute iptables-restore/,
      'iptables-restore refused the rules, so none of that sync is programmed',
      'the error names the line; kube-proxy tries again after its sync period',
    ],
    save: [
      /^Failed to execute iptables-save/,
      'kube-proxy could not list its chains: those of Services that are gone stay',
      'run iptables-save -t nat on the node to see what is wrong',
    ],
    ensure: [
      /^Failed to ensure (?:chain (?:exists|jumps)|that )/,
      'kube-proxy could not put its jumps into the built-in chains, and programs nothing in that sync',
      'run the command that the error names on the node',
    ],
    'sync-failed': [
      /^Sync failed/,
      'a sync failed: changes of Services and endpoints since the last good one are not programmed',
      'the error before it says why',
    ],
    'node-port-addresses': [
      /^(?:Failed to get node ip address matching node ?port|--nodeport-addresses includes localhost)/,
      'nodePortAddresses matches no address of the node, or one that this mode does not serve',
      'correct nodePortAddresses; kpc trace shows where node ports answer',
    ],
    'bridge-netfilter': [
      /^Missing br-netfilter module/i,
      'packets between Pods on one Linux bridge pass kube-proxy by: a Pod gets no answer from a Service whose endpoint is beside it',
      'if Pods are on a Linux bridge, load br_netfilter and set net.bridge.bridge-nf-call-iptables = 1',
      'up to 1.28',
    ],
  }),
  ...from('conntrack/conntrack.go', {
    'no-conntrack': [
      /^(?:Failed to |conntrack return).*looking for path of conntrack/i,
      'the program conntrack is missing, and stale UDP flows stay: clients may keep sending to a pod that is gone',
      'install conntrack (conntrack-tools) where kube-proxy runs',
      '1.30–1.31',
    ],
  }),
  ...from('conntrack/sysctls.go', {
    'conntrack-max': [
      /^(?:Error running ProxyServer|command failed|Failed to set sysctl).*conntrack/,
      'kube-proxy could not set a limit of conntrack, and ended',
      'load nf_conntrack before it starts; where it may not write sysctls, set conntrack.maxPerCore and conntrack.min to 0',
    ],
    'conntrack-list': [
      /^(?:Failed to list conntrack entries|Failed to clear all conntrack entries|received a partial result|Failed to clear udp conntrack|Failed to delete (?:stale service |.{0,200}endpoint connections))/,
      'stale UDP flows were not deleted: clients may keep sending to a pod that is gone',
      'give kpc describe the output of conntrack -L beside the dump: it names them',
    ],
  }),
  ...from('nftables/supported.go', {
    'kernel-too-old': [
      /^(?:Error running ProxyServer|command failed).*(?:requires kernel|nft version must be|could not find nftables binary)/,
      'this node is too old for nftables mode, and kube-proxy ended',
      'use a kernel of 5.13 or later with nft 1.0.1, or iptables mode on this node',
      '1.31–1.37',
    ],
  }),
  ...from('ipvs/proxier.go', {
    'no-ipvs': [
      /^(?:(?:Error running ProxyServer|command failed|IPVS interface can't be initialized).*(?:ipvs|ip_vs|ipset)|Can't read the ipvs|Could not create dummy VS|Dummy VS not created)/i,
      'the kernel lacks IPVS or ipset, and kube-proxy ended',
      "load ip_vs, its scheduler's module and ip_set, or choose another mode",
    ],
    'ipvs-needs': [
      /^Can't (?:use the IPVS proxier|determine whether to use ipvs proxy)/i,
      'a kernel module or ipset is missing that IPVS mode needs',
      'load or install what the line names',
      'up to 1.25',
    ],
    fallback: [
      /^Can't use ipvs proxier, trying iptables proxier/i,
      'IPVS mode is asked for and does not work here: kube-proxy took iptables mode',
      "load ip_vs, its scheduler's module and ip_set; later releases end instead",
      'up to 1.25',
    ],
    'ipvs-servers': [
      /^(?:Failed to (?:sync (?:endpoint for )?service|(?:add|update|delete|get) (?:IPVS|ipvs) service|(?:add|update|delete) destination|bind service address)|Error adding entry to ipset|Failed to create dummy interface)/,
      'a virtual server, real server, address or set entry could not be programmed',
      'compare the node with the manifests: kpc diff DUMP MANIFESTS',
    ],
  }),
  ...from('node.go', {
    'no-node': [
      /^(?:Failed to retrieve node info|Timed out waiting for node |command failed.*unable to get node IP for hostname)/,
      'no Node has the name by which kube-proxy looks for its own, so no endpoint counts as local',
      'set hostnameOverride to the name of the Node object',
    ],
    'node-changed': [
      /^(?:NodeIPs|PodCIDRs) changed for the node/,
      'the addresses or pod CIDRs of the node changed, and kube-proxy ended, to start again with them',
      'find out why the Node object changed',
      '1.34–1.37',
    ],
  }),
  ...from('cmd/kube-proxy/app/server.go', {
    ended: [
      /^(?:Error running ProxyServer|command failed)/,
      'kube-proxy ended with an error: the node keeps the rules that it had',
      'the error says why',
    ],
    'loopback-ip': [
      /^(?:Can't determine this node's IP, assuming loopback|invalid nodeIP)/,
      'kube-proxy does not know the address of its node, and takes 127.0.0.1',
      'set hostnameOverride to the name of the Node object, or bindAddress',
    ],
    'bad-config': [
      /^Kube-proxy configuration may be incomplete or incorrect/,
      'kube-proxy takes a part of its configuration for a mistake',
      'the error names the part; "kpc compile --config FILE" checks all of it',
    ],
    lenient: [
      /^Using lenient decoding as strict decoding failed/,
      'the configuration has a field that this kube-proxy does not know, and it is ignored',
      '"kpc compile --config FILE" names it',
    ],
  }),
  ...from('cmd/kube-proxy/app/server_linux.go', {
    'no-iptables': [
      /^No iptables support for family/,
      'iptables does not work for a family, and kube-proxy programs nothing there',
      'load ip_tables or ip6_tables and their table nat, unless the cluster does not use that family',
    ],
    'no-detect-local': [
      /^(?:Detect-local-mode set to |Defaulting to no-op detect-local|clusterCIDR not specified)/i,
      'kube-proxy cannot tell traffic of pods from other traffic, and masquerades nothing for its source',
      'set clusterCIDR, or another detectLocalMode; a cluster of one family needs none for the other',
    ],
    'ipvs-deprecated': [
      /^The ipvs proxier (?:is now deprecated|has been deprecated)/,
      'IPVS mode is deprecated: off by default in 1.40, removed in 1.43',
      'kpc migrate lists what moving to nftables mode changes',
      '1.35–1.37',
    ],
    'default-mode': [
      /^No kube-proxy mode specified/,
      'no mode is configured: iptables up to 1.39, nftables from 1.40 on',
      'set mode in the configuration',
      '1.37',
    ],
  }),
  ...from('healthcheck/service_health.go', {
    'health-check-port': [
      /^(?:Failed to start healthcheck|Healthz server failed|Healthcheck closed).*bind/,
      'another program has the port of a health check, and the load balancer gets its answer',
      'find it with "ss -ltnp"; for a healthCheckNodePort, choose another',
    ],
  }),
  ...from('staging/src/k8s.io/client-go/tools/cache/reflector.go', {
    watch: [
      /^(?:Failed to watch|Unhandled Error|.{0,200}[Ff]ailed to (?:list|watch) ).*\*v1(?:beta1)?\.(?:Service|Endpoints|EndpointSlice|Node|ServiceCIDR)\b/,
      'kube-proxy does not get changes of Services, endpoints or nodes: its rules grow old',
      'check that the node reaches the API server, and the rights of the kube-proxy account',
    ],
  }),
];

const ordinary = [
  'kube-proxy (?:running in|node IP is)|Detected node IP|Using (?:iptables|ipvs) proxy|Creating dualStackProxier|Tearing down',
  '(?:No kernel support|Kernel support disabled) for family|Setting route_localnet|nf_conntrack_tcp_be_liberal set',
  'Set(?:ting)? (?:sysctl|nf_conntrack_max|conntrack hashsize)|Changed sysctl|Using (?:iptables|nftables) mark for masquerade',
  '(?:Iptables|NFTables|IPVS) sync params|Syncing |Reloading service |Not syncing |Running|Network programming|SyncProxyRules',
  'Deleting stale nftables|Deleting conntrack stale|Clearing conntrack entries|Conntrack entries deleted|(?:Deleted|Cleared) conntrack',
  'Ignoring same-|Skipping topology aware|IPVS scheduler not specified|Ipset name truncated|lw: remote out of the list',
  'Trying to delete rs|Not deleting, RS|Deleting rs|Removed real server|Failed to (?:load kernel module|read file .lib.modules)',
  'Neither kubeconfig|DetectLocalMode|Defaulting detect-local-mode|Starting (?:node|service|endpoint slice) config|(?:Opening|Closing) healthcheck',
  'Adding new service|Updating existing service|Removing service|Service updated',
];

/** Facts in other lines, with messages since 1.20. The groups are values in kube-proxy's setup. */
const facts = {
  mode: /^Using (iptables|ipvs|nftables) Proxier/,
  'assumed-mode': /^Unknown proxy mode /,
  version: /^Version(?: info .*version="|: )([^\s"]+)/,
  /** A list; from 1.38 on an object by family, or one address. */
  'node-ips':
    /^Successfully retrieved (?:NodeIPs?|node IP(?:\(s\))?)(?: \w+=(?:\[([^\]]*)|\{([^}]*)|"([^"]*))|: (\S+))/,
  flag: /^FLAG: (--[\w-]+)="(.*)"/,
  sysctl:
    /^(?:Set|Changed) sysctl (?:(?:entry|name)="([^"]+)" (?:before=\S+ )?(?:value|after)=(\S+)|'([^']+)' to (\S+))/,
  periods: /^(?:Iptables|NFTables|IPVS) sync params.* minSyncPeriod="([^"]+)"/i,
  synced: /^SyncProxyRules complete.* elapsed="([^"]+)"/,
  nothing: new RegExp(`^(?:${ordinary.join('|')})`, 'i'),
  /** Messages that other components log too. */
  shared:
    /^(?:Starting .{1,60} controller|Waiting for caches|Caches are synced|Golang settings|Starting healthz|WARNING: all flags other than|Unable to write event)/,
} as const satisfies Readonly<Record<string, RegExp>>;

export type LogFact = keyof typeof facts;

type KnownLine =
  | { readonly problem: KnownProblem; readonly fact?: never }
  | { readonly problem?: never; readonly fact: LogFact; readonly values: readonly string[] };

export function findKnownLine(message: string, detail: string): KnownLine | undefined {
  const text = `${message} ${detail}`;
  const problem = problems.find(({ pattern }) => pattern.test(text));
  if (problem) return { problem };
  for (const [fact, pattern] of Object.entries(facts) as [LogFact, RegExp][]) {
    const found = pattern.exec(text);
    if (found) return { fact, values: found.slice(1).filter((value) => value !== undefined) };
  }
  return undefined;
}
