// Checks packets in userspace mode, where rules lead to nginx and nginx connects to the endpoints: from outside, from pods and from the
// node itself. See network.ts for the hosts, and packets/before for the Services.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { assert, expectApply, startSuite, stateDir } from './harness.ts';
import { addresses, buildNetwork, run } from './network.ts';
import { startServers } from './servers.ts';
import { repeat, type Probe, type Transport } from './traffic.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
const suite = startSuite('userspace-packets');
const balancer = `${stateDir}/balancer.conf`;
const reload = '/run/reload-balancer';
/** The number of probes of each kind. nginx uses endpoints in turn, so each of two endpoints gets some. */
const times = 4;

// Starts nginx at the first call. Waits a moment, which nginx and the workers of a new configuration need before they listen.
writeFileSync(
  reload,
  `#!/bin/sh
if [ -s /run/kpc-balancer.pid ]; then nginx -s reload -c ${balancer}; else nginx -c ${balancer}; fi >/run/nginx.log 2>&1 || exit 1
sleep 1
`,
);
chmodSync(reload, 0o755);
buildNetwork();
run('iptables', ['-t', 'nat', '-A', 'PREROUTING', '-d', '198.51.100.77', '-j', 'RETURN']);
/** The jumps of PREROUTING in nat, and the rule of another program. */
const jumps = () =>
  run('iptables', ['-t', 'nat', '-S', 'PREROUTING'])
    .split('\n')
    .flatMap((line) => / -j (\S+)/.exec(line)?.[1] ?? []);
const traffic = await startServers(['tcp', 'udp']);

await suite.check('the bundle can be applied, and nginx runs with it', async () => {
  const { commands } = await expectApply(['apply', `${bundles}/before-userspace`, '--balancer-reload', reload], 0);
  const tools = commands.map(({ tool }) => tool);
  const [check, loaded, rules] = ['nginx', reload, 'iptables-restore'].map((tool) => tools.lastIndexOf(tool));
  assert(Number(check) < Number(loaded) && Number(loaded) < Number(rules), `it ran ${tools.join()}`);
  assert(existsSync('/run/kpc-balancer.pid'), readFileSync('/run/nginx.log', 'utf8'));
});

await suite.check('the jump of node ports comes behind the rules of other programs', () => {
  const order = jumps().join();
  assert(order === 'KUBE-PORTALS-CONTAINER,RETURN,KUBE-NODEPORT-CONTAINER', order);
});

await suite.check('a jump that is lost goes back to its place', async () => {
  run('iptables', ['-t', 'nat', '-F', 'PREROUTING']);
  run('iptables', ['-t', 'nat', '-A', 'PREROUTING', '-d', '198.51.100.77', '-j', 'RETURN']);
  await expectApply(['apply', `${bundles}/before-userspace`, '--balancer-reload', reload], 0);
  const order = jumps().join();
  assert(order === 'KUBE-PORTALS-CONTAINER,RETURN,KUBE-NODEPORT-CONTAINER', order);
});

await suite.check('a second apply has nothing to do', async () => {
  const { err } = await expectApply(['apply', `${bundles}/before-userspace`, '--balancer-reload', reload], 0);
  assert(err.includes('nothing to do'), err);
});

function probe(from: string, protocol: Transport, address: string, port: number): Probe {
  return { from, protocol, address, port };
}

const { node1 } = addresses;
// An endpoint sees the node's address, because nginx connects from there.
const both = /^pod-[ac] (10\.1\.1\.1|192\.168\.0\.1)$/;
const expectations: readonly (readonly [name: string, toProbe: Probe, each: RegExp, ...servers: string[]])[] = [
  ...(['client', 'pod-b', '-'] as const).flatMap((from) => {
    const words = { client: 'from outside', 'pod-b': 'from a pod', '-': 'from the node' }[from];
    return [
      [`cluster IP ${words}`, probe(from, 'tcp', '10.96.0.10', 80), both, 'pod-a', 'pod-c'],
      [`UDP ${words}`, probe(from, 'udp', '10.96.0.11', 53), both, 'pod-a', 'pod-c'],
      [`node port ${words}`, probe(from, 'tcp', node1.ipv4, 30080), both, 'pod-a', 'pod-c'],
      [`UDP node port ${words}`, probe(from, 'udp', node1.ipv4, 30053), /^pod-b /, 'pod-b'],
      [`load balancer address ${words}`, probe(from, 'tcp', '203.0.113.21', 80), /^pod-[bc] /, 'pod-b', 'pod-c'],
    ] as const;
  }),
  ['node port on localhost', probe('-', 'tcp', '127.0.0.1', 30080), both, 'pod-a', 'pod-c'],
  ['external IP from outside', probe('client', 'tcp', '203.0.113.10', 80), /^pod-a /, 'pod-a'],
  ['a policy has no part in it', probe('client', 'tcp', node1.ipv4, 30081), /^pod-[a-d] (10\.1|192\.168)\.[01]\.1$/],
  ['nor have source ranges', probe('client', 'tcp', '203.0.113.20', 80), /^pod-b /, 'pod-b'],
  ['a pod reaches itself', probe('pod-a', 'tcp', '10.96.0.23', 80), /^pod-a 10\.1\.1\.1$/, 'pod-a'],
  ['a Service without endpoints closes', probe('client', 'tcp', '10.96.0.22', 80), /^(closed|reset|)$/],
];

const answers = [...(await traffic.probe(expectations.flatMap(([, toProbe]) => repeat(toProbe, times))))];
for (const [name, , each, ...servers] of expectations) {
  const own = answers.splice(0, times);
  await suite.check(name, () => {
    const strange = own.filter((answer) => !each.test(answer));
    assert(strange.length === 0, `answered ${[...new Set(strange)].join(', ')}, not like ${each.source}`);
    const silent = servers.filter((server) => !own.some((answer) => answer.startsWith(`${server} `)));
    assert(silent.length === 0, `never reached ${silent.join(', ')} in ${times} tries: ${own.join(', ')}`);
  });
}

await suite.check('session affinity keeps a client with one endpoint', async () => {
  const seen = await traffic.probe(repeat(probe('client', 'tcp', '10.96.0.21', 80), 6));
  const servers = new Set(seen.map((answer) => answer.split(' ')[0] ?? ''));
  assert(servers.size === 1 && [...servers].join().startsWith('pod-'), [...servers].join(', '));
});

await suite.check('a configuration that nginx refuses changes nothing, and the rules go back', async () => {
  const before = readFileSync(balancer, 'utf8');
  writeFileSync(
    '/run/nginx',
    '#!/bin/sh\n[ "$1" = -v ] && exec /usr/sbin/nginx -v\necho "emerg: refused" >&2\nexit 1\n',
  );
  chmodSync('/run/nginx', 0o755);
  const path = process.env['PATH'];
  process.env['PATH'] = `/run:${path}`;
  const { err } = await expectApply(['apply', `${bundles}/after-userspace`, '--balancer-reload', reload], 3);
  process.env['PATH'] = path;
  assert(err.includes('refused') && err.includes('The node is as it was before.'), err);
  assert(readFileSync(balancer, 'utf8') === before, 'the file differs');
  const [answer = ''] = await traffic.probe([probe('client', 'tcp', '10.96.0.10', 80)]);
  assert(both.test(answer), answer);
});

await suite.check('another bundle changes both, and a rollback puts both back', async () => {
  const before = readFileSync(balancer, 'utf8');
  await expectApply(['apply', `${bundles}/after-userspace`, '--balancer-reload', reload], 0);
  assert(readFileSync(balancer, 'utf8') !== before, 'the file is the same');
  await expectApply(['rollback', '--balancer-reload', reload], 0);
  assert(readFileSync(balancer, 'utf8') === before, 'the file differs');
  const seen = await traffic.probe(repeat(probe('client', 'tcp', '10.96.0.10', 80), times));
  assert(
    seen.every((answer) => both.test(answer)),
    seen.join(', '),
  );
});

await suite.check('after cleanup, nothing answers', async () => {
  await expectApply(['cleanup', '--balancer-reload', reload], 0);
  run('conntrack', ['-F']);
  const [cluster, nodePort, pod] = await traffic.probe([
    probe('client', 'tcp', '10.96.0.10', 80),
    probe('client', 'tcp', node1.ipv4, 30080),
    probe('client', 'tcp', addresses['pod-a'].ipv4, 8080),
  ]);
  assert(cluster?.startsWith('pod') === false, `cluster IP: ${cluster}`);
  assert(nodePort === 'refused', `node port: ${nodePort}`);
  assert(pod?.startsWith('pod-a ') === true, `the pod itself: ${pod}`);
  const rules = run('iptables-save', []);
  assert(!rules.includes('KUBE-'), rules);
  assert(jumps().join() === 'RETURN', rules);
});
run('nginx', ['-s', 'quit', '-c', balancer]);
traffic.close();
suite.finish();
