// Rules of other programs that packets meet before kube-proxy's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { open, trace } from '../../src/library/index.ts';
import { projectFolder } from '../support/run-kpc.ts';

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

test.each([
  ['-d 10.96.0.0/12 -j RETURN', '10.96.0.80:80', 'forwarded', 'that rule ends the table first'],
  ['-d 10.96.0.0/12 -j ACCEPT', '10.96.0.80:80', 'forwarded', 'that rule ends the table first'],
  [
    '-p tcp --dport 30080 -j DNAT --to-destination 10.244.2.99:1234',
    '192.168.50.11:30080',
    'delivered',
    '10.244.2.99:1234 is no endpoint of shop/web:http',
  ],
  [
    '-p tcp --dport 30080 -j DNAT --to-destination 10.244.2.10:8080',
    '192.168.50.11:30080',
    'delivered',
    'that rule translates the packet first',
  ],
])("another program's rule before kube-proxy's: %s", (rule, to, verdict, why) => {
  const found = traced(changed('-A PREROUTING', `-A PREROUTING ${rule}\n-A PREROUTING`), '10.244.1.77', to);
  expect(found?.verdict).toBe(verdict);
  const note = found?.notes?.find((each) => each.startsWith('iptables nat PREROUTING rule 1 keeps the packet from'));
  expect(note?.endsWith(why)).toBe(true);
});

test("another program's rule after kube-proxy's keeps nothing from them", () => {
  const late = changed('-A POSTROUTING', '-A PREROUTING -j ACCEPT\n-A POSTROUTING').replace(
    /-A KUBE-(SERVICES|NODEPORTS) .*\n/g,
    '',
  );
  expect((traced(late)?.notes ?? []).filter((each) => each.includes('keeps the packet from'))).toEqual([]);
  const first = node.replace('-A PREROUTING', '-A PREROUTING -j ACCEPT\n-A PREROUTING');
  expect(traced(first)?.notes?.filter((each) => each.includes('keeps the packet from'))).toHaveLength(1);
});
