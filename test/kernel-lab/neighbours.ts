// Checks in a real kernel that apply, watch, rollback and cleanup leave other programs' objects unchanged, byte for byte: those of
// kube-router, Docker, Calico, keepalived and a kubelet, and objects with similar names. Also checks this over the rules of a kube-proxy,
// which are a bundle fed to the tools by hand.
//
//   neighbours.ts legacy|nft      nft: only what a network namespace of this machine's own kernel can have
//
// Unless KPC_FULL=1 is set, iptables mode and a running kube-proxy are tried only with the nft variant, whose kernel is fast.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { moveIn, neighbours, readBundleFiles, type Neighbour } from '../apply/neighbours.ts';
import { isFull } from '../support/rounds.ts';
import { assert, assertSame, expectApply, startSuite, stateDir } from './harness.ts';
import { run } from './network.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const variant = process.argv[2] === 'nft' ? 'nft' : 'legacy';
const suite = startSuite(`neighbours ${variant}`);
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

type Parts = Readonly<Record<'iptables' | 'ip6tables' | 'ipset' | 'ipvsadm' | 'addresses', string>>;

/** Saves everything on the node in an order that does not depend on its history. Rules and chains keep their own order. */
function save(): Parts {
  const lines = (text: string) => text.split('\n').filter(Boolean);
  const sorted = (text: string) => lines(text).toSorted().join('\n');
  const tables = (text: string) =>
    text
      .replaceAll(/^#.*\n/gm, '')
      .replaceAll(/ \[\d+:\d+\]/g, '')
      .split(/(?<=^COMMIT\n)/m)
      // Skip empty tables, because reading a table creates it.
      .filter((table) => /^(-A|:\S+ -)/m.test(table))
      .map((table) => {
        const all = lines(table);
        const chains = all.filter((line) => line.startsWith(':')).toSorted();
        const rules = all.filter((line) => line.startsWith('-A'));
        const ofChain = (line: string) => line.split(' ')[1] ?? '';
        return [
          all[0],
          ...chains,
          ...rules.toSorted((a, b) => (ofChain(a) < ofChain(b) ? -1 : ofChain(a) > ofChain(b) ? 1 : 0)),
        ].join('\n');
      })
      .toSorted()
      .join('\n');
  return {
    iptables: tables(run('iptables-save', [])),
    ip6tables: tables(run('ip6tables-save', [])),
    ipset: sorted(run('ipset', ['save']).replaceAll(/ initval 0x[0-9a-f]+/g, '')),
    ipvsadm: variant === 'nft' ? '' : sorted(run('ipvsadm', ['-Sn'])),
    addresses: sorted(run('ip', ['-o', 'addr', 'show']).replaceAll(/^\d+: /gm, '')),
  };
}

function assertSameParts(got: Parts, want: Parts): void {
  for (const part of Object.keys(want) as (keyof Parts)[]) assertSame(part, got[part], want[part]);
}

/** Throws unless all lines of `before` are still present, in the same order. */
function assertKept(before: Parts, now: Parts): void {
  for (const part of Object.keys(before) as (keyof Parts)[]) {
    const there = now[part].split('\n');
    let at = 0;
    for (const line of before[part].split('\n')) {
      const found = there.indexOf(line, at);
      assert(found >= 0, `${part} has lost, or has elsewhere: ${line}`);
      at = found + 1;
    }
  }
}

function enter(neighbour: Neighbour): void {
  moveIn(neighbour, (tool, args, stdin) => void run(tool, args, stdin));
}

const loseRecord = () => rmSync(stateDir, { recursive: true, force: true });

async function until(what: string, isSo: () => boolean, seconds = 90): Promise<void> {
  for (let i = 0; i < seconds * 2; i++) {
    if (isSo()) return;
    await sleep(500);
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

function end(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.on('close', resolve);
    child.kill('SIGTERM');
  });
}

/** Starts an idle process with the name kube-proxy. */
async function startKubeProxy(): Promise<ChildProcess> {
  const path = '/run/kube-proxy';
  copyFileSync('/bin/sleep', path);
  const child = spawn(path, ['600'], { stdio: 'ignore' });
  await until('the process', () => run('cat', [`/proc/${child.pid}/comm`]).trim() === 'kube-proxy');
  return child;
}

function preferNft(): boolean {
  const bin = '/run/nft-bin';
  mkdirSync(bin);
  for (const tool of ['iptables', 'ip6tables'].flatMap((name) => [name, `${name}-save`, `${name}-restore`])) {
    symlinkSync('/usr/sbin/xtables-nft-multi', join(bin, tool));
  }
  process.env['PATH'] = `${bin}:${process.env['PATH']}`;
  const words = ['-t', 'nat', '-A', 'OUTPUT', '-m', 'comment', '--comment', 'trial', '-j', 'RETURN'];
  const trial = spawnSync('iptables', words);
  if (trial.status !== 0) {
    console.log(`${variant}: skipped, for this kernel cannot: ${String(trial.stderr).trim()}`);
    return false;
  }
  spawnSync('iptables', ['-t', 'nat', '-F', 'OUTPUT']);
  return true;
}

/**
 * Returns the neighbour's objects that this kernel supports. A namespace of this machine's kernel supports neither IPVS nor dummy links.
 */
function ableTo({ ipvsadm, ip, ...rest }: Neighbour): Neighbour {
  if (variant === 'nft') return rest;
  return { ...rest, ...(ipvsadm === undefined ? {} : { ipvsadm }), ...(ip === undefined ? {} : { ip }) };
}

/** Leaves the objects of a kube-proxy: a bundle without the chain and jumps that already exist, because a kubelet made them. */
function leaveAsKubeProxy(bundle: string): void {
  const { iptables = '', ...rest } = readBundleFiles(bundle);
  const lines = iptables.split('\n').filter((line) => !/KUBE-FIREWALL\b/.test(line));
  enter(ableTo({ ...rest, iptables: lines.join('\n') }));
}

const modes =
  variant === 'nft' ? (['iptables'] as const) : isFull ? (['ipvs', 'iptables'] as const) : (['ipvs'] as const);
const { oldKubelet, ...current } = neighbours;

async function checkBeside(title: string, others: readonly Neighbour[], before: Parts): Promise<void> {
  for (const mode of modes) {
    const [first, second] = [`${bundles}/before-${mode}`, `${bundles}/after-${mode}`];
    await suite.check(`${title}: ${mode}: apply, a new bundle and rollback leave them alone`, async () => {
      await expectApply(['apply', first], 0);
      const applied = save();
      assertKept(before, applied);
      await expectApply(['apply', second], 0);
      assertKept(before, save());
      await expectApply(['rollback'], 0);
      assertSameParts(save(), applied);
      await expectApply(['verify', first], 0);
    });
    await suite.check(`${title}: ${mode}: the repair of a watch leaves them alone`, async () => {
      const applied = save();
      const args = ['watch', first, '--sync-period', '1s', '--min-sync-period', '500ms', '--state-dir', stateDir];
      const watch = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
      let said = '';
      watch.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
      run('iptables', ['-t', 'nat', '-F', 'KUBE-SERVICES']);
      run('iptables', [
        '-D',
        'FORWARD',
        '-m',
        'comment',
        '--comment',
        'kubernetes forwarding rules',
        '-j',
        'KUBE-FORWARD',
      ]);
      await until('the repair', () => said.includes('done: '));
      const status = await end(watch);
      assert(status === 0, `status ${status}: ${said}`);
      assertKept(before, save());
      // Check that the jump is at the head again, and that nothing else has moved.
      await expectApply(['verify', first], 0);
      assertSame('nat', save().iptables.split('*nat')[1] ?? '', applied.iptables.split('*nat')[1] ?? '');
    });
    await suite.check(`${title}: ${mode}: cleanup leaves the node as it was`, async () => {
      await expectApply(['cleanup'], 0);
      assertSameParts(save(), before);
    });
    await suite.check(
      `${title}: ${mode}: the rules of a kube-proxy are refused, and taken over with --adopt`,
      async () => {
        loseRecord();
        leaveAsKubeProxy(first);
        const left = save();
        const refused = await expectApply(['apply', second], 3);
        assert(/kpc-apply did not make them: .*KUBE-.*--adopt/s.test(refused.err), refused.err);
        const kept = await expectApply(['cleanup'], 0);
        assert(kept.err.includes('kept, because kpc-apply did not make'), kept.err);
        assertSameParts(save(), left);
        await expectApply(['apply', second, '--adopt'], 0);
        assertKept(before, save());
        await expectApply(['verify', second], 0);
        await expectApply(['cleanup'], 0);
        assertSameParts(save(), before);
        loseRecord();
        leaveAsKubeProxy(first);
        await expectApply(['cleanup', '--adopt'], 0);
        assertSameParts(save(), before);
      },
    );
    await suite.check(`${title}: ${mode}: what is taken over without a record leaves them too`, async () => {
      await expectApply(['apply', first], 0);
      loseRecord();
      await expectApply(['cleanup', '--adopt'], 0);
      assertSameParts(save(), before);
    });
  }
  assert(others.length > 0, 'no other program is there');
}

async function checkTies(before: Parts): Promise<void> {
  for (const mode of modes) {
    const bundle = `${bundles}/before-${mode}`;
    await suite.check(`${mode}: what uses a chain of ours keeps it, until it has gone itself`, async () => {
      await expectApply(['apply', bundle], 0);
      run('iptables', ['-t', 'nat', '-N', 'CNI-SETMARK']);
      run('iptables', ['-t', 'nat', '-A', 'CNI-SETMARK', '-s', '10.9.0.0/16', '-j', 'KUBE-MARK-MASQ']);
      run('iptables', ['-A', 'FORWARD', '-i', 'cni9', '-j', 'KUBE-FORWARD']);
      if (mode === 'ipvs') {
        run('iptables', ['-A', 'INPUT', '-m', 'set', '--match-set', 'KUBE-CLUSTER-IP', 'dst,dst', '-j', 'ACCEPT']);
      }
      await expectApply(['verify', bundle], 0);
      await expectApply(['cleanup'], 0);
      const left = save().iptables;
      for (const line of [
        '-A CNI-SETMARK -s 10.9.0.0/16 -j KUBE-MARK-MASQ',
        '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
        '-A FORWARD -i cni9 -j KUBE-FORWARD',
        ...(mode === 'ipvs' ? ['-A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT'] : []),
      ]) {
        assert(left.includes(`${line}\n`), `${line} has gone:\n${left}`);
      }
      run('iptables', ['-t', 'nat', '-F', 'CNI-SETMARK']);
      run('iptables', ['-t', 'nat', '-X', 'CNI-SETMARK']);
      run('iptables', ['-D', 'FORWARD', '-i', 'cni9', '-j', 'KUBE-FORWARD']);
      if (mode === 'ipvs') {
        run('iptables', ['-D', 'INPUT', '-m', 'set', '--match-set', 'KUBE-CLUSTER-IP', 'dst,dst', '-j', 'ACCEPT']);
      }
      await expectApply(['cleanup'], 0);
      assertSameParts(save(), before);
    });
  }
}

async function checkRunning(before: Parts): Promise<void> {
  await suite.check('a kube-proxy that runs: cleanup and rollback refuse, and change nothing', async () => {
    const bundle = `${bundles}/before-${modes[0]}`;
    loseRecord();
    leaveAsKubeProxy(bundle);
    const left = save();
    const kubeProxy = await startKubeProxy();
    try {
      for (const args of [['cleanup'], ['cleanup', '--adopt'], ['apply', `${bundles}/after-${modes[0]}`, '--adopt']]) {
        const { err } = await expectApply(args, 3);
        assert(err.includes('kube-proxy is running'), err);
        assertSameParts(save(), left);
      }
    } finally {
      await end(kubeProxy);
    }
    await expectApply(['cleanup', '--adopt'], 0);
    await expectApply(['apply', bundle], 0);
    const applied = save();
    const again = await startKubeProxy();
    try {
      for (const args of [['rollback'], ['cleanup']]) {
        await expectApply(args, 3);
        assertSameParts(save(), applied);
      }
    } finally {
      await end(again);
    }
    // After a refused command there is nothing to undo, so a rollback must name the state.
    await expectApply(['rollback'], 2);
    await expectApply(['rollback', '--to', '2'], 0);
    assertSameParts(save(), before);
  });
}

if (variant === 'legacy' || preferNft()) {
  if (variant === 'legacy') {
    run('ip', ['link', 'add', 'eth9', 'type', 'dummy']);
    run('ip', ['addr', 'add', '192.168.0.1/24', 'dev', 'eth9']);
  }
  const others = Object.values(current).map(ableTo);
  for (const neighbour of others) enter(neighbour);
  const before = save();
  await checkBeside('all of them', others, before);
  await checkTies(before);
  if (variant === 'nft' || isFull) await checkRunning(before);
}

// Add the chains of kubelets up to 1.26 last, because nothing removes them. Their KUBE-POSTROUTING conflicts with IPVS mode.
if (variant === 'legacy') {
  for (const tool of ['iptables', 'ip6tables']) {
    for (const table of ['nat', 'filter', 'mangle']) {
      run(tool, ['-t', table, '-F']);
      run(tool, ['-t', table, '-X']);
    }
  }
  enter(ableTo(oldKubelet));
  const before = save();
  await suite.check('an old kubelet: iptables mode leaves it as it is', async () => {
    loseRecord();
    await expectApply(['apply', `${bundles}/before-iptables`], 0);
    assertKept(before, save());
    await expectApply(['apply', `${bundles}/after-iptables`], 0);
    await expectApply(['cleanup'], 0);
    assertSameParts(save(), before);
  });
  await suite.check('an old kubelet: IPVS mode is refused, and goes back to the byte after --adopt', async () => {
    await expectApply(['apply', `${bundles}/before-ipvs`], 3);
    assertSameParts(save(), before);
    await expectApply(['apply', `${bundles}/before-ipvs`, '--adopt'], 0);
    await expectApply(['rollback'], 0);
    assertSameParts(save(), before);
  });
}
suite.finish();
