import { describe, expect, test } from 'vitest';
import { BundleMemo, makeBundle } from '../../../src/bundle/make-bundle.ts';
import { compileNode, NodeMemo, prepare, ReadObjects } from '../../../src/snapshot/open/compile-node.ts';
import type { ProxySettings } from '../../../src/cluster/objects.ts';
import { parseAssignmentRanges } from '../../../src/input/configuration/range-flags.ts';
import { collectFiles } from '../../../src/input/read-inputs.ts';
import { resolveSettings } from '../../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../../src/input/documents/text-file.ts';
import { makeCluster, type KubernetesObject } from '../../support/make-cluster.ts';
import { makeRandom } from '../../support/random.ts';
import { rounds } from '../../support/rounds.ts';

/** Some objects of the cluster with what distinguishes nodes: policies, hints, source ranges. */
function varyByNode(objects: readonly KubernetesObject[], random: () => number): readonly KubernetesObject[] {
  return objects.map((object) => {
    if (object.kind === 'Service') return varyService(object, random);
    if (object.kind === 'EndpointSlice' && random() < 0.3) return hintNodes(object);
    return object;
  });
}

function varyService(object: KubernetesObject, random: () => number): KubernetesObject {
  const spec = object['spec'] as Readonly<Record<string, unknown>>;
  if (random() < 0.3) return { ...object, spec: { ...spec, internalTrafficPolicy: 'Local' } };
  if (random() < 0.3) {
    return {
      ...object,
      spec: { ...spec, type: 'LoadBalancer', loadBalancerSourceRanges: ['192.168.50.11/32', '2001:db8:50::12/128'] },
      status: { loadBalancer: { ingress: [{ ip: '192.168.50.12' }, { ip: '198.51.100.7' }] } },
    };
  }
  return object;
}

/** Each endpoint is hinted to another node than the one it runs on. */
function hintNodes(object: KubernetesObject): KubernetesObject {
  const endpoints = object['endpoints'] as readonly (Readonly<Record<string, unknown>> & {
    readonly nodeName: string;
  })[];
  return {
    ...object,
    endpoints: endpoints.map((one) => ({
      ...one,
      hints: { forNodes: [{ name: one.nodeName === 'node-1' ? 'node-2' : 'node-1' }] },
    })),
  };
}

function prepareCluster(seed: number, settings: Partial<ProxySettings>) {
  const random = makeRandom(seed);
  const objects = varyByNode(makeCluster(40, random), random);
  const file = new TextFile('cluster.json', objects.map((object) => JSON.stringify(object)).join('\n'));
  const inputs = collectFiles([file]);
  expect(inputs.diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  const { ranges } = parseAssignmentRanges({ serviceClusterIpRange: '10.96.0.0/16,fd00:96::/112' });
  const defaults = resolveSettings(undefined, {}).settings;
  return prepare(
    new ReadObjects({ ...inputs, unread: new Set(), files: new Map() }),
    { ...defaults, ...settings },
    new Map(),
    {
      ranges,
    },
  );
}

describe('what one node leaves for the next', () => {
  const modes: readonly Partial<ProxySettings>[] = [
    { mode: 'ipvs' },
    { mode: 'ipvs', nodePortAddresses: ['primary'] },
    { mode: 'iptables' },
    { mode: 'iptables', detectLocal: { mode: 'NodeCIDR' } },
    { mode: 'nftables' },
    { mode: 'nftables', nodePortAddresses: ['primary'], detectLocal: { mode: 'NodeCIDR' } },
  ];
  test.each(modes)('changes no byte of its bundle: %j', (settings) => {
    for (let seed = 1; seed <= rounds(12, 12); seed++) {
      const prepared = prepareCluster(seed, settings);
      const nodeMemo = new NodeMemo();
      const bundleMemo = new BundleMemo();
      // Each node twice, so that each follows each other one.
      for (const nodeName of ['node-1', 'node-2', 'stranger', 'node-3', 'node-1', 'node-3', 'stranger', 'node-2']) {
        const request = { ipFamily: 'dual' } as const;
        const alone = makeBundle(compileNode(prepared, nodeName, request));
        const after = makeBundle(compileNode(prepared, nodeName, request, nodeMemo), bundleMemo);
        expect(after).toEqual(alone);
      }
    }
  });
});
