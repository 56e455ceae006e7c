/**
 * The pattern matches the message, a space, and the error and other values. `releases`: the releases from 1.30 to 1.37 that log the
 * message.
 */
type LogLineRow = RegExp | readonly [pattern: RegExp, releases: string];

/** `source` is the Kubernetes source file, below pkg/proxy or another named folder. */
function from<Code extends string>(source: string, rows: Readonly<Record<Code, LogLineRow>>) {
  return (Object.entries(rows) as [Code, LogLineRow][]).map(([code, row]) => {
    const [pattern, releases] = row instanceof RegExp ? [row, '1.30–1.37'] : row;
    return { code, pattern, releases, source };
  });
}

/** Narrower rows come first. A line about a fatal error counts as "command failed" if no narrower row matches. */
const problems = [
  ...from('pkg/util/iptables/iptables.go', {
    lock: /^(?:Failed to |Could not |error ).*(?:xtables lock|xtables\. ?lock|iptables lock)/,
    'missing-chain': [/^Failed to execute iptables-restore.*Couldn't load target [`']KUBE-/, 'up to 1.25'],
    'restore-extension':
      /^(?:Failed to (?:execute iptables-restore|ensure )|Could not ).*(?:Couldn't (?:load|find) (?:match|target)|No chain\/target\/match|Extension .{0,40} not supported|unknown option|can't initialize ip6?tables table)/,
    canary: /^Could not (?:set up|check for) iptables canary/,
    flushed: /^(?:IPTables canary deleted|Reloading after iptables flush|Inconsistent iptables state detected)/,
  }),
  ...from('nftables/proxier.go', {
    'nft-crash': /^(?:nftables sync failed|Failed to list ).*(?:segmentation fault|signal: aborted)/,
    'nft-comment': [/^nftables sync failed.*comment too long/, '1.30–1.36'],
    'nft-syntax': /^(?:nftables sync failed|Failed to list ).*(?:syntax error|JSON support not compiled-in)/,
    'nft-kernel': /^nftables sync failed.*(?:No such file or directory|not supported|Protocol not available)/i,
    'nft-sync': /^nftables sync failed/,
    'nft-list': /^(?:Failed to list (?:existing chains|existing sets|nftables )|Unable to delete stale chains)/,
    cleanup: /^Error cleaning up (?:nftables|iptables|ipvs|IPVS) /,
  }),
  ...from('iptables/proxier.go', {
    'restore-incompatible': /^(?:Failed to (?:execute iptables-|ensure )|Could not ).*is incompatible, use 'nft' tool/,
    restore: /^Failed to execute iptables-restore/,
    save: /^Failed to execute iptables-save/,
    ensure: /^Failed to ensure (?:chain (?:exists|jumps)|that )/,
    'sync-failed': /^Sync failed/,
    'node-port-addresses':
      /^(?:Failed to get node ip address matching node ?port|--nodeport-addresses includes localhost)/,
    'bridge-netfilter': [/^Missing br-netfilter module/i, 'up to 1.28'],
  }),
  ...from('conntrack/conntrack.go', {
    'no-conntrack': [/^(?:Failed to |conntrack return).*looking for path of conntrack/i, '1.30–1.31'],
  }),
  ...from('conntrack/sysctls.go', {
    'conntrack-max': /^(?:Error running ProxyServer|command failed|Failed to set sysctl).*conntrack/,
    'conntrack-list':
      /^(?:Failed to list conntrack entries|Failed to clear all conntrack entries|received a partial result|Failed to clear udp conntrack|Failed to delete (?:stale service |.{0,200}endpoint connections))/,
  }),
  ...from('nftables/supported.go', {
    'kernel-too-old': [
      /^(?:Error running ProxyServer|command failed).*(?:requires kernel|nft version must be|could not find nftables binary)/,
      '1.31–1.37',
    ],
  }),
  ...from('ipvs/proxier.go', {
    'no-ipvs':
      /^(?:(?:Error running ProxyServer|command failed|IPVS interface can't be initialized).*(?:ipvs|ip_vs|ipset)|Can't read the ipvs|Could not create dummy VS|Dummy VS not created)/i,
    'ipvs-needs': [/^Can't (?:use the IPVS proxier|determine whether to use ipvs proxy)/i, 'up to 1.25'],
    fallback: [/^Can't use ipvs proxier, trying iptables proxier/i, 'up to 1.25'],
    'ipvs-servers':
      /^(?:Failed to (?:sync (?:endpoint for )?service|(?:add|update|delete|get) (?:IPVS|ipvs) service|(?:add|update|delete) destination|bind service address)|Error adding entry to ipset|Failed to create dummy interface)/,
  }),
  ...from('node.go', {
    'no-node':
      /^(?:Failed to retrieve node info|Timed out waiting for node |command failed.*unable to get node IP for hostname)/,
    'node-changed': [/^(?:NodeIPs|PodCIDRs) changed for the node/, '1.34–1.37'],
  }),
  ...from('cmd/kube-proxy/app/server.go', {
    ended: /^(?:Error running ProxyServer|command failed)/,
    'loopback-ip': /^(?:Can't determine this node's IP, assuming loopback|invalid nodeIP)/,
    'bad-config': /^Kube-proxy configuration may be incomplete or incorrect/,
    lenient: /^Using lenient decoding as strict decoding failed/,
  }),
  ...from('cmd/kube-proxy/app/server_linux.go', {
    'no-iptables': /^No iptables support for family/,
    'no-detect-local': /^(?:Detect-local-mode set to |Defaulting to no-op detect-local|clusterCIDR not specified)/i,
    'ipvs-deprecated': [/^The ipvs proxier (?:is now deprecated|has been deprecated)/, '1.35–1.37'],
    'default-mode': [/^No kube-proxy mode specified/, '1.37'],
  }),
  ...from('healthcheck/service_health.go', {
    'health-check-port': /^(?:Failed to start healthcheck|Healthz server failed|Healthcheck closed).*bind/,
  }),
  ...from('staging/src/k8s.io/client-go/tools/cache/reflector.go', {
    watch:
      /^(?:Failed to watch|Unhandled Error|.{0,200}[Ff]ailed to (?:list|watch) ).*\*v1(?:beta1)?\.(?:Service|Endpoints|EndpointSlice|Node|ServiceCIDR)\b/,
  }),
];

export type KnownProblem = (typeof problems)[number];

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

/** Facts in other lines, as logged since 1.20. The groups are values of kube-proxy's setup. */
const facts = {
  mode: /^Using (iptables|ipvs|nftables) Proxier/,
  'assumed-mode': /^Unknown proxy mode /,
  version: /^Version(?: info .*version="|: )([^\s"]+)/,
  /** A list of addresses; from 1.38 on, an object by family or one address. */
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
