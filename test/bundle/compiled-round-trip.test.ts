import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatSets, parseIpsetSave } from '../../src/kernel/ipset.ts';
import { formatVirtualServers, parseIpvsadm } from '../../src/kernel/ipvs.ts';
import { formatLinks, parseIpBatch } from '../../src/kernel/link.ts';
import { formatModules, parseModules } from '../../src/kernel/modules.ts';
import { formatSysctls, parseSysctls } from '../../src/kernel/sysctl.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';

/**
 * File of a bundle → what its text becomes when it is read and written again. The rules are left out: their jumps stand where
 * iptables-restore wants them, and a table that was read has them in its own order.
 */
const again: Readonly<Record<string, (text: string) => string>> = {
  'modules.conf': (text) => formatModules(parseModules(text).modules),
  'sysctl.conf': (text) => formatSysctls(parseSysctls(text).sysctls),
  'ipset.restore': (text) => formatSets(parseIpsetSave(text).sets),
  'ipvsadm.restore': (text) => formatVirtualServers(parseIpvsadm(text).virtualServers),
  'ip.batch': (text) => formatLinks(parseIpBatch(text).links),
};

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

describe.each(['ipvs', 'iptables'])(
  'each file of a compiled bundle but its rules reads back and is written the same, mode %s',
  (mode) => {
    test('of any cluster', async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), async (seed) => {
          const args = ['compile', '-f', '-', '--proxy-mode', mode, '--node', 'node-1', '--output', 'json'];
          const ranges = ['--service-cluster-ip-range', '10.97.0.0/16,fd00:97::/108'];
          const run = await runKpc([...args, ...ranges], { stdin: clusterOf(seed) });
          expect(run.status, run.stderr).toBe(0);
          const { files } = JSON.parse(run.stdout) as { readonly files: Readonly<Record<string, string>> };
          for (const [name, rewrite] of Object.entries(again)) {
            const text = files[name] ?? rewrite('');
            expect(rewrite(text), name).toBe(text);
          }
        }),
        { numRuns: rounds(60) },
      );
    });
  },
);
