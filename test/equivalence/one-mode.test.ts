// Between two sides of one mode, the step that differs is the cause, and no other mode.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-one-mode-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const node = readFileSync(join(fixturesFolder, 'connections/node.txt'), 'utf8').replace(
  'all.route_localnet = 0',
  'all.route_localnet = 1',
);
/** Beside this, the rules of iptables are all that there are. */
const noNft = '$ nft list ruleset\n$ date\n';

interface Report {
  readonly causes: readonly { readonly cause: string; readonly reasons: readonly string[] }[];
}

test.each([
  ['kernel', 'a sysctl', 'all.route_localnet = 1', 'all.route_localnet = 0', 'route_localnet'],
  ['foreign-rules', 'a policy', /(\*filter[^*]*:FORWARD) ACCEPT/, '$1 DROP', 'FORWARD'],
  [
    'foreign-rules',
    "a firewall's rule",
    '-A FORWARD -j KUBE',
    '-A FORWARD -o cni0 -j DROP\n-A FORWARD -j KUBE',
    'rule 1',
  ],
  ['rules', 'a rule for a node port', /-A KUBE-NODEPORTS .* 30081 .*\n/, '', 'new.txt lacks -A KUBE-NODEPORTS '],
  ['rules', 'all rules of kube-proxy', /^(?:-A|:).*KUBE-.*\n/gm, '', / lacks .*; and \d+ more/],
  ['rules', 'the rule for a cluster IP', /-A KUBE-SERVICES .*cluster IP.*\n/, '', ' lacks -A KUBE-SERVICES '],
  ['rules', 'the jump that masquerades', /-A POSTROUTING .*KUBE-.*\n/, '', ' lacks -A POSTROUTING '],
] as const)('%s: %s', async (cause, _, found, changed, why) => {
  writeFileSync(join(cwd, 'old.txt'), noNft + node);
  writeFileSync(join(cwd, 'new.txt'), noNft + node.replace(found, changed));
  const { stdout } = await runKpc(['equivalence', 'old.txt', 'new.txt', '--output', 'json', '-q'], { cwd });
  const { causes } = resultOf(stdout) as Report;
  // What the rule does to answers is another cause.
  expect(causes.map((each) => each.cause).filter((each) => each !== 'connection')).toEqual([cause]);
  expect(causes[0]?.reasons.join()).toMatch(why);
});

test('dumps whose session affinity differs: later connections are not compared', async () => {
  const dump = join(fixturesFolder, 'dumps/kube-proxy-iptables-session-affinity/iptables-save');
  const whole = readFileSync(dump, 'utf8');
  writeFileSync(join(cwd, 'old.txt'), whole);
  writeFileSync(join(cwd, 'new.txt'), whole.replaceAll('--seconds 10800', '--seconds 60'));
  const { stdout } = await runKpc(['equivalence', 'old.txt', 'new.txt', '--output', 'json', '-q'], { cwd });
  const { notCompared } = resultOf(stdout) as { readonly notCompared: readonly string[] };
  expect(notCompared.filter((each) => each.includes('session affinity'))).toHaveLength(1);
});
