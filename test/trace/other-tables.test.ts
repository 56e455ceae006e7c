// The firewall of test/trace/firewall, as nft printed it, beside kube-proxy's own tables.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-other-tables-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const own = join(projectFolder, 'fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges');
const firewall = join(projectFolder, 'test/trace/firewall');

function read(...path: readonly string[]): string {
  return readFileSync(join(...path), 'utf8');
}

/** A dump of kube-proxy's tables and the addresses of its node, with what is added to the ruleset. */
function dumpWith(added: string): string {
  const folder = join(scratch, String(added.length));
  mkdirSync(folder);
  writeFileSync(join(folder, 'nft-ruleset'), read(own, 'nft-ruleset') + added);
  writeFileSync(join(folder, 'ip-addr.json'), read(own, 'ip-addr.json'));
  return folder;
}

async function ask(dump: string, from: string, to: string, ...more: readonly string[]): Promise<string> {
  const run = await runKpc(['trace', dump, '--from', from, '--to', to, ...more], { cwd: scratch });
  expect(run.status, run.stderr).toBe(0);
  return run.stdout;
}

describe('a firewall of the family inet', () => {
  const dump = dumpWith(read(firewall, 'nft-list-ruleset'));
  test.for([
    ['203.0.113.5', '10.244.1.2:80', 'dropped', 'firewall forward rule 2'],
    ['192.0.2.9', '10.244.1.2:9090', 'refused', 'firewall forward rule 3'],
    ['192.0.2.9', '10.244.1.2:80', 'left to routing', 'how'],
    ['203.0.113.5', '192.168.10.11:22', 'dropped', 'firewall input rule 6'],
    ['192.0.2.9', '192.168.10.11:22', 'reaches the node itself', 'firewall input rule 7'],
    ['192.0.2.9', '192.168.10.11:80', 'dropped', 'no rule decides, so the policy of the chain drops the packet'],
    ['2001:db8:1::9', '[2001:db8:1::11]:80', 'reaches the node itself', 'firewall input rule'],
    ['2001:db8:1::9', '[2001:db8:1::11]:81', 'dropped', 'no rule decides, so the policy of the chain drops the packet'],
  ] as const)('%s to %s is %s', async ([from, to, verdict, why]) => {
    const answer = await ask(dump, from, to);
    expect(answer.split('\n')[1]).toContain(verdict);
    expect(answer).toContain(why);
  });

  test('what no packet shows makes no difference where both outcomes are the same', async () => {
    const answer = await ask(dump, '192.0.2.9', '10.244.1.2:53', '--proto', 'udp');
    expect(answer).toContain('left to routing');
  });
});

test('a rule that kpc does not read is named, where it matters', async () => {
  const dump = dumpWith(
    'table ip guard {\n\tchain c {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\ttcp dport 82 queue to 1\n\t}\n}\n',
  );
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:82')).toContain(
    'unknown: kpc cannot read a rule: nftables guard c rule 1: tcp dport 82 queue to 1; nft monitor trace shows on the node whether it matches',
  );
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:80')).toContain('left to routing');
});

test('a comment of several lines loses its own table, at its line, and no other', async () => {
  const dump = dumpWith(
    `table ip odd {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.1 comment "a {\n}b", 192.0.2.2 }\n\t}\n\tchain c {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\ttcp dport 82 drop comment "a\\"\n\t}\n}\ntable ip guard {\n\tchain c {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\ttcp dport 82 drop\n\t}\n}\n`,
  );
  const text = await ask(dump, '192.0.2.9', '10.244.1.2:82');
  expect(text).toContain('could not read all of table ip odd');
  expect(text).toContain('nftables guard c rule 1');
  expect(text).not.toContain('cut off');
});

test('a table that cannot be read as a whole makes the verdict unknown, and is named', async () => {
  const dump = dumpWith(
    'table inet odd {\n\tchain c {\n\t\ttype filter hook forward priority nowhere; policy drop;\n\t}\n}\n',
  );
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:80')).toContain(
    'unknown: kpc could not read all of table inet odd; check what the node does with this packet',
  );
});

test('rules as older versions of nft print them, and chains that are called after logging', async () => {
  const dump = dumpWith(`table ip guard {
\tchain logdrop {
\t\tlog prefix "drop " flags all counter packets 7 bytes 900
\t\tdrop
\t}
\tchain log {
\t\ttcp dport 81 jump logdrop
\t}
\tchain forward {
\t\ttype filter hook forward priority filter; policy accept;
\t\tct state established,related accept
\t\tjump log
\t}
}
`);
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:80')).toContain('left to routing');
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:81')).toContain('guard logdrop rule 2: drop');
});

test('a table that sees no packets of IP is passed over', async () => {
  const dump = dumpWith(
    'table arp filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n',
  );
  expect(await ask(dump, '192.0.2.9', '10.244.1.2:80')).toContain('left to routing');
});
