// Checks connections in nftables mode: they survive unrelated changes, and a change between iptables and nftables, in either direction,
// breaks none and refuses no new one. test/apply/nftables.test.ts covers IPVS, because few kernels have both.
import { assert, assertSame, expectApply, startSuite } from './harness.ts';
import { applyUnderFire, openAll, probeOf, routesOfAllKinds } from './long-connections.ts';
import { buildNetwork, run } from './network.ts';
import { startServers } from './servers.ts';
import { repeat, type Probe } from './traffic.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
const suite = startSuite('nftables-traffic');
buildNetwork();
const traffic = await startServers(['tcp', 'udp']);
const [before, after] = [`${bundles}/before-nftables`, `${bundles}/after-nftables`];
const iptables = `${bundles}/before-iptables`;
const web: Probe = { from: 'client', protocol: 'tcp', address: '10.96.0.10', port: 80 };
const dns: Probe = { from: 'client', protocol: 'udp', address: '10.96.0.11', port: 53 };
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Throws if a transfer has broken or makes no progress. */
async function assertMoving(ids: readonly string[]): Promise<void> {
  const old = await Promise.all(ids.map((id) => traffic.status(id)));
  for (const [i, id] of ids.entries()) {
    const from = Number(old[i]?.split(' ')[1]);
    // The loop ends, because the traffic program gives up after a minute without a byte.
    for (;;) {
      const [state, bytes] = (await traffic.status(id)).split(' ');
      assert(state === 'open', `${id}: ${await traffic.status(id)}`);
      if (Number(bytes) > from) break;
      await sleep(50);
    }
  }
}

async function openTo(id: string, server: string): Promise<void> {
  for (let i = 0; i < 40; i++) {
    if ((await traffic.transfer(id, 'client', '10.96.0.10', 80)) === server) return;
    await traffic.stop(id);
  }
  throw new Error(`${server} never answered`);
}

await suite.check('a transfer over an unchanged endpoint survives ten applies', async () => {
  await expectApply(['apply', before], 0);
  assert((await traffic.transfer('steady', 'client', '10.96.0.23', 80)) === 'pod-a', 'no connection');
  for (let i = 0; i < 10; i++) {
    const { err } = await expectApply(['apply', i % 2 === 0 ? after : before], 0);
    assert(/^done/m.test(err), err);
    await assertMoving(['steady']);
  }
  await traffic.stop('steady');
});

await suite.check('a transfer over an endpoint that goes ends in its own time; new ones go elsewhere', async () => {
  await expectApply(['apply', before], 0);
  await openTo('leaving', 'pod-a');
  await expectApply(['apply', after], 0);
  await assertMoving(['leaving']);
  const fresh = await traffic.probe(repeat(web, 4));
  assert(
    fresh.every((answer) => answer.startsWith('pod-c ')),
    `new connections went to ${fresh.join(', ')}`,
  );
  await assertMoving(['leaving']);
  await traffic.stop('leaving');
});

await suite.check('UDP flows to an endpoint that has gone are forgotten', async () => {
  await expectApply(['apply', before], 0);
  run('conntrack', ['-F']);
  await traffic.probe(repeat(dns, 24));
  const flows = () => run('conntrack', ['-L', '-p', 'udp', '--orig-dst', '10.96.0.11']);
  assert(flows().includes('src=10.1.1.10'), `no flow to begin with: ${flows()}`);
  await expectApply(['apply', after], 0);
  assert(!flows().includes('src=10.1.1.10'), flows());
  assert(flows().includes('src=10.1.2.10'), `flows to the endpoint that stays are gone too: ${flows()}`);
});

await suite.check('a client keeps its endpoint while other Services are put right, and none learns anew', async () => {
  await expectApply(['apply', before], 0);
  const sticky: Probe = { from: 'client', protocol: 'tcp', address: '10.96.0.21', port: 80 };
  const [first = ''] = await traffic.probe([sticky]);
  const seen = new Set([first.split(' ')[0]]);
  for (let i = 0; i < 8; i++) {
    run(
      'nft',
      ['-f', '-'],
      `add chain ip kube-proxy theirs\nadd element ip kube-proxy cluster-ips { 10.96.77.${i} }\n`,
    );
    const { err } = await expectApply(['apply', before], 0);
    assert(/^done/m.test(err), err);
    for (const answer of await traffic.probe(repeat(sticky, 3))) seen.add(answer.split(' ')[0]);
  }
  assert(first.startsWith('pod-') && seen.size === 1, [...seen].join(', '));
});

const newcomers: readonly Probe[] = routesOfAllKinds.map(probeOf);

await suite.check(
  '18 connections of all kinds go on over four changes of mode, and no new one is turned away',
  async () => {
    await expectApply(['apply', iptables], 0);
    const ids: string[] = [];
    ids.push(...(await openAll(traffic, 'first-', routesOfAllKinds)));
    for (const [i, bundle] of [before, iptables, before, iptables].entries()) {
      await applyUnderFire(traffic, bundle, newcomers);
      await assertMoving(ids);
      await expectApply(['verify', bundle], 0);
      assertNothingLeft(bundle === iptables ? 'nftables' : 'iptables');
      if (i === 0) ids.push(...(await openAll(traffic, 'second-', routesOfAllKinds)));
    }
    for (const id of ids) await traffic.stop(id);
  },
);

await suite.check('cleanup leaves nothing', async () => {
  await expectApply(['cleanup'], 0);
  assertNothingLeft('nftables');
  assertNothingLeft('iptables');
});
traffic.close();
suite.finish();

function assertNothingLeft(mode: 'nftables' | 'iptables'): void {
  const left =
    mode === 'nftables'
      ? run('nft', ['list', 'tables']).match(/^table \S+ kube-proxy$/gm)
      : `${run('iptables-save', [])}${run('ip6tables-save', [])}`.match(/^.*KUBE-.*$/gm);
  assertSame(`left of ${mode} mode`, (left ?? []).join('\n'), '');
}
