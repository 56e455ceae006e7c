import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-incompatible-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const bundle = (mode: string) => `fixtures/dual-stack/expected-${mode}`;

/** The node once a program has written into a table of iptables what only nft reads: iptables-save leaves it out. */
function hiding(node: Pick<FakeNode, 'host'>, tool: string, table: string): Host {
  return {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run(command);
      if (command.tool !== tool || result.kind !== 'ended' || command.args.length > 0) return result;
      const shown = result.stdout.replace(new RegExp(`^\\*${table}\\n(?:.*\\n)*?COMMIT\\n`, 'm'), '');
      return { ...result, stdout: `${shown}# Table \`${table}' is incompatible, use 'nft' tool.\n` };
    },
  };
}

describe.each([
  ['iptables-save', 'nat', 'ip nat'],
  ['iptables-save', 'filter', 'ip filter'],
  ['ip6tables-save', 'nat', 'ip6 nat'],
] as const)('a table that %s cannot show, %s', (tool, table, inNft) => {
  test.each(['iptables', 'ipvs'])('stops apply in mode %s before anything is changed', async (mode) => {
    const node = createFakeNode();
    const there = node.dump();
    const { status, err } = await callApply(hiding(node, tool, table), 'apply', bundle(mode));
    expect(status).toBe(3);
    expect(err).toContain(
      `${tool} cannot show the table ${table}: it holds rules that only nft can read [unreadable-node]`,
    );
    expect(err).toContain(`see "nft list table ${inNft}"`);
    expect(node.dump()).toBe(there);
  });

  test('does not stop mode nftables, nor its cleanup', async () => {
    const host = hiding(createFakeNode(), tool, table);
    expect((await callApply(host, 'apply', bundle('nftables'))).status).toBe(0);
    expect((await callApply(host, 'verify', bundle('nftables'))).status).toBe(0);
    expect((await callApply(host, 'cleanup')).status).toBe(0);
  });

  test('stops cleanup and verify of rules that are in it: they may be there still', async () => {
    const node = createFakeNode();
    expect((await callApply(node.host, 'apply', bundle('iptables'))).status).toBe(0);
    const there = node.dump();
    for (const args of [['cleanup'], ['verify', bundle('iptables')]]) {
      expect((await callApply(hiding(node, tool, table), ...args)).err).toContain('[unreadable-node]');
    }
    expect(node.dump()).toBe(there);
  });
});

test('doctor says so, of the families of the bundle; dump warns', async () => {
  const said = 'ip6tables-save cannot show the table filter: it holds rules that only nft can read';
  const host = hiding(createFakeNode(), 'ip6tables-save', 'filter');
  const of = async (...args: readonly string[]) => (await callApply(host, 'doctor', ...args)).out;
  expect(await of(bundle('iptables'))).toContain(`error   ${said}`);
  expect(await of(bundle('ipvs'))).toContain(`error   ${said}`);
  expect(await of('fixtures/loadbalancer-source-ranges/expected-iptables')).not.toContain(said);
  expect(await of(bundle('nftables'))).not.toContain(said);
  expect((await callApply(host, 'dump', '-o', join(scratch, 'dump'))).err).toContain(`warning: ${said}`);
});

test('a table that kube-proxy does not use is no matter', async () => {
  const host = hiding(createFakeNode(), 'iptables-save', 'raw');
  expect((await callApply(host, 'apply', bundle('iptables'))).status).toBe(0);
});

test('is never taken for put back, where it becomes so during a change', async () => {
  const node = createFakeNode();
  const hidden = hiding(node, 'iptables-save', 'nat');
  let readings = 0;
  const host: Host = {
    ...node.host,
    run: (command) => {
      if (command.tool === 'iptables-save' && command.args.length === 0) readings++;
      return (readings > 1 ? hidden : node.host).run(command);
    },
  };
  const { status, err } = await callApply(host, 'apply', bundle('iptables'));
  expect(status).not.toBe(0);
  expect(err).not.toContain('The node is as it was before');
  expect((await callApply(node.host, 'rollback')).status).toBe(0);
  expect(node.dump()).toBe(createFakeNode().dump());
});
