import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { diffTables } from '../../src/kernel/iptables/iptables-delta.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-counters-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const original = join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-loadbalancer-local');

/** What iptables-save prints of a kernel with nfnetlink_acct: two blanks before the counter's name. */
const dropped = ' -m nfacct --nfacct-name  ct_state_invalid_dropped_pkts';
const localhost = ' -m nfacct --nfacct-name  localhost_nps_accepted_pkts';

/** The dump of the same node where kube-proxy found nfnetlink_acct in the kernel. */
function count(folder: string, counter = localhost): string {
  const dump = join(scratch, folder);
  cpSync(original, dump, { recursive: true });
  edit(join(dump, 'iptables-save'), (text) =>
    countInvalid(text).replace(
      /^(-A KUBE-NODEPORTS) (-p \w+ -m comment --comment \S+ -m \w+ --dport \d+) (-j KUBE-EXT-.*\n)/gm,
      `$1 -d 127.0.0.0/8 $2${counter} $3$&`,
    ),
  );
  edit(join(dump, 'ip6tables-save'), countInvalid);
  return dump;
}

function countInvalid(text: string): string {
  return text.replace(/^(-A KUBE-FORWARD -m conntrack --ctstate INVALID)( -j DROP)$/m, `$1${dropped}$2`);
}

function edit(file: string, change: (text: string) => string): void {
  const before = readFileSync(file, 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(file, after);
}

describe('a node whose kernel counts for kube-proxy (nfnetlink_acct)', () => {
  test.for(['text', 'unified'])('kpc diff --output %s: counting is no difference', async (output) => {
    const counting = count(`counting-${output}`);
    for (const sides of [
      [original, counting],
      [counting, original],
    ]) {
      const run = await runKpc(['diff', ...sides, '--output', output]);
      expect(run.status, run.stdout).toBe(0);
      expect(run.stdout).not.toMatch(/nfacct|removed|added|changed/);
    }
  });

  test('kpc describe --from-dump tells the same Services', async () => {
    const tables = await Promise.all(
      [original, count('described')].map((dump) => runKpc(['describe', '--from-dump', dump, '--output', 'json'])),
    );
    expect(resultOf(tables[1]?.stdout ?? '')).toEqual(resultOf(tables[0]?.stdout ?? ''));
    expect(tables[0]?.status).toBe(0);
  });

  test('what another program counts may have a quota, and is a difference', async () => {
    const other = count('other', ' -m nfacct --nfacct-name  quota');
    expect((await runKpc(['diff', original, other])).status).toBe(1);
  });
});

describe('which rules are there to be counted only', () => {
  const copy = `-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp --dport 30080${localhost} -j KUBE-EXT-A`;
  const rule = '-A KUBE-NODEPORTS -p tcp --dport 30080 -j KUBE-EXT-A';
  const udp = '-A KUBE-NODEPORTS -p udp --dport 30080 -j KUBE-EXT-A';
  const elsewhere = '-A KUBE-NODEPORTS -p tcp --dport 30080 -j KUBE-EXT-B';
  const differs = (...lines: readonly string[]) => {
    const read = (rules: readonly string[]) =>
      parseIptablesSave(['*nat', ':KUBE-NODEPORTS - [0:0]', ...rules, 'COMMIT', ''].join('\n')).tables;
    return diffTables(read(lines), read(lines.filter((line) => line !== copy))).length > 0;
  };

  test.for([
    ['before the rule itself', false, [copy, rule]],
    ['between rules of others', false, [udp, copy, rule, elsewhere]],
    ['after the rule', true, [rule, copy]],
    ['without the rule', true, [copy]],
    ['before a rule for another protocol', true, [copy, udp]],
    ['before a rule with another target', true, [copy, elsewhere]],
  ] as const)('a copy %s', ([, expected, lines]) => {
    expect(differs(...lines)).toBe(expected);
  });
});
