// Checks kpc-apply watch as a separate process: it applies, repairs, uses a new bundle, answers health checks from outside and ends on a
// signal. Also checks the effect of signals on an apply.
import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { assert, assertSame, expectApply, startSuite, stateDir } from './harness.ts';
import { addresses, buildNetwork, run } from './network.ts';
import { saveState } from './saved-state.ts';
import { replaceFile } from '../../src/base/open-folder.ts';
import { readFolder } from '../../src/bundle/folder.ts';
import { packFiles } from '../../src/bundle/pack/pack.ts';
import { addSignature, readPrivateKey, signBundle } from '../../src/bundle/pack/signature.ts';
import { makeKey } from '../support/signing-key.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const suite = startSuite('watch');
const folder = '/run/bundle';
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

buildNetwork();
const network = saveState();
cpSync(`${bundles}/before-ipvs`, folder, { recursive: true });

/** Waits until a condition holds. On timeout, the error names `what`. */
async function until(what: string, isSo: () => boolean | Promise<boolean>, seconds = 300): Promise<void> {
  for (let i = 0; i < seconds * 2; i++) {
    if (await isSo()) return;
    await sleep(500);
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

function start(...args: readonly string[]): { readonly child: ChildProcess; readonly said: () => string } {
  let said = '';
  const child = spawn(process.execPath, [program, ...args, '--state-dir', stateDir], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return { child, said: () => said };
}

/** Sends a signal to a process. Returns how the process ends. */
function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  return new Promise((resolve) => {
    child.on('close', resolve);
    child.kill(signal);
  });
}

/** Sends a request to a port from outside. Returns status and body. */
function askHealth(port: number, host: string, path = '/'): string {
  const script = `
    use IO::Socket::IP;
    my $socket = IO::Socket::IP->new(PeerAddr => "${host}", PeerPort => ${port}, Timeout => 60) or print("closed"), exit;
    print $socket "GET ${path} HTTP/1.0\\r\\n\\r\\n";
    print <$socket>;`;
  return run('ip', ['netns', 'exec', 'client', 'perl', '-e', script]);
}

/** Writes a signed pack like `kpc bundle pack --sign`. */
async function writePack(source: string, pack: string, secret: string, serial: number): Promise<void> {
  const files = await readFolder(source);
  const key = readPrivateKey(readFileSync(secret, 'utf8'));
  if ('reason' in key) throw new Error(`${secret} holds no key`);
  const bytes = packFiles(addSignature(files, signBundle(files, key, serial)));
  await replaceFile(pack, bytes, { mode: 0o644, isDurable: false });
}

const listed = () => run('ipvsadm', ['-Sn']);
const monitoring = ['--metrics', '9810', '--healthz', `${addresses.node1.ipv4}:10256`];
const watch = start('watch', folder, '--sync-period', '2s', '--min-sync-period', '500ms', ...monitoring);

/** Returns the value of a metric of the watch. */
async function readMetric(series: string): Promise<number> {
  const text = await (await fetch('http://127.0.0.1:9810/metrics')).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

await suite.check('watch applies the bundle', async () => {
  await until('the rules', () => watch.said().includes('done: '));
  await expectApply(['verify', folder], 0);
});
await suite.check('watch answers health checks as kube-proxy does', async () => {
  // Retry, because the watch is healthy only if it has synced within two sync periods, which it may miss on a busy machine.
  let local = '';
  await until('health', () => /^HTTP\/1\.\d 200 /.test((local = askHealth(32100, addresses.node1.ipv4))));
  assert(local.includes('"localEndpoints": 1'), local);
  const far = askHealth(32101, addresses.node1.ipv4);
  assert(/^HTTP\/1\.\d 503 /.test(far), far);
  assert(far.includes('"name": "balanced-far"') && far.includes('"localEndpoints": 0'), far);
});
await suite.check('watch repairs what another program takes away or adds', async () => {
  const whole = saveState();
  run('ipvsadm', ['-D', '-t', '10.96.0.10:80']);
  run('ipset', ['del', 'KUBE-CLUSTER-IP', '10.96.0.13,tcp:80']);
  run('iptables', ['-t', 'nat', '-F', 'KUBE-POSTROUTING']);
  run('ip', ['addr', 'del', '10.96.0.14/32', 'dev', 'kube-ipvs0']);
  run('ip', ['addr', 'add', '10.96.0.99/32', 'dev', 'kube-ipvs0']);
  await until('the repair', () => JSON.stringify(saveState()) === JSON.stringify(whole));
});
await suite.check('watch counts the drift that it found and repaired, and nothing that failed', async () => {
  for (const object of ['virtual server', 'set entry', 'chain', 'address']) {
    for (const series of ['kpc_apply_drift_found_total', 'kpc_apply_drift_repaired_total']) {
      // Wait, because a round is counted only after it has read everything back.
      await until(`${series} of ${object}`, async () => (await readMetric(`${series}{object="${object}"}`)) >= 1);
    }
  }
  const tools = await Promise.all(
    ['ip', 'ipset', 'ipvsadm', 'iptables-save'].map((tool) =>
      readMetric(`kpc_apply_tool_failures_total{tool="${tool}"}`),
    ),
  );
  assert(
    tools.every((count) => count === 0),
    `tool failures: ${tools.join(', ')}`,
  );
  assert((await readMetric('kpc_apply_bundle_good')) === 1, 'the bundle is not good');
});
await suite.check("watch answers /healthz on kube-proxy's port", async () => {
  let answer = '';
  await until('health', () => /^HTTP\/1\.\d 200 /.test((answer = askHealth(10256, addresses.node1.ipv4, '/healthz'))));
  assert(answer.includes('"nodeEligible":true') && answer.includes('"IPv4":{'), answer);
  assert(askHealth(9810, addresses.node1.ipv4, '/metrics') === 'closed', 'metrics are served to others');
});
await suite.check('watch takes up a new bundle', async () => {
  cpSync(`${bundles}/after-ipvs`, `${folder}.new`, { recursive: true });
  renameSync(folder, `${folder}.old`);
  renameSync(`${folder}.new`, folder);
  await until('the new Service', () => listed().includes('-A -t 10.96.0.30:80'));
  await until('the end of the old ones', () => !listed().includes('-A -t 10.96.0.20:80'));
  await until('the end of its health check', () => askHealth(32100, addresses.node1.ipv4) === 'closed');
});
await suite.check('watch goes on with what is there while the bundle is broken', async () => {
  rmSync(`${folder}/ipset.restore`);
  await until('the complaint', () => watch.said().includes('ipset.restore is missing'));
  assert(listed().includes('-A -t 10.96.0.30:80'), listed());
  cpSync(`${bundles}/after-ipvs/ipset.restore`, `${folder}/ipset.restore`);
});
await suite.check('watch ends at SIGTERM, and the rules stay', async () => {
  const status = await end(watch.child, 'SIGTERM');
  assert(status === 0, `status ${status}: ${watch.said()}`);
  await expectApply(['verify', folder], 0);
});
await suite.check(
  'an apply whose terminal hangs up waits for its confirmation all the same, then goes back',
  async () => {
    const there = saveState();
    const apply = start('apply', `${bundles}/before-ipvs`, '--confirm-timeout', '20s');
    await until('the question', () => apply.said().includes('kpc-apply confirm'));
    apply.child.kill('SIGHUP');
    await sleep(500);
    assert(apply.child.exitCode === null, 'it ended');
    const status = await new Promise((resolve) => apply.child.on('close', resolve));
    assert(status === 3, `status ${String(status)}: ${apply.said()}`);
    assertSame('ipvsadm', saveState().ipvsadm, there.ipvsadm);
  },
);
await suite.check('an apply that is interrupted while it waits goes back at once', async () => {
  const there = saveState();
  const apply = start('apply', `${bundles}/before-ipvs`, '--confirm-timeout', '10m');
  await until('the question', () => apply.said().includes('kpc-apply confirm'));
  const status = await end(apply.child, 'SIGTERM');
  assert(status === 3, `status ${status}: ${apply.said()}`);
  assertSame('ipvsadm', saveState().ipvsadm, there.ipvsadm);
});
await suite.check('watch with --trust takes up signed packs alone', async () => {
  const [mine, theirs] = [makeKey('/run', 'mine'), makeKey('/run', 'theirs')];
  const pack = '/run/node.tgz';
  await writePack(`${bundles}/before-ipvs`, pack, mine.secret, 1);
  const trusting = start('watch', pack, '--sync-period', '2s', '--min-sync-period', '500ms', '--trust', mine.trusted);
  await until('the first pack', () => listed().includes('-A -t 10.96.0.20:80'));
  await writePack(`${bundles}/after-ipvs`, pack, theirs.secret, 2);
  await until('the refusal', () => trusting.said().includes('[not-trusted]'));
  assert(listed().includes('-A -t 10.96.0.20:80'), listed());
  await writePack(`${bundles}/after-ipvs`, pack, mine.secret, 2);
  await until('the second pack', () => listed().includes('-A -t 10.96.0.30:80'));
  // Wait for the end of the change, because an earlier signal would roll back to the first pack.
  await until('the end of the change', () => trusting.said().split('\ndone: ').length === 3);
  const status = await end(trusting.child, 'SIGTERM');
  assert(status === 0, `status ${status}: ${trusting.said()}`);
  await writePack(`${bundles}/before-ipvs`, pack, mine.secret, 1);
  await expectApply(['apply', pack, '--trust', mine.trusted], 2);
});
await suite.check('cleanup leaves the network as it was', async () => {
  await expectApply(['cleanup'], 0);
  const after = saveState();
  for (const part of ['iptables', 'ip6tables', 'ipset', 'ipvsadm', 'addresses'] as const) {
    assertSame(part, after[part], network[part]);
  }
});
suite.finish();
