import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const ipvs = 'fixtures/quickstart/expected-ipvs';

/** What /proc/net/tcp says where something listens on a port, or is only connected from it. */
function sockets(port: number, state: '0A' | '01' = '0A', address = '0100007F'): string {
  const local = `${address}:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: ${local} ${'0'.repeat(address.length)}:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 4711 1
`;
}

function nodeWith(name: string, { uid = 0, args = [name] }: { uid?: number; args?: readonly string[] } = {}): FakeNode {
  const node = createFakeNode();
  node.files.set('/proc/77/comm', `${name}\n`);
  node.files.set('/proc/77/cmdline', args.map((arg) => `${arg}\0`).join(''));
  node.files.set('/proc/77/status', `Name:\t${name}\nUid:\t${uid}\t${uid}\t${uid}\t${uid}\n`);
  return node;
}

describe('a kube-proxy inside another program', () => {
  test.each([
    ['k3s-server', 'tcp', 10256],
    ['k3s-agent', 'tcp', 10249],
    ['kubelite', 'tcp', 10256],
    ['k3s-server', 'tcp6', 10256],
  ])('%s that listens on its ports (%s, %i) is refused as one of its own is', async (name, protocol, port) => {
    const { host, files } = nodeWith(name);
    files.set(`/proc/net/${protocol}`, sockets(port, '0A', protocol === 'tcp' ? '00000000' : '0'.repeat(32)));
    const refused = await callApply(host, 'apply', ipvs);
    expect([refused.status, refused.err]).toEqual([3, expect.stringContaining(`(in ${name}, process 77)`)]);
    const { status, out } = await callApply(host, 'doctor', ipvs);
    expect(status).toBe(1);
    expect(out).toContain(`kube-proxy is running (in ${name}, process 77)`);
    expect(out).toContain(name === 'kubelite' ? 'stop MicroK8s first' : 'start k3s with --disable-kube-proxy first');
    expect((await callApply(host, 'apply', ipvs, '--force')).status).toBe(0);
    expect((await callApply(host, 'cleanup')).err).toContain(`(in ${name}, process 77)`);
    expect((await callApply(host, 'rollback')).err).toContain(`(in ${name}, process 77)`);
  });

  test('k3s that listens on no port of a kube-proxy runs none', async () => {
    const { host, files } = nodeWith('k3s-server');
    files.set('/proc/net/tcp', sockets(10250));
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  });

  test('a connection from such a port is not a kube-proxy', async () => {
    const { host, files } = nodeWith('k3s-server');
    files.set('/proc/net/tcp', sockets(10256, '01'));
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  });

  test.each(['--disable-kube-proxy', '--disable-kube-proxy=true', '-disable-kube-proxy=1'])(
    'k3s with %s runs none, whatever listens there',
    async (flag) => {
      const { host, files } = nodeWith('k3s-server', { args: ['/usr/local/bin/k3s', 'server', flag] });
      files.set('/proc/net/tcp', sockets(10256));
      expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
    },
  );

  test('k3s with --disable-kube-proxy=false runs one', async () => {
    const { host, files } = nodeWith('k3s-server', { args: ['k3s', 'server', '--disable-kube-proxy=false'] });
    files.set('/proc/net/tcp', sockets(10256));
    expect((await callApply(host, 'apply', ipvs)).status).toBe(3);
  });

  test("a process of a user's own with such a name stops nothing", async () => {
    const { host, files } = nodeWith('k3s-server', { uid: 1000 });
    files.set('/proc/net/tcp', sockets(10256));
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  });

  test('k3s in the network of a container stops nothing', async () => {
    const { host, files } = nodeWith('k3s-server');
    files.set('/proc/net/tcp', sockets(10256));
    files.set('/proc/self/ns/net', 'net:[1]');
    files.set('/proc/77/ns/net', 'net:[2]');
    expect((await callApply(host, 'apply', ipvs)).status).toBe(0);
  });
});
