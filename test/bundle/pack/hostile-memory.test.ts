import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compress, writeTar } from '../../../src/bundle/pack/archive.ts';
import { some } from '../../support/rounds.ts';
import { makeKey } from '../../support/signing-key.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-bomb-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const { trusted } = makeKey(scratch, 'kpc');

const signature = `${JSON.stringify(
  { keyId: '0'.repeat(16), serial: 9, bytes: 9, signature: `${'A'.repeat(86)}==` },
  undefined,
  2,
)}\n`;

/** In MB: what kpc-apply has at most in memory while it refuses a pack. */
function measure(pack: Uint8Array): number {
  const path = join(scratch, 'hostile.tgz');
  writeFileSync(path, pack);
  // Of this process alone: what getrusage(2) says begins with the memory of the process that started it.
  const report = `process.on('exit', () => console.error(/VmHWM:.*/.exec(require('fs').readFileSync('/proc/self/status'))[0]))`;
  writeFileSync(join(scratch, 'report.cjs'), report);
  const args = ['dist/kpc-apply.js', 'verify', path, '--trust', trusted, '--state-dir', scratch];
  const { status, stderr } = spawnSync(process.execPath, ['-r', join(scratch, 'report.cjs'), ...args], {
    encoding: 'utf8',
  });
  expect(status).toBe(2);
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(stderr)?.[1]) / 1024;
}

const filled = (name: string, bytes: number, byte: number): Uint8Array => {
  const tar = writeTar(new Map([[name, 'a'.repeat(bytes)]]));
  return tar.fill(byte, 512, 512 + bytes);
};

const least = measure(compress(writeTar(new Map())));

const packs: readonly (readonly [what: string, pack: () => Uint8Array])[] = [
  ['a manifest of 64 MB', () => compress(filled('manifest.json', 2 ** 26, 0x61))],
  ['a manifest of 64 MB that is no UTF-8', () => compress(filled('manifest.json', 2 ** 26, 0xff))],
  ['64 MB that do not begin with a manifest', () => compress(filled('ip.batch', 2 ** 26, 0x61))],
  [
    'the longest manifest, in the largest file, with a signature of another key',
    () => {
      const head = writeTar(
        new Map([
          ['signature.json', signature],
          ['manifest.json', 'a'.repeat(2 ** 23)],
        ]),
      );
      const packed = compress(head);
      return Buffer.concat([packed, Buffer.alloc(2 ** 25 - packed.length, 'x')]);
    },
  ],
];

test.runIf(process.platform === 'linux').each(some(packs))('%s costs little memory before it is refused', (_, pack) => {
  expect(measure(pack()) - least).toBeLessThan(80);
});
