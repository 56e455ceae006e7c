import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const dumps = join(projectFolder, 'fixtures/dumps');
const text = readFileSync(join(dumps, 'kube-proxy-nftables-affinity-external-policy-local', 'nft-ruleset'), 'utf8');

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nft-options-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, content: string): string {
  const file = join(scratch, name);
  writeFileSync(file, content);
  return file;
}

const whole = write('whole.txt', text);
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

/** The text without what `nft -t` leaves out. */
const terse = text.replaceAll(/\n\t\telements = \{[^}]*\}/g, '');

/** The lines of one block of a table, in a table of their own, as `nft list chain` and `nft list map` print it. */
function blockOf(head: string): string {
  const start = text.indexOf(`\t${head}`);
  return `table ip kube-proxy {\n${text.slice(start, text.indexOf('\n\t}\n', start))}\n\t}\n}\n`;
}

describe('a dump by nft with options', () => {
  test('-n tells the same', async () => {
    const content = numericText();
    expect(content).not.toBe(text);
    const file = write('numeric.txt', content);
    expect(await runKpc(['diff', file, whole])).toMatchObject({ status: 0, stdout: 'No difference.\n' });
    const [numeric, plain] = await Promise.all([runKpc(['describe', file]), runKpc(['describe', whole])]);
    expect(numeric.stdout).toBe(plain.stdout);
  });

  test('another state of connections is a difference, as a number too', async () => {
    const file = write('established.txt', numericText().replace('ct state 0x8', 'ct state 0x2'));
    expect((await runKpc(['diff', file, whole])).status).toBe(1);
  });

  test.for([
    ['names.txt', text.replaceAll(/ \. 80\b/g, ' . "http"'), 'nft -S shows names of ports', '-S'],
    ['terse.txt', terse, 'nft -t shows no elements', '-t'],
  ] as const)('that leaves out too much is refused: %s', async ([name, content, said, option]) => {
    expect(content).not.toBe(text);
    const run = await runKpc(['diff', whole, write(name, content)]);
    expect(run.stderr).toContain(`warning: ${said}: print nft list ruleset without ${option} instead`);
    expect(run.stdout).not.toMatch(/changed|removed|belongs to no Service/);
    expect(run.stdout).not.toBe('No difference.\n');
  });

  test('-t is told of a family that has no Service port', async () => {
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
    expect(run.stderr).toMatch(/warning: nft -t .*\[unread-output\]/);
    expect(run.stdout).toMatch(/^default\/web:http +\? +3$/m);
  });

  test('-j is refused', async () => {
    const file = write('nft.json', '{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "ip"}}]}\n');
    const pretty = write('pretty.json', JSON.stringify(JSON.parse(readFileSync(file, 'utf8')), undefined, 4));
    for (const path of [file, pretty]) {
      const run = await runKpc(['describe', path]);
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toMatch(/error: nft -j .*JSON.* nft list ruleset .*\[unread-output\]/);
    }
  });

  test.for(['chain services {', 'map service-ips {', 'chain service-'])(
    'that holds one block is not compared as if it were all: %s',
    async (head) => {
      const part = write(`${head.replaceAll(/\W/g, '')}.txt`, blockOf(head));
      const run = await runKpc(['diff', part, whole]);
      expect(run, run.stdout).toMatchObject({ status: 2, stdout: '' });
      const { stdout } = await runKpc(['diff', part, whole, '--output', 'json']);
      expect(findingsOf(stdout, 'bad-call')).toMatchObject([{ arguments: { problem: 'nothing-in-common' } }]);
    },
  );
});
