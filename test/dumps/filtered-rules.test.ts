// iptables-save without the lines that grep left out: chains of a Service that lead nowhere.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'fixtures/connections/node.txt'), 'utf8');
const saved = /\*nat\n[^]*?\nCOMMIT\n/.exec(node)?.[0] ?? '';

function natWithout(lines: RegExp): readonly [isWhole: boolean, excerpts: readonly string[], chain: unknown] {
  const text = saved.split('\n').filter((line) => !lines.test(line));
  const filter = '*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n';
  const { coverage, faults } = readDump(new Map([['iptables-save', `${text.join('\n')}${filter}`]]));
  const fault = faults.find(({ code }) => code === 'dump-reading');
  const chain = fault && 'chain' in fault.arguments ? fault.arguments.chain : undefined;
  return [coverage.iptables.ipv4.includes('nat'), coverage.excerpts ?? [], chain];
}

test.each([
  ['nothing', /^never$/, [true, [], undefined]],
  ['a chain that nothing jumps to', /-j KUBE-(?:SEP|SVC|EXT)-|DNAT/, [true, [], undefined]],
  ['the rules of one chain', /^-A KUBE-SVC-LOCALA/, [true, [], undefined]],
  ["one endpoint's DNAT", /^-A KUBE-SEP-LOCALA.* -j DNAT/, [true, [], undefined]],
  ['the jumps to endpoints', /-j KUBE-SEP-/, [false, ['ipv4'], 'KUBE-SVC-LOCALAAAAAAAAAAAA']],
  ['the chains of endpoints', /KUBE-SEP-/, [false, ['ipv4'], 'KUBE-SVC-LOCALAAAAAAAAAAAA']],
  ['DNAT', /-j DNAT/, [false, ['ipv4'], 'KUBE-SEP-LOCALAAAAAAAAAAAA']],
] as const)('without %s', (_, lines, expected) => {
  expect(natWithout(lines)).toEqual(expected);
});
