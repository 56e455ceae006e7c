import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { writeFolder } from '../support/write-folder.ts';
import { fixtureBundle, forgeWhole } from '../bundle/forge.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

// A settled node is read where something is wanted or ours. What other programs do elsewhere is none of an apply's
// business, until a bundle wants something there.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-unread-parts-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const bundleOf = (mode: 'ipvs' | 'iptables') => `fixtures/quickstart/expected-${mode}`;

function moveEndpoint(mode: 'ipvs' | 'iptables', endpoint: string): string {
  const files = forgeWhole(fixtureBundle(`quickstart/expected-${mode}`), (bundle) => {
    bundle.set('services.json', (bundle.get('services.json') ?? '').replaceAll('10.244.2.10', endpoint));
  });
  return writeFolder(join(scratch, `${mode}-${endpoint}`), Object.fromEntries(files));
}

async function settledInIptables(): Promise<FakeNode> {
  const node = createFakeNode();
  expect((await callApply(node.host, 'apply', bundleOf('iptables'))).status).toBe(0);
  expect(node.files.has('/var/lib/kpc/settled/index.json')).toBe(true);
  return node;
}

const run = (node: FakeNode, tool: string, args: readonly string[], stdin: string) =>
  node.host.run({ tool, args, stdin });

test("another program's sets, virtual servers and rules of the other family stay, also through a rollback", async () => {
  const node = await settledInIptables();
  await run(node, 'ipset', ['restore'], 'create OTHERS hash:ip family inet\n');
  await run(node, 'ipvsadm', ['-R'], '-A -t 10.9.9.9:80 -s rr\n');
  await run(node, 'ip6tables-restore', ['--noflush'], '*filter\n:OTHERS - [0:0]\n-A OTHERS -j DROP\nCOMMIT\n');
  const before = node.dump();
  expect((await callApply(node.host, 'apply', moveEndpoint('iptables', '10.244.2.99'))).status).toBe(0);
  expect((await callApply(node.host, 'rollback')).status).toBe(0);
  expect(node.dump()).toBe(before);
  expect((await callApply(node.host, 'verify', bundleOf('iptables'))).status).toBe(0);
});

test("another program's set is found to be in the way of the first bundle that wants one of its name", async () => {
  const node = await settledInIptables();
  await run(node, 'ipset', ['restore'], 'create KUBE-CLUSTER-IP hash:ip,port family inet\n');
  const { status, err } = await callApply(node.host, 'apply', bundleOf('ipvs'));
  expect(status).toBe(3);
  expect(err).toMatch(/these exist already, and kpc-apply did not make them: .*KUBE-CLUSTER-IP/);
});

test('a mode that follows on a settled one comes to the same as on a node that has forgotten it', async () => {
  const [node, twin] = [await settledInIptables(), await settledInIptables()];
  twin.files.delete('/var/lib/kpc/settled/index.json');
  for (const one of [node, twin]) {
    await callApply(one.host, 'apply', moveEndpoint('iptables', '10.244.2.98'));
    expect((await callApply(one.host, 'apply', bundleOf('ipvs'))).status).toBe(0);
    expect((await callApply(one.host, 'apply', bundleOf('iptables'))).status).toBe(0);
    expect((await callApply(one.host, 'verify', bundleOf('iptables'))).status).toBe(0);
  }
  expect(node.dump()).toBe(twin.dump());
});

test('what is ours and gone is put back, wherever it was', async () => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', bundleOf('ipvs'));
  await run(node, 'ip', ['-batch', '-'], 'addr del 10.96.0.80/32 dev kube-ipvs0\n');
  await run(node, 'ipset', ['restore'], 'del KUBE-CLUSTER-IP 10.96.0.80,tcp:80\n');
  expect((await callApply(node.host, 'verify', bundleOf('ipvs'))).out).toMatch(/10\.96\.0\.80/);
  expect((await callApply(node.host, 'apply', moveEndpoint('ipvs', '10.244.2.99'))).status).toBe(0);
  expect((await callApply(node.host, 'verify', moveEndpoint('ipvs', '10.244.2.99'))).status).toBe(0);
});
