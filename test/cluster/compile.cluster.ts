// On each node, in each configuration: what kpc compiles is what the real kube-proxy programs.
import { beforeAll, describe, inject, test } from 'vitest';
import { configs, expectSame } from './expect-same.ts';
import { fillCluster } from './fill-cluster.ts';
import { nodeNames } from './objects.ts';

const cluster = inject('cluster');

beforeAll(() => fillCluster(cluster));

describe.each(configs)('%s', (_, config) => {
  test.each(nodeNames)('on %s', (node) => expectSame(config, node));
});
