import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-verify-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const kpc = (...words: readonly string[]) => runKpc(words, { cwd });
const verify = (...words: readonly string[]) => kpc('bundle', 'verify', ...words);

beforeAll(async () => {
  for (const name of ['kpc', 'other']) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(join(cwd, `${name}.key`), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(join(cwd, `${name}.pub`), publicKey.export({ type: 'spki', format: 'pem' }));
  }
  const svc = join(fixturesFolder, 'quickstart', 'svc.yaml');
  await kpc('compile', svc, '--proxy-mode', 'iptables', '-o', 'bundle', '-q');
  await kpc('compile', svc, '--proxy-mode', 'iptables', '--golden', 'golden', '-q');
  await kpc('bundle', 'pack', 'bundle', '-o', 'plain.tgz');
  await kpc('bundle', 'pack', 'bundle', '-o', 'signed.tgz', '--sign', 'kpc.key', '--serial', '7');
});

test('a bundle, a pack and a signed pack are right', async () => {
  const { stderr: packed } = await kpc('bundle', 'pack', 'bundle', '-o', 'again.tgz');
  const digest = /^digest .*$/m.exec(packed)?.[0];
  for (const [words, says] of [
    [['bundle'], 'bundle: a bundle as kpc '],
    [['plain.tgz'], 'bytes, not signed\n'],
    [['signed.tgz'], 'which is not checked (no --trust)\n'],
    [['signed.tgz', '--trust', 'kpc.pub'], ', serial 7\n'],
    [['signed.tgz', '--trust', 'other.pub', '--trust', 'kpc.pub'], ', serial 7\n'],
  ] as const) {
    const { status, stdout, stderr } = await verify(...words);
    expect({ words, status, stderr }).toEqual({ words, status: 0, stderr: '' });
    expect(stdout).toContain(says);
    expect(stdout).toContain(`\n${digest}\n`);
    expect(stdout).toContain('on node worker-1, mode iptables');
  }
});

test('what kpc-apply would refuse has exit status 1, with all that is wrong', async () => {
  cpSync(join(cwd, 'bundle'), join(cwd, 'edited'), { recursive: true });
  for (const name of ['iptables.restore', 'sysctl.conf']) appendFileSync(join(cwd, 'edited', name), '# more\n');
  const { status, stdout, stderr } = await verify('edited', '--trust', 'kpc.pub');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^error: edited is refused: 3 problems\n/);
  expect(stderr).toContain('  edited is not signed\n');
  expect(stderr).toContain('  iptables.restore has changed since it was compiled');
  expect(stderr).toContain('  sysctl.conf has changed since it was compiled');
  expect(stderr).toMatch(/\n  help: .+\n$/);
  const stranger = await verify('signed.tgz', '--trust', 'other.pub');
  expect(stranger).toMatchObject({ status: 1, stdout: '' });
  expect(stranger.stderr).toContain('which is not trusted');
  expect(stranger.stderr).toMatch(/\n  help: .*--trust names\n$/);
});

test('what cannot be read has exit status 2', async () => {
  const pack = readFileSync(join(cwd, 'plain.tgz'));
  writeFileSync(join(cwd, 'cut.tgz'), pack.subarray(0, pack.length / 2));
  for (const [words, says] of [
    [['nothing'], 'there is no such folder or file'],
    [['golden'], 'it is a golden (for git), not a bundle'],
    [['kpc.pub'], 'it is neither a folder nor a pack'],
    [['cut.tgz'], 'it is damaged or cut off: copy it again'],
    [['bundle', '--trust', 'kpc.key'], 'it holds a private key'],
  ] as const) {
    const { status, stdout, stderr } = await verify(...words);
    expect({ words, status, stdout }).toEqual({ words, status: 2, stdout: '' });
    expect(stderr).toContain(says);
  }
});
