import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const dumps = join(projectFolder, 'fixtures/dumps');
const read = (dump: string, file: string) => readFileSync(join(dumps, dump, file), 'utf8');
const text = read('kube-proxy-nftables-affinity-external-policy-local', 'nft-ruleset');
const json = read('kube-proxy-nftables-dual-stack-nodeport', 'nft-ruleset.json');

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nft-options-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, content: string): string {
  const file = join(scratch, name);
  writeFileSync(file, content);
  return file;
}

const whole = { text: write('whole.txt', text), json: write('whole.json', json) };
const numbers: Readonly<Record<string, number>> = { tcp: 6, udp: 17, new: 8, local: 2, dnat: 32, srcnat: 100 };

/** As nft -n prints it. */
function numericText(): string {
  return text
    .replaceAll(/\bct state new\b/g, 'ct state 0x8')
    .replaceAll(/\bct status dnat\b/g, 'ct status 0x20')
    .replaceAll(/\bfib (.addr) type local\b/g, 'fib $1 type 2')
    .replaceAll(/\bl4proto (tcp|udp) /g, (_, name: string) => `l4proto ${numbers[name]} `)
    .replaceAll(/\b(tcp|udp) \. (?=\d)/g, (_, name: string) => `${numbers[name]} . `)
    .replaceAll('priority dstnat - 10', 'priority -110')
    .replaceAll('priority dstnat;', 'priority -100;')
    .replaceAll('priority srcnat;', 'priority 100;')
    .replaceAll('priority filter;', 'priority 0;')
    .replaceAll('timeout 3h', 'timeout 10800s');
}

function numericJson(): string {
  const unreachable = { icmp: 3, icmpv6: 4 };
  return JSON.stringify(
    JSON.parse(json, (key, value: unknown) => {
      if (key === 'right' && typeof value === 'string') return numbers[value] ?? value;
      if (key === 'reject' && isObject(value))
        return { ...value, expr: unreachable[value['type'] as keyof typeof unreachable] };
      if (key !== 'concat' || !Array.isArray(value)) return value;
      return value.map((part) => (part === 'tcp' || part === 'udp' ? numbers[part] : part));
    }),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** The text without what `nft -t` leaves out. */
const terse = text.replaceAll(/\n\t\telements = \{[^}]*\}/g, '');

/** The lines of one block of a table, in a table of their own, as `nft list chain` and `nft list map` print it. */
function blockOf(head: string): string {
  const start = text.indexOf(`\t${head}`);
  return `table ip kube-proxy {\n${text.slice(start, text.indexOf('\n\t}\n', start))}\n\t}\n}\n`;
}

describe.concurrent('a dump by nft with options', () => {
  test.for([
    ['numeric.txt', numericText(), whole.text],
    ['numeric.json', numericJson(), whole.json],
  ] as const)('-n tells the same: %s', async ([name, content, other]) => {
    expect(content).not.toBe(name.endsWith('json') ? json : text);
    const file = write(name, content);
    expect(await runKpc(['diff', file, other])).toMatchObject({ status: 0, stdout: 'No difference.\n' });
    const [numeric, plain] = await Promise.all([runKpc(['describe', file]), runKpc(['describe', other])]);
    expect(numeric.stdout).toBe(plain.stdout);
  });

  test('another state of connections is a difference, as a number too', async () => {
    const file = write('established.txt', numericText().replace('ct state 0x8', 'ct state 0x2'));
    expect((await runKpc(['diff', file, whole.text])).status).toBe(1);
  });

  test.for([
    ['names.txt', text.replaceAll(/ \. 80\b/g, ' . "http"'), 'nft -S shows names of ports', '-S'],
    ['terse.txt', terse, 'nft -t shows no elements', '-t'],
  ] as const)('that leaves out too much is refused: %s', async ([name, content, said, option]) => {
    expect(content).not.toBe(text);
    const run = await runKpc(['diff', whole.text, write(name, content)]);
    expect(run.stderr).toContain(`warning: ${said}: print nft list ruleset without ${option} instead`);
    expect(run.stdout).not.toMatch(/changed|removed|belongs to no Service/);
    expect(run.stdout).not.toBe('No difference.\n');
  });

  test('-t is told of the JSON, and of a family that has no Service port', async () => {
    const elements = (key: string, value: unknown) => (key === 'elem' ? undefined : value);
    const run = await runKpc(['diff', whole.json, write('terse.json', JSON.stringify(JSON.parse(json, elements)))]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    const bare = `table ip6 kube-proxy {
\tset nodeport-ips {\n\t\ttype ipv6_addr\n\t}
\tmap service-ips {\n\t\ttype ipv6_addr . inet_proto . inet_service : verdict\n\t}
\tchain nat-prerouting {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tjump services\n\t}
\tchain services {\n\t\tip6 daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports\n\t}
}
`;
    const full = bare.replace('type ipv6_addr\n', 'type ipv6_addr\n\t\telements = { fd00::11 }\n');
    for (const order of [`${terse}${bare}`, `${bare}${terse}`]) {
      const { stdout } = await runKpc(['diff', write('both.txt', order), write('full.txt', full)]);
      expect(stdout).not.toContain('nodeport-ips');
    }
  });

  test('describe tells what is left, and does not take unknown addresses for those of the node', async () => {
    const run = await runKpc(['describe', write('described.txt', terse)]);
    expect(run.stderr).toContain('nft -t shows no elements');
    expect(run.stdout).toMatch(/^default\/web:http +\? +3$/m);
  });

  test.for(['chain services {', 'map service-ips {', 'chain service-'])(
    'that holds one block is not compared as if it were all: %s',
    async (head) => {
      const part = write(`${head.replaceAll(/\W/g, '')}.txt`, blockOf(head));
      const run = await runKpc(['diff', part, whole.text]);
      expect(run, run.stdout).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toContain('nothing in common that could be compared');
    },
  );
});
