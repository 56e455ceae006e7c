import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { CommandResult, Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-known-tools-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const bundleWith = (address: string): string =>
  writeWithEndpoints(join(scratch, address), 'ipvs', [address], { node: 'elsewhere' });

/** The tools that were asked for their version since the last question. */
const asked = (node: FakeNode): readonly string[] =>
  node.commands.splice(0).flatMap(({ tool, args }) => (args[0] === '--version' ? tool : []));

async function applied(): Promise<FakeNode> {
  const node = createFakeNode();
  expect((await callApply(node.host, 'apply', bundleWith('10.244.7.1'))).status).toBe(0);
  expect(asked(node)).toContain('ipvsadm');
  return node;
}

/** A node whose ipvsadm says that it is another version. */
const withVersion = (host: Host, version: string): Host => ({
  ...host,
  run: async (command): Promise<CommandResult> =>
    command.tool === 'ipvsadm' && command.args[0] === '--version'
      ? { kind: 'ended', status: 0, stdout: `ipvsadm v${version} 2019/12/24\n`, stderr: '' }
      : host.run(command),
});

describe('a tool that was found fit by an earlier apply', () => {
  test('is not asked for its version by the next apply, nor by the one after that', async () => {
    const node = await applied();
    for (const address of ['10.244.7.2', '10.244.7.3']) {
      expect((await callApply(node.host, 'apply', bundleWith(address))).status).toBe(0);
      expect(asked(node)).toEqual([]);
    }
  });

  test('is asked again by an apply that has forgotten what was settled, and refused where it is too old', async () => {
    const node = await applied();
    node.files.delete('/var/lib/kpc/settled/index.json');
    const { status, err } = await callApply(withVersion(node.host, '1.20'), 'apply', bundleWith('10.244.7.2'));
    expect(status).toBe(3);
    expect(err).toMatch(/ipvsadm is 1\.20, but at least 1\.30 is needed/);
    expect((await callApply(node.host, 'verify', bundleWith('10.244.7.1'))).status).toBe(0);
    expect((await callApply(node.host, 'apply', bundleWith('10.244.7.2'))).status).toBe(0);
    expect(asked(node)).toEqual(['ipvsadm']);
  });

  test('counts as such only where it was asked: --force asks none', async () => {
    const node = createFakeNode();
    expect((await callApply(node.host, 'apply', bundleWith('10.244.7.1'), '--force')).status).toBe(0);
    expect(asked(node)).toEqual([]);
    expect((await callApply(node.host, 'apply', bundleWith('10.244.7.2'))).status).toBe(0);
    expect(asked(node)).toEqual(['ipvsadm']);
  });

  test('that is missing since then is missed before anything is changed', async () => {
    const node = await applied();
    const host: Host = {
      ...node.host,
      run: async (command) =>
        command.tool === 'ipvsadm' && command.args[0] !== '-Sn' ? { kind: 'missing' } : node.host.run(command),
    };
    const { status, err } = await callApply(host, 'apply', bundleWith('10.244.7.2'));
    expect(status).toBe(3);
    expect(err).toContain('ipvsadm is missing');
    expect(node.commands.some(({ stdin }) => stdin !== undefined)).toBe(false);
  });
});
