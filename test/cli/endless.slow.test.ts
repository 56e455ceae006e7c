import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { secondsOfPlainMegabyte } from '../support/cpu-time.ts';
import { isFull } from '../support/rounds.ts';

const program = join(import.meta.dirname, '../../dist/kpc.js');

/** Has a process say at its end what it took: once it is gone, no process can be asked about it. */
const reporter = `data:text/javascript,${encodeURIComponent(
  "import { writeSync } from 'node:fs'; process.on('exit', () => writeSync(3, JSON.stringify(process.resourceUsage())));",
)}`;

function run(args: readonly string[]): { status: number | null; err: string; cpuSeconds: number; megabytes: number } {
  const { status, stderr, output } = spawnSync(process.execPath, ['--import', reporter, program, ...args], {
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const used = JSON.parse(output[3] ?? 'null') as NodeJS.ResourceUsage | null;
  if (!used) throw new Error(`kpc ${args.join(' ')} did not end: ${stderr.slice(0, 500)}`);
  const cpuSeconds = (used.userCPUTime + used.systemCPUTime) / 1e6;
  return { status, err: stderr, cpuSeconds, megabytes: used.maxRSS / 1024 };
}

function lines(count: number, make: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => make(i)).join('\n');
}

function serviceOf(spec: string, ports: number): string {
  const head = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  clusterIP: 10.96.0.1\n';
  return `${head}${spec}  ports:\n${lines(ports, (i) => `  - {name: p${i}, port: ${i + 1}}`)}\n`;
}

function sliceOf(ports: number, endpoints: number): string {
  const head =
    '---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\n';
  const ofPorts = lines(ports, (i) => `- {name: p${i}, port: ${i + 1}}`);
  return `${head}ports:\n${ofPorts}\nendpoints:\n${lines(endpoints, (i) => `- addresses: [10.1.${i >> 8}.${i & 255}]`)}\n`;
}

const balancer = `  type: LoadBalancer\n  loadBalancerSourceRanges:\n${lines(20_000, (i) => `  - 10.${i >> 8}.${i & 255}.0/24`)}\n`;
const levels = lines(9, (i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`);
const manyKeys = lines(60_000, (i) => `  k${i}: 1`);

/** About a megabyte or much less, each of which took long, or more memory than there was, or had no end. */
const inputs: Readonly<Record<string, string>> = {
  'a list that holds itself': 'kind: List\napiVersion: v1\nitems: &x [*x, *x, *x, *x, *x]\n',
  'merges of a large mapping': `a: &a\n${manyKeys}\n${lines(990, (i) => `m${i}: {<<: *a}`)}\n`,
  'forty thousand anchors': lines(40_000, (i) => `a${i}: &a${i} x\nb${i}: *a${i}`),
  'aliases that multiply': `l0: &l0 [x]\n${levels}\n`,
  'keys without end': 'a: '.repeat(300_000),
  'one key again and again': 'a: 1\n'.repeat(200_000),
  'documents that are none': 'a: 1\n---\n'.repeat(110_000),
  'JSON values that are none': '{}'.repeat(500_000),
  'JSON lists that are none': '[]\n'.repeat(350_000),
  'JSON values with one key': '{"a":1}'.repeat(140_000),
  'a list in brackets': `a: [${'a, '.repeat(330_000)}]`,
  'commas in braces': `{${','.repeat(1_000_000)}`,
  quotes: '"'.repeat(1_000_000),
  brackets: '['.repeat(1_000_000),
  'question marks': '? '.repeat(400_000),
  dashes: '- '.repeat(400_000),
  'JSON that opens only': '{"a":'.repeat(200_000),
  'blank lines': `a: x\n${'\n'.repeat(1_000_000)}b: 1\n`,
  'a folded text': `a: ${'x\n  '.repeat(250_000)}`,
  'ports that are wrong': serviceOf('', 1) + lines(30_000, (i) => `  - {name: q${i}, port: 99999}`),
  'ports times endpoints': serviceOf('', 6000) + sliceOf(6000, 9000),
  'ports times source ranges': `${serviceOf(balancer, 10_000)}status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}\n`,
};

describe('small input has an end, is refused, and takes neither much time nor memory', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kpc-endless-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each(Object.entries(inputs))('%s', async (name, text) => {
    const plainMegabyte = await secondsOfPlainMegabyte();
    const turn = Object.keys(inputs).indexOf(name) % 3;
    const file = join(folder, `${name.replaceAll(' ', '-')}.yaml`);
    writeFileSync(file, text);
    const commands = [
      ['compile', '-f', file, '--print', 'manifest'],
      ['diff', file, file],
      ['describe', '-f', file],
    ];
    // All of them read it in one way: each input is given to one, and in `npm run test:all` to each.
    for (const args of isFull ? commands : commands.slice(turn, turn + 1)) {
      const { status, err, cpuSeconds, megabytes } = run(args);
      expect(status).toBe(2);
      expect(err).not.toMatch(/a bug in kpc|^ {4}at /m);
      expect(err.length).toBeLessThan(500_000);
      // The dearest takes half of it: it is read for its value, then for its places. The comparison reads two files.
      const files = args[0] === 'diff' ? 2 : 1;
      expect(cpuSeconds / plainMegabyte).toBeLessThan(8 * files);
      expect(megabytes).toBeLessThan(1000 * files);
    }
  });

  test('node ports times addresses', () => {
    const file = join(folder, 'node-ports.yaml');
    const ports = lines(5000, (i) => `  - {name: p${i}, port: ${i + 1}, nodePort: ${i + 30000}}`);
    writeFileSync(file, `${serviceOf('  type: NodePort\n', 0)}${ports}\n`);
    const addresses = join(folder, 'addresses.json');
    const info = Array.from({ length: 3000 }, (_, i) => ({
      family: 'inet',
      local: `10.9.${i >> 8}.${i & 255}`,
      prefixlen: 8,
    }));
    writeFileSync(addresses, JSON.stringify([{ ifname: 'eth0', addr_info: info }]));
    const { status, err, megabytes } = run([
      'compile',
      '-f',
      file,
      '--host-addresses',
      addresses,
      '--print',
      'manifest',
    ]);
    expect(err).toContain('[too-large]');
    expect(status).toBe(2);
    expect(megabytes).toBeLessThan(1000);
  });
});
