import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { readNamedFile, readRegularFile } from '../../src/base/read-file.ts';
import { unreadOf } from '../../src/base/unread.ts';
import { unreadWords } from '../../src/say/words/unread.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { kpcProgram, runKpc, runKpcApply, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-read-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

const bundle = 'fixtures/dual-stack/expected-ipvs';
const manifests = 'fixtures/quickstart/svc.yaml';

function makePipe(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}

writeFileSync(at('file'), 'text');
mkdirSync(at('folder'));
makePipe(at('pipe'));
symlinkSync('/dev/zero', at('zero'));
symlinkSync(at('pipe'), at('link-to-pipe'));
symlinkSync(at('file'), at('link'));
writeFileSync(at('sparse'), '');
truncateSync(at('sparse'), 10 * 2 ** 30);

/** Puts a link to the third path in the place of the first, and then a link of the second, again and again. */
const swapsForEver = `
  const { linkSync, renameSync, symlinkSync, writeSync } = require('node:fs');
  const [pack, real, device] = process.argv.slice(1);
  writeSync(1, 'begun');
  for (;;) {
    symlinkSync(device, pack + '.new');
    renameSync(pack + '.new', pack);
    linkSync(real, pack + '.new');
    renameSync(pack + '.new', pack);
  }`;

function outcomeOf(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return unreadWords(unreadOf(error));
  }
}

/** What is no file to read, with what is said of it. */
const noFiles: readonly (readonly [name: string, reason: string])[] = [
  ['folder', 'it is a folder, not a file'],
  ['pipe', 'it is a named pipe, not a file'],
  ['link-to-pipe', 'it is a named pipe, not a file'],
  ['zero', 'it is a device, not a file'],
  ['sparse', 'it is too long: kpc reads no more than 511 MB of one file'],
];

describe('reading a file', () => {
  test('gives its bytes, also through a link', () => {
    expect(readRegularFile(at('file')).toString()).toBe('text');
    expect(readNamedFile(at('link')).toString()).toBe('text');
    expect(readNamedFile('/dev/null')).toHaveLength(0);
  });

  test('gives all of a file, and no more than may be', () => {
    const large = Buffer.alloc(5_000_000, 'abc');
    writeFileSync(at('large'), large);
    expect(readRegularFile(at('large')).equals(large)).toBe(true);
    expect(readRegularFile(at('large'), 5_000_000)).toHaveLength(5_000_000);
    expect(() => readRegularFile(at('large'), 4_999_999)).toThrow('"of":"file"');
  });

  test.each(noFiles)('refuses what is none: %s', (name, reason) => {
    for (const read of [readRegularFile, readNamedFile]) {
      expect(outcomeOf(() => read(at(name)).toString())).toBe(`${at(name)}: ${reason}`);
    }
  });

  test
    .runIf(process.platform === 'linux')
    .each(['/proc/self/status', '/proc/self/ns/net', '/sys/kernel/uevent_seqnum'])(
    'refuses what the kernel makes up: %s',
    (path) => {
      const link = at(path.replaceAll('/', '-'));
      symlinkSync(path, link);
      for (const name of [path, link]) expect(() => readRegularFile(name)).toThrow(`${name}: "made-by-kernel"`);
    },
  );

  test('reads what it checked, whatever takes its place meanwhile', () => {
    for (const other of ['pipe', 'zero', 'folder', 'sparse']) {
      writeFileSync(at('checked'), 'first');
      symlinkSync(at(other), at('swapped'));
      const bytes = readRegularFile(at('checked'), 5, () => renameSync(at('swapped'), at('checked')));
      expect(bytes.toString()).toBe('first');
      rmSync(at('checked'));
    }
  });

  // What opens a pipe to read, even without waiting, lets go a program that waits to write into it.
  test.runIf(process.platform === 'linux')(
    'opens no device, whatever takes the place of a pack meanwhile',
    async () => {
      makePipe(at('device'));
      writeFileSync(at('real'), 'pack');
      writeFileSync(at('pack'), 'pack');
      const writer = spawn('sh', ['-c', 'echo waiting; exec 3> "$0"; echo opened', at('device')]);
      const swapper = spawn(process.execPath, ['-e', swapsForEver, at('pack'), at('real'), at('device')]);
      onTestFinished(() => [writer, swapper].forEach((child) => void child.kill('SIGKILL')));
      let said = '';
      writer.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()));
      await Promise.all([once(writer.stdout, 'data'), once(swapper.stdout, 'data')]);
      const seen = new Map<string, number>();
      const isSeen = (): boolean => seen.size > 1 && Math.min(...seen.values()) > 20;
      for (let i = 0; i < 200_000 && !isSeen(); i++) {
        const what = outcomeOf(() => readRegularFile(at('pack')).toString());
        seen.set(what, (seen.get(what) ?? 0) + 1);
        if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      expect([...seen.keys()].toSorted()).toEqual([`${at('pack')}: it is a named pipe, not a file`, 'pack']);
      expect(said).toBe('waiting\n');
    },
  );

  test('refuses a socket', async () => {
    const server = createServer().listen(at('socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    expect(() => readRegularFile(at('socket'))).toThrow('"is":"socket"');
    server.close();
  });

  test('is what kpc-apply does with files of its node', async () => {
    await expect(realHost.readFile(at('pipe'))).rejects.toThrow('"is":"named pipe"');
    await expect(realHost.readFile(at('none'))).resolves.toBeUndefined();
    await expect(realHost.readFile(at('file/none'))).resolves.toBeUndefined();
  });
});

describe('a program given what is no file', () => {
  test.each(noFiles)('as a manifest: %s', async (name, reason) => {
    const { status, stdout, stderr } = await runKpc(['compile', '-f', at(name)]);
    // A folder is read as one of manifests.
    expect(stderr).toContain(name === 'folder' ? 'the folder holds no files' : `${reason} [unreadable-file]`);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });

  test.each(noFiles)('in a folder of manifests: %s', async (name, reason) => {
    const folder = at(`manifests-${name}`);
    mkdirSync(folder);
    const target = join(folder, 'a.yaml');
    if (name === 'folder' || name === 'zero') symlinkSync(at(name), target);
    else execFileSync('cp', ['-a', '--sparse=always', at(name), target]);
    const { status, stderr } = await runKpc(['compile', '-f', folder]);
    expect(status).toBe(2);
    // What a link leads to outside the folder is not even looked at.
    expect(stderr).toMatch(name === 'pipe' || name === 'sparse' ? reason : /a link to something outside/);
  });

  // A folder of host addresses has a file for each node.
  test.each(noFiles.slice(1))('as a configuration or as host addresses: %s', async (name, reason) => {
    const config = await runKpc(['compile', '-f', manifests, '--config', at(name)]);
    expect(config.status).toBe(2);
    expect(config.stderr).toContain(reason);
    const addresses = await runKpc(['compile', '-f', manifests, '--host-addresses', at(name)]);
    expect(addresses.status).toBe(2);
    expect(addresses.stderr).toContain(reason);
  });

  test.each([
    ...noFiles.map((kind) => ['manifest.json', ...kind] as const),
    ...noFiles.slice(1, 2).map((kind) => ['services.json', ...kind] as const),
  ])('as %s of a bundle: %s', async (file, name, reason) => {
    const folder = at(`bundle-${file}-${name}`);
    cpSync(bundle, folder, { recursive: true });
    rmSync(join(folder, file));
    symlinkSync(at(name), join(folder, file));
    const shown = file === 'manifest.json' ? reason.replace('511', '64') : reason;
    const applied = await runKpcApply(['verify', folder]);
    expect(applied.status).toBe(2);
    expect(applied.stderr).toContain(shown);
    if (file === 'manifest.json' && name === 'folder') return;
    const compared = await runKpc(['diff', folder, bundle]);
    expect(compared.status).toBe(2);
    expect(compared.stderr).toContain(shown);
  });

  test.each(noFiles)('in a dump: %s', async (name, reason) => {
    const folder = at(`dump-${name}`);
    cpSync('fixtures/dumps/kube-proxy-iptables-session-affinity', folder, { recursive: true });
    const target = join(folder, 'ip6tables-save');
    rmSync(target, { force: true });
    if (name === 'zero') symlinkSync(at(name), target);
    else execFileSync('cp', ['-a', '--sparse=always', at(name), target]);
    const { status, stderr } = await runKpc(['describe', '--from-dump', folder]);
    expect(status).toBe(0);
    const why =
      name === 'pipe' || name === 'folder' || name === 'sparse' ? reason : 'it is a link to something outside';
    expect(stderr).toContain(`not the output of ip6tables-save: ${why}`);
  });
});

describe('what a shell hands over in the place of a file', () => {
  const run = (script: string) => runProgram('bash', ['-c', script, 'bash', process.execPath, kpcProgram]);

  test('is read by kpc: process substitution, /dev/stdin and -', async () => {
    const expected = await runKpc(['compile', '-f', manifests]);
    for (const script of [
      `"$1" "$2" compile -f <(cat ${manifests})`,
      `"$1" "$2" compile -f /dev/stdin <${manifests}`,
      `cat ${manifests} | "$1" "$2" compile -f /dev/stdin`,
    ]) {
      expect(await run(script)).toEqual(expected);
    }
    const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\\nkind: KubeProxyConfiguration\\nmode: iptables\\n';
    const configured = await run(`"$1" "$2" compile -f ${manifests} --config <(printf '${config}')`);
    expect(configured).toEqual(await runKpc(['compile', '-f', manifests, '--proxy-mode', 'iptables']));
  });

  test('has a bound, and is no device', async () => {
    expect((await run('"$1" "$2" compile -f /dev/stdin </dev/zero')).stderr).toContain('it is a device, not a file');
    expect((await run('"$1" "$2" compile -f /dev/stdin </dev/null')).status).toBe(2);
  });
});

test('nothing is quoted of a file that is not what it should be', async () => {
  const secret = 'root:$6$abcdefgh$0123456789:19000:0:99999:7:::\n';
  writeFileSync(at('shadow'), secret);
  for (const file of ['manifest.json', 'services.json', 'sysctl.conf']) {
    const folder = at(`secret-${file}`);
    cpSync(bundle, folder, { recursive: true });
    rmSync(join(folder, file));
    symlinkSync(at('shadow'), join(folder, file));
    for (const { status, stdout, stderr } of [
      await runKpcApply(['plan', folder]),
      await runKpc(['diff', folder, bundle]),
      await runKpc(['describe', '-f', folder]),
    ]) {
      expect(status).toBe(2);
      expect(stdout + stderr).not.toMatch(/root|\$6|abcdef|1900/);
    }
  }
  const state = at('state');
  mkdirSync(state);
  for (const file of ['record.json', 'journal.json', 'previous.json', 'awaiting.json'])
    symlinkSync(at('shadow'), join(state, file));
  for (const command of ['rollback', 'confirm', 'cleanup']) {
    const { stdout, stderr } = await runKpcApply([command, '--state-dir', state]);
    expect(stdout + stderr).not.toMatch(/root:|\$6|abcdef|1900/);
  }
});

test('a watch says that the manifest is a pipe, and hears SIGTERM', async () => {
  const folder = at('watched');
  cpSync(bundle, folder, { recursive: true });
  rmSync(join(folder, 'manifest.json'));
  makePipe(join(folder, 'manifest.json'));
  const program = kpcProgram.replace(/kpc\.js$/, 'kpc-apply.js');
  const watch = spawn(process.execPath, [program, 'watch', folder, '--state-dir', at('state-of-watch')]);
  onTestFinished(() => void watch.kill('SIGKILL'));
  let said = '';
  watch.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    if (said.includes('there is one\n')) watch.kill('SIGTERM');
  });
  expect(await once(watch, 'close')).toEqual([0, null]);
  expect(said).toContain('manifest.json: it is a named pipe, not a file');
});
