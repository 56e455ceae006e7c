// Rules of Services without what leads packets there: a part of a listing does not show whether a jump is there, a whole one does.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { natTable, rules } from '../dumps/pasted.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
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
  'whole-nat.txt': without(natTable, /^-A PREROUTING|MARK-MASQ/),
  'nat-without-chain.txt': without(natTable, /^-A PREROUTING/),
  'table.nft': partOf((name) => name.includes('/') || name === 'services' || name === 'service-ips'),
  'chains.nft': partOf((name) => name.includes('/') || name === 'services'),
  'own-chains.nft': partOf((name) => name.includes('/')),
  'no-services.nft': ruleset.replace(/^\tchain services \{.*?^\t\}\n/ms, ''),
  'no-hook.nft': ruleset.replace(/^\tchain nat-prerouting \{.*?^\t\}\n/ms, ''),
  'unmapped.nft': ruleset.replaceAll(/^.*vmap @service-ips\n/gm, ''),
  'lost.nft': ruleset.replaceAll(/(chain nat-prerouting \{\n.*\n)\t\tjump services\n/g, '$1'),
});

async function trace(file: string, to: string, from = '10.244.1.9') {
  const { stdout } = await runKpc(['trace', '-q', file, '--from', from, '--to', to, '--output', 'json'], { cwd });
  return resultOf(stdout).traces[0];
}

/** A reason why a verdict is unknown: what the dump lacks, by its names, and the command that shows it. */
const lacking = (names: RegExp, command = 'iptables-save'): unknown =>
  expect.objectContaining({ kind: 'missing-listing', text: expect.stringMatching(names), command });

test('what masquerades is taken to be as kube-proxy makes it, and said', async () => {
  const marked = await trace('nat.txt', '10.96.7.7:80', '192.0.2.7');
  expect(marked).toMatchObject({
    verdict: 'unknown',
    reasons: expect.arrayContaining([lacking(/chain KUBE-MARK-MASQ .*nat/)]),
    otherwise: {
      condition: expect.stringMatching(/KUBE-MARK-MASQ .*POSTROUTING .*KUBE-POSTROUTING/),
      verdict: 'delivered',
      endpoints: [{ address: '10.244.1.5' }, { address: '10.244.1.6' }],
    },
    steps: expect.arrayContaining([
      expect.objectContaining({ where: expect.stringMatching(/iptables nat KUBE-MARK-MASQ/) }),
    ]),
  });
  expect(marked.otherwise.sourceAfter).toBe('masqueraded');
  // One that no rule marks.
  expect(await trace('nat.txt', '10.96.7.7:80')).toMatchObject({
    otherwise: {
      condition: expect.not.stringContaining('KUBE-'),
      verdict: 'delivered',
      sourceAfter: '10.244.1.9',
      endpoints: [{}, {}],
    },
  });
});

describe('a part of the rules of iptables', () => {
  const jump = /PREROUTING .*KUBE-SERVICES/;

  test('names the jump that it lacks, and what follows if that is there', async () => {
    const answer = await trace('rules.txt', '10.96.7.7:80');
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([lacking(jump)]),
      otherwise: { condition: expect.stringMatching(jump), verdict: 'delivered', endpoints: [{}, {}] },
    });
    const { stdout } = await runKpc(['trace', '-q', 'rules.txt', '--from', '10.244.1.9', '--to', '10.96.7.7:80'], {
      cwd,
    });
    expect(stdout).toMatch(/iptables nat PREROUTING, .*: /);
    expect(stdout).toContain('iptables nat KUBE-SERVICES rule 1: ');
  });

  test('of a packet that no rule asks for, the jump makes no difference', async () => {
    expect((await trace('rules.txt', '192.0.2.8:80')).reasons).not.toContainEqual(lacking(jump));
  });

  test('without the chain that the jump leads to, there is no answer', async () => {
    const answer = await trace('no-services.txt', '10.96.7.7:80');
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([lacking(/chain KUBE-SERVICES .*nat/)]),
    });
    expect(answer).not.toHaveProperty('otherwise');
  });

  test('node ports hang on a jump of KUBE-SERVICES', async () => {
    const answer = await trace('node-ports.txt', '192.168.50.11:30080');
    const nodePorts = /KUBE-SERVICES .*KUBE-NODEPORTS/;
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([lacking(nodePorts)]),
      otherwise: { condition: expect.stringMatching(nodePorts), verdict: 'delivered', endpoints: [{}, {}] },
    });
  });

  test('describe notes it', async () => {
    const { stdout } = await runKpc(['describe', 'rules.txt', '--output', 'json'], { cwd });
    const notes = findingsOf(stdout, 'reading').map((each) => each.arguments);
    expect(notes).toContainEqual(
      expect.objectContaining({ note: 'unshown-jump', from: ['PREROUTING', 'OUTPUT'], to: 'KUBE-SERVICES' }),
    );
    expect(notes.map(({ note }) => note)).not.toContain('lost-jump');
  });
});

test('a whole table nat shows that the jump is lost, also without table filter', async () => {
  expect(await trace('whole-nat.txt', '10.96.7.7:80')).toMatchObject({
    otherwise: { verdict: 'forwarded' },
    notes: [expect.stringMatching(/KUBE-SERVICES .*PREROUTING .*KUBE-SERVICES/)],
  });
});

test('a table without a chain that it jumps to is a part, and does not show that another jump is lost', async () => {
  expect(await trace('nat-without-chain.txt', '10.96.7.7:80')).toMatchObject({
    verdict: 'unknown',
    reasons: expect.arrayContaining([lacking(/PREROUTING .*KUBE-SERVICES/)]),
  });
});

describe('nftables mode', () => {
  test('a part of a table names the jump that it lacks', async () => {
    const answer = await trace('table.nft', '10.98.154.163:80');
    const jump = /nat-prerouting .*services/;
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([lacking(jump, 'nft list ruleset')]),
      otherwise: { condition: expect.stringMatching(jump), verdict: 'delivered' },
    });
  });

  test.each([
    ['chains.nft', /map service-ips/],
    ['own-chains.nft', /chain services .*kube-proxy/],
    ['no-services.nft', /chain services .*ip kube-proxy/],
    ['no-hook.nft', /chain nat-prerouting .*ip kube-proxy/],
  ])('%s has no answer, and says why', async (file, names) => {
    const answer = await trace(file, '10.98.154.163:80');
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([lacking(names, 'nft list ruleset')]),
    });
    expect(answer.otherwise?.verdict).not.toBe('forwarded');
  });

  test('a whole table shows that it is lost', async () => {
    const answer = await trace('lost.nft', '10.98.154.163:80');
    expect(answer).toMatchObject({
      verdict: 'refused',
      cause: { kind: 'kube-proxy', text: expect.stringMatching(/services .*nat-prerouting .*services/) },
    });
    const { stdout } = await runKpc(['describe', 'lost.nft', '--output', 'json'], { cwd });
    expect(findingsOf(stdout, 'reading').map((each) => each.arguments)).toContainEqual(
      expect.objectContaining({ note: 'lost-jump', from: ['nat-prerouting'], to: 'services' }),
    );
  });

  test('a missing rule is no cause for a port that the Service does not have', async () => {
    expect(await trace('unmapped.nft', '10.98.154.163:80')).toMatchObject({
      verdict: 'refused',
      cause: { kind: 'kube-proxy', text: expect.stringMatching(/service-ips .*services/) },
    });
    expect(await trace('unmapped.nft', '10.98.154.163:81')).toMatchObject({
      verdict: 'refused',
      cause: { kind: 'unserved-port', text: expect.stringMatching(/81\/TCP .*80\/TCP/) },
    });
  });
});
