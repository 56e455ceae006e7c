// First packets of one node port that end otherwise than at an endpoint: each has its share, and what decides it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { open, trace } from '../../src/library/index.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'test/trace/two-endpoints.txt'), 'utf8');

/** Replaces a text, which must be there. */
function changed(old: string | RegExp, by: string): string {
  expect(node).toMatch(old);
  return node.replace(old, by);
}

function traced(dump: string, from = 'external', to = '192.168.50.11:30080') {
  const [side] = open({ 'node.txt': dump }).snapshots;
  return side && trace({ side, from, to }).trace?.traces[0];
}

const drop = changed(/:OUTPUT ACCEPT \[0:0\]\n/, '$&-A FORWARD -d 10.244.1.10/32 -j DROP\n');
const lost = { verdict: 'dropped', probability: 0.5, address: '10.244.1.10', port: 8080, connection: 'fails' };

test.each([
  ['a rule', drop, 'stranger', 'filter FORWARD rule 1'],
  ['a refusal', drop.replace('-j DROP', '-j REJECT'), 'stranger', 'filter FORWARD rule 1'],
  [
    'a chain of nft',
    `${node}table inet guard {\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tip daddr 10.244.1.10 drop\n\t}\n}\n`,
    'stranger',
    'guard forward rule 1',
  ],
  ['a route', changed('10.244.1.0/24 dev', 'blackhole 10.244.1.10\n10.244.1.0/24 dev'), 'kernel', 'blackhole'],
])('an endpoint whose first packets are lost by %s', (_, dump, kind, by) => {
  const found = traced(dump);
  const verdict = dump.includes('REJECT') ? 'refused' : 'dropped';
  expect(found).toMatchObject({ verdict: 'delivered', connection: 'partial', failing: 0.5, cause: { kind } });
  expect(found?.otherEnds).toMatchObject([{ ...lost, verdict, reason: expect.stringContaining(by) as string }]);
  expect([found?.cause?.text, found?.connectionReason].every((text) => text?.includes(by))).toBe(true);
});

test.each([
  ['of the Service', /.*-> 10\.244\.2\.10.*\n/, '', 'KUBE-SVC-AAAAAAAAAAAAAAAA'],
  ['of an endpoint', /-A KUBE-SEP-B.*\n/, '', 'KUBE-SEP-BBBBBBBBBBBBBBBB'],
  [
    'of others',
    '-A PREROUTING',
    '-A PREROUTING -m statistic --mode random --probability 0.5 -j ACCEPT\n-A PREROUTING',
    'PREROUTING rule 1',
  ],
])('what no rule translates, because of the rules %s', (_, old, by, where) => {
  const found = traced(changed(old, by));
  expect(found).toMatchObject({ verdict: 'delivered', connection: 'depends', failing: 0, cause: undefined });
  const reason = expect.stringContaining(where) as string;
  expect(found?.otherEnds).toMatchObject([{ verdict: 'local', probability: 0.5, connection: 'depends', reason }]);
  expect(found?.connectionReason).toContain(where);
});

test('packets to the node itself, some of them lost', () => {
  const rule = '-A INPUT -m statistic --mode random --probability 0.25 -j DROP';
  const found = traced(changed(/:OUTPUT ACCEPT \[0:0\]\n/, `$&${rule}\n`), 'external', '192.168.50.11:22');
  const end = { ...lost, probability: 0.25, address: undefined, port: undefined };
  expect(found).toMatchObject({ verdict: 'local', failing: 0.25, otherEnds: [end] });
});

test('nothing ends otherwise where both endpoints are reached', () => {
  expect(traced(node)).toMatchObject({ connection: 'works', otherEnds: undefined });
});

test('the lines of a trace', async () => {
  const { stdout } = await runKpc(['trace', '-', '--from', 'external', '--to', '192.168.50.11:30080'], { stdin: drop });
  expect(stdout).toContain('  delivered to 1 endpoint, but 50% of connections fail:\n');
  expect(stdout).toContain(
    '\n       50%  10.244.1.10:8080; dropped: iptables filter FORWARD rule 1 drops the packet: -d 10.244.1.10/32 -j DROP\n',
  );
});
