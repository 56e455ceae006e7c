import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const ipvs = 'fixtures/quickstart/expected-ipvs';
const iptables = 'fixtures/quickstart/expected-iptables';
const other = 'fixtures/clusterip/expected-iptables';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-drained-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What /proc/net/ip_vs says of the example's cluster IP: connections to its first endpoint. */
const count = (node: FakeNode, open: number) =>
  node.files.set(
    '/proc/net/ip_vs',
    `TCP  0A600050:0050 rr
  -> 0AF4010A:1F90      Masq    1      ${open}          0
  -> 0AF4020A:1F90      Masq    1      0          0
`,
  );

describe('a roll back to a time at which servers drained, of a node that had left IPVS', () => {
  async function appliedWhileDraining(): Promise<FakeNode> {
    const node = createFakeNode();
    await callApply(node.host, 'apply', ipvs);
    count(node, 3);
    await callApply(node.host, 'apply', iptables);
    expect(node.dump()).toMatch(/^-a -t 10\.96\.0\.80:80 .* -w 0$/m);
    return node;
  }

  test('does not bring back those that have gone since', async () => {
    const node = await appliedWhileDraining();
    count(node, 0);
    await callApply(node.host, 'apply', other);
    expect(node.dump()).not.toContain('kube-ipvs0');
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(node.dump()).not.toMatch(/kube-ipvs0|^-A -t /m);
    expect(node.files.get('/var/lib/kpc/record.json')).not.toContain('kube-ipvs0');
    expect((await callApply(node.host, 'verify', iptables)).status).toBe(0);
  });

  test('leaves those that still have connections, which a later apply lets go', async () => {
    const node = await appliedWhileDraining();
    await callApply(node.host, 'apply', other);
    expect((await callApply(node.host, 'rollback')).err).toContain('; 1 real server waits for 3 connections to end');
    expect(node.dump()).toMatch(/^-a -t 10\.96\.0\.80:80 .* -w 0$/m);
    count(node, 0);
    await callApply(node.host, 'apply', iptables);
    expect(node.dump()).not.toMatch(/kube-ipvs0|^-A -t /m);
  });
});

describe('a roll back to a time at which servers drained, in IPVS mode', () => {
  /** The example without its first endpoint, and with another Service besides where `more`. */
  async function compileWithout(name: string, more: string): Promise<string> {
    const text = readFileSync('fixtures/quickstart/svc.yaml', 'utf8');
    const stdin = text.replace(/ {2}- addresses: \[10\.244\.1\.10\]\n.*\n/, '') + more;
    const folder = join(scratch, name);
    const { status, stderr } = await runKpc(['compile', '-f', '-', '--proxy-mode', 'ipvs', '-o', folder], { stdin });
    expect(status, stderr).toBe(0);
    return folder;
  }
  const more = `---
apiVersion: v1
kind: Service
metadata: { name: more }
spec: { clusterIP: 10.96.0.81, ports: [{ port: 80 }] }
`;

  async function drainedAndChanged(open: number): Promise<{ node: FakeNode; smaller: string }> {
    const [smaller, larger] = [await compileWithout('smaller', ''), await compileWithout('larger', more)];
    const node = createFakeNode();
    await callApply(node.host, 'apply', ipvs);
    count(node, 3);
    await callApply(node.host, 'apply', smaller);
    expect(node.dump()).toMatch(/^-a -t 10\.96\.0\.80:80 -r 10\.244\.1\.10:8080 -m -w 0$/m);
    count(node, open);
    await callApply(node.host, 'apply', larger);
    return { node, smaller };
  }

  test('does not bring back those that have gone since', async () => {
    const { node, smaller } = await drainedAndChanged(0);
    expect(node.dump()).not.toContain('10.96.0.80:80 -r 10.244.1.10');
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(node.dump()).not.toContain('10.96.0.80:80 -r 10.244.1.10');
    expect((await callApply(node.host, 'verify', smaller)).status).toBe(0);
  });

  test('leaves those that still have connections', async () => {
    const { node, smaller } = await drainedAndChanged(3);
    expect((await callApply(node.host, 'rollback')).err).toContain('; 1 real server waits for 3 connections to end');
    expect(node.dump()).toMatch(/^-a -t 10\.96\.0\.80:80 -r 10\.244\.1\.10:8080 -m -w 0$/m);
    expect((await callApply(node.host, 'verify', smaller)).status).toBe(0);
  });
});
