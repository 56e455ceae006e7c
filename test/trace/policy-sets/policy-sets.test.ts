// Random policy sets, with the answers of np-guard's netpol-analyzer: npm run record:policies records them anew.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findPolicies, sceneOfManifests } from '../../support/manifest-scene.ts';
import { rounds } from '../../support/rounds.ts';
import { addressOf, makePolicySet } from './make-policy-sets.ts';

const recorded = readFileSync(join(import.meta.dirname, 'answers.txt'), 'utf8')
  .trimEnd()
  .split('\n');

const nodes = [1, 2].map((number) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `node${number}` },
  spec: { podCIDRs: [`10.1.${number}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `192.168.0.${number}` }] },
}));

/** The answers to a set's questions, as they are recorded. */
function answersOf(seed: number): string {
  const { questions, namespaces, pods, policies } = makePolicySet(seed);
  const items = [...nodes, ...namespaces, ...pods, ...policies];
  const scene = sceneOfManifests(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), 'node1');
  const bits = questions.map(([from, to, protocol, port]) => {
    const asked = { from, to: `${addressOf(to)}:${port}`, protocol: protocol.toLowerCase() as 'tcp' };
    const verdicts = findPolicies(scene, asked).map(({ verdict }) => verdict);
    const others = verdicts.filter((verdict) => verdict !== 'refused');
    if (others.length > 0) return others.join();
    return verdicts.length === 0 ? '1' : '0';
  });
  const line = bits.join('');
  return /^[01]{24}$/.test(line) ? Number.parseInt(line, 2).toString(16).padStart(6, '0') : line;
}

test('policies allow what netpol-analyzer says they allow', () => {
  expect(recorded).toHaveLength(1000);
  const seeds = Array.from({ length: rounds(recorded.length, 20) }, (_, seed) => seed);
  expect(seeds.map(answersOf)).toEqual(seeds.map((seed) => recorded[seed]));
}, 600_000);
