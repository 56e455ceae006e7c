// Causes every fault that an apply can meet, one at a time, on a node with another bundle and with objects of other programs. Afterwards
// the node must be, byte for byte, as it was before.
//
//   faults.ts ipvs|iptables|nftables
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { isFull } from '../support/rounds.ts';
import { ended, failOnce, killed, restoreFaults, type Fault } from '../support/tool-faults.ts';
import { findFaultMode, type FaultStep } from './fault-modes.ts';
import {
  assert,
  assertSame,
  expectApply,
  isRestore,
  kpcApply,
  networkFolder,
  startSuite,
  stateDir,
  type Run,
} from './harness.ts';
import { run } from './network.ts';

const [name = ''] = process.argv.slice(2);
const mode = findFaultMode(name);
const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const [before, after] = [`${bundles}/before-${name}`, `${bundles}/after-${name}`];
const suite = startSuite(`faults ${name}`);

/**
 * In User Mode Linux each fault takes seconds. Unless KPC_FULL=1 is set, as it is for docs/faults.md, only a few faults of each kind are
 * tried.
 */
const triesAll = name !== 'ipvs' || isFull;

/** Returns all of these cases, or one. */
function inTurn<T>(cases: readonly T[], turn: number): readonly T[] {
  return triesAll ? cases : cases.filter((_, i) => i === turn % cases.length);
}

/** One row of the table of faults. */
interface Row {
  readonly fault: string;
  readonly status: number;
  readonly node: string;
  readonly says: string;
}
const rows: Row[] = [];

type Saved = Readonly<Record<string, string>>;

function assertSaved(now: Saved, wanted: Saved): void {
  for (const [part, text] of Object.entries(wanted)) assertSame(part, now[part] ?? '', text);
}

mode.makeOthers();
const empty = mode.save();
await suite.check('the node to begin with', async () => void (await expectApply(['apply', before], 0)));
const beginning = mode.save();
const assertAsBefore = () => assertSaved(mode.save(), beginning);

/** Asserts that the node has the second bundle, exactly as an empty node would get it. */
function assertAfter(): void {
  assertSaved(mode.saveOwn(), mode.saveOwnByHand(after));
}

/** Formats the error and its advice on one line that is the same in each run. */
function quote({ err }: Run): string {
  const [, error = '', advice = ''] = /error: (.*?)\n {2}help: (.*)/s.exec(err) ?? [];
  const line = error
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/process \d+/g, 'process 4711')
    .replaceAll(bundles, '…');
  const [shown, code = ''] = [line.slice(0, 150), / \[[\w-]+\]$/.exec(line)?.[0]];
  return `${shown === line ? line : `${shown}…${code}`} — ${advice.split('\n')[0]}`;
}

/** Runs an apply under a fault. The apply must end with this status, leave the node unchanged and print advice. */
async function expectFault(
  fault: string,
  host: Host,
  status = 3,
  args: readonly string[] = ['apply', after],
): Promise<void> {
  const isRight = await suite.check(fault, async () => {
    const result = await kpcApply(args, host);
    assert(result.status === status, `status ${result.status}, not ${status}: ${result.err}`);
    assert(/help: .{10,}/.test(result.err), `it does not say help: ${result.err}`);
    assertAsBefore();
    rows.push({ fault, status, node: 'as before', says: quote(result) });
  });
  // Restore the node, so that one failed check does not make the next ones fail.
  if (!isRight) await kpcApply(['apply', before]);
}

await suite.check('every step of the change has its faults', async () => {
  const { commands } = await expectApply(['apply', after], 0);
  try {
    assertAfter();
  } finally {
    await expectApply(['rollback'], 0);
  }
  assertAsBefore();
  const listTools = (steps: readonly { readonly tool: string }[]) => steps.map(({ tool }) => tool).join(', ');
  assertSame('the steps', listTools(commands.filter(isRestore)), listTools(mode.steps));
});

const faults: Readonly<Record<string, Fault>> = {
  ...restoreFaults,
  'is killed after it has done its work': async (command, host) => {
    await host.run(command);
    return killed;
  },
  // The limit is too small even for the tool's libraries.
  'runs out of memory': ({ tool, args, stdin }, host) =>
    host.run({ tool: 'prlimit', args: ['--as=2000000', tool, ...args], stdin }),
};
// Try at least one fault for each step, and each fault at one step at least.
for (const [i, step] of mode.steps.entries()) {
  for (const [how, fault] of inTurn(Object.entries(faults), i)) {
    const isStep = (command: ToolCommand) => command.tool === step.tool && isRestore(command);
    await expectFault(`${step.name} ${how}`, failOnce(realHost, isStep, fault, step.nth));
  }
}

/** Skip iptables' tools in IPVS mode, because they read the same in the faster kernel of iptables mode. */
const readers = triesAll ? mode.readers : mode.readers.filter((tool) => !tool.endsWith('tables-save'));
for (const [i, tool] of readers.entries()) {
  const reads = (command: ToolCommand) =>
    command.tool === tool && !isRestore(command) && !/^(-V|--version)$/.test(command.args[0] ?? '');
  // One tool may run twice, once for each family.
  const times = (await kpcApply(['verify', before])).commands.filter(reads).length;
  for (let nth = 1; nth <= (mode.readsBack ? 2 : 1) * times; nth++) {
    // Skip some faults of reading back, because each one first makes the whole change and then rolls it back.
    if (nth > times && !triesAll && i % 2 === 0) continue;
    const time = times === 1 ? '' : `, time ${((nth - 1) % times) + 1} of ${times}`;
    await expectFault(
      `${tool} cannot read the node${nth > times ? ' back' : ''}${time}`,
      failOnce(realHost, reads, async () => ended(1, 'no reason given'), nth),
    );
  }
}
for (const [tool, says] of inTurn(mode.oldVersions, 1)) {
  const versions = (command: ToolCommand) => command.tool === tool && command.args[0] === '--version';
  await expectFault(
    `${tool} is too old`,
    failOnce(realHost, versions, async () => ({ kind: 'ended', status: 0, stdout: says, stderr: '' })),
  );
}

// The other modes' faster kernels run these checks too.
if (triesAll) await tryWhatAllModesShare();

if (existsSync(`${after}/sysctl.conf`)) {
  const [sysctl = ''] = readFileSync(`${after}/sysctl.conf`, 'utf8').split(' = ');
  const file = `/${sysctl.replaceAll('.', '/')}`;
  await expectFault('a sysctl cannot be written', {
    ...realHost,
    readFile: async (path) => (path.endsWith(file) ? '0\n' : realHost.readFile(path)),
    writeFile: async (path) => {
      throw new Error(`EROFS: read-only file system, open '${path}'`);
    },
  });
}

/** Returns a copy of the bundle with a change made by `change`. */
function spoil(copy: string, change: (folder: string) => void): string {
  const folder = `/run/${copy}`;
  cpSync(after, folder, { recursive: true });
  change(folder);
  return folder;
}
const edit = (path: string, change: (text: string) => string) =>
  writeFileSync(path, change(readFileSync(path, 'utf8')));
const spoiled: Readonly<Record<string, (folder: string) => void>> = {
  'a bundle with a file cut short': (folder) => edit(`${folder}/${mode.file}`, (text) => text.slice(0, -20)),
  'a bundle that was tampered with': (folder) =>
    edit(`${folder}/${mode.file}`, (text) => text.replace('10.1.2.10', '10.1.2.66')),
  'a bundle without one of its files': (folder) => rmSync(`${folder}/${mode.file}`),
  'a bundle in a newer format': (folder) =>
    edit(`${folder}/manifest.json`, (text) => text.replace('"formatVersion": 1', '"formatVersion": 99')),
  'a bundle whose manifest is not JSON': (folder) => edit(`${folder}/manifest.json`, (text) => text.slice(0, 100)),
  'a folder that is not a bundle': (folder) => rmSync(`${folder}/manifest.json`),
};
for (const [fault, change] of inTurn(Object.entries(spoiled), 1)) {
  await expectFault(fault, realHost, 2, ['apply', spoil(fault.replaceAll(' ', '-'), change)]);
}

if (triesAll) await tryConfirmations();

let changes = 0;
await expectFault('another program changes the rules meanwhile', {
  ...realHost,
  run: async (command) => {
    const result = await realHost.run(command);
    if (isRestore(command) && ++changes === mode.steps.length) await realHost.run(mode.meddling);
    return result;
  },
});

await suite.check('putting back fails too: status 4, what is left, and rollback when the cause is gone', async () => {
  const { fault, tool, left } = mode.broken;
  let works = true;
  const host: Host = {
    ...realHost,
    run: async (command) => {
      if (!isRestore(command) || (tool !== undefined && command.tool !== tool)) return realHost.run(command);
      if (!works) return ended(1, 'Memory allocation problem');
      works = false;
      return realHost.run(command);
    },
  };
  const result = await kpcApply(['apply', after], host);
  assert(result.status === 4, `status ${result.status}: ${result.err}`);
  assert(left.test(result.err), result.err);
  rows.push({ fault, status: 4, node: 'reports what is left; rollback restores it', says: quote(result) });
  await expectApply(['rollback'], 0);
  assertAsBefore();
});

/** When kpc-apply is killed, relative to the work of the tool that it has just started. */
type Moment = 'before' | 'during' | 'after';

/** Makes a folder with a tool that kills kpc-apply: before its work, after it, or in the middle, after half of the work. */
function makeKiller({ tool, nth }: FaultStep, moment: Moment): string {
  const folder = '/run/killers';
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const real = run('bash', ['-c', `command -v ${tool}`]).trim();
  const [take, kill, work] = [
    moment === 'during' ? 'head -n 2' : 'cat',
    'kill -9 $PPID',
    `${real} "$@" <${folder}/input`,
  ];
  writeFileSync(
    `${folder}/${tool}`,
    `#!/bin/bash
case "$*" in
restore | -R | '-batch -' | --noflush* | '-f -')
  echo >>${folder}/count
  if [ "$(wc -l <${folder}/count)" = ${nth} ]; then
    ${take} >${folder}/input
    ${(moment === 'after' ? [work, kill] : [kill, work]).join('\n    ')}
    : >${folder}/ended
    exit
  fi
  ;;
esac
exec ${real} "$@"
`,
  );
  chmodSync(`${folder}/${tool}`, 0o755);
  return folder;
}

async function expectKill(step: FaultStep, moment: Moment, next: 'apply' | 'rollback'): Promise<void> {
  const fault = `kpc-apply is killed with SIGKILL ${moment} ${step.name}`;
  await suite.check(`${fault}, then ${next}`, async () => {
    const folder = makeKiller(step, moment);
    const { signal, status, stderr } = spawnSync(process.execPath, [program, 'apply', after, '--state-dir', stateDir], {
      env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
      encoding: 'utf8',
    });
    assert(signal === 'SIGKILL', `it was not killed: ${status} ${stderr}`);
    // The tool outlives kpc-apply, so wait for its end.
    while (!existsSync(`${folder}/ended`)) await sleep(50);
    await expectApply(next === 'apply' ? ['apply', after] : ['rollback'], 0);
    if (next === 'apply') {
      assertAfter();
      await expectApply(['rollback'], 0);
    }
    assertAsBefore();
    const node = next === 'rollback' ? 'as before, after rollback' : 'as wanted, after the next apply';
    rows.push({ fault, status: 137, node, says: '' });
  });
}
for (const [i, step] of mode.steps.entries()) {
  if (mode.isAtomic) {
    for (const moment of ['before', 'after'] as const) {
      for (const next of ['rollback', 'apply'] as const) await expectKill(step, moment, next);
    }
  } else if (triesAll || i % 3 === 0) await expectKill(step, 'during', i % 2 === 0 ? 'rollback' : 'apply');
}

for (const { fault, make, remove, flags, says } of mode.conflicts) {
  await suite.check(fault, async () => {
    await expectApply(['cleanup'], 0);
    const [[maker, ...making], [remover, ...removing]] = [make, remove];
    run(maker, making);
    const there = mode.save();
    const result = await kpcApply(['apply', after, ...flags]);
    assert(result.status === 3 && says.test(result.err), result.err);
    assertSaved(mode.save(), there);
    rows.push({ fault, status: 3, node: 'as before', says: quote(result) });
    run(remover, removing);
  });
}
await suite.check('what other programs have is all that is left', () => assertSaved(mode.save(), empty));
await suite.check('--adopt takes over what a kube-proxy left, and cleanup --adopt takes it away', async () => {
  mode.feed(before);
  const left = mode.save();
  const refused = await kpcApply(['apply', after]);
  assert(refused.status === 3 && refused.err.includes('--adopt'), refused.err);
  assertSaved(mode.save(), left);
  const fault = 'objects that a kube-proxy left are there';
  rows.push({ fault, status: 3, node: 'as before', says: quote(refused) });
  await expectApply(['apply', after, '--adopt'], 0);
  assertAfter();
  await expectApply(['cleanup', '--adopt'], 0);
  assertSaved(mode.save(), empty);
});
if (name === 'ipvs') {
  await suite.check('--ipvs-exclude-cidrs keeps virtual servers from --adopt', async () => {
    mode.feed(before);
    await expectApply(['apply', after, '--adopt', '--ipvs-exclude-cidrs', '10.96.0.22/32'], 0);
    const listed = run('ipvsadm', ['-Sn']);
    assert(listed.includes('-A -t 10.96.0.22:80'), `an excluded virtual server has gone:\n${listed}`);
    assert(!listed.includes('10.96.0.13'), `a Service that is not wanted has stayed:\n${listed}`);
    await expectApply(['cleanup', '--adopt'], 0);
    run('ipvsadm', ['-D', '-t', '10.96.0.22:80']);
    assertSaved(mode.save(), empty);
  });
}

writeFileSync(
  `${bundles}/faults-${name}.md`,
  [
    `## ${mode.title}\n`,
    '| what goes wrong | exit status | the node afterwards | what kpc-apply says, and what to do |',
    '| --- | --- | --- | --- |',
    ...rows.map(({ fault, status, node, says }) => `| ${[fault, status, node, escapeCell(says)].join(' | ')} |`),
    '',
  ].join('\n'),
);
suite.finish();

async function tryWhatAllModesShare(): Promise<void> {
  const records = await networkFolder();

  /** Mounts a separate file system as state folder, with the record in it. */
  function mountStateFolder(folder: string, options: string): void {
    mkdirSync(folder, { recursive: true });
    run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
    cpSync(`${records}/record.json`, `${records.replace(stateDir, folder)}/record.json`);
  }
  await suite.check('the disk is full', () => mountStateFolder('/run/full', 'size=16k'));
  const onFullDisk: Host = {
    ...realHost,
    readFile: (path) => realHost.readFile(path.replace(stateDir, '/run/full')),
    replaceFile: (path, text) => realHost.replaceFile(path.replace(stateDir, '/run/full'), text),
    renameFile: (from, to) =>
      realHost.renameFile(from.replace(stateDir, '/run/full'), to.replace(stateDir, '/run/full')),
    remove: (path) => realHost.remove(path.replace(stateDir, '/run/full')),
    list: (path) => realHost.list(path.replace(stateDir, '/run/full')),
  };
  await expectFault('the disk is full when the snapshot is written', onFullDisk);

  await suite.check('the state folder is read-only', () => {
    mountStateFolder('/run/read-only', 'size=1m');
    run('mount', ['-o', 'remount,ro', '/run/read-only']);
  });
  await expectFault('the state folder cannot be written', realHost, 3, [
    'apply',
    after,
    '--state-dir',
    '/run/read-only',
  ]);
  await suite.check('the error says that it is read-only', () => {
    const { says = '' } = rows.at(-1) ?? {};
    assert(/EROFS: read-only file system.*make the folder writable/.test(says), says);
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
    rows.push({ fault: 'the lock is held by a process that has ended', status: 0, node: 'applied', says: '' });
  });

  cpSync('/bin/sleep', '/run/kube-proxy');
  const kubeProxy = spawn('/run/kube-proxy', ['600']);
  await expectFault('a kube-proxy is running', realHost);
  kubeProxy.kill('SIGKILL');
  await new Promise((resolve) => kubeProxy.on('close', resolve));
}

async function tryConfirmations(): Promise<void> {
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
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
