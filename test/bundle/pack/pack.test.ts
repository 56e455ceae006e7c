import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { readFolder } from '../../../src/bundle/folder.ts';
import { largestPack, packFiles, readPack, writeTar } from '../../../src/bundle/pack/pack.ts';
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

/** Any archive, compressed as kpc does it. */
function gzip(tar: Uint8Array): Buffer {
  const packed = gzipSync(tar, { level: 9 });
  packed[9] = 255;
  return packed;
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
    ['a folder that is no bundle', ['pack', 'fixtures', '-o', 'x'], /fixtures is not a bundle: there is no manifest/],
    ['a folder that is missing', ['pack', 'nothing', '-o', 'x'], /ENOENT/],
    ['a key that is public', ['pack', bundle, '-o', 'x', '--sign', key.trusted], /it holds no private key in PEM/],
    ['a key that is missing', ['pack', bundle, '-o', 'x', '--sign', 'no.key'], /--sign no\.key: there is no such file/],
    ['a serial that is no number', ['pack', bundle, '-o', 'x', '--serial', '-1'], /--serial/],
    ['another action', ['unpack', bundle, '-o', 'x'], /pack/],
    ['a path that cannot be written', ['pack', bundle, '-o', '/nowhere/x'], /ENOENT/],
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
    expect(await readPack(bundle)).toBeUndefined();
    expect(await readPack(join(scratch, 'missing'))).toBeUndefined();
  });

  test('is refused if it is cut short or damaged', async () => {
    const bytes = packFiles(files);
    for (const length of [3, 100, bytes.length - 1]) {
      await expect(read(bytes.subarray(0, length))).rejects.toThrow('it is damaged, or was not copied whole');
    }
    await expect(read(gzip(Buffer.alloc(100, 'x')))).rejects.toThrow('is not a pack');
  });

  test('is refused if it unpacks to more than the limit', async () => {
    await expect(read(gzip(Buffer.alloc(largestPack + 1)))).rejects.toThrow('unpacks to more than 256 MB');
  });

  test.each([['../manifest.json'], ['/etc/passwd'], ['a/manifest.json'], ['manifest.json\0x'], ['other.txt'], ['']])(
    'is refused with a file called %j',
    async (name) => {
      await expect(read(gzip(writeTar(new Map([[name, 'x']]))))).rejects.toThrow('is not a pack');
    },
  );

  test('is refused with a file twice', async () => {
    const [end, twice] = [Buffer.alloc(1024), writeTar(new Map([['manifest.json', '{}']])).subarray(0, 1024)];
    expect(await read(gzip(Buffer.concat([twice, end])))).toEqual(new Map([['manifest.json', '{}']]));
    await expect(read(gzip(Buffer.concat([twice, twice, end])))).rejects.toThrow('is not a pack');
  });

  test('is refused with its files in another order, and with any number of others', async () => {
    const reversed = new Map([...((await read(packFiles(files))) ?? [])].toReversed());
    await expect(read(gzip(writeTar(reversed)))).rejects.toThrow('is not a pack');
    const many = new Map([...files, ...Array.from({ length: 10_000 }, (_, i) => [`f${i}`, ''] as const)]);
    await expect(read(gzip(writeTar(many)))).rejects.toThrow('is not a pack');
  });

  test('is refused with anything before, between or behind what kpc packed', async () => {
    const tar = writeTar(files);
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
      await expect(read(Buffer.concat(parts)), what).rejects.toThrow('is not a pack');
    }
    await expect(read(Buffer.concat([bytes, Buffer.from('x')]))).rejects.toThrow('it is damaged');
  });

  test('is refused with a link, a folder or a device, and so is what another program packed', async () => {
    const folder = join(scratch, 'links');
    mkdirSync(join(folder, 'ip.batch'), { recursive: true });
    symlinkSync('/etc/passwd', join(folder, 'manifest.json'));
    symlinkSync('/dev/null', join(folder, 'services.json'));
    writeFileSync(join(folder, 'ipset.restore'), '');
    for (const name of readdirSync(folder)) {
      const bytes = execFileSync('tar', ['-cz', '--format=ustar', '-C', folder, name]);
      await expect(read(bytes), name).rejects.toThrow('is not a pack');
    }
  });

  test('is refused with any other byte in a header, or any size', async () => {
    const tar = writeTar(new Map([['manifest.json', '{}']]));
    for (let at = 0; at < 512; at++) {
      const other = Buffer.from(tar);
      other[at] = (other[at] ?? 0) ^ 0x05;
      await expect(read(gzip(other)), `byte ${at}`).rejects.toThrow('is not a pack');
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
    expect(typeof secret === 'object' && signBundle(files, secret, 0).keyId).toBe(
      typeof keys === 'object' && keys[0]?.id,
    );
    expect(keys).toHaveLength(2);
  });

  test('may have comments around them, and the line ends of another system', () => {
    const keys = readPublicKeys(`# the office\r\n${pem(key.trusted).replaceAll('\n', '\r\n')}\r\n# end`);
    expect(keys).toHaveLength(1);
  });

  test('sign what openssl verifies, over three lines of text', () => {
    const secret = readPrivateKey(pem(key.secret));
    if (typeof secret === 'string') throw new Error(secret);
    const { signature } = signBundle(files, secret, 7);
    const [sum] = execFileSync('sha256sum', [join(bundle, 'manifest.json')], { encoding: 'utf8' }).split(' ');
    const [message, signed] = [join(scratch, 'message'), join(scratch, 'signed')];
    writeFileSync(message, `kpc bundle\nmanifest.json sha256 ${sum}\nserial 7\n`);
    writeFileSync(signed, Buffer.from(signature, 'base64'));
    const args = ['pkeyutl', '-verify', '-pubin', '-inkey', key.trusted, '-rawin', '-in', message, '-sigfile', signed];
    expect(execFileSync('openssl', args, { encoding: 'utf8' })).toContain('Verified Successfully');
  });

  test('are refused if they are of another kind', () => {
    const rsa = execFileSync('openssl', ['genpkey', '-algorithm', 'rsa', '-quiet'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    expect(readPrivateKey(rsa)).toBe('it holds a key of type rsa, not ed25519');
    const args = ['pkey', '-in', key.secret, '-aes256', '-passout', 'pass:x'];
    expect(readPrivateKey(execFileSync('openssl', args, { encoding: 'utf8' }))).toMatch(/has a passphrase/);
    expect(readPublicKeys(pem(key.secret))).toMatch(/it holds a private key/);
    expect(readPublicKeys('')).toBe('it holds no public key in PEM');
    expect(readPublicKeys(pem(key.trusted).replace('MC', 'XX'))).toBe('it holds no public key in PEM');
    const certify = ['req', '-x509', '-key', key.secret, '-subj', '/CN=kpc'];
    const certificate = execFileSync('openssl', certify, { encoding: 'utf8', stdio: 'pipe' });
    expect(readPublicKeys(certificate)).toBe('it holds no public key in PEM');
    for (const rest of [certificate, pem(key.trusted).slice(0, 60)]) {
      expect(readPublicKeys(`${pem(key.trusted)}${rest}`)).toMatch(/something else beside whole public keys/);
    }
  });

  test('have a signature in the pack, before all other files', () => {
    const secret = readPrivateKey(pem(key.secret));
    if (typeof secret === 'string') throw new Error(secret);
    expect([...addSignature(files, signBundle(files, secret, 1)).keys()][0]).toBe('signature.json');
  });
});
