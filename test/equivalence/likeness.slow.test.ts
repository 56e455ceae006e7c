import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareScenes } from '../../src/ask/equivalence/compare.ts';
import { effectsByService, Findings } from '../../src/ask/equivalence/findings.ts';
import { isError } from '../../src/base/findings/finding.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { openTexts } from '../../src/library/open.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { listFixtures } from '../support/fixtures.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { isFull } from '../support/rounds.ts';
import { makeAlikeServices } from './alike-services.ts';

interface Cluster {
  readonly manifests: string | readonly { readonly name: string; readonly text: string }[];
  readonly node: string;
  readonly flags?: Readonly<Record<string, string>>;
}

function openScene({ manifests, node, flags }: Cluster, mode: ProxyMode): Scene | undefined {
  const list = typeof manifests === 'string' ? [{ name: 'in.yaml', text: manifests }] : manifests;
  const files = Object.fromEntries(list.map(({ name, text }) => [name, text]));
  const { side, diagnostics } = openTexts({ manifests: files, node, proxyMode: mode, ...flags }, false).at(node);
  return side && !diagnostics.some(isError) ? sceneOf(side) : undefined;
}

const pairs = [
  ['iptables', 'nftables'],
  ['ipvs', 'nftables'],
  ['iptables', 'ipvs'],
] as const;

/** Compares each pair of modes with destinations that are alike together, and each by itself. Returns how many stood for others. */
function checkPairs(cluster: Cluster, compared: readonly (readonly [ProxyMode, ProxyMode])[] = pairs): number {
  let together = 0;
  for (const [a, b] of compared) {
    const [before, after] = [openScene(cluster, a), openScene(cluster, b)];
    if (!before || !after) continue;
    const scenes = onOneNode(before, after);
    const [grouped, single] = [false, true].map((isSingle) => {
      const findings = new Findings();
      const collect = findings.collector(...scenes);
      const found = (...each: Parameters<typeof collect>): void => {
        together += each[1]?.length ?? 0;
        collect(...each);
      };
      const { reasons, ...counts } = compareScenes(...scenes, found, { isSingle });
      return {
        counts,
        reasons: [...reasons].toSorted(),
        findings: findings.list(),
        byService: effectsByService(...scenes, { isSingle }),
      };
    });
    expect(grouped).toEqual(single);
  }
  return together;
}

test('random clusters of Services of few shapes: the same is found of destinations that are alike, together and each by itself', () => {
  for (let seed = 1; seed <= (isFull ? 20 : 6); seed++) {
    const node = `node-${1 + (seed % 3)}`;
    expect(checkPairs({ manifests: makeAlikeServices(10, makeRandom(seed)), node })).toBeGreaterThan(0);
  }
}, 600_000);

test('random clusters with all that makes Services differ', () => {
  const manifests = Array.from({ length: isFull ? 5 : 2 }, (_, seed) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: makeCluster(10, makeRandom(seed)) }),
  );
  const flags = { serviceClusterIpRange: '10.96.0.0/12,fd00:96::/108' };
  expect(manifests.every((each) => checkPairs({ manifests: each, node: 'node-1', flags }) >= 0)).toBe(true);
}, 600_000);

test('fixtures', () => {
  const compared = listFixtures()
    .filter(({ modes }) => modes.length > 1)
    .map(({ folder, args }, i) => {
      const names = args.flatMap((word, at) => (args[at - 1] === '-f' ? [word] : []));
      const manifests = names.map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
      // One pair each: all of them take minutes.
      return checkPairs({ manifests, node: args[args.indexOf('--node') + 1] ?? '' }, [
        pairs[i % pairs.length] ?? pairs[0],
      ]);
    });
  expect(compared.length).toBeGreaterThan(20);
}, 600_000);
