import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const work = mkdtempSync(join(tmpdir(), 'kpc-tools-'));
afterAll(() => rmSync(work, { recursive: true }));

const rules = ['iptables-save', 'ip6tables-save', 'iptables-restore', 'ip6tables-restore'];
/** What the table in README.md says that a mode needs. */
const toolsOf = {
  iptables: ['ip', ...rules],
  ipvs: ['ip', ...rules, 'ipset', 'ipvsadm'],
  nftables: ['ip', 'nft'],
} as const;
const modes = Object.keys(toolsOf) as (keyof typeof toolsOf)[];

/** The host without all other tools, whatever modules its kernel has. */
function withTools(host: Host, names: readonly string[]): Host {
  return { ...host, run: async (command) => (names.includes(command.tool) ? host.run(command) : { kind: 'missing' }) };
}

const bundle = (fixture: string, mode: keyof typeof toolsOf) => `fixtures/${fixture}/expected-${mode}`;

describe.each(modes)('a node that has the tools of %s mode and no others', (mode) => {
  const [first, second] = [bundle('dual-stack', mode), bundle('loadbalancer-source-ranges', mode)];

  test('goes through all commands', async () => {
    const node = createFakeNode();
    // Nothing ever used legacy iptables.
    if (mode === 'nftables') for (const name of ['ip', 'ip6']) node.files.set(`/proc/net/${name}_tables_names`, '');
    const host = withTools(node.host, toolsOf[mode]);
    const empty = node.dump();
    expect(await callApply(host, 'plan', first)).toMatchObject({ status: 1, err: '' });
    for (const args of [
      ['apply', first],
      ['verify', first],
      ['apply', second],
      ['rollback'],
      ['verify', first],
      ['dump', '-o', join(work, mode)],
      ['cleanup'],
    ]) {
      const { status, err } = await callApply(host, ...args);
      expect([args[0], status, err]).toEqual([args[0], 0, expect.not.stringContaining('error')]);
    }
    const rulesOf = (dump: string) => dump.replaceAll(/^\/proc.*\n/gm, '');
    expect(rulesOf(node.dump())).toBe(rulesOf(empty));
  });

  test('doctor finds nothing to mend', async () => {
    const node = createFakeNode();
    node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
    const { out } = await callApply(withTools(node.host, toolsOf[mode]), 'doctor', first);
    expect(out).not.toMatch(/^error .* is missing/m);
  });
});

describe.each([
  ['iptables', 'iptables-save', 'nftables'],
  ['ipvs', 'ipset', 'iptables'],
  ['ipvs', 'ipvsadm', 'iptables'],
  ['nftables', 'nft', 'iptables'],
] as const)('kpc-apply has made what only a tool of another mode lists: %s mode, %s', (from, tool, to) => {
  test.each([['apply', bundle('dual-stack', to)], ['plan', bundle('dual-stack', to)], ['cleanup']])(
    '%s asks for the tool, and changes nothing',
    async (...args) => {
      const node = createFakeNode();
      await callApply(node.host, 'apply', bundle('dual-stack', from));
      const before = node.dump();
      const all = modes.flatMap((mode) => toolsOf[mode]).filter((name) => name !== tool);
      const { status, err } = await callApply(withTools(node.host, all), ...args);
      // Without iptables-save it is unknown which variant of it made the rules.
      const missing = new RegExp(`${tool.replace('-save', '-(?:legacy-)?save')} is missing`);
      expect([status, err]).toEqual([3, expect.stringMatching(missing)]);
      expect(node.dump()).toBe(before);
    },
  );
});

test('dump says which tools it lacks', async () => {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
  const { err } = await callApply(withTools(node.host, ['ip']), 'dump', '-o', join(work, 'bare'));
  for (const name of ['iptables-save', 'ip6tables-save', 'ipset', 'ipvsadm', 'nft']) {
    expect(err).toMatch(new RegExp(`^warning: ${name} is missing, so the dump lacks what it lists$`, 'm'));
  }
});
