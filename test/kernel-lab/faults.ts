// Everything that can go wrong in an apply is made to go wrong, one thing at a time, on a node that holds another bundle
// and two virtual servers of another program. Afterwards the node must be, to the byte, what it was before.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command, Host } from '../../src/apply/host.ts';
import { realHost } from '../../src/apply/real-host.ts';
import { ended, failOnce, restoreFaults } from '../support/tool-faults.ts';
import { assert, assertSame, expectApply, isRestore, kpcApply, startSuite, stateDir } from './harness.ts';
import type { Run } from './harness.ts';
import { run } from './network.ts';
import { saveByHand, saveState } from './saved-state.ts';
import type { SavedState } from './saved-state.ts';

const bundles = process.env['KPC_BUNDLES'] ?? '';
const program = process.env['KPC_APPLY'] ?? 'dist/kpc-apply.js';
const [before, after] = [`${bundles}/before-ipvs`, `${bundles}/after-ipvs`];
const suite = startSuite('faults');

/** One row of the table of faults. */
interface Row {
  readonly fault: string;
  readonly status: number;
  readonly node: string;
  readonly says: string;
}
const rows: Row[] = [];

run(
  'ipvsadm',
  ['-R'],
  '-A -t 100.64.9.1:80 -s rr\n-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7\n-A -u 100.64.9.2:53 -s sh\n',
);
run('iptables', ['-A', 'INPUT', '-s', '100.64.9.9', '-j', 'DROP']);

await suite.check('the node to begin with', async () => void (await expectApply(['apply', before], 0)));
const beginning = saveState();

function assertAsBefore(what: SavedState = beginning): void {
  const now = saveState();
  for (const part of ['iptables', 'ip6tables', 'ipset', 'ipvsadm', 'addresses'] as const) {
    assertSame(part, now[part], what[part]);
  }
}

/** What was said, and what to do about it, on one line that is the same in each run. */
function quote({ err }: Run): string {
  const [, error = '', advice = ''] = /kpc-apply: error: (.*?)\n {2}what to do: (.*)/s.exec(err) ?? [];
  const line = error
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/process \d+/g, 'process 4711')
    .replaceAll(bundles, '…');
  const [shown, code = ''] = [line.slice(0, 150), / \[[\w-]+\]$/.exec(line)?.[0]];
  return `${shown === line ? line : `${shown}…${code}`} — ${advice.split('\n')[0]}`;
}

/** Runs an apply under a fault. It must end with this status, leave the node as it was and say what to do. */
async function expectFault(
  fault: string,
  host: Host,
  status = 3,
  args: readonly string[] = ['apply', after],
): Promise<void> {
  await suite.check(fault, async () => {
    const result = await kpcApply(args, host);
    assert(result.status === status, `status ${result.status}, not ${status}: ${result.err}`);
    assert(/what to do: .{10,}/.test(result.err), `it does not say what to do: ${result.err}`);
    assertAsBefore();
    rows.push({ fault, status, node: 'as before', says: quote(result) });
  });
}

// The steps of this change, in their order: each tool where it adds, and where it takes away.
const steps: readonly (readonly [name: string, tool: string, nth: number])[] = [
  ['ipset restore (adding)', 'ipset', 1],
  ['iptables-restore', 'iptables-restore', 1],
  ['ip6tables-restore', 'ip6tables-restore', 1],
  ['ipvsadm -R (adding)', 'ipvsadm', 1],
  ['ip -batch (adding)', 'ip', 1],
  ['ip -batch (taking away)', 'ip', 2],
  ['ipvsadm -R (taking away)', 'ipvsadm', 2],
  ['ipset restore (taking away)', 'ipset', 2],
];
for (const [name, tool, nth] of steps) {
  for (const [how, fault] of Object.entries(restoreFaults)) {
    await expectFault(
      `${name} ${how}`,
      failOnce(realHost, (command) => command.tool === tool && isRestore(command), fault, nth),
    );
  }
}

for (const tool of ['iptables-save', 'ip6tables-save', 'ipset', 'ipvsadm', 'ip']) {
  const reads = (command: Command) =>
    command.tool === tool && !isRestore(command) && !/^(-V|--version)$/.test(command.args[0] ?? '');
  await expectFault(
    `${tool} cannot read the node`,
    failOnce(realHost, reads, async () => ended(1, 'no reason given')),
  );
  await expectFault(
    `${tool} cannot read the node back`,
    failOnce(realHost, reads, async () => ended(1, 'no reason given'), 2),
  );
}
for (const [tool, says] of [
  ['iptables-restore', 'iptables-restore v1.4.21'],
  ['ipset', 'ipset v4.5, protocol version: 4'],
  ['ipvsadm', 'ipvsadm v1.26 2008/5/15 (compiled with popt and IPVS v1.2.1)'],
] as const) {
  const versions = (command: Command) => command.tool === tool && command.args[0] === '--version';
  await expectFault(
    `${tool} is of an old version`,
    failOnce(realHost, versions, async () => ({ kind: 'ended', status: 0, stdout: says, stderr: '' })),
  );
}

await suite.check('the disk is full', async () => {
  mkdirSync('/run/full', { recursive: true });
  run('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', '/run/full']);
  cpSync(`${stateDir}/record.json`, '/run/full/record.json');
});
const onFullDisk: Host = {
  ...realHost,
  readFile: (path) => realHost.readFile(path.replace(stateDir, '/run/full')),
  replaceFile: (path, text) => realHost.replaceFile(path.replace(stateDir, '/run/full'), text),
  renameFile: (from, to) => realHost.renameFile(from.replace(stateDir, '/run/full'), to.replace(stateDir, '/run/full')),
  remove: (path) => realHost.remove(path.replace(stateDir, '/run/full')),
  list: (path) => realHost.list(path.replace(stateDir, '/run/full')),
};
await expectFault('the disk is full when the snapshot is written', onFullDisk);

await expectFault('a sysctl cannot be written', {
  ...realHost,
  readFile: async (path) => (path.endsWith('/ip_forward') ? '0\n' : realHost.readFile(path)),
  writeFile: async (path) => {
    throw new Error(`EROFS: read-only file system, open '${path}'`);
  },
});

const holder = spawn('sleep', ['600']);
const holderStat = readFileSync(`/proc/${holder.pid}/stat`, 'utf8');
mkdirSync(`${stateDir}/lock`, { recursive: true });
writeFileSync(
  `${stateDir}/lock/${holder.pid}-other`,
  JSON.stringify({
    pid: holder.pid,
    started: holderStat.slice(holderStat.lastIndexOf(')') + 2).split(' ')[19],
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    command: 'apply elsewhere',
  }),
);
await expectFault('the lock is held', realHost);
holder.kill('SIGKILL');
await new Promise((resolve) => holder.on('close', resolve));
await suite.check('the lock of a process that is gone holds up no apply', async () => {
  await expectApply(['apply', before], 0);
  rows.push({ fault: 'the lock is held by a process that is gone', status: 0, node: 'applied', says: '' });
});

cpSync('/bin/sleep', '/run/kube-proxy');
const kubeProxy = spawn('/run/kube-proxy', ['600']);
await expectFault('a kube-proxy is running', realHost);
kubeProxy.kill('SIGKILL');
await new Promise((resolve) => kubeProxy.on('close', resolve));

/** A copy of the bundle with something done to it. */
function spoil(name: string, change: (folder: string) => void): string {
  const folder = `/run/${name}`;
  cpSync(after, folder, { recursive: true });
  change(folder);
  return folder;
}
const edit = (path: string, change: (text: string) => string) =>
  writeFileSync(path, change(readFileSync(path, 'utf8')));
const spoiled: Readonly<Record<string, (folder: string) => void>> = {
  'a bundle with a file cut short': (folder) => edit(`${folder}/ipvsadm.restore`, (text) => text.slice(0, -20)),
  'a bundle that was tampered with': (folder) =>
    edit(`${folder}/ipvsadm.restore`, (text) => text.replace('10.1.2.10', '10.1.2.66')),
  'a bundle without one of its files': (folder) => rmSync(`${folder}/ipset.restore`),
  'a bundle of a format to come': (folder) =>
    edit(`${folder}/manifest.json`, (text) => text.replace('"formatVersion": 1', '"formatVersion": 99')),
  'a bundle whose manifest is no JSON': (folder) => edit(`${folder}/manifest.json`, (text) => text.slice(0, 100)),
  'a folder that is no bundle': (folder) => rmSync(`${folder}/manifest.json`),
};
for (const [fault, change] of Object.entries(spoiled)) {
  await expectFault(fault, realHost, 2, ['apply', spoil(fault.replaceAll(' ', '-'), change)]);
}

await expectFault('no confirmation in time', realHost, 3, ['apply', after, '--confirm-timeout', '500ms']);
await suite.check('a confirmation in time', async () => {
  const applying = kpcApply(['apply', after, '--confirm-timeout', '60s']);
  const end = applying.then(() => true);
  let isOver = false;
  while (!isOver && (await kpcApply(['confirm'])).status !== 0) isOver = await Promise.race([end, sleep(200, false)]);
  const result = await applying;
  assert(result.status === 0, result.err);
  await expectApply(['verify', after], 0);
  await expectApply(['rollback'], 0);
  assertAsBefore();
});

await suite.check('putting back fails too: status 4, what is left, and rollback when the cause is gone', async () => {
  let broken = false;
  const host: Host = {
    ...realHost,
    run: async (command) => {
      // ipvsadm works once, and never again.
      if (command.tool !== 'ipvsadm' || !isRestore(command)) return realHost.run(command);
      if (broken) return ended(1, 'Memory allocation problem');
      broken = true;
      return realHost.run(command);
    },
  };
  const result = await kpcApply(['apply', after], host);
  assert(result.status === 4, `status ${result.status}: ${result.err}`);
  assert(
    /Left to do:\n {2}.*\n {2}remove virtual server TCP 10\.96\.0\.30:80 with \d+ real servers?\n/.test(result.err),
    result.err,
  );
  rows.push({
    fault: 'ipvsadm -R (taking away) ends with status 1, and so does every one after it',
    status: 4,
    node: 'says what is left; as before after rollback',
    says: quote(result),
  });
  await expectApply(['rollback'], 0);
  assertAsBefore();
});

// The program itself is killed: in the middle of each step, by the tool that it has just started.
const realTools = spawnSync('bash', [
  '-c',
  'for t in ipset iptables-restore ip6tables-restore ipvsadm ip; do command -v $t; done',
])
  .stdout.toString()
  .trim()
  .split('\n');
for (const [i, [name, tool, nth]] of steps.entries()) {
  const next = i % 2 === 0 ? 'rollback' : 'apply';
  const fault = `kpc-apply is killed with SIGKILL during ${name}`;
  await suite.check(`${fault}, then ${next}`, async () => {
    const folder = '/run/killers';
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const real = realTools.find((path) => path.endsWith(`/${tool}`)) ?? tool;
    writeFileSync(
      `${folder}/${tool}`,
      `#!/bin/bash
case "$*" in
restore | -R | '-batch -' | --noflush*)
  echo >>${folder}/count
  if [ "$(wc -l <${folder}/count)" = ${nth} ]; then
    head -n 2 >${folder}/input
    kill -9 $PPID
    ${real} "$@" <${folder}/input
    : >${folder}/ended
    exit
  fi
  ;;
esac
exec ${real} "$@"
`,
    );
    chmodSync(`${folder}/${tool}`, 0o755);
    const killed = spawnSync(process.execPath, [program, 'apply', after, '--state-dir', stateDir], {
      env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
      encoding: 'utf8',
    });
    assert(killed.signal === 'SIGKILL', `it was not killed: ${killed.status} ${killed.stderr}`);
    // The tool outlives it.
    while (!existsSync(`${folder}/ended`)) await sleep(50);
    if (next === 'rollback') await expectApply(['rollback'], 0);
    else {
      await expectApply(['apply', after], 0);
      assertAfter();
      await expectApply(['rollback'], 0);
    }
    assertAsBefore();
    const node = next === 'rollback' ? 'as before, after rollback' : 'as wanted, after the next apply';
    rows.push({ fault, status: 137, node, says: '' });
  });
}

/** The node holds the second bundle, as it would if it had been empty. */
function assertAfter(): void {
  const byHand = saveByHand(after);
  const now = saveState();
  assertSame('ipset', now.ipset, byHand.ipset);
  assertSame('ip6tables', now.ip6tables, byHand.ip6tables);
  assertSame('addresses', now.addresses, byHand.addresses);
}

await suite.check('a set of another type in the way', async () => {
  await expectApply(['cleanup'], 0);
  run('ipset', ['create', 'KUBE-CLUSTER-IP', 'hash:net']);
  const there = saveState();
  const result = await kpcApply(['apply', after]);
  assert(result.status === 3 && /KUBE-CLUSTER-IP/.test(result.err) && /--adopt/.test(result.err), result.err);
  assertAsBefore(there);
  rows.push({ fault: 'a set of another type is in the way', status: 3, node: 'as before', says: quote(result) });
  run('ipset', ['destroy', 'KUBE-CLUSTER-IP']);
});
await suite.check("another program's virtual server in the way", async () => {
  run('ipvsadm', ['-A', '-t', '10.96.0.10:80', '-s', 'wlc']);
  const there = saveState();
  const result = await kpcApply(['apply', after, '--adopt']);
  assert(result.status === 3 && /10\.96\.0\.10/.test(result.err), result.err);
  assertAsBefore(there);
  rows.push({
    fault: "another program's virtual server is in the way",
    status: 3,
    node: 'as before',
    says: quote(result),
  });
  run('ipvsadm', ['-D', '-t', '10.96.0.10:80']);
});
await suite.check("another program's virtual servers have survived it all", () => {
  const listed = run('ipvsadm', ['-Sn']);
  assert(listed.includes('-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7'), listed);
  assert(listed.includes('-A -u 100.64.9.2:53 -s sh'), listed);
});
await suite.check('--adopt takes over what a kube-proxy left, and cleanup --adopt takes it away', async () => {
  // Files fed by hand leave what a kube-proxy leaves: everything, and no record of it.
  run('bash', [
    '-c',
    `cd ${before} && ipset restore <ipset.restore && iptables-restore --noflush <iptables.restore &&
    ip6tables-restore --noflush <ip6tables.restore && ipvsadm -R <ipvsadm.restore && ip -batch ip.batch`,
  ]);
  const refused = await kpcApply(['apply', after]);
  assert(refused.status === 3 && /--adopt/.test(refused.err), refused.err);
  await expectApply(['apply', after, '--adopt', '--ipvs-exclude-cidrs', '10.96.0.22/32'], 0);
  assertAfter();
  const listed = run('ipvsadm', ['-Sn']);
  assert(listed.includes('-A -t 10.96.0.22:80'), `an excluded virtual server has gone:\n${listed}`);
  assert(!listed.includes('10.96.0.13'), `a Service that is not wanted has stayed:\n${listed}`);
  await expectApply(['cleanup', '--adopt'], 0);
  assert(/100\.64\.9\.1/.test(run('ipvsadm', ['-Sn'])), 'the others have gone');
  run('ipvsadm', ['-D', '-t', '10.96.0.22:80']);
});

const table = [
  '| what goes wrong | exit status | the node afterwards | what kpc-apply says, and what to do |',
  '| --- | --- | --- | --- |',
  ...rows.map(({ fault, status, node, says }) => `| ${[fault, status, node, escapeCell(says)].join(' | ')} |`),
].join('\n');
console.log(table);
const out = process.env['KPC_FAULTS_OUT'];
if (out !== undefined) {
  writeFileSync(
    out,
    `# Faults\n\nWritten by \`npm run faults\`: each of these was made to happen in a kernel, in the middle of an apply.\n\n${table}\n`,
  );
}
suite.finish();

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
