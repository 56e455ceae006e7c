// Which sysctl keeps the node from forwarding.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { open, trace } from '../../src/library/index.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'test/trace/two-endpoints.txt'), 'utf8');

function traced(dump: string, from: string, to: string) {
  const [side] = open({ 'node.txt': dump }).snapshots;
  return side && trace({ side, from, to }).trace?.traces[0];
}

test('another sysctl of forwarding than that of the node', () => {
  const off = (name: string): string => `${node}net.ipv4.conf.all.forwarding = 1\n${name} = 0\n`;
  const name = 'net.ipv4.conf.cni0.forwarding';
  const { cause } = traced(off(name), '10.244.1.77', '10.96.0.80:80') ?? {};
  expect(cause).toMatchObject({ kind: 'kernel', text: expect.stringContaining(`(${name} is 0)`) as string });
});
