// Tests an apply that waits for confirmation when its process is killed, cut off or stopped. Standby processes then roll it back.
//
//   confirm.ts ipvs|iptables
//
// IPVS mode needs a slow kernel, in which the suite has the processes and the network to itself, like process 1 of a node. Unless
// KPC_FULL=1 is set, it runs only the checks that need such a kernel.
import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { isFull } from '../support/rounds.ts';
import { assert, assertSame, expectApply, kpcApply, networkFolder, startSuite, stateDir } from './harness.ts';
import { buildNetwork, run } from './network.ts';
import { saveState, type SavedState } from './saved-state.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js' } = process.env;
const mode = process.argv[2] === 'ipvs' ? 'ipvs' : 'iptables';
const [before, after] = [`${bundles}/before-${mode}`, `${bundles}/after-${mode}`];
/** The tool that is made to fail. It is not the first tool that changes the node. */
const tool = mode === 'ipvs' ? 'ipvsadm' : 'ip6tables-restore';
const suite = startSuite(`confirm ${mode}`);
const checkInFastKernel: typeof suite.check = async (...check) =>
  mode === 'iptables' || isFull ? suite.check(...check) : true;
const checkAsProcess1: typeof suite.check = async (...check) => (mode === 'ipvs' ? suite.check(...check) : true);
const sleep = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));
const records = await networkFolder();
const awaiting = `${records}/awaiting.json`;
const unconfirmed = `${records}/unconfirmed.json`;

buildNetwork();
await expectApply(['apply', before], 0);
const there = saveState();

function assertAsBefore(): void {
  const now = saveState();
  const parts: readonly (keyof SavedState)[] = ['iptables', 'ip6tables', 'ipset', 'ipvsadm', 'addresses'];
  for (const part of parts) assertSame(part, now[part], there[part]);
}

/** Waits until a condition holds. On timeout, the error names `what`. */
async function until(what: string, isSo: () => boolean, seconds = 90): Promise<void> {
  for (let i = 0; i < seconds * 5; i++) {
    if (isSo()) return;
    await sleep(200);
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

interface Applying {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Starts an apply of the other bundle as leader of a process group, as a shell would. */
function startApply(timeout: string, file = program, env: NodeJS.ProcessEnv = {}): Applying {
  let said = '';
  const args = [file, 'apply', after, '--confirm-timeout', timeout, '--state-dir', stateDir];
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals | null>((done) => {
    child.on('exit', (status, signal) => done(status ?? signal));
  });
  return { child, said: () => said, ended };
}

/** Kills the apply and its whole process group, once the apply waits for confirmation. */
async function killGroup({ child, ended }: Applying): Promise<void> {
  await until('the question', () => existsSync(awaiting));
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  assert((await ended) === 'SIGKILL', 'it was not killed');
}

const isEnded = () => !existsSync(unconfirmed);

await checkInFastKernel(
  'killed with its process group while it waits, it goes back, also without the program',
  async () => {
    const copy = '/run/kpc-apply.cjs';
    copyFileSync(program, copy);
    const apply = startApply('5s', copy);
    await until('the question', () => existsSync(awaiting));
    rmSync(copy);
    await killGroup(apply);
    assert(JSON.stringify(saveState()) !== JSON.stringify(there), 'nothing was applied');
    await until('the way back', isEnded);
    assertAsBefore();
    assert(!existsSync(`${records}/journal.json`), 'the journal is still there');
    await expectApply(['verify', before], 0);
  },
);

await checkInFastKernel('killed and then confirmed within its time, it stays, and can be rolled back', async () => {
  await killGroup(startApply('5m'));
  await expectApply(['confirm'], 0);
  assert(isEnded(), 'it is still unconfirmed');
  await expectApply(['verify', after], 0);
  await sleep(2000);
  await expectApply(['verify', after], 0);
  await expectApply(['rollback'], 0);
  assertAsBefore();
});

await checkInFastKernel('killed before it could ask, it goes back at once', async () => {
  // Make a tool that kills the process that started it, and then hangs.
  const folder = '/run/killers';
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    `${folder}/${tool}`,
    `#!/bin/bash
PATH=$(echo "$PATH" | sed 's,${folder}:,,')
if [[ $1 == -R || $1 == --noflush ]] && [ ! -e ${folder}/killed ]; then touch ${folder}/killed; kill -9 $PPID; sleep 0.2; exit 1; fi
exec ${tool} "$@"
`,
  );
  chmodSync(`${folder}/${tool}`, 0o755);
  const apply = startApply('10m', program, { PATH: `${folder}:${process.env['PATH']}` });
  assert((await apply.ended) === 'SIGKILL', `it was not killed: ${apply.said()}`);
  await until('the way back', isEnded);
  assertAsBefore();
});

/** Replaces the tool by one that hangs at its first change. Returns the file that shows that it hangs. */
function hangOnce(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const hangs = `${folder}/hangs`;
  writeFileSync(
    `${folder}/${tool}`,
    `#!/bin/bash
PATH=$(echo "$PATH" | sed 's,${folder}:,,')
if [[ $1 == -R || $1 == --noflush ]] && [ ! -e ${hangs} ]; then touch ${hangs}; sleep 4711; exit 1; fi
exec ${tool} "$@"
`,
  );
  chmodSync(`${folder}/${tool}`, 0o755);
  return hangs;
}

await checkInFastKernel('a tool that hangs is ended soon and said to, and everything is put back', async () => {
  const folder = '/run/hanging';
  hangOnce(folder);
  const apply = startApply('5s', program, { PATH: `${folder}:${process.env['PATH']}` });
  assert((await apply.ended) === 3, apply.said());
  assert(
    new RegExp(`waiting for "${tool} [^"]+" since \\S+Z; kpc-apply stops it after \\d+ s`).test(apply.said()),
    apply.said(),
  );
  assert(new RegExp(`"${tool} [^"]+" has not ended within \\d+ s`).test(apply.said()), apply.said());
  assertAsBefore();
  assert(isEnded(), 'it is still unconfirmed');
  const refused = await kpcApply(['rollback']);
  assert(refused.status === 2 && refused.err.includes('rolled everything back'), refused.err);
  assertAsBefore();
});

await checkInFastKernel(
  'stopped while a tool hangs, it is ended with the tool by the process that stands by',
  async () => {
    const folder = '/run/stopping';
    const hangs = hangOnce(folder);
    const apply = startApply('10m', program, { PATH: `${folder}:${process.env['PATH']}` });
    await until('the hanging tool', () => existsSync(hangs));
    apply.child.kill('SIGSTOP');
    await until('the way back', isEnded, 300);
    assert((await apply.ended) === 'SIGKILL', apply.said());
    assertAsBefore();
    assert(findProcess('sleep\x004711') === undefined, 'the tool is still there');
  },
);

await checkInFastKernel('another apply that comes before its time is over is not undone', async () => {
  await killGroup(startApply('6s'));
  await expectApply(['apply', after], 0);
  assert(isEnded(), 'it is still unconfirmed');
  await sleep(8000);
  await expectApply(['verify', after], 0);
  await expectApply(['rollback'], 0);
  assertAsBefore();
});

/** Mounts a /dev with terminals. User Mode Linux shows this machine's /dev, where its own terminals are missing. */
function giveTerminals(): void {
  if (existsSync('/dev/pts/ptmx')) return;
  const nodes = ['null 1 3', 'zero 1 5', 'random 1 8', 'urandom 1 9', 'tty 5 0', 'ptmx 5 2'];
  const script = `
    mkdir -p /run/dev && mount -t tmpfs tmpfs /run/dev && mkdir /run/dev/pts
    mount -t devpts -o newinstance,ptmxmode=666 devpts /run/dev/pts
    ${nodes.map((node) => `mknod -m 666 /run/dev/${node.replace(' ', ' c ')}`).join('\n')}
    mount --move /run/dev /dev`;
  run('bash', ['-e', '-c', script]);
}

await checkInFastKernel('with its terminal gone, it goes back by itself and ends with status 3', async () => {
  const status = '/run/status';
  giveTerminals();
  const command = `trap '' HUP; ${process.execPath} ${resolve(program)} apply ${after} --confirm-timeout 4s --state-dir ${stateDir}; echo $? >${status}`;
  const login = spawn('script', ['-q', '-c', command, '/dev/null'], { stdio: ['pipe', 'ignore', 'ignore'] });
  await until('the question', () => existsSync(awaiting));
  // After this, no process holds the other end of the terminal, as after a lost ssh connection.
  login.kill('SIGKILL');
  await until('its end', () => existsSync(status) && readFileSync(status, 'utf8') !== '');
  assert(readFileSync(status, 'utf8') === '3\n', `status ${readFileSync(status, 'utf8')}`);
  assertAsBefore();
  assert(isEnded(), 'it is still unconfirmed');
});

await checkInFastKernel('another state folder does not let two in at once', async () => {
  const apply = startApply('1m');
  await until('the question', () => existsSync(awaiting));
  const second = await kpcApply(['rollback', '--state-dir', '/run/other']);
  assert(
    second.status === 3 && second.err.includes(`another kpc-apply is running: process ${apply.child.pid}`),
    second.err,
  );
  apply.child.kill('SIGTERM');
  assert((await apply.ended) === 3, apply.said());
  assertAsBefore();
});

await checkAsProcess1('where systemd runs, a timer of its does it where all else is killed', async () => {
  // Make a fake systemd-run that records its arguments, because there is no systemd here.
  const folder = '/run/fake-systemd';
  mkdirSync(folder, { recursive: true });
  mkdirSync('/run/systemd/system', { recursive: true });
  for (const name of ['systemd-run', 'systemctl']) {
    writeFileSync(`${folder}/${name}`, `#!/bin/bash\nprintf '%s\\n' "$@" >${folder}/${name}.args\n`);
    chmodSync(`${folder}/${name}`, 0o755);
  }
  try {
    const apply = startApply('1s', program, { PATH: `${folder}:${process.env['PATH']}` });
    await until('the question', () => existsSync(awaiting));
    const { id } = JSON.parse(readFileSync(unconfirmed, 'utf8')) as { id: string };
    const asked = readFileSync(`${folder}/systemd-run.args`, 'utf8').trimEnd().split('\n');
    assert(asked.includes(`--unit=kpc-apply-way-back-${id}`) && asked.includes('--on-active=6s'), asked.join(' '));
    const command = asked.slice(asked.indexOf('--') + 1);
    const path = asked.find((word) => word.startsWith('--setenv=PATH='))?.slice('--setenv=PATH='.length) ?? '';
    // Kill the standby process first, then the apply.
    const helper = findProcess(`--unconfirmed\0${id}`);
    assert(helper !== undefined, 'no process stands by');
    process.kill(helper, 'SIGKILL');
    await killGroup(apply);
    await sleep(1500);
    assert(!isEnded(), 'another process did it');
    assert((await runAsUnit(command, path)) === 0, 'the unit failed');
    assertAsBefore();
    assert(isEnded(), 'it is still unconfirmed');
    assert((await runAsUnit(command, path)) === 0, 'the unit failed when it was started again');
    assertAsBefore();
    const stopped = readFileSync(`${folder}/systemctl.args`, 'utf8');
    assert(stopped !== '', 'no timer was stopped');
  } finally {
    rmSync('/run/systemd', { recursive: true });
  }
});

function findProcess(words: string): number | undefined {
  const pids = readdirSync('/proc').map(Number).filter(Boolean);
  return pids.find((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words);
    } catch {
      // The process has ended.
      return false;
    }
  });
}

/**
 * Runs a command as systemd runs a transient service: without a terminal, and with only the requested environment. Returns the exit status.
 */
function runAsUnit([first = '', ...args]: readonly string[], path: string): Promise<number | null> {
  return new Promise((done) => {
    spawn(first, args, { cwd: '/', stdio: 'ignore', env: { PATH: path } }).on('close', done);
  });
}

suite.finish();
