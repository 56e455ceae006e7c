import { expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const ipvs = 'fixtures/quickstart/expected-ipvs';
const iptables = 'fixtures/quickstart/expected-iptables';

test('a change of mode lets connections end on a link that another program made, and leaves that', async () => {
  const node = createFakeNode();
  await node.host.run({
    tool: 'ip',
    args: ['-batch', '-'],
    stdin: 'link add kube-ipvs0 type dummy\naddr add 10.9.9.9/32 dev kube-ipvs0\n',
  });
  expect((await callApply(node.host, 'apply', ipvs)).status).toBe(0);
  expect(node.dump()).toContain('kube-ipvs0 10.9.9.9/32 10.96.0.80/32\n');
  const count = (open: number) =>
    node.files.set(
      '/proc/net/ip_vs',
      `TCP  0A600050:0050 rr\n  -> 0AF4010A:1F90      Masq    1      ${open}          0\n`,
    );
  count(3);
  expect((await callApply(node.host, 'apply', iptables)).err).toContain(
    '; 1 real server waits for 3 connections to end',
  );
  expect(node.dump()).toContain('kube-ipvs0 10.9.9.9/32 10.96.0.80/32\n');
  expect(node.dump()).toMatch(/^-a -t 10\.96\.0\.80:80 .* -w 0$/m);
  expect((await callApply(node.host, 'verify', iptables)).status).toBe(0);

  // A socket of the node's own keeps the address, too.
  count(0);
  node.files.set(
    '/proc/net/tcp',
    '   0: 5000600A:D2F0 5000600A:0050 01 00000000:00000000 00:00000000 00000000     0        0 4711 1\n',
  );
  expect((await callApply(node.host, 'apply', iptables)).status).toBe(0);
  expect(node.dump()).not.toMatch(/^-A -t /m);
  expect(node.dump()).toContain('kube-ipvs0 10.9.9.9/32 10.96.0.80/32\n');

  node.files.delete('/proc/net/tcp');
  expect((await callApply(node.host, 'apply', iptables)).status).toBe(0);
  expect(node.dump()).toContain('kube-ipvs0 10.9.9.9/32\n');
  expect((await callApply(node.host, 'cleanup')).status).toBe(0);
  expect(node.dump()).toContain('kube-ipvs0 10.9.9.9/32\n');
});
