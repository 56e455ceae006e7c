// Checks nftables mode in a network namespace of this machine's kernel: every fixture over another one, drift, SIGKILL at any moment,
// watch, and the ownership of tables. faults.ts covers faults; packets.ts and nftables-traffic.ts cover packets.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { readNftGeneration } from '../../src/apply/node/tools.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { isFull } from '../support/rounds.ts';
import { ended, failOnce, killed, restoreFaults, type Fault } from '../support/tool-faults.ts';
import { assert, assertSame, expectApply, isRestore, kpcApply, startSuite, stateDir } from './harness.ts';
import { run } from './network.ts';
import { makeOtherTables, saveOtherTables, saveTables, saveTablesByHand } from './saved-tables.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const suite = startSuite('nftables');
const [before, after] = [`${bundles}/before-nftables`, `${bundles}/after-nftables`];

makeOtherTables();
const others = saveOtherTables();

/** Reports whether a command lists a whole table. Listing only the names of tables costs next to nothing. */
const isListing = ({ tool, args }: ToolCommand) => tool === 'nft' && args.includes('list') && !args.includes('tables');
/** Changes the generation, as any program does when it changes its own rules. */
const moveGeneration = () => run('nft', ['-f', '-'], 'add table ip passing\ndelete table ip passing\n');

let fixtures = 0;
for (const name of readdirSync(`${bundles}/fixtures`).toSorted()) {
  const folder = join(bundles, 'fixtures', name, 'expected-nftables');
  if (!existsSync(folder)) continue;
  fixtures++;
  await suite.check(name, async () => {
    await expectApply(['apply', folder], 0);
    assertSame('the tables', saveTables(), saveTablesByHand(folder));
    const again = await expectApply(['apply', folder], 0);
    assert(!again.commands.some(isRestore), 'a second apply ran a restore tool');
    assert(!again.commands.some(isListing), 'a second apply listed a table');
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

await suite.check('a change lists no table, there and back, and neither does an apply of nothing', async () => {
  for (const bundle of [after, before, before]) {
    const { commands } = await expectApply(['apply', bundle], 0);
    assert(!commands.some(isListing), `${bundle}: a table was listed`);
    assertSame('the tables', saveTables(), saveTablesByHand(bundle));
    await expectApply(['verify', bundle], 0);
  }
});
await suite.check('one after another program changed a rule of its own lists the tables, once', async () => {
  moveGeneration();
  assert((await expectApply(['apply', before], 0)).commands.some(isListing), 'no table was listed');
  assert(!(await expectApply(['apply', before], 0)).commands.some(isListing), 'a table was listed again');
});
/** This node without perl. kpc-apply can then learn the tables' content only by listing them. */
const withoutPerl: Host = {
  ...realHost,
  run: (command) => (command.tool === 'perl' ? Promise.resolve({ kind: 'missing' }) : realHost.run(command)),
};
await suite.check('without perl the tables are listed', async () => {
  for (const bundle of [after, before]) {
    const { status, commands } = await kpcApply(['apply', bundle], withoutPerl);
    assert(status === 0 && commands.some(isListing), `status ${status}`);
    assertSame('the tables', saveTables(), saveTablesByHand(bundle));
  }
});
await suite.check('the kernel tells its count, and another network namespace has one of its own', async () => {
  const elsewhere: Host = {
    ...realHost,
    run: ({ tool, args }) => realHost.run({ tool: 'unshare', args: ['--net', tool, ...args] }),
  };
  const [here, there] = [await readNftGeneration(realHost), await readNftGeneration(elsewhere)];
  assert(here !== undefined && there !== undefined && here.counter !== there.counter, JSON.stringify([here, there]));
  moveGeneration();
  const later = await readNftGeneration(realHost);
  assertSame('the count', JSON.stringify(later), JSON.stringify({ ...here, count: here.count + 1 }));
});

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

const faults: Readonly<Record<string, Fault>> = {
  ...restoreFaults,
  'is killed after it has done its work': async (command, host) => {
    await host.run(command);
    return killed;
  },
};

async function expectFault(name: string, host: Host): Promise<void> {
  await suite.check(name, async () => {
    const { status, err } = await kpcApply(['apply', after], host);
    assert(status === 3 && /help: .{10,}/.test(err), `status ${status}: ${err}`);
    assertSame('the tables', saveTables(), beginning);
    assertSame('the other tables', saveOtherTables(), others);
  });
}

/** Faults of nft that change its input. A listing shows the result. */
const lies: Readonly<Record<string, (input: string) => string>> = {
  'leaves out a rule': (input) => input.replace(/^add rule .*\n/m, ''),
  'leaves out an element': (input) => input.replace(/^add element .*\n/m, ''),
  'keeps an element': (input) => input.replace(/^delete element .*\n/m, ''),
  'writes another port': (input) => input.replace(/ \. 8080/, ' . 8081'),
  'makes a chain besides': (input) => `${input}add chain ip kube-proxy theirs\n`,
  'makes a set besides': (input) => `${input}add set ip kube-proxy theirs { type ipv4_addr; }\n`,
};
for (const [how, lie] of Object.entries(lies)) {
  let isTold = false;
  await expectFault(`nft says that all is well, and ${how}`, {
    ...withoutPerl,
    run: (command) => {
      const input = command.stdin ?? '';
      if (isTold || !isRestore(command) || lie(input) === input) return withoutPerl.run(command);
      isTold = true;
      return realHost.run({ ...command, stdin: lie(input) });
    },
  });
  assert(isTold, `${how}: there was nothing to lie about`);
}

for (const nth of [1, 2, 3, 4]) {
  await expectFault(
    `nft cannot read the node, time ${nth}`,
    failOnce(withoutPerl, isListing, async () => ended(1, 'no reason given'), nth),
  );
}
/** Makes an nft that kills kpc-apply at the nth transaction, before or after its work. */
function killAt(nth: number, when: 'before' | 'after'): void {
  const bin = '/run/killer';
  rmSync(bin, { recursive: true, force: true });
  mkdirSync(bin);
  const real = run('bash', ['-c', 'command -v nft']).trim();
  const steps =
    when === 'before' ? `kill -9 $PPID; ${real} "$@" <${bin}/input` : `${real} "$@" <${bin}/input; kill -9 $PPID`;
  writeFileSync(
    `${bin}/nft`,
    `#!/bin/bash
if [ "$*" = '-f -' ]; then
  echo >>${bin}/count
  if [ "$(wc -l <${bin}/count)" = ${nth} ]; then cat >${bin}/input; ${steps}; : >${bin}/ended; exit; fi
fi
exec ${real} "$@"
`,
  );
  chmodSync(`${bin}/nft`, 0o755);
}
const moments = isFull ? 20 : 10;
await suite.check(`SIGKILL at ${moments} moments, then apply: a whole node each time`, async () => {
  for (let i = 0; i < moments; i++) {
    const [bundle, args] = i % 2 === 0 ? [after, ['apply', after]] : [before, ['apply', before]];
    const child = spawn(process.execPath, [program, ...args, '--state-dir', stateDir], { stdio: 'ignore' });
    const end = new Promise((resolve) => child.on('close', resolve));
    await sleep(150 + (700 / moments) * i);
    child.kill('SIGKILL');
    await end;
    // Wait, because a transaction that nft has begun may still finish.
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
/** A bundle with so many chains that they are loaded in several transactions. */
const many = `${bundles}/many-nftables`;
const [none, all] = [saveTables(), saveTablesByHand(many)];
const stages = (await expectApply(['apply', many], 0)).commands.filter(isRestore);
await suite.check('a first apply of much changes what packets meet in its last transaction alone', async () => {
  assert(stages.length > 3, `${stages.length} transactions`);
  const hooks = stages.map(({ stdin = '' }) => stdin.includes(' hook '));
  assert(hooks.indexOf(true) === stages.length - 1, `hooks in transaction ${hooks.indexOf(true) + 1}`);
  assertSame('the tables', saveTables(), all);
  assert(!(await expectApply(['apply', many], 0)).commands.some(isListing), 'a second apply listed a table');
});
await expectApply(['cleanup'], 0);
for (let nth = 1; nth <= stages.length; nth++) {
  // Try one combination for each transaction. Together they cover all cases of both lists.
  const inTurn = <T>(cases: readonly T[]) => cases.filter((_, i) => isFull || i === nth % cases.length);
  await suite.check(`a first apply of much, transaction ${nth} of ${stages.length} fails`, async () => {
    for (const fault of inTurn(Object.values(faults))) {
      const { status } = await kpcApply(['apply', many], failOnce(realHost, isRestore, fault, nth));
      assert(status === 3, `status ${status}`);
      assertSame('the tables', saveTables(), none);
    }
  });
  for (const [next, end] of inTurn([
    ['apply', all],
    ['rollback', none],
    ['cleanup', none],
  ] as const)) {
    await suite.check(
      `a first apply of much, SIGKILL after transaction ${nth} of ${stages.length}, ${next}`,
      async () => {
        killAt(nth, 'after');
        const { signal } = spawnSync(process.execPath, [program, 'apply', many, '--state-dir', stateDir], {
          env: { ...process.env, PATH: `/run/killer:${process.env['PATH']}` },
          encoding: 'utf8',
        });
        assert(signal === 'SIGKILL', 'it was not killed');
        while (!existsSync('/run/killer/ended')) await sleep(20);
        await expectApply(next === 'apply' ? ['apply', many] : [next], 0);
        assertSame('the tables', saveTables(), end);
        await expectApply(['cleanup'], 0);
        assertSame('the tables', saveTables(), none);
      },
    );
  }
}
await suite.check('a table that sleeps is replaced at once, however much is in it', async () => {
  run('nft', ['-f', '-'], 'add table ip kube-proxy { comment "rules for kube-proxy"; flags dormant; }\n');
  const { commands } = await expectApply(['apply', '--adopt', many], 0);
  assert(commands.filter(isRestore).length === 1, 'there were several transactions');
  assertSame('the tables', saveTables(), all);
  await expectApply(['cleanup'], 0);
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
