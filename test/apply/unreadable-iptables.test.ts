import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const bundle = (mode: 'iptables' | 'nftables') => `fixtures/dual-stack/expected-${mode}`;

/** A node whose iptables-save prints something after its rules that it does not print elsewhere. */
function createOddNode(): Host {
  const { host } = createFakeNode();
  const run: Host['run'] = async (command, patience) => {
    const result = await host.run(command, patience);
    if (command.tool !== 'iptables-save' || result.kind === 'missing') return result;
    return { ...result, stdout: `${result.stdout}what is this\n` };
  };
  return { ...host, run };
}

test('rules of iptables that cannot be read are a warning in nftables mode: no command stops', async () => {
  const host = createOddNode();
  for (const [command, ...args] of [
    ['plan', bundle('nftables')],
    ['apply', bundle('nftables')],
    ['verify', bundle('nftables')],
    ['rollback'],
  ]) {
    const { status, err } = await callApply(host, command ?? '', ...args);
    expect(status, `${command}: ${err}`).toBe(command === 'plan' ? 1 : 0);
    expect(err).toMatch(
      /warning: "iptables-save" exited with status 0, but its output is incomplete: line \d+ has another format/,
    );
  }
});

test('they are an error in a mode that writes them', async () => {
  const { status, err } = await callApply(createOddNode(), 'apply', bundle('iptables'));
  expect(err).toContain('its output is incomplete');
  expect(status).toBe(3);
});
