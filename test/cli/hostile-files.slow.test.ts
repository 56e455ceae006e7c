// A JSON file of each kind that kpc reads, in each form that has cost more than its bytes: every run ends, within a bound of memory.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeTar } from '../../src/bundle/pack/archive.ts';
import { projectFolder } from '../support/run-kpc.ts';

const program = join(projectFolder, 'dist/kpc.js');
const service = join(projectFolder, 'fixtures/quickstart/svc.yaml');

/** Megabytes that a run may take, whatever it reads: kpc alone takes 60. */
const mostMemory = 600;

const repeat = (text: string, megabytes: number): string => text.repeat(Math.ceil((megabytes * 2 ** 20) / text.length));
const number = (count: number, make: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => make(i)).join('');

/** What a file holds, by its format: kind → text. */
const texts = {
  json: {
    objects: `{"items":[${repeat('{},', 1)}{}]}`,
    lists: `[${repeat('[],', 1)}[]]`,
    'empty texts': `[${repeat('"",', 1)}""]`,
    'lists in lists': `${repeat('[', 1)}${repeat(']', 1)}`,
    'lists that nobody closes': repeat('[', 1),
    'objects in objects': repeat('{"a":', 1),
    keys: `{${number(60_000, (i) => `"k${i}":1,`)}"z":1}`,
    'one key': `{${repeat('"a":1,', 1)}"a":1}`,
    'a text without end': `{"a":"${repeat('x', 3)}`,
    'a text with a control character': `{"a":"\u0001${repeat('x', 16)}"}`,
    'escaped characters': `{"a":"${repeat(String.raw`\u0000`, 2)}"}`,
    values: repeat('{}', 1),
    'empty lines': `{${repeat('\n', 16)}}`,
    'more values than the bound': `{"items":[${'1,'.repeat(5_000_001)}1]}`,
  },
} as const;

type Format = keyof typeof texts;

let work: string;
let bundle: string;
let golden: string;
let files = 0;

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'kpc-hostile-'));
  [bundle, golden] = [join(work, 'bundle'), join(work, 'golden')];
  const compile = ['compile', '-f', service, '--proxy-mode', 'iptables', '--ip-family', 'ipv4'];
  await run([...compile, '-o', bundle]);
  await run([...compile, '--golden', golden]);
});

afterAll(() => rmSync(work, { recursive: true }));

function put(text: string | Buffer, extension: string): string {
  const path = join(work, `f${files++}.${extension}`);
  writeFileSync(path, text);
  return path;
}

function copyWith(folder: string, changes: Readonly<Record<string, string>>): string {
  const copy = join(work, `d${files++}`);
  cpSync(folder, copy, { recursive: true });
  for (const [name, text] of Object.entries(changes)) writeFileSync(join(copy, name), text);
  return copy;
}

/** The manifest of the bundle, which says of its services.json what this one has. */
function manifestFor(services: string): string {
  const manifest = JSON.parse(readFileSync(join(bundle, 'manifest.json'), 'utf8')) as { files: Record<string, string> };
  manifest.files['services.json'] = createHash('sha256').update(services).digest('hex');
  return JSON.stringify(manifest);
}

const compileWith = (...words: readonly string[]) => ['compile', '-f', service, ...words, '--print', 'manifest'];

/** Who reads a file: the formats that it takes, and the command with such a file. */
const readers: Readonly<
  Record<string, readonly [formats: readonly Format[], command: (text: string, format: Format) => readonly string[]]>
> = {
  'host addresses': [['json'], (text) => compileWith('--host-addresses', put(text, 'json'))],
  'manifest.json': [['json'], (text) => ['describe', copyWith(bundle, { 'manifest.json': text })]],
  'services.json': [
    ['json'],
    (text) => ['describe', copyWith(bundle, { 'services.json': text, 'manifest.json': manifestFor(text) })],
  ],
  'golden.json': [['json'], (text) => ['describe', copyWith(golden, { 'golden.json': text })]],
  'a Service of a golden': [
    ['json'],
    (text) => ['describe', copyWith(golden, { 'default.web.txt': `==> services.json <==\n${text}\n` })],
  ],
  'a pack': [
    ['json'],
    (text) => ['bundle', 'verify', put(gzipSync(writeTar(new Map([['manifest.json', text]]))), 'tgz')],
  ],
};

/** Has a process say at its end what it took: once it is gone, no process can be asked about it. */
const reporter = `data:text/javascript,${encodeURIComponent(
  "import { writeSync } from 'node:fs'; process.on('exit', () => writeSync(2, `\\nMEMORY ${process.resourceUsage().maxRSS}\\n`));",
)}`;

function run(args: readonly string[]): Promise<{ status: number | string | null; err: string; megabytes: number }> {
  return new Promise((resolve) => {
    const words = ['--import', reporter, program, ...args];
    const child = execFile(process.execPath, words, { maxBuffer: 2 ** 28 }, (_, _out, said) => {
      const [end = '', memory] = /\nMEMORY (\d+)\n$/.exec(said) ?? [];
      const err = said.slice(0, said.length - end.length);
      resolve({ status: child.exitCode ?? child.signalCode, err, megabytes: Number(memory ?? NaN) / 1024 });
    });
  });
}

const rows = Object.entries(readers).flatMap(([reader, [formats, command]]) =>
  formats.flatMap((format) =>
    Object.entries(texts[format]).map(([kind, text]) => ({ reader, format, kind, make: () => command(text, format) })),
  ),
);

describe.concurrent('a hostile file is read or refused within a bound of memory', () => {
  test.each(rows)('$reader ($format): $kind', async ({ make }) => {
    const { status, err, megabytes } = await run(make());
    expect([0, 1, 2]).toContain(status);
    expect(err).not.toMatch(/a bug in kpc|heap out of memory|Maximum call stack|^ {4}at /m);
    expect(err.length).toBeLessThan(300_000);
    expect(megabytes).toBeLessThan(mostMemory);
  });
});
