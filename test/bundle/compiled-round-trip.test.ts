import { indexCluster } from '../../src/cluster/address-index.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinText } from '../../src/base/chunks.ts';
import { freshTexts } from '../../src/bundle/make-bundle.ts';
import { readServices, writeServices } from '../../src/bundle/services-file.ts';
import { bundleFileNames, readStateFile, stateFiles, type BundleFileName } from '../../src/bundle/state-files.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

/** What the text of a file becomes when it is read and written again. */
function rewrite(name: BundleFileName, text: string): string | undefined {
  if (name === 'services.json') {
    const services = readServices(text);
    return 'problems' in services
      ? services.problems.join()
      : writeServices(indexCluster({ ...services.value, serviceCidrs: [] }));
  }
  if (name === 'network.txt') return undefined;
  const { state, unread } = readStateFile(name, text, emptyState);
  expect(unread, name).toEqual([]);
  expect(
    textsIn(state).filter((each) => addressText.test(each)),
    `${name}: addresses that were not read`,
  ).toEqual([]);
  return joinText(stateFiles[name].format(state, freshTexts) ?? '');
}

/** Addresses of both families as they are in the files of a bundle, alone or with a port. */
const addressText = /(?<![\w:.])(?:\d{1,3}(?:\.\d{1,3}){3}|\[?(?:[\da-f]{1,4}:){2,}[\da-f:]*)/;

/** What rules, sets, virtual servers and links hold that is neither an address nor a name. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Map) return [...value].flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  const { kind, family } = value as { readonly kind?: unknown; readonly family?: unknown };
  // The text of an address or network is beside its numbers; the comment of a rule is free text.
  if (kind === 'comment' || ('text' in value && family !== undefined)) return [];
  return Object.entries(value).flatMap(([name, part]) => (name === 'comment' ? [] : textsIn(part)));
}

/** The jumps from built-in chains are apart from the rest of a table; their place means nothing. */
function jumpsFirst(text: string): string {
  return text
    .split(/(?<=^COMMIT\n)/m)
    .map((table) => {
      const lines = table.split(/(?<=\n)/);
      const isHead = (line: string) => /^[*:]/.test(line);
      const isJump = (line: string) => line.startsWith('-I ');
      const rules = lines.filter((line) => !isHead(line) && !isJump(line));
      return [...lines.filter(isHead), ...lines.filter(isJump), ...rules].join('');
    })
    .join('');
}

/** Ranges that begin at the same address, and others, in the order that the seed gives. */
function rangesOf(seed: number): readonly string[] {
  const random = makeRandom(seed);
  const all = [
    '10.0.0.0/8',
    '10.0.0.0/16',
    '10.0.0.0/24',
    '10.0.0.0/32',
    '9.0.0.0/8',
    '100.0.0.0/8',
    'fd00::/8',
    'fd00::/64',
  ];
  return all
    .map((range) => [random(), range] as const)
    .sort(([a], [b]) => a - b)
    .map(([, range]) => range)
    .slice(0, 6);
}

/** Any cluster, in which the Services with node ports have a load balancer too. */
function clusterOf(seed: number): string {
  const items = makeCluster(8, makeRandom(seed)).map((object, i) => {
    const spec = object['spec'] as Readonly<Record<string, unknown>> | undefined;
    if (object.kind !== 'Service' || spec?.['type'] !== 'NodePort') return object;
    const ingress = [{ ip: `198.51.100.${1 + (i % 200)}` }, { ip: `2001:db8:99::${1 + i}` }];
    return {
      ...object,
      spec: { ...spec, type: 'LoadBalancer', loadBalancerSourceRanges: rangesOf(seed + i) },
      status: { loadBalancer: { ingress } },
    };
  });
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

describe.each(['ipvs', 'iptables', 'nftables'])(
  'each file of a compiled bundle reads back and is written the same, mode %s',
  (mode) => {
    test('of any cluster', async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), async (seed) => {
          const args = ['compile', '-f', '-', '--proxy-mode', mode, '--node', 'node-1', '--output', 'json'];
          const ranges = ['--service-cluster-ip-range', '10.97.0.0/16,fd00:97::/108'];
          const run = await runKpc([...args, ...ranges], { stdin: clusterOf(seed) });
          expect(run.status, run.stderr).toBe(0);
          const { files } = resultOf(run.stdout) as { readonly files: Readonly<Record<string, string>> };
          const names = bundleFileNames.filter((name) => files[name] !== undefined);
          expect(Object.keys(files).filter((name) => name !== 'manifest.json')).toHaveLength(names.length);
          for (const name of names) {
            const text = files[name] ?? '';
            expect(jumpsFirst(rewrite(name, text) ?? ''), name).toBe(jumpsFirst(text));
          }
        }),
        { numRuns: rounds(60) },
      );
    });
  },
);
