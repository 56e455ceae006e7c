// Rules of Services without what leads packets there: a part of a listing does not show whether a jump is there, a whole one does.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { natTable, rules } from '../dumps/pasted.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-unshown-jumps-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const without = (text: string, pattern: RegExp): string =>
  text
    .split('\n')
    .filter((line) => !pattern.test(line))
    .join('\n');

const ruleset = readFileSync(
  new URL('../../fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset', import.meta.url),
  'utf8',
);
const [ofIPv4 = ''] = ruleset.split('table ip6');
/** A table with some of its parts, as nft lists one that was asked for or pasted so. */
const partOf = (isThere: (name: string) => boolean): string => {
  const parts = [...ofIPv4.matchAll(/^\t(?:set|map|chain) (\S+) \{.*?^\t\}\n/gms)];
  const kept = parts.filter(([, name = '']) => isThere(name)).map(([text]) => text);
  return `table ip kube-proxy {\n${kept.join('')}}\n`;
};

writeFolder(cwd, {
  'rules.txt': rules,
  'nat.txt': natTable,
  'no-services.txt': without(rules, /^-A KUBE-SERVICES/),
  'node-ports.txt': `-A KUBE-NODEPORTS -p tcp -m comment --comment "shop/web:http" -m tcp --dport 30080 -j KUBE-SVC-AAAAAAAAAAAAAAAA
${without(rules, /^-A KUBE-SERVICES|MARK-MASQ/)}`,
  'whole-nat.txt': without(natTable, /^-A PREROUTING/),
  'table.nft': partOf((name) => name.includes('/') || name === 'services' || name === 'service-ips'),
  'chains.nft': partOf((name) => name.includes('/') || name === 'services'),
  'own-chains.nft': partOf((name) => name.includes('/')),
  'no-services.nft': ruleset.replace(/^\tchain services \{.*?^\t\}\n/ms, ''),
  'no-hook.nft': ruleset.replace(/^\tchain nat-prerouting \{.*?^\t\}\n/ms, ''),
  'unmapped.nft': ruleset.replaceAll(/^.*vmap @service-ips\n/gm, ''),
  'lost.nft': ruleset.replaceAll(/(chain nat-prerouting \{\n.*\n)\t\tjump services\n/g, '$1'),
});

async function trace(file: string, to: string, ...flags: string[]): Promise<string> {
  return (await runKpc(['trace', '-q', file, '--from', '10.244.1.9', '--to', to, ...flags], { cwd })).stdout;
}

test('what masquerades is taken to be as kube-proxy makes it, and said', async () => {
  const { stdout } = await runKpc(['trace', '-q', 'nat.txt', '--from', '192.0.2.7', '--to', '10.96.7.7:80'], { cwd });
  expect(stdout).toContain('unknown: the dump lacks chain KUBE-MARK-MASQ of table nat, to which a rule jumps');
  expect(stdout).toContain(
    'if KUBE-MARK-MASQ is as kube-proxy makes it, POSTROUTING jumps to KUBE-POSTROUTING and what is not shown lets the packet pass unchanged: delivered to 2 endpoints:',
  );
  expect(stdout).toContain("10.244.1.5:8080; sees the node's address as the client");
  expect(stdout).toContain('iptables nat KUBE-MARK-MASQ, a rule that the dump lacks: -j MARK');
  // One that no rule marks.
  expect(await trace('nat.txt', '10.96.7.7:80')).toContain(
    'if what is not shown lets the packet pass unchanged: delivered to 2 endpoints:',
  );
});

describe('a part of the rules of iptables', () => {
  const text =
    'nothing in the dump jumps from PREROUTING to KUBE-SERVICES, so it is not known whether packets reach the rules there';

  test('names the jump that it lacks, and what follows if that is there', async () => {
    const answer = await trace('rules.txt', '10.96.7.7:80');
    expect(answer).toContain(`unknown: ${text}; add all of the output of iptables-save`);
    expect(answer).toContain(
      'if PREROUTING jumps to KUBE-SERVICES and what is not shown lets the packet pass unchanged: delivered to 2 endpoints:',
    );
    expect(answer).not.toContain('left to routing');
    expect(answer).toContain('iptables nat PREROUTING, a rule that the dump lacks: ');
    expect(answer).toContain('iptables nat KUBE-SERVICES rule 1: ');
  });

  test('says so to programs', async () => {
    const [json] = resultOf(await trace('rules.txt', '10.96.7.7:80', '--output', 'json')).traces;
    expect(json).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([expect.objectContaining({ text, command: 'iptables-save' })]) as unknown,
      otherwise: { verdict: 'delivered' },
    });
  });

  test('of a packet that no rule asks for, the jump makes no difference', async () => {
    expect(await trace('rules.txt', '192.0.2.8:80')).not.toContain('nothing in the dump jumps');
  });

  test('without the chain that the jump leads to, there is no answer', async () => {
    const answer = await trace('no-services.txt', '10.96.7.7:80');
    expect(answer).toContain('unknown: the dump lacks chain KUBE-SERVICES of table nat, to which a rule jumps');
    expect(answer).not.toContain('left to routing');
  });

  test('node ports hang on a jump of KUBE-SERVICES', async () => {
    const answer = await trace('node-ports.txt', '192.168.50.11:30080');
    expect(answer).toContain('unknown: nothing in the dump jumps from KUBE-SERVICES to KUBE-NODEPORTS');
    expect(answer).toMatch(/^ {2}if .*KUBE-SERVICES jumps to KUBE-NODEPORTS.*: delivered to 2 endpoints:$/m);
  });

  test('describe notes it', async () => {
    const { stderr } = await runKpc(['describe', 'rules.txt'], { cwd });
    expect(stderr).toContain(
      'note: nothing in the dump jumps from PREROUTING or OUTPUT to KUBE-SERVICES, so it is not known whether packets reach the rules there',
    );
    expect(stderr).not.toContain('restart kube-proxy');
  });
});

test('a whole table nat shows that the jump is lost, also without table filter', async () => {
  expect(await trace('whole-nat.txt', '10.96.7.7:80')).toContain(
    "KUBE-SERVICES leads to the endpoints, but nothing in PREROUTING leads to KUBE-SERVICES: something removed kube-proxy's rules",
  );
});

describe('nftables mode', () => {
  test('a part of a table names the jump that it lacks', async () => {
    const answer = await trace('table.nft', '10.98.154.163:80');
    expect(answer).toContain(
      'unknown: nothing in the dump jumps from nat-prerouting to services, so it is not known whether packets reach the rules there; add all of the output of nft list ruleset',
    );
    expect(answer).toContain(
      'if nat-prerouting jumps to services and what is not shown lets the packet pass unchanged: delivered',
    );
  });

  test.each([
    ['chains.nft', 'the dump lacks the set or map service-ips; add the output of nft list ruleset'],
    ['own-chains.nft', 'the dump lacks chain services of table kube-proxy, to which a rule jumps'],
    ['no-services.nft', 'the dump lacks chain services of table ip kube-proxy; add all of the output'],
    ['no-hook.nft', 'the dump lacks chain nat-prerouting of table ip kube-proxy; add all of the output'],
  ])('%s has no answer, and says why', async (file, why) => {
    const answer = await trace(file, '10.98.154.163:80');
    expect(answer).toContain(`unknown: ${why}`);
    expect(answer).not.toContain('left to routing');
  });

  test('a whole table shows that it is lost', async () => {
    const answer = await trace('lost.nft', '10.98.154.163:80');
    expect(answer).toContain(
      "services leads to the endpoints, but nothing in nat-prerouting leads to services: something removed kube-proxy's rules; restart kube-proxy",
    );
    expect((await runKpc(['describe', 'lost.nft'], { cwd })).stderr).toContain(
      'note: nothing in nat-prerouting jumps to services, so no packet from there reaches a Service',
    );
  });

  test('a missing rule is no cause for a port that the Service does not have', async () => {
    const lost = 'service-ips leads to the endpoints, but nothing in services leads to';
    expect(await trace('unmapped.nft', '10.98.154.163:80')).toContain(lost);
    const answer = await trace('unmapped.nft', '10.98.154.163:81');
    expect(answer).not.toContain(lost);
    expect(answer).toContain('which has no port 81/TCP (has 80/TCP)');
  });
});
