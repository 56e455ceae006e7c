import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readFolder } from '../../../src/bundle/folder.ts';
import { compress as gzip, writeTar, crc32, crc32InScript } from '../../../src/bundle/pack/archive.ts';
import { packFiles, readPack } from '../../../src/bundle/pack/pack.ts';
import { addSignature, readPrivateKey, readPublicKeys, signBundle } from '../../../src/bundle/pack/signature.ts';
import { runKpc } from '../../support/run-kpc.ts';
import { makeKey } from '../../support/signing-key.ts';

const bundle = 'fixtures/dual-stack/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-pack-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const key = makeKey(scratch, 'kpc');
const files = await readFolder(bundle);

async function read(bytes: Uint8Array) {
  const path = join(scratch, 'some.tgz');
  writeFileSync(path, bytes);
  return readPack(path);
}

async function pack(out: string, ...options: readonly string[]) {
  const path = join(scratch, out);
  const run = await runKpc(['bundle', 'pack', bundle, '-o', path, ...options]);
  return { ...run, path };
}

describe('kpc bundle pack', () => {
  test('writes the same bytes for the same bundle, signed or not', async () => {
    for (const options of [[], ['--sign', key.secret, '--serial', '7']]) {
      const [first, second] = [await pack('first.tgz', ...options), await pack('second.tgz', ...options)];
      expect(first.status).toBe(0);
      expect(readFileSync(first.path).equals(readFileSync(second.path))).toBe(true);
    }
  });

  test('replaces no file but a pack, and writes nothing into the bundle', async () => {
    const wrong = async (path: string) => (await runKpc(['bundle', 'pack', bundle, '-o', path])).stderr;
    const manifest = join(scratch, 'web.yaml');
    writeFileSync(manifest, 'kind: Service\n');
    expect(await wrong(manifest)).toContain('is no pack');
    expect(readFileSync(manifest, 'utf8')).toBe('kind: Service\n');
    for (const name of ['manifest.json', 'node.tgz'])
      expect(await wrong(join(bundle, name))).toContain('is inside the bundle');
    expect(readdirSync(bundle)).not.toContain('node.tgz');
    const other = join(scratch, 'other.tgz');
    execFileSync('tar', ['-czf', other, '-C', scratch, 'web.yaml']);
    expect(await wrong(other)).toContain('is no pack');
    const { path } = await pack('replaced.tgz');
    expect((await pack('replaced.tgz', '--sign', key.secret)).status).toBe(0);
    expect(await readPack(path)).toBeDefined();
  });

  test('writes nothing of the machine or the time into the head of the file', () => {
    expect([...packFiles(files).subarray(0, 10)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
  });

  test('says the digest that sha256sum says of the manifest', async () => {
    const { stderr } = await pack('node.tgz');
    const said = /^digest ([\da-f ]+)$/m.exec(stderr)?.[1]?.replaceAll(' ', '');
    const [sum] = execFileSync('sha256sum', [join(bundle, 'manifest.json')], { encoding: 'utf8' }).split(' ');
    expect(said).toBe(sum);
  });

  test('writes what tar reads: the files of the bundle', async () => {
    const { path } = await pack('node.tgz', '--sign', key.secret);
    const folder = join(scratch, 'unpacked');
    mkdirSync(folder);
    execFileSync('tar', ['-xzf', path, '-C', folder]);
    expect(readdirSync(folder).toSorted()).toEqual([...readdirSync(bundle), 'signature.json'].toSorted());
    for (const name of readdirSync(bundle)) {
      expect(readFileSync(join(folder, name), 'utf8')).toBe(readFileSync(join(bundle, name), 'utf8'));
    }
  });

  test.each<readonly [what: string, args: readonly string[], wrong: RegExp]>([
    [
      'a folder that is no bundle',
      ['pack', 'fixtures', '-o', 'x'],
      /fixtures is not a bundle: manifest\.json is missing/,
    ],
    ['a folder that is missing', ['pack', 'nothing', '-o', 'x'], /nothing: there is no such folder or file/],
    [
      'a key that is public',
      ['pack', bundle, '-o', 'x', '--sign', key.trusted],
      /it holds no private ed25519 key in PEM/,
    ],
    [
      'a key that is missing',
      ['pack', bundle, '-o', 'x', '--sign', 'no.key'],
      /--sign no\.key: no such file or directory/,
    ],
    ['a serial that is no number', ['pack', bundle, '-o', 'x', '--serial', '-1'], /--serial/],
    ['another action', ['unpack', bundle, '-o', 'x'], /pack/],
    [
      'a path that cannot be written',
      ['pack', bundle, '-o', '/nowhere/x'],
      /cannot write \/nowhere\/x: no such file or directory/,
    ],
  ])('refuses %s', async (_, args, wrong) => {
    const { status, stderr } = await runKpc(['bundle', ...args]);
    expect(stderr).toMatch(wrong);
    expect(status).toBe(2);
  });
});

describe('a pack', () => {
  test('holds what was packed', async () => {
    expect(await read(packFiles(files))).toEqual(files);
  });

  test('is only a file that begins as gzip does', async () => {
    expect(await read(Buffer.from('{}'))).toBeUndefined();
    await expect(readPack(bundle)).rejects.toThrow('"is":"folder"');
    await expect(readPack(join(scratch, 'missing'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('is refused if it is cut short or damaged', async () => {
    const bytes = packFiles(files);
    for (const length of [3, 100, bytes.length - 1]) {
      await expect(read(bytes.subarray(0, length))).rejects.toThrow('"damaged"');
    }
    for (const at of [20, bytes.length / 2, bytes.length - 6, bytes.length - 1]) {
      const other = Buffer.from(bytes);
      other[Math.floor(at)] = (other[Math.floor(at)] ?? 0) ^ 0x40;
      await expect(read(other), `byte ${at}`).rejects.toThrow(/"damaged"|"no-pack"/);
    }
    await expect(read(gzip(Buffer.alloc(100, 'x')))).rejects.toThrow('"no-pack"');
  });

  test('has a checksum that is also right without help of Node', () => {
    const bytes = Buffer.from('The same bytes for the same bundle');
    const inPieces = crc32InScript(bytes.subarray(7), crc32InScript(bytes.subarray(0, 7), 0));
    expect([crc32(bytes, 0), inPieces]).toEqual([crc32InScript(bytes, 0), crc32InScript(bytes, 0)]);
    expect(gzip(bytes).readUInt32LE(gzip(bytes).length - 8)).toBe(inPieces);
  });

  /** The header of a file, and nothing of it. */
  const announce = (name: string, length: number): Buffer => {
    const header = writeTar(new Map([[name, '']])).subarray(0, 512);
    header.write(length.toString(8).padStart(11, '0'), 124, 'latin1');
    header.write('        ', 148, 'latin1');
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return header;
  };

  test('is refused by the sizes in its headers, before anything as large is unpacked', async () => {
    const manifest = writeTar(new Map([['manifest.json', '{}']])).subarray(0, 1024);
    const half = announce('ip.batch', 2 ** 25);
    await expect(read(gzip(Buffer.concat([manifest, announce('ip.batch', 96 * 2 ** 20)])))).rejects.toThrow(
      '"of":"bundle"',
    );
    await expect(read(gzip(announce('manifest.json', 2 ** 24)))).rejects.toThrow('"no-pack"');
    await expect(read(gzip(announce('signature.json', 5000)))).rejects.toThrow('"no-pack"');
    // What comes before the manifest is not read without it.
    await expect(read(gzip(half))).rejects.toThrow('"no-pack"');
    await expect(read(Buffer.concat([gzip(manifest), Buffer.alloc(2 ** 25)]))).rejects.toThrow('"of":"file"');
  });

  test('is refused if it holds text that is no UTF-8', async () => {
    const tar = writeTar(new Map([['manifest.json', '{"kpc": "x"}']]));
    tar[512 + 9] = 0xff;
    await expect(read(gzip(tar))).rejects.toThrow('"no-pack"');
  });

  test('shows its signature and its manifest before more of it is unpacked, and ends there if that is not wanted', async () => {
    const secret = readPrivateKey(readFileSync(key.secret, 'utf8'));
    if ('reason' in secret) throw new Error('no key');
    const signed = addSignature(files, signBundle(files, secret, 1));
    const tar = writeTar(new Map([...signed].filter(([name]) => ['signature.json', 'manifest.json'].includes(name))));
    const path = join(scratch, 'head.tgz');
    // Behind the manifest is what no reader could unpack.
    writeFileSync(path, gzip(Buffer.concat([tar.subarray(0, -1024), Buffer.alloc(100_000, 'x')])));
    const shown: string[][] = [];
    const check = async (head: ReadonlyMap<string, string>): Promise<void> => {
      shown.push([...head.keys()]);
      throw new Error('not wanted');
    };
    await expect(readPack(path, check)).rejects.toThrow('not wanted');
    expect(shown).toEqual([['signature.json', 'manifest.json']]);
    writeFileSync(path, packFiles(new Map([...signed, ['ip.batch', `${files.get('ip.batch')}#`]])));
    await expect(readPack(path)).rejects.toThrow('"not-signed"');
    writeFileSync(path, packFiles(new Map([...signed].filter(([name]) => name !== 'ip.batch'))));
    await expect(readPack(path)).rejects.toThrow('"not-signed"');
  });

  test.each([['../manifest.json'], ['/etc/passwd'], ['a/manifest.json'], ['manifest.json\0x'], ['other.txt'], ['']])(
    'is refused with a file called %j',
    async (name) => {
      await expect(read(gzip(writeTar(new Map([[name, 'x']]))))).rejects.toThrow('"no-pack"');
    },
  );

  test('is refused with a file twice', async () => {
    const [end, twice] = [Buffer.alloc(1024), writeTar(new Map([['manifest.json', '{}']])).subarray(0, 1024)];
    expect(await read(gzip(Buffer.concat([twice, end])))).toEqual(new Map([['manifest.json', '{}']]));
    await expect(read(gzip(Buffer.concat([twice, twice, end])))).rejects.toThrow('"no-pack"');
  });

  test('is refused with its files in another order, and with any number of others', async () => {
    const reversed = new Map([...((await read(packFiles(files))) ?? [])].toReversed());
    await expect(read(gzip(writeTar(reversed)))).rejects.toThrow('"no-pack"');
    const many = new Map([...files, ...Array.from({ length: 10_000 }, (_, i) => [`f${i}`, ''] as const)]);
    await expect(read(gzip(writeTar(many)))).rejects.toThrow('"no-pack"');
  });

  test('is refused with anything before, between or behind what kpc packed', async () => {
    const tar = writeTar((await read(packFiles(files))) ?? new Map());
    const [bytes, empty] = [gzip(tar), gzip(Buffer.alloc(0))];
    expect(await read(bytes)).toEqual(files);
    const named = Buffer.concat([bytes.subarray(0, 10), Buffer.from('evil\0'), bytes.subarray(10)]);
    named[3] = 8;
    for (const [what, parts] of Object.entries({
      'zeros behind it': [bytes, Buffer.alloc(9)],
      'an empty member behind it': [bytes, empty],
      'an empty member before it': [empty, bytes],
      'two members': [gzip(tar.subarray(0, 700)), gzip(tar.subarray(700))],
      'it twice': [bytes, bytes],
      'a second archive inside': [gzip(Buffer.concat([tar, tar]))],
      'a name in its head': [named],
    })) {
      await expect(read(Buffer.concat(parts)), what).rejects.toThrow('"no-pack"');
    }
    await expect(read(Buffer.concat([bytes, Buffer.from('x')]))).rejects.toThrow('"no-pack"');
  });

  test('is refused with a link, a folder or a device, and so is what another program packed', async () => {
    const folder = join(scratch, 'links');
    mkdirSync(join(folder, 'ip.batch'), { recursive: true });
    symlinkSync('/etc/passwd', join(folder, 'manifest.json'));
    symlinkSync('/dev/null', join(folder, 'services.json'));
    writeFileSync(join(folder, 'ipset.restore'), '');
    for (const name of readdirSync(folder)) {
      const bytes = execFileSync('tar', ['-cz', '--format=ustar', '-C', folder, name]);
      await expect(read(bytes), name).rejects.toThrow('"no-pack"');
    }
  });

  test('is refused with any other byte in a header, or any size', async () => {
    const tar = writeTar(new Map([['manifest.json', '{}']]));
    for (let at = 0; at < 512; at++) {
      const other = Buffer.from(tar);
      other[at] = (other[at] ?? 0) ^ 0x05;
      await expect(read(gzip(other)), `byte ${at}`).rejects.toThrow('"no-pack"');
    }
  });
});

describe('keys', () => {
  const pem = (path: string) => readFileSync(path, 'utf8');

  test('are those that openssl writes', () => {
    const made = execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519'], { encoding: 'utf8' });
    const trusted = execFileSync('openssl', ['pkey', '-pubout'], { input: made, encoding: 'utf8' });
    const secret = readPrivateKey(made);
    const keys = readPublicKeys(`${trusted}${pem(key.trusted)}`);
    expect('type' in secret && signBundle(files, secret, 0).keyId).toBe(0 in keys && keys[0]?.id);
    expect(keys).toHaveLength(2);
  });

  test('may have comments around them, and the line ends of another system', () => {
    const keys = readPublicKeys(`# the office\r\n${pem(key.trusted).replaceAll('\n', '\r\n')}\r\n# end`);
    expect(keys).toHaveLength(1);
  });

  test('sign what openssl verifies, over four lines of text', () => {
    const secret = readPrivateKey(pem(key.secret));
    if ('reason' in secret) throw new Error('no key');
    const { bytes, signature } = signBundle(files, secret, 7);
    const [sum] = execFileSync('sha256sum', [join(bundle, 'manifest.json')], { encoding: 'utf8' }).split(' ');
    const [message, signed] = [join(scratch, 'message'), join(scratch, 'signed')];
    writeFileSync(message, `kpc bundle\nmanifest.json sha256 ${sum}\nserial 7\nbytes ${bytes}\n`);
    writeFileSync(signed, Buffer.from(signature, 'base64'));
    const args = ['pkeyutl', '-verify', '-pubin', '-inkey', key.trusted, '-rawin', '-in', message, '-sigfile', signed];
    expect(execFileSync('openssl', args, { encoding: 'utf8' })).toContain('Verified Successfully');
  });

  test('are refused if they are of another kind', () => {
    const rsa = execFileSync('openssl', ['genpkey', '-algorithm', 'rsa', '-quiet'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    expect(readPrivateKey(rsa)).toEqual({ reason: { problem: 'no-key', of: 'private', type: 'rsa' } });
    const args = ['pkey', '-in', key.secret, '-aes256', '-passout', 'pass:x'];
    expect(readPrivateKey(execFileSync('openssl', args, { encoding: 'utf8' }))).toEqual({ reason: 'passphrase' });
    expect(readPublicKeys(pem(key.secret))).toEqual({ reason: 'private-key' });
    expect(readPublicKeys('')).toEqual({ reason: { problem: 'no-key', of: 'public' } });
    expect(readPublicKeys(pem(key.trusted).replace('MC', 'XX'))).toEqual({
      reason: { problem: 'no-key', of: 'public' },
    });
    const certify = ['req', '-x509', '-key', key.secret, '-subj', '/CN=kpc'];
    const certificate = execFileSync('openssl', certify, { encoding: 'utf8', stdio: 'pipe' });
    expect(readPublicKeys(certificate)).toEqual({ reason: { problem: 'no-key', of: 'public' } });
    for (const rest of [certificate, pem(key.trusted).slice(0, 60)]) {
      expect(readPublicKeys(`${pem(key.trusted)}${rest}`)).toEqual({ reason: 'more-than-keys' });
    }
  });

  test('have a signature in the pack, before all other files', () => {
    const secret = readPrivateKey(pem(key.secret));
    if ('reason' in secret) throw new Error('no key');
    expect([...addSignature(files, signBundle(files, secret, 1)).keys()][0]).toBe('signature.json');
  });
});
