// Checks nftables mode of Kubernetes 1.37 in a network namespace of this machine's kernel: where packets to node ports on localhost end,
// and that an upgrade from the rules of 1.36 breaks no connection.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert, assertSame, expectApply, startSuite } from './harness.ts';
import { run } from './network.ts';

const suite = startSuite('localhost-node-ports');
const fixture = (name: string) => `${process.env['KPC_BUNDLES']}/fixtures/${name}/expected-nftables`;
const localhost = ['127.0.0.1', '::1'] as const;

run('ip', ['link', 'set', 'lo', 'up']);
run('ip', ['route', 'add', 'default', 'dev', 'lo']);

/** Starts an echo server on the node, in place of kube-proxy. */
async function listen(address: string, port: number): Promise<void> {
  const server = createServer((socket) => socket.pipe(socket)).listen(port, address);
  server.unref();
  await once(server, 'listening');
}

async function open(address: string, port: number): Promise<Socket | string> {
  const socket = connect({ host: address, port });
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

async function probeTcp(address: string, port: number): Promise<string> {
  const socket = await open(address, port);
  if (typeof socket === 'string') return socket;
  socket.destroy();
  return 'connected';
}

/** Returns the error that the sender of a datagram gets if no program receives it. */
async function probeUdp(address: string, port: number): Promise<string> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.connect(port, address);
  await once(socket, 'connect');
  const told = once(socket, 'error').then(
    ([error]: readonly NodeJS.ErrnoException[]) => error?.code ?? 'error',
    String,
  );
  socket.send('x');
  const answer = await Promise.race([told, sleep(3000, 'nothing')]);
  socket.close();
  return answer;
}

function countOf(protocol: string, address: string): number {
  const family = address.includes(':') ? 'ip6' : 'ip';
  const listed = run('nft', ['list', 'counter', family, 'kube-proxy', `localhost-nodeport-rejected-${protocol}`]);
  return Number(/packets (\d+)/.exec(listed)?.[1]);
}

/** Returns kpc trace's verdict on the node's own packet to a node port at this address, with the same bundle. */
function trace(bundle: string, protocol: 'tcp' | 'udp', address: string, port: number): string {
  const to = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
  const packet = ['--from', 'node', '--to', to, '--proto', protocol];
  const printed = run('node', ['dist/kpc.js', 'trace', bundle, ...packet, '--output', 'json', '-q']);
  const { result } = JSON.parse(printed) as {
    readonly result: { readonly traces: readonly { readonly verdict: string }[] };
  };
  return result.traces[0]?.verdict ?? '';
}

/** Compares the kernel's handling with kpc's verdict. This suite's server answers for both `local` and `delivered`. */
async function compare(bundle: string, verdicts: { readonly tcp: string; readonly udp: string }): Promise<void> {
  for (const address of localhost) {
    assertSame(`trace of TCP to ${address}`, trace(bundle, 'tcp', address, 30_080), verdicts.tcp);
    assertSame(`trace of UDP to ${address}`, trace(bundle, 'udp', address, 30_053), verdicts.udp);
    assertSame('TCP', await probeTcp(address, 30_080), verdicts.tcp === 'refused' ? 'ECONNREFUSED' : 'connected');
    // If no rule redirects the datagram, it reaches a port without a listener.
    assertSame('UDP', await probeUdp(address, 30_053), 'ECONNREFUSED');
  }
}

for (const address of localhost) {
  for (const port of [30_080, 30_099]) await listen(address, port);
}

await suite.check('where nodePortAddresses names no loopback, all are rejected and counted', async () => {
  await expectApply(['apply', fixture('localhost-node-ports-rejected')], 0);
  await compare(fixture('localhost-node-ports-rejected'), { tcp: 'refused', udp: 'refused' });
  for (const address of localhost) {
    assertSame('another port', await probeTcp(address, 30_099), 'connected');
    assert(countOf('tcp', address) > 0 && countOf('udp', address) > 0, 'nothing was counted');
  }
  await expectApply(['verify', fixture('localhost-node-ports-rejected')], 0);
});

await suite.check('where it names localhost, TCP is left to who listens there, and UDP is rejected', async () => {
  await expectApply(['apply', fixture('localhost-node-ports')], 0);
  await compare(fixture('localhost-node-ports'), { tcp: 'delivered', udp: 'refused' });
  for (const address of localhost) {
    assert(countOf('udp', address) > 0, 'nothing was counted');
  }
  const listed = run('nft', ['list', 'counters']);
  assert(!listed.includes('rejected-tcp'), `a counter is left: ${listed}`);
  await expectApply(['verify', fixture('localhost-node-ports')], 0);
});

await suite.check('rollback brings the counters, chains and the map of before back', async () => {
  await expectApply(['rollback'], 0);
  await expectApply(['verify', fixture('localhost-node-ports-rejected')], 0);
});

await suite.check('with the gate off, both are left to the node itself', async () => {
  await expectApply(['apply', fixture('localhost-node-ports-off')], 0);
  await compare(fixture('localhost-node-ports-off'), { tcp: 'local', udp: 'local' });
});

await suite.check('an upgrade of the rules of 1.36 to those of 1.37 cuts no connection', async () => {
  const [client, server] = ['10.96.70.1', '10.244.1.70'];
  run('ip', ['addr', 'add', `${server}/32`, 'dev', 'lo']);
  await listen(server, 8080);
  const manifest = JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'one', namespace: 'shop' },
        spec: { clusterIP: client, ports: [{ port: 80, targetPort: 8080 }] },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'one-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'one' } },
        addressType: 'IPv4',
        ports: [{ port: 8080 }],
        endpoints: [{ addresses: [server] }],
      },
    ],
  });
  const compile = (release: string): string => {
    const folder = `/run/one-${release}`;
    const flags = ['--proxy-mode', 'nftables', '--kubernetes-version', release, '-o', folder];
    run('node', ['dist/kpc.js', 'compile', '-f', '-', ...flags], manifest);
    return folder;
  };
  await expectApply(['apply', compile('1.36')], 0);
  const socket = await open(client, 80);
  assert(typeof socket !== 'string', `not connected: ${String(socket)}`);
  const echo = async (text: string): Promise<string> => {
    socket.write(text);
    const [data] = (await once(socket, 'data')) as readonly Buffer[];
    return String(data);
  };
  assertSame('before', await echo('one'), 'one');
  await expectApply(['apply', compile('1.37')], 0);
  assertSame('after', await echo('two'), 'two');
  const rules = run('nft', ['list', 'table', 'ip', 'kube-proxy']);
  assert(rules.includes(`dnat to ${server}:8080`), rules);
  assertSame('a new connection', await probeTcp(client, 80), 'connected');
  socket.destroy();
});

suite.finish();
