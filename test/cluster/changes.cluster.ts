// The same after a cluster has changed. It has one of its own: run.mjs starts another for the other tests.
import { beforeAll, describe, inject, test } from 'vitest';
import { configs, expectSame } from './expect-same.ts';
import { fillCluster } from './fill-cluster.ts';
import { apply, kubectl, setStatus, waitFor } from './start-cluster.ts';

const cluster = inject('cluster');

beforeAll(() => fillCluster(cluster));

/** Changes that a cluster sees: a Pod that becomes ready, one that is deleted, a Service that goes, another network of cluster IPs. */
describe('after changes', () => {
  beforeAll(async () => {
    const ready = ['Ready', 'ContainersReady'].map((type) => ({ type, status: 'True' }));
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'starting-1', namespace: 'default' } };
    setStatus(cluster, [{ ...pod, status: { conditions: ready } }]);
    kubectl(cluster, ['delete', 'pod', 'web-2', '--force', '--grace-period=0']);
    kubectl(cluster, ['delete', 'service', 'external']);
    apply(cluster, [
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'ServiceCIDR',
        metadata: { name: 'second' },
        spec: { cidrs: ['10.97.0.0/24'] },
      },
    ]);
    await waitFor('the slices to follow', () => {
      const slices = kubectl(cluster, ['get', 'endpointslices', '-o', 'json']);
      return (
        !slices.includes('"web-2"') &&
        kubectl(cluster, ['get', 'servicecidr', 'second', '-o', 'json']).includes('"Ready"')
      );
    });
  });

  test.each(configs.slice(0, 2))('%s', (_, config) => expectSame(config, 'node-2'));
});
