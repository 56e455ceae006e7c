// Packs folders so that the same files give the same bytes.
// @ts-check
import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

/**
 * @param {string} folder
 * @param {string} epoch the time of all files, in seconds since 1970
 * @returns {Buffer}
 */
export function packTarGz(folder, epoch) {
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  const tar = execFileSync('tar', [...same, '-C', dirname(folder), '-cf', '-', basename(folder)], {
    maxBuffer: 2 ** 30,
  });
  return gzipSync(tar);
}

/**
 * A zip of the files of a folder: no ZIP64, for which they would have to be larger than 4 GB.
 *
 * @param {string} folder
 * @param {string} epoch the time of all files, in seconds since 1970
 * @returns {Buffer}
 */
export function packZip(folder, epoch) {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => lstatSync(join(folder, name)).isFile())
    .sort();
  /** @type {Buffer[]} */
  const pieces = [];
  /** @type {Buffer[]} */
  const directory = [];
  let offset = 0;
  for (const name of names) {
    const content = readFileSync(join(folder, name));
    const packed = deflateRawSync(content, { level: 9 });
    const path = Buffer.from(`${basename(folder)}/${name}`);
    const common = entryFields(content, packed, path.length, epoch);
    const header = Buffer.concat([numbers([4, 0x04034b50]), common, path]);
    directory.push(
      // Made by a system with Unix's modes; after the fields of the header: no comment, first disk, a mode, and where it begins.
      numbers([4, 0x02014b50], [2, (3 << 8) | 20]),
      common,
      numbers([2, 0], [2, 0], [2, 0], [4, (lstatSync(join(folder, name)).mode << 16) >>> 0], [4, offset]),
      path,
    );
    pieces.push(header, packed);
    offset += header.length + packed.length;
  }
  const list = Buffer.concat(directory);
  const end = numbers([4, 0x06054b50], [4, 0], [2, names.length], [2, names.length], [4, list.length], [4, offset]);
  return Buffer.concat([...pieces, list, end, numbers([2, 0])]);
}

/**
 * What the header of a file and its entry in the directory share.
 *
 * @param {Buffer} content
 * @param {Buffer} packed
 * @param {number} pathLength
 * @param {string} epoch
 */
function entryFields(content, packed, pathLength, epoch) {
  const time = new Date(Number(epoch) * 1000);
  const clock = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1);
  const day = ((time.getUTCFullYear() - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const deflated = 8;
  const isUtf8 = 0x800;
  return numbers(
    [2, 20],
    [2, isUtf8],
    [2, deflated],
    [2, clock],
    [2, day],
    [4, crc32(content)],
    [4, packed.length],
    [4, content.length],
    [2, pathLength],
    [2, 0],
  );
}

/**
 * Little-endian numbers, each with its size in bytes.
 *
 * @param {readonly (readonly [size: number, value: number])[]} fields
 */
function numbers(...fields) {
  return Buffer.concat(
    fields.map(([size, value]) => {
      const bytes = Buffer.alloc(size);
      bytes.writeUIntLE(value, 0, size);
      return bytes;
    }),
  );
}
