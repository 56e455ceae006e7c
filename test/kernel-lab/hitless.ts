// Checks that connections survive unrelated changes, and drain when their endpoint is removed, in the requested modes.
import { isFull } from '../support/rounds.ts';
import { assert, expectApply, startSuite } from './harness.ts';
import { buildNetwork, run } from './network.ts';
import { startServers } from './servers.ts';
import { repeat, type Probe } from './traffic.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
const modes = process.argv.slice(2);
const suite = startSuite(`hitless ${modes.join(' ')}`);
buildNetwork();
const traffic = await startServers(['tcp', 'udp']);
const web: Probe = { from: 'client', protocol: 'tcp', address: '10.96.0.10', port: 80 };
const dns: Probe = { from: 'client', protocol: 'udp', address: '10.96.0.11', port: 53 };
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Throws if a transfer has broken or makes no progress. */
async function assertMoving(id: string): Promise<void> {
  const [state, bytes] = (await traffic.status(id)).split(' ');
  assert(state === 'open', `${id}: ${await traffic.status(id)}`);
  // The loop ends, because the traffic program gives up after a minute without a byte.
  for (;;) {
    const [now, later] = (await traffic.status(id)).split(' ');
    assert(now === 'open', `${id} stands still at ${bytes} bytes`);
    if (Number(later) > Number(bytes)) return;
    await sleep(50);
  }
}

for (const mode of modes) {
  const [before, after] = [`${bundles}/before-${mode}`, `${bundles}/after-${mode}`];

  // In User Mode Linux an apply takes seconds.
  const applies = mode === 'iptables' || isFull ? 10 : 2;
  await suite.check(`${mode}: a transfer over an unchanged endpoint survives ${applies} applies`, async () => {
    await expectApply(['apply', before], 0);
    assert((await traffic.transfer('steady', 'client', '10.96.0.23', 80)) === 'pod-a', 'no connection');
    for (let i = 0; i < applies; i++) {
      const { err } = await expectApply(['apply', i % 2 === 0 ? after : before], 0);
      assert(err.startsWith('done'), err);
      await assertMoving('steady');
    }
    await traffic.stop('steady');
  });

  await suite.check(`${mode}: a transfer over an endpoint that goes drains`, async () => {
    await expectApply(['apply', before], 0);
    await openTo('leaving', 'pod-a');
    await expectApply(['apply', after], 0);
    await assertMoving('leaving');
    const fresh = await traffic.probe(repeat(web, 4));
    assert(
      fresh.every((answer) => answer.startsWith('pod-c ')),
      `new connections went to ${fresh.join(', ')}`,
    );
    await expectApply(['verify', after], 0);
    await assertMoving('leaving');
  });

  if (mode === 'ipvs') {
    await suite.check('ipvs: it stands at weight 0 until the connection has ended, then goes', async () => {
      const listed = () => run('ipvsadm', ['-Sn']);
      assert(/10\.96\.0\.10:80 -r 10\.1\.1\.10:8080 -m -w 0/.test(listed()), listed());
      await traffic.stop('leaving');
      // IPVS remembers a reset connection for ten seconds. Poll for this, because polling is cheaper than an apply.
      for (let i = 0; i < 60 && run('ipvsadm', ['-Lnc']).includes('10.1.1.10:8080'); i++) await sleep(500);
      for (let i = 0; i < 60 && /10\.96\.0\.10:80 -r 10\.1\.1\.10:8080/.test(listed()); i++) {
        await expectApply(['apply', after], 0);
        await sleep(500);
      }
      assert(!/10\.96\.0\.10:80 -r 10\.1\.1\.10:8080/.test(listed()), 'it never went');
    });

    await suite.check('ipvs: --drain-timeout ends the waiting', async () => {
      await expectApply(['apply', before], 0);
      await openTo('late', 'pod-a');
      await expectApply(['apply', after, '--drain-timeout', '1h'], 0);
      await assertMoving('late');
      await expectApply(['apply', after, '--drain-timeout', '0s'], 0);
      assert(!/10\.96\.0\.10:80 -r 10\.1\.1\.10:8080/.test(run('ipvsadm', ['-Sn'])), 'it is still there');
      await traffic.stop('late');
    });

    await suite.check('ipvs: an endpoint that comes back takes new connections again', async () => {
      await expectApply(['apply', before], 0);
      await openTo('returning', 'pod-a');
      await expectApply(['apply', after], 0);
      await expectApply(['apply', before], 0);
      await assertMoving('returning');
      const answers = await traffic.probe(repeat(web, 4));
      assert(
        answers.some((answer) => answer.startsWith('pod-a ')),
        answers.join(', '),
      );
      await traffic.stop('returning');
    });
  } else await traffic.stop('leaving');

  await suite.check(`${mode}: UDP flows to an endpoint that has gone are forgotten`, async () => {
    await expectApply(['apply', before], 0);
    run('conntrack', ['-F']);
    await traffic.probe(repeat(dns, 12));
    const flows = () => run('conntrack', ['-L', '-p', 'udp', '--orig-dst', '10.96.0.11']);
    assert(flows().includes('src=10.1.1.10'), `no flow to begin with: ${flows()}`);
    await expectApply(['apply', after], 0);
    assert(!flows().includes('src=10.1.1.10'), flows());
    assert(flows().includes('src=10.1.2.10'), `flows to the endpoint that stays are gone too: ${flows()}`);
  });
}
traffic.close();
suite.finish();

/** Opens transfers through web's cluster IP until one reaches the wanted endpoint. */
async function openTo(id: string, server: string): Promise<void> {
  for (let i = 0; i < 40; i++) {
    if ((await traffic.transfer(id, 'client', '10.96.0.10', 80)) === server) return;
    await traffic.stop(id);
  }
  throw new Error(`${server} never answered`);
}
