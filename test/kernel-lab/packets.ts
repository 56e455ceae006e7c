// Checks packets under the rules that kpc-apply wrote: from outside, from pods and from the node itself, to Services of every kind, in the
// requested modes. See network.ts for the hosts, and packets/before for the Services.
import { assert, expectApply, startSuite } from './harness.ts';
import { addresses, buildNetwork, run, supportsSctp } from './network.ts';
import { startServers } from './servers.ts';
import { repeat, type Probe, type Transport } from './traffic.ts';

type Mode = 'ipvs' | 'iptables' | 'nftables';

/** The expected answers to several probes of one kind. */
interface Expectation {
  readonly name: string;
  readonly probe: Probe;
  /** The pattern that every answer must match. */
  readonly each: RegExp;
  /** Each of these servers must answer at least once. */
  readonly servers: readonly string[];
  readonly times: number;
}

const bundles = process.env['KPC_BUNDLES'] ?? '';
const modes = process.argv.slice(2) as readonly Mode[];
const suite = startSuite('packets');
buildNetwork();
const hasSctp = supportsSctp();
const traffic = await startServers(hasSctp ? ['tcp', 'udp', 'sctp'] : ['tcp', 'udp']);
await traffic.listen('-', 'tcp', '0.0.0.0', 9999, 'node1-daemon');
await traffic.listen('-', 'tcp', '::', 9999, 'node1-daemon');

for (const mode of modes) {
  await suite.check(`${mode}: the bundle can be applied`, async () => {
    // Do not drain, so that packets meet only one mode's rules. The mode-change suite checks draining.
    await expectApply(['apply', `${bundles}/before-${mode}`, '--drain-timeout', '0s'], 0);
    run('conntrack', ['-F']);
  });
  const expectations = listExpectations(mode);
  const answers = [...(await traffic.probe(expectations.flatMap((one) => repeat(one.probe, one.times))))];
  for (const { name, times, each, servers } of expectations) {
    const own = answers.splice(0, times);
    await suite.check(`${mode}: ${name}`, () => {
      const strange = own.filter((answer) => !each.test(answer));
      assert(strange.length === 0, `answered ${[...new Set(strange)].join(', ')}, not like ${each.source}`);
      const silent = servers.filter((server) => !own.some((answer) => answer.startsWith(`${server} `)));
      assert(silent.length === 0, `never reached ${silent.join(', ')} in ${times} tries`);
    });
  }
  await suite.check(`${mode}: session affinity keeps a client with one endpoint`, async () => {
    const seen = new Set<string>();
    for (let i = 0; i < 6; i++) {
      const [answer = ''] = await traffic.probe([probe('client', 'tcp', '10.96.0.21', 80)]);
      seen.add(answer.split(' ')[0] ?? '');
    }
    assert(seen.size === 1 && [...seen].join().startsWith('pod-'), [...seen].join(', '));
  });
}
await suite.check('after cleanup, no server answers on a virtual address', async () => {
  await expectApply(['cleanup'], 0);
  run('conntrack', ['-F']);
  const answers = await traffic.probe([
    probe('client', 'tcp', '10.96.0.10', 80),
    probe('client', 'tcp', addresses.node1.ipv4, 30080),
    probe('client', 'tcp', addresses['pod-a'].ipv4, 8080),
  ]);
  assert(answers[0]?.startsWith('pod') === false, `cluster IP: ${answers[0]}`);
  assert(answers[1] === 'refused', `node port: ${answers[1]}`);
  assert(answers[2] === 'pod-a 192.168.0.100', `the pod itself: ${answers[2]}`);
});
traffic.close();
suite.finish();

function probe(from: string, protocol: Transport, address: string, port: number, source?: string): Probe {
  return { from, protocol, address, port, source };
}

function listExpectations(mode: Mode): readonly Expectation[] {
  const { node1, client, stranger } = addresses;
  const spread = (name: string, toProbe: Probe, each: RegExp, ...servers: readonly string[]): Expectation => ({
    name,
    probe: toProbe,
    each,
    servers,
    // With 12 tries, a random choice misses one of two endpoints only once in 2,000 runs.
    times: servers.length > 1 && mode !== 'ipvs' ? 12 : servers.length > 1 ? 4 : 2,
  });
  // The client is not in the pods' CIDR, so the node replaces the client's address with its own.
  const masqueraded = /^pod-[ac] (10\.1\.1\.1|192\.168\.0\.1)$/;
  const masquerade6 = /^pod-[ac] fd00:(1:1|192)::1$/;
  return [
    spread('cluster IP from outside', probe('client', 'tcp', '10.96.0.10', 80), masqueraded, 'pod-a', 'pod-c'),
    spread('cluster IP from the node', probe('-', 'tcp', '10.96.0.10', 80), /^pod-[ac] /, 'pod-a', 'pod-c'),
    spread(
      'cluster IP from a pod, whose address is kept',
      probe('pod-b', 'tcp', '10.96.0.10', 80),
      /^pod-[ac] 10\.1\.1\.11$/,
      'pod-a',
      'pod-c',
    ),
    spread('UDP', probe('client', 'udp', '10.96.0.11', 53), masqueraded, 'pod-a', 'pod-c'),
    ...(hasSctp ? [spread('SCTP', probe('client', 'sctp', '10.96.0.12', 3868), masqueraded, 'pod-a', 'pod-c')] : []),
    spread('IPv6 cluster IP', probe('client', 'tcp', 'fd00:96::10', 80), masquerade6, 'pod-a', 'pod-c'),
    spread('IPv6 UDP from a pod', probe('pod-b', 'udp', 'fd00:96::11', 53), /^pod-[ac] fd00:1:1::b$/, 'pod-a', 'pod-c'),
    spread('IPv6 node port', probe('client', 'tcp', node1.ipv6, 30080), masquerade6, 'pod-a', 'pod-c'),
    spread('node port', probe('client', 'tcp', node1.ipv4, 30080), masqueraded, 'pod-a', 'pod-c'),
    spread('UDP node port', probe('client', 'udp', node1.ipv4, 30053), /^pod-b 10\.1\.1\.1$/),
    spread(
      'node port of policy Local: a local endpoint, and the client as it is',
      probe('client', 'tcp', node1.ipv4, 30081),
      new RegExp(`^pod-b ${client.ipv4}$`),
    ),
    spread('external IP', probe('client', 'tcp', '203.0.113.10', 80), /^pod-a 10\.1\.1\.1$/),
    spread(
      'load balancer address',
      probe('client', 'tcp', '203.0.113.21', 80),
      /^pod-[bc] (10\.1\.1\.1|192\.168\.0\.1)$/,
      'pod-b',
      'pod-c',
    ),
    spread('source ranges let a client in', probe('client', 'tcp', '203.0.113.20', 80, client.ipv4), /^pod-b /),
    spread('source ranges keep others out', probe('client', 'tcp', '203.0.113.20', 80, stranger.ipv4), /^timeout$/),
    spread(
      'load balancer address of policy Local: a local endpoint, and the client as it is',
      probe('client', 'tcp', '203.0.113.22', 80),
      new RegExp(`^pod-b ${client.ipv4}$`),
    ),
    // IPVS forwards to an endpoint on another node. Its answer comes from an address that the client did not use.
    spread('policy Local without a local endpoint', probe('client', 'tcp', '203.0.113.23', 80), /^(timeout|reset)$/),
    spread('a Service without endpoints refuses', probe('client', 'tcp', '10.96.0.22', 80), /^refused$/),
    spread('a Service without endpoints refuses pods', probe('pod-a', 'tcp', '10.96.0.22', 80), /^refused$/),
    spread('a pod reaches itself', probe('pod-a', 'tcp', '10.96.0.23', 80), /^pod-a /),
    spread('internal policy Local', probe('pod-b', 'tcp', '10.96.0.24', 80), /^pod-a 10\.1\.1\.11$/),
    spread('a daemon on the node', probe('client', 'tcp', node1.ipv4, 9999), /^node1-daemon /),
    // IPVS mode binds the address to the node, and a filter keeps the node's own daemons unreachable there.
    spread(
      'a daemon on the node does not answer on a virtual address',
      probe('client', 'tcp', '10.96.0.10', 9999),
      mode === 'ipvs' ? /^refused$/ : /^(timeout|unreachable|refused)$/,
    ),
    spread(
      'a daemon on the node does not answer on an IPv6 virtual address',
      probe('client', 'tcp', 'fd00:96::10', 9999),
      mode === 'ipvs' ? /^refused$/ : /^(timeout|unreachable|refused)$/,
    ),
  ];
}
