import { spawnSync } from 'node:child_process';

/** The addresses of the network that buildNetwork makes. */
export const addresses = {
  node1: { ipv4: '192.168.0.1', ipv6: 'fd00:192::1' },
  node2: { ipv4: '192.168.0.2', ipv6: 'fd00:192::2' },
  client: { ipv4: '192.168.0.100', ipv6: 'fd00:192::100' },
  /** Another address of the same client, for source ranges. */
  stranger: { ipv4: '192.168.0.200', ipv6: 'fd00:192::200' },
  'pod-a': { ipv4: '10.1.1.10', ipv6: 'fd00:1:1::a' },
  'pod-b': { ipv4: '10.1.1.11', ipv6: 'fd00:1:1::b' },
  'pod-c': { ipv4: '10.1.2.10', ipv6: 'fd00:1:2::c' },
  'pod-d': { ipv4: '10.1.2.11', ipv6: 'fd00:1:2::d' },
} as const;

export type Pod = 'pod-a' | 'pod-b' | 'pod-c' | 'pod-d';

export const pods: readonly Pod[] = ['pod-a', 'pod-b', 'pod-c', 'pod-d'];

/**
 * Two nodes and a client outside, on one wire. This kernel's own network is node 1; node 2, the client and the pods are
 * namespaces. Each node has a bridge with two pods (a and b on node 1, c and d on node 2).
 *
 *     client 192.168.0.100, .200 ──┬── eth0 192.168.0.1  node 1  cni0 10.1.1.1 ── pod-a .10, pod-b .11
 *                                  └── eth0 192.168.0.2  node 2  cni0 10.1.2.1 ── pod-c .10, pod-d .11
 */
export function buildNetwork(): void {
  ip(['netns add wire', 'netns add node2', 'netns add client', ...pods.map((pod) => `netns add ${pod}`)]);
  // Do not wait for duplicate address detection, and do not drop packets on asymmetric routes as forged.
  setSysctls(undefined, [
    'net.ipv4.ip_forward=1',
    'net.bridge.bridge-nf-call-iptables=1',
    'net.bridge.bridge-nf-call-ip6tables=1',
  ]);
  for (const namespace of [undefined, 'node2', 'client', ...pods]) {
    setSysctls(namespace, ['net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.default.rp_filter=0']);
    setSysctls(namespace, ['net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0']);
  }
  // Lift the limit on ICMP messages, because refusals are ICMP messages and a kernel sends one client only a few of them a second.
  setSysctls(undefined, ['net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0']);
  for (const namespace of [undefined, 'node2']) {
    setSysctls(namespace, ['net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1']);
  }

  ip(['link add br0 type bridge', 'link set br0 up'], 'wire');
  for (const [namespace, name] of [
    [undefined, 'node1'],
    ['node2', 'node2'],
    ['client', 'client'],
  ] as const) {
    const inside = namespace === undefined ? '' : ` netns ${namespace}`;
    ip([`link add w-${name} type veth peer name eth0${inside}`]);
    ip([`link set w-${name} netns wire`]);
    ip([`link set w-${name} master br0 up`], 'wire');
    const { ipv4, ipv6 } = addresses[name];
    ip(
      ['link set lo up', 'link set eth0 up', `addr add ${ipv4}/24 dev eth0`, `addr add ${ipv6}/64 dev eth0 nodad`],
      namespace,
    );
  }
  const { ipv4, ipv6 } = addresses.stranger;
  ip([`addr add ${ipv4}/24 dev eth0`, `addr add ${ipv6}/64 dev eth0 nodad`], 'client');
  ip(['route add default via 192.168.0.1', '-6 route add default via fd00:192::1'], 'client');

  buildBridge(undefined, 1, ['pod-a', 'pod-b']);
  buildBridge('node2', 2, ['pod-c', 'pod-d']);
  // A local process reaches a virtual address only if a route to the address exists before OUTPUT rewrites it.
  ip(['route add 10.1.2.0/24 via 192.168.0.2', '-6 route add fd00:1:2::/64 via fd00:192::2']);
  ip(['route add default via 192.168.0.2', '-6 route add default via fd00:192::2']);
  ip(['route add default via 192.168.0.1', '-6 route add default via fd00:192::1'], 'node2');
}

function buildBridge(namespace: 'node2' | undefined, node: 1 | 2, members: readonly Pod[]): void {
  ip(
    [
      'link add cni0 type bridge',
      'link set cni0 up',
      `addr add 10.1.${node}.1/24 dev cni0`,
      `addr add fd00:1:${node}::1/64 dev cni0 nodad`,
      ...members.flatMap((pod) => [
        `link add v-${pod} type veth peer name eth0 netns ${pod}`,
        `link set v-${pod} master cni0 up`,
        `link set v-${pod} type bridge_slave hairpin on`,
      ]),
    ],
    namespace,
  );
  for (const pod of members) {
    const { ipv4, ipv6 } = addresses[pod];
    ip(
      [
        'link set lo up',
        'link set eth0 up',
        `addr add ${ipv4}/24 dev eth0`,
        `addr add ${ipv6}/64 dev eth0 nodad`,
        `route add default via 10.1.${node}.1`,
        `-6 route add default via fd00:1:${node}::1`,
      ],
      pod,
    );
  }
}

function ip(commands: readonly string[], namespace?: string): void {
  const inside = namespace === undefined ? [] : ['-n', namespace];
  // `ip -batch` does not accept an option before a command.
  for (const family of ['-4', '-6'] as const) {
    const own = commands.filter((command) => command.startsWith('-6 ') === (family === '-6'));
    if (own.length === 0) continue;
    run(
      'ip',
      [...inside, ...(family === '-6' ? ['-6'] : []), '-batch', '-'],
      own.map((line) => line.replace(/^-6 /, '')).join('\n') + '\n',
    );
  }
}

function setSysctls(namespace: string | undefined, settings: readonly string[]): void {
  if (namespace === undefined) run('sysctl', ['-q', ...settings]);
  else run('ip', ['netns', 'exec', namespace, 'sysctl', '-q', ...settings]);
}

/** Reports whether this kernel supports SCTP. The test kernel does; another may not. */
export function supportsSctp(): boolean {
  const script = 'use Socket; exit(socket(my $s, AF_INET, SOCK_STREAM, 132) ? 0 : 1)';
  return spawnSync('perl', ['-e', script]).status === 0;
}

/** Runs a tool, which must succeed. Returns its output. */
export function run(tool: string, args: readonly string[], stdin = ''): string {
  const { status, stdout, stderr } = spawnSync(tool, args, { input: stdin, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`${[tool, ...args].join(' ')} failed (${status}): ${stderr}\n${stdin}`);
  return stdout;
}
