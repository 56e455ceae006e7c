// nftables mode in a network namespace of this machine's kernel: every fixture over another one, drift,
// SIGKILL at any moment, watch, and whose a table is. Faults are in faults.ts, what packets do in packets.ts and
// nftables-traffic.ts.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert, assertSame, expectApply, isRestore, kpcApply, startSuite, stateDir } from './harness.ts';
import { run } from './network.ts';
import { makeOtherTables, saveOtherTables, saveTables, saveTablesByHand } from './saved-tables.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const suite = startSuite('nftables');
const [before, after] = [`${bundles}/before-nftables`, `${bundles}/after-nftables`];

makeOtherTables();
const others = saveOtherTables();

let fixtures = 0;
for (const name of readdirSync('fixtures').toSorted()) {
  const folder = join('fixtures', name, 'expected-nftables');
  if (!existsSync(join(folder, 'manifest.json'))) continue;
  fixtures++;
  await suite.check(name, async () => {
    await expectApply(['apply', folder], 0);
    assertSame('the tables', saveTables(), saveTablesByHand(folder));
    const again = await expectApply(['apply', folder], 0);
    assert(!again.commands.some(isRestore), 'a second apply ran a restore tool');
    assert(again.err.startsWith('nothing to do'), again.err);
  });
}
await suite.check('at least 40 fixtures', () => assert(fixtures >= 40, `${fixtures}`));
await suite.check('the tables of others are as they were, and cleanup leaves nothing but them', async () => {
  assertSame('the other tables', saveOtherTables(), others);
  await expectApply(['cleanup'], 0);
  assertSame('kube-proxy’s tables', saveTables(), '\n');
  assertSame('the other tables', saveOtherTables(), others);
});

await suite.check('doctor finds nothing wrong', async () => void (await expectApply(['doctor', before], 0)));
await suite.check('the node to begin with', async () => void (await expectApply(['apply', before], 0)));
const beginning = saveTables();

for (const [what, script] of [
  ['a chain of another program', 'add chain ip kube-proxy theirs; add rule ip kube-proxy theirs drop'],
  ['a set of another program', 'add set ip6 kube-proxy theirs { type ipv6_addr; }'],
  ['a base chain of another program', 'add chain ip kube-proxy theirs { type filter hook input priority 5; }'],
  ['a rule more', 'add rule ip kube-proxy services drop'],
  ['rules less', 'flush chain ip kube-proxy nat-prerouting'],
  ['an element more', 'add element ip kube-proxy cluster-ips { 10.96.99.99 }'],
  ['elements less', 'flush map ip kube-proxy service-ips'],
  ['a table less', 'delete table ip6 kube-proxy'],
  ['a counter', 'add counter ip kube-proxy theirs'],
  ['a table that sleeps', 'add table ip kube-proxy { flags dormant; }'],
  ['another policy', 'add chain ip kube-proxy filter-forward { policy drop; }'],
] as const) {
  await suite.check(`verify finds, and apply repairs: ${what}`, async () => {
    run('nft', ['-f', '-'], `${script}\n`);
    await expectApply(['verify', before], 1);
    await expectApply(['apply', before], 0);
    assertSame('the tables', saveTables(), beginning);
    await expectApply(['verify', before], 0);
  });
}

await suite.check('a change is one transaction a family, and does not touch what stays', async () => {
  const { commands } = await expectApply(['apply', after], 0);
  const inputs = commands.filter(isRestore).map(({ stdin = '' }) => stdin);
  assert(inputs.length >= 2 && !inputs.join('').includes('delete table'), inputs.join('---\n'));
  assertSame('the tables', saveTables(), saveTablesByHand(after));
  await expectApply(['rollback'], 0);
  assertSame('the tables', saveTables(), beginning);
});

await suite.check('the clients that affinity has learned stay', async () => {
  const set = /set (affinity-\S+)/.exec(run('nft', ['list', 'table', 'ip', 'kube-proxy']))?.[1] ?? '';
  run('nft', ['add', 'element', 'ip', 'kube-proxy', set, '{ 100.64.1.1 }']);
  const learned = () => run('nft', ['list', 'set', 'ip', 'kube-proxy', set]).includes('100.64.1.1');
  run('nft', ['-f', '-'], 'add chain ip kube-proxy theirs\n');
  await expectApply(['verify', before], 1);
  await expectApply(['apply', before], 0);
  assert(learned(), 'they are gone after a repair');
  await expectApply(['apply', after], 0);
  await expectApply(['rollback'], 0);
  assert(learned(), 'they are gone after an apply and a rollback');
  run('nft', ['delete', 'element', 'ip', 'kube-proxy', set, '{ 100.64.1.1 }']);
});

await suite.check('SIGKILL at twenty moments, then apply: a whole node each time', async () => {
  for (let i = 0; i < 20; i++) {
    const [bundle, args] = i % 2 === 0 ? [after, ['apply', after]] : [before, ['apply', before]];
    const child = spawn(process.execPath, [program, ...args, '--state-dir', stateDir], { stdio: 'ignore' });
    const end = new Promise((resolve) => child.on('close', resolve));
    await sleep(150 + 35 * i);
    child.kill('SIGKILL');
    await end;
    // A transaction that nft has begun may still come to its end.
    await sleep(100);
    await expectApply(['apply', bundle], 0);
    assertSame('the tables', saveTables(), saveTablesByHand(bundle));
  }
  await expectApply(['apply', before], 0);
  assertSame('the tables', saveTables(), beginning);
});

await suite.check('watch repairs drift, takes up a new bundle and ends', async () => {
  const folder = '/run/bundle';
  cpSync(before, folder, { recursive: true });
  const watch = spawn(
    process.execPath,
    [program, 'watch', folder, '--sync-period', '1s', '--min-sync-period', '300ms', '--state-dir', stateDir],
    { stdio: ['ignore', 'ignore', 'ignore'] },
  );
  const until = async (what: string, isSo: () => boolean) => {
    for (let i = 0; i < 240; i++) {
      if (isSo()) return;
      await sleep(250);
    }
    throw new Error(`${what}: not within 60 s`);
  };
  run('nft', ['-f', '-'], 'flush chain ip kube-proxy nat-prerouting\nadd chain ip kube-proxy theirs\n');
  await until('drift repaired', () => saveTables() === beginning);
  run('nft', ['-f', '-'], 'delete table ip kube-proxy\n');
  await until('a table made anew', () => saveTables() === beginning);
  const wanted = saveTablesByHand(after);
  cpSync(after, '/run/next', { recursive: true });
  renameSync(folder, '/run/last');
  renameSync('/run/next', folder);
  await until('the new bundle', () => saveTables() === wanted);
  const end = new Promise((resolve) => watch.on('close', resolve));
  watch.kill('SIGTERM');
  assert((await end) === 0, 'watch did not end with 0');
});

await suite.check('dump is a side of a comparison: no difference', async () => {
  const dump = '/run/dump';
  await expectApply(['dump', '-o', dump], 0);
  await expectApply(['verify', dump], 0);
  const { status, stdout } = spawnSync(process.execPath, ['dist/kpc.js', 'diff', dump, after], { encoding: 'utf8' });
  assert(status === 0, stdout);
});

await suite.check(
  'a table without a record is a kube-proxy’s: refused, kept by cleanup, taken over by --adopt',
  async () => {
    await expectApply(['cleanup'], 0);
    run('nft', ['-f', `${before}/nftables.nft`]);
    for (const bundle of [after, `${bundles}/after-iptables`]) {
      const { status, err } = await kpcApply(['apply', bundle]);
      assert(status === 3 && err.includes('table ip kube-proxy') && err.includes('--adopt'), err);
      assertSame('the tables', saveTables(), beginning);
    }
    const { err } = await expectApply(['cleanup'], 0);
    assert(err.includes('ip kube-proxy'), err);
    assertSame('the tables', saveTables(), beginning);
    await expectApply(['apply', '--adopt', after], 0);
    assertSame('the tables', saveTables(), saveTablesByHand(after));
    await expectApply(['cleanup'], 0);
    assertSame('the tables', saveTables(), '\n');
  },
);
await suite.check('nothing is taken from a kube-proxy that runs', async () => {
  run('nft', ['-f', `${before}/nftables.nft`]);
  cpSync('/bin/sleep', '/run/kube-proxy');
  const kubeProxy = spawn('/run/kube-proxy', ['600']);
  for (const args of [
    ['apply', '--adopt', after],
    ['cleanup', '--adopt'],
  ]) {
    const { status, err } = await kpcApply(args);
    assert(status === 3 && err.includes('kube-proxy is running'), err);
    assertSame('the tables', saveTables(), beginning);
  }
  kubeProxy.kill('SIGKILL');
  await new Promise((resolve) => kubeProxy.on('close', resolve));
  await expectApply(['cleanup', '--adopt'], 0);
});
await suite.check('the tables of others have survived it all', () => {
  assertSame('the other tables', saveOtherTables(), others);
  const tables = run('nft', ['list', 'tables'])
    .trim()
    .split('\n')
    .filter((line) => !/^table ip6? (nat|filter|mangle)$/.test(line));
  assertSame('the tables', tables.toSorted().join('\n'), 'table inet kube-proxy\ntable ip docker');
});
suite.finish();
