// A file of each kind that kpc reads, in each form that has cost more than its bytes: every run ends, within a bound of memory.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeTar } from '../../src/bundle/pack/archive.ts';
import { isFull } from '../support/rounds.ts';
import { projectFolder } from '../support/run-kpc.ts';

const program = join(projectFolder, 'dist/kpc.js');
const service = join(projectFolder, 'fixtures/quickstart/svc.yaml');

/** Megabytes that a run may take, whatever it reads: kpc alone takes 60. */
const mostMemory = 600;

const repeat = (text: string, megabytes: number): string => text.repeat(Math.ceil((megabytes * 2 ** 20) / text.length));
const number = (count: number, make: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => make(i)).join('');
const addressOf = (i: number): string => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** What a file holds, by its format: kind → text. */
const texts = {
  json: {
    objects: `{"items":[${repeat('{},', 1)}{}]}`,
    lists: `[${repeat('[],', 0.3)}[]]`,
    'empty texts': `[${repeat('"",', 1)}""]`,
    'lists in lists': `${repeat('[', 1)}${repeat(']', 1)}`,
    'lists that nobody closes': repeat('[', 1),
    'objects in objects': repeat('{"a":', 1),
    keys: `{${number(20_000, (i) => `"k${i}":1,`)}"z":1}`,
    'one key': `{${repeat('"a":1,', 1)}"a":1}`,
    'a text without end': `{"a":"${repeat('x', 3)}`,
    'a text with a control character': `{"a":"\u0001${repeat('x', 16)}"}`,
    'escaped characters': `{"a":"${repeat(String.raw`\u0000`, 2)}"}`,
    values: repeat('{}', 1),
    'empty lines': `{${repeat('\n', 16)}}`,
    'more values than the bound': `{"items":[${'1,'.repeat(5_000_001)}1]}`,
  },
  yaml: {
    items: `items:\n${repeat('- {}\n', 1)}`,
    'empty items': `items:\n${repeat('-\n', 0.5)}`,
    'items in brackets': `items: [${repeat('{},', 0.3)}{}]\n`,
    'lists in lists': repeat('- ', 1),
    documents: repeat('---\n', 2),
    'documents that are none': repeat('--- a\n', 1),
    keys: number(60_000, (i) => `k${i}: 1\n`),
    'one key': repeat('a: 1\n', 0.5),
    anchors: `items:\n${number(30_000, (i) => `- &a${i} x\n`)}- *a1\n`,
    aliases: `a: &a x\nitems:\n${repeat('- *a\n', 0.3)}`,
    'a wide line': `a: ${repeat('b ', 8)}\n`,
    'a text without end': `a: "${repeat('x', 2)}`,
    'quotes in quotes': `a: '${repeat("''", 4)}'\n`,
    'a long address': `kind: Service\napiVersion: v1\nmetadata: {name: a}\nspec: {clusterIP: "${repeat(':', 4)}"}\n`,
    commas: `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nclusterCIDR: "${repeat(',', 1)}"\n`,
    comments: `a: 1\n${repeat('#\n', 1)}`,
    'empty lines': `${repeat('\n', 1)}a: 1\n`,
    tabs: repeat('\t\n', 2),
    'more lines than the bound': `a: 1\n${'#\n'.repeat(5_000_001)}`,
  },
  dump: {
    'empty lines': `*nat\n:KUBE-SERVICES - [0:0]\n${repeat('\n', 4)}COMMIT\n`,
    'rules that are wrong': `*nat\n${repeat('-Z x\n', 1)}COMMIT\n`,
    rules: `*nat\n:KUBE-SERVICES - [0:0]\n${repeat('-A KUBE-SERVICES -j ACCEPT\n', 2)}COMMIT\n`,
    chains: `*nat\n${number(50_000, (i) => `:KUBE-SVC-${i} - [0:0]\n`)}COMMIT\n`,
    tables: repeat('*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n', 1),
    'a quote without end': `*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m comment --comment "${repeat('x', 16)}\nCOMMIT\n`,
    'a wide rule': `*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES ${repeat('x ', 4)}\nCOMMIT\n`,
    prompts: repeat('root@node1:~# iptables-save\n', 1),
    sets: number(30_000, (i) => `create s${i} hash:ip\n`),
    entries: `create s hash:ip family inet\n${number(60_000, (i) => `add s ${addressOf(i)}\n`)}`,
    'virtual servers': number(40_000, (i) => `-A -t ${addressOf(i)}:80 -s rr\n`),
    'chains of nft': `table ip kube-proxy {\n${number(40_000, (i) => ` chain c${i} {\n }\n`)}}\n`,
    'braces of nft': `table ip kube-proxy {\n${repeat('{', 1)}\n}\n`,
    'a word of nft': `table ip kube-proxy {\n chain c {\n  ${repeat('x', 16)} accept\n }\n}\n`,
    elements: `table ip kube-proxy {\n set s {\n  type ipv4_addr\n  elements = { ${number(60_000, (i) => `${addressOf(i)},\n`)}10.0.0.1 }\n }\n}\n`,
    flows: repeat(
      'udp 17 9 src=10.0.0.1 dst=10.1.0.1 sport=1 dport=80 src=10.2.0.1 dst=10.0.0.1 sport=80 dport=1 use=1\n',
      3,
    ),
    settings: number(30_000, (i) => `net.ipv4.x${i} = 1\n`),
    'a log': repeat('I1117 14:27:29.000000       1 x.go:72] "Using iptables proxy"\n', 2),
    links: `[${repeat('{"ifname":"a","addr_info":[{"family":"inet","local":"10.0.0.1","prefixlen":8}]},', 2)}{}]`,
    'more lines than the bound': `*nat\n:KUBE-SERVICES - [0:0]\n${'#\n'.repeat(5_000_001)}COMMIT\n`,
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

/** What a reader tries that shares its parser with one that tries each kind. */
const few: Readonly<Record<Format, readonly string[]>> = {
  json: ['lists in lists', 'keys', 'a text without end', 'empty lines'],
  yaml: ['documents', 'anchors', 'a text without end', 'commas', 'more lines than the bound'],
  dump: ['empty lines', 'rules that are wrong', 'a quote without end', 'more lines than the bound'],
};

/** The readers that try each kind. */
const thorough = new Set(['manifests', 'services.json', 'a dump']);

/** Who reads a file: the formats that it takes, and the command with such a file. */
const readers: Readonly<
  Record<string, readonly [formats: readonly Format[], command: (text: string, format: Format) => readonly string[]]>
> = {
  manifests: [['json', 'yaml'], (text, format) => ['compile', '-f', put(text, format), '--print', 'manifest']],
  'a configuration': [
    ['yaml'],
    (text) => compileWith('--config', put(`kind: KubeProxyConfiguration\n${text}`, 'yaml')),
  ],
  'a ConfigMap': [
    ['yaml'],
    (text) => {
      const head = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kube-proxy', namespace: 'kube-system' } };
      return compileWith('--config', put(JSON.stringify({ ...head, data: { 'config.conf': text } }), 'json'));
    },
  ],
  'kpc.yaml': [['json', 'yaml'], (text, format) => compileWith('--kpc-yaml', put(text, format))],
  expectations: [['json', 'yaml'], (text, format) => ['test', put(text, format)]],
  'host addresses': [['json'], (text) => compileWith('--host-addresses', put(text, 'json'))],
  'manifest.json': [['json'], (text) => ['describe', copyWith(bundle, { 'manifest.json': text })]],
  'services.json': [
    ['json'],
    (text) => ['describe', copyWith(bundle, { 'services.json': text, 'manifest.json': manifestFor(text) })],
  ],
  'a bundle to compare': [
    ['json'],
    (text) => ['compile', '-f', service, '--check', copyWith(bundle, { 'services.json': text })],
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
  'a dump': [['dump'], (text) => ['describe', put(text, 'txt')]],
  'a folder of a dump': [
    ['json'],
    (text) => {
      const folder = join(work, `d${files++}`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'ip-addr.json'), text);
      return ['describe', '--from-dump', folder];
    },
  ],
  'a support bundle': [
    ['dump'],
    (text) => ['describe', put(gzipSync(writeTar(new Map([['node1/networking/iptablessave', text]]))), 'tgz')],
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

/** The kinds that a reader tries: unless KPC_FULL=1 is set, one that is not thorough tries two, and its neighbours others. */
function kindsFor(reader: string, format: Format): readonly string[] {
  if (thorough.has(reader)) return Object.keys(texts[format]);
  const turn = Object.keys(readers).indexOf(reader);
  return few[format].filter((_, i, all) => isFull || [0, 1].includes((i + turn) % all.length));
}

const rows = Object.entries(readers).flatMap(([reader, [formats, command]]) =>
  formats.flatMap((format) =>
    Object.entries(texts[format])
      .filter(([kind]) => kindsFor(reader, format).includes(kind))
      .map(([kind, text]) => ({ reader, format, kind, make: () => command(text, format) })),
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
