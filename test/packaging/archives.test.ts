import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { packTarGz, packZip } from '../../packaging/archives.mjs';
import { unsigned } from '../../packaging/unsigned.mjs';
import { projectFolder } from '../support/run-kpc.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;
const scratch = mkdtempSync(join(tmpdir(), 'kpc-archives-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** A folder with a program, and a text that packs well. */
function makeFolder(parent: string): string {
  const folder = join(scratch, parent, 'kpc-1');
  mkdirSync(join(folder, 'lib'), { recursive: true });
  writeFileSync(join(folder, 'kpc'), '#!/bin/sh\n');
  chmodSync(join(folder, 'kpc'), 0o755);
  writeFileSync(join(folder, 'lib', 'ä.txt'), 'text '.repeat(10_000));
  return folder;
}

describe('an archive', () => {
  test.each([
    ['tar.gz', packTarGz],
    ['zip', packZip],
  ])('%s has the same bytes for the same files, whenever they were written', (kind, pack) => {
    expect(pack(makeFolder(`${kind}-a`), '1700000000').equals(pack(makeFolder(`${kind}-b`), '1700000000'))).toBe(true);
  });

  test.runIf(hasPython)('zip: Python unpacks it, and finds its checksums, times and modes right', () => {
    const path = join(scratch, 'a.zip');
    writeFileSync(path, packZip(makeFolder('zip'), '1700000000'));
    const script = `
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
for each in archive.infolist():
    print(each.filename, each.file_size, oct(each.external_attr >> 16), *each.date_time)
`;
    expect(execFileSync('python3', ['-c', script, path]).toString()).toBe(
      'kpc-1/kpc 10 0o100755 2023 11 14 22 13 20\nkpc-1/lib/ä.txt 50000 0o100644 2023 11 14 22 13 20\n',
    );
    expect(statSync(path).size).toBeLessThan(1000);
  });
});

/** The least that a 64-bit program of Windows has, with a certificate at its end. */
function windowsProgram(certificate: string): Buffer {
  const program = Buffer.alloc(512 + certificate.length);
  program.write('MZ', 0);
  program.writeUInt32LE(0x80, 0x3c);
  program.write('PE\0\0', 0x80, 'latin1');
  const optional = 0x80 + 24;
  program.writeUInt16LE(0x20b, optional);
  program.writeUInt32LE(certificate === '' ? 0 : 512, optional + 112 + 32);
  program.writeUInt32LE(certificate.length, optional + 112 + 36);
  program.write(certificate, 512);
  return program;
}

describe('a program of Windows', () => {
  test('loses its certificate, and what says where it is', () => {
    expect(unsigned(windowsProgram('signed by someone')).equals(windowsProgram(''))).toBe(true);
    expect(unsigned(windowsProgram('')).equals(windowsProgram(''))).toBe(true);
  });

  test('is refused if it is none, or goes on after its certificate', () => {
    expect(() => unsigned(Buffer.alloc(512))).toThrow('no program of Windows');
    expect(() => unsigned(Buffer.concat([windowsProgram('signed'), Buffer.alloc(8)]))).toThrow('not the end');
  });
});

describe('the launcher for macOS', () => {
  /** An archive's folder whose Node prints how it was started. */
  function unpack(name: string): string {
    const folder = join(scratch, name);
    mkdirSync(join(folder, 'lib'), { recursive: true });
    writeFileSync(join(folder, 'kpc'), readFileSync(join(projectFolder, 'packaging/scripts/macos-kpc.sh')));
    chmodSync(join(folder, 'kpc'), 0o755);
    return folder;
  }

  test('starts the Node beside it through links, under the name that it was called by', () => {
    const folder = unpack('launched');
    execFileSync('ln', ['-s', process.execPath, join(folder, 'lib/node')]);
    writeFileSync(
      join(folder, 'lib/kpc.js'),
      'console.log(JSON.stringify([process.argv0.split("/").at(-1), ...process.argv.slice(2)]))',
    );
    mkdirSync(join(scratch, 'bin'));
    execFileSync('ln', ['-s', '../launched/kpc', join(scratch, 'bin', 'first')]);
    execFileSync('ln', ['-s', join(scratch, 'bin', 'first'), join(scratch, 'bin', 'kubectl-kpc')]);
    const run = (path: string) => JSON.parse(execFileSync(path, ['a b', '$HOME', '']).toString()) as unknown;
    expect(run(join(scratch, 'bin', 'kubectl-kpc'))).toEqual(['kubectl-kpc', 'a b', '$HOME', '']);
    expect(run(join(folder, 'kpc'))).toEqual(['kpc', 'a b', '$HOME', '']);
  });

  test('says that it is not all', () => {
    const path = join(unpack('alone'), 'kpc');
    expect(() => execFileSync(path, ['--version'], { stdio: 'pipe' })).toThrow('install the whole archive');
  });
});
