import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { AssumedWorkload } from '../../../src/cluster/model.ts';
import { contains, parseAddress, parseNetwork } from '../../../src/kernel/address.ts';
import { findingsOf, resultOf } from '../../support/printed-json.ts';
import { runKpc } from '../../support/run-kpc.ts';
import { inputOf, node, pod, service, type Manifest } from './cluster-objects.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-assumed-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const http = [{ name: 'c', image: 'x', ports: [{ name: 'http', containerPort: 8080 }] }];

/** A workload whose Pods have the label app=NAME. */
function workload(
  kind: string,
  name: string,
  spec: object = {},
  more: { pod?: object; metadata?: object } = {},
): Manifest {
  const template = { metadata: { labels: { app: name } }, spec: { containers: http, ...more.pod } };
  const apiVersion = kind === 'Job' ? 'batch/v1' : kind === 'ReplicationController' ? 'v1' : 'apps/v1';
  return { apiVersion, kind, metadata: { name, ...more.metadata }, spec: { ...spec, template } };
}

const ownedBy = (kind: string, name: string) => ({ ownerReferences: [{ kind, name, controller: true }] });

interface Result {
  /** Workload → "name address,address node" of each Pod. */
  readonly pods: Readonly<Record<string, readonly string[]>>;
  readonly assumed: readonly AssumedWorkload[] | undefined;
  readonly stderr: string;
  readonly status: number | null;
}

async function run(args: readonly string[], ...objects: readonly Manifest[]): Promise<Result> {
  const all = ['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'manifest', '--allow-empty', ...args];
  const { status, stdout, stderr } = await runKpc(all, { stdin: inputOf(...objects) });
  const manifest = status === 0 ? (JSON.parse(stdout) as { assumedEndpoints?: readonly AssumedWorkload[] }) : {};
  const assumed = manifest.assumedEndpoints;
  const pods = (assumed ?? []).map(({ workload: of, pods: its }) => [
    of,
    its.map(({ name, addresses, node: on }) => [name, addresses.join(), on].filter(Boolean).join(' ')),
  ]);
  return { pods: Object.fromEntries(pods) as Result['pods'], assumed, stderr, status };
}

const assume = ['--assume-endpoints=10.244.0.0/16'];
const counts = async (...objects: readonly Manifest[]): Promise<Record<string, number>> =>
  Object.fromEntries(Object.entries((await run(assume, ...objects)).pods).map(([of, its]) => [of, its.length]));

describe('which Pods are assumed', () => {
  test.each([
    ['Deployment', { replicas: 3 }, 3],
    ['Deployment', {}, 1],
    ['Deployment', { replicas: null }, 1],
    ['StatefulSet', { replicas: 2 }, 2],
    ['ReplicaSet', { replicas: 2 }, 2],
    ['ReplicationController', { replicas: 2 }, 2],
    ['Job', {}, 1],
    ['Job', { parallelism: 3 }, 3],
    ['Job', { parallelism: 3, completions: 2 }, 2],
    ['DaemonSet', {}, 2],
  ])('%s with %o', async (kind, spec, expected) => {
    const found = await counts(service('web'), workload(kind, 'web', spec), node(1), node(2));
    expect(found).toEqual({ [`${kind} default/web`]: expected });
  });

  describe('Nodes with taints', () => {
    const tainted = (number: number, key: string, effect = 'NoSchedule') =>
      node(number, '', { spec: { taints: [{ key, value: 'a', effect }] } });
    const tolerating = (toleration: object) => ({ pod: { tolerations: [toleration] } });

    test.each([
      ['get no Pod', 'DaemonSet', 'dedicated', {}, 1],
      ['get no Pod of a Deployment', 'Deployment', 'dedicated', {}, 1],
      [
        'get one that tolerates their taints',
        'DaemonSet',
        'dedicated',
        tolerating({ key: 'dedicated', value: 'a' }),
        2,
      ],
      [
        'get one that tolerates any value',
        'DaemonSet',
        'dedicated',
        tolerating({ key: 'dedicated', operator: 'Exists' }),
        2,
      ],
      ['get one that tolerates all', 'DaemonSet', 'dedicated', tolerating({ operator: 'Exists' }), 2],
      [
        'get none that tolerates another value',
        'DaemonSet',
        'dedicated',
        tolerating({ key: 'dedicated', value: 'b' }),
        1,
      ],
      [
        'get none that tolerates another effect',
        'DaemonSet',
        'dedicated',
        tolerating({ key: 'dedicated', operator: 'Exists', effect: 'NoExecute' }),
        1,
      ],
      ['get the Pods of a DaemonSet in spite of pressure', 'DaemonSet', 'node.kubernetes.io/disk-pressure', {}, 2],
    ])('%s', async (_, kind, taint, more, expected) => {
      const { pods } = await run(
        assume,
        service('web'),
        workload(kind, 'web', { replicas: 2 }, more),
        node(1),
        tainted(2, taint),
      );
      const used = new Set(pods[`${kind} default/web`]?.map((each) => each.split(' ').at(-1)));
      expect(used.size).toBe(expected);
    });

    test('get Pods if they only prefer none, and if there are no others', async () => {
      expect(
        await counts(service('web'), workload('DaemonSet', 'web'), node(1), tainted(2, 'a', 'PreferNoSchedule')),
      ).toEqual({
        'DaemonSet default/web': 2,
      });
      expect(await counts(service('web'), workload('DaemonSet', 'web'), tainted(1, 'a'), tainted(2, 'a'))).toEqual({
        'DaemonSet default/web': 2,
      });
    });
  });

  describe('nodeSelector and required node affinity', () => {
    const labelled = (number: number, labels: object) => {
      const own = node(number);
      return { ...own, metadata: { ...(own['metadata'] as object), labels } };
    };
    const nodes = [labelled(1, { disk: 'ssd', cores: '4' }), labelled(2, { disk: 'hdd', cores: '16' }), node(3)];
    const affinity = (...nodeSelectorTerms: readonly object[]) => ({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    });
    const term = (key: string, operator: string, ...values: readonly string[]) => ({
      matchExpressions: [{ key, operator, values }],
    });
    const nodesOf = async (podSpec: object, kind = 'DaemonSet') => {
      const { pods, stderr } = await run(
        assume,
        service('web'),
        workload(kind, 'web', { replicas: 4 }, { pod: podSpec }),
        ...nodes,
      );
      const used = new Set(pods[`${kind} default/web`]?.map((each) => each.split(' worker-').at(-1)));
      return { used: [...used].toSorted().join(), stderr };
    };

    test.each([
      [{ nodeSelector: { disk: 'ssd' } }, '1'],
      [affinity(term('disk', 'In', 'ssd', 'nvme')), '1'],
      [affinity(term('disk', 'NotIn', 'ssd')), '2,3'],
      [affinity(term('disk', 'Exists')), '1,2'],
      [affinity(term('disk', 'DoesNotExist')), '3'],
      [affinity(term('cores', 'Gt', '5')), '2'],
      [affinity(term('cores', 'Lt', '5')), '1'],
      [affinity(term('disk', 'In', 'ssd'), term('disk', 'DoesNotExist'), {}), '1,3'],
      [affinity({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['worker-3'] }] }), '3'],
      [{ nodeSelector: { disk: 'hdd' }, ...affinity(term('cores', 'Exists')) }, '2'],
      // These Nodes lack the labels that kubelet sets.
      [{ nodeSelector: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': 'worker-3' } }, '3'],
    ])('%j', async (podSpec, expected) => {
      expect((await nodesOf(podSpec)).used).toBe(expected);
      expect((await nodesOf(podSpec, 'Deployment')).used).toBe(expected);
    });

    test.each([
      [{ nodeSelector: { disk: 'nvme' } }, 'disk=nvme'],
      [affinity(term('disk', 'In', 'nvme', 'tape'), term('cores', 'Gt', '64')), 'disk in (nvme,tape) or cores>64'],
      [{ nodeSelector: { disk: 'ssd' }, ...affinity(term('cores', 'In', '16')) }, 'disk=ssd,cores=16'],
    ])(
      '%j, which no Node meets: there are no Pods, as the same finding of compile, lint and describe says',
      async (podSpec, wanted) => {
        for (const kind of ['DaemonSet', 'Deployment']) {
          const objects = [service('web'), workload(kind, 'web', {}, { pod: podSpec }), ...nodes];
          expect((await run(assume, ...objects)).pods).toEqual({});
          for (const command of ['lint', 'describe']) {
            const { stdout } = await runKpc([command, '-', '--output', 'json'], { stdin: inputOf(...objects) });
            const found = findingsOf(stdout).filter(
              ({ code }) => code === 'no-node-fits' || code === 'selects-nothing',
            );
            expect(found).toMatchObject([
              { arguments: { services: ['default/web'], owner: `${kind} default/web`, wanted } },
            ]);
          }
        }
      },
    );

    test('leave endpoints unknown, not empty, if no Node suits them: no verdict rests on that', async () => {
      const podSpec = { nodeSelector: { disk: 'nvme' } };
      const stdin = inputOf(service('web'), workload('Deployment', 'web', {}, { pod: podSpec }), ...nodes);
      const packet = ['--from', 'pod', '--to', 'svc/web:80', '--node', 'worker-1', '--output', 'json'];
      const traced = await runKpc(['trace', '-', ...packet], { stdin });
      expect(resultOf(traced.stdout)).toMatchObject({ traces: [{ verdict: 'unknown' }] });
      const migrated = await runKpc(['migrate', '-', '--output', 'json'], { stdin });
      expect(findingsOf(migrated.stdout, 'bad-call')).toMatchObject([{ arguments: { problem: 'nothing-known' } }]);
    });

    test.each([
      [{ nodeSelector: { disk: 'nvme' }, ...affinity(term('disk', 'Exists')) }, '"nvme"'],
      [{ nodeSelector: { disk: 'ssd' }, ...affinity(term('disk', 'In', 'nvme')) }, '{"nodeSelectorTerms"'],
    ])('%j: the place is what no Node meets, where both ask for one label', async (podSpec, start) => {
      const text = inputOf(service('web'), workload('Deployment', 'web', {}, { pod: podSpec }), ...nodes);
      const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: text });
      const [found] = findingsOf(stdout, 'no-node-fits');
      const { line = 0, column = 0 } = found?.place ?? {};
      const written = text.split('\n')[line - 1] ?? '';
      expect(written.slice(column - 1).startsWith(start)).toBe(true);
    });

    test('are as they were for assumed Nodes', async () => {
      const objects = [service('web'), workload('Deployment', 'web', {}, { pod: { nodeSelector: { disk: 'nvme' } } })];
      const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: inputOf(...objects) });
      expect(findingsOf(stdout, 'assumed')).toMatchObject([{ arguments: { unplaced: ['Deployment default/web'] } }]);
    });
  });

  describe('an autoscaler', () => {
    const autoscaler = (spec: object, kind = 'Deployment') => ({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'web' },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind, name: 'web' }, ...spec },
    });

    test.each([
      [{}, { minReplicas: 3, maxReplicas: 9 }, 3],
      [{}, { maxReplicas: 9 }, 1],
      [{ replicas: 2 }, { minReplicas: 3, maxReplicas: 9 }, 3],
      [{ replicas: 5 }, { minReplicas: 3, maxReplicas: 9 }, 5],
      [{ replicas: 12 }, { minReplicas: 3, maxReplicas: 9 }, 9],
    ])('of a Deployment of %j: %j', async (spec, own, expected) => {
      const found = await counts(service('web'), workload('Deployment', 'web', spec), autoscaler(own));
      expect(found).toEqual({ 'Deployment default/web': expected });
    });

    test('leaves a Deployment of no replicas, and another workload of the name', async () => {
      const scaler = autoscaler({ minReplicas: 3, maxReplicas: 9 });
      expect(await counts(service('web'), workload('Deployment', 'web', { replicas: 0 }), scaler)).toEqual({});
      expect(await counts(service('web'), workload('StatefulSet', 'web'), scaler)).toEqual({
        'StatefulSet default/web': 1,
      });
    });
  });

  test.each([
    ['Deployment', { replicas: 0 }, 'no-ready-endpoint'],
    ['StatefulSet', { replicas: 0 }, 'no-ready-endpoint'],
    ['Job', { suspend: true }, 'selects-nothing'],
  ])('%s with %o has none, which the same finding of compile and of lint says', async (kind, spec, code) => {
    const objects = [service('web'), workload(kind, 'web', spec)];
    const { pods, stderr } = await run(assume, ...objects);
    expect(pods).toEqual({});
    const codes = ['no-ready-endpoint', 'selects-nothing'];
    expect(codes.filter((each) => stderr.includes(`[${each}]`))).toEqual([code]);
    const linted = await runKpc(['lint', '-', '--output', 'json'], { stdin: inputOf(...objects) });
    expect(findingsOf(linted.stdout).map((each) => each.code)).toEqual([code]);
  });

  describe('Pods that the input may not show are the same finding of compile, lint and trace', () => {
    const prometheus = {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'Prometheus',
      metadata: { name: 'k8s' },
      spec: { replicas: 1 },
    };
    const gateway = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'k8s' },
      spec: { gatewayClassName: 'x', listeners: [] },
    };
    const wordsOf = ({ text, severity, help }: ReturnType<typeof findingsOf>[number]) => ({ text, severity, help });
    const kafka = (labels: object) => service('kafka', { selector: { app: 'kafka', ...labels } });

    test.each([
      ['made for a custom resource', [service('prom'), workload('Deployment', 'web'), prometheus], 'Prometheus'],
      ['made for a Gateway', [service('prom'), workload('Deployment', 'web'), gateway], 'Gateway default/k8s makes'],
      ['labelled at run time', [kafka({ id: '0' }), workload('StatefulSet', 'kafka')], 'a program sets id=0'],
    ])('%s', async (_, objects, condition) => {
      const stdin = inputOf(...objects);
      const [linted, described] = await Promise.all(
        [
          ['lint', '-'],
          ['describe', '-'],
        ].map((args) => runKpc([...args, '--output', 'json'], { stdin })),
      );
      const found = [linted, described].map((each) => findingsOf(each?.stdout ?? ''));
      const own = found.map((all) => all.filter(({ code }) => code === 'selects-nothing'));
      expect(own[0]).toMatchObject([{ severity: 'note' }]);
      expect(own[1]?.map(wordsOf)).toEqual(own[0]?.map(wordsOf));
      const to = condition.startsWith('a program') ? 'kafka' : 'prom';
      const traced = await runKpc(['trace', '-', '--from', 'external', '--to', to], { stdin });
      expect(traced.stdout.split('\n').find((line) => line.startsWith('  refused'))).toContain(condition);
    });

    test('lint says nothing if the selector names the custom resource, and others say that it makes the Pods', async () => {
      const objects = [service('k8s'), workload('Deployment', 'web'), prometheus];
      const linted = await runKpc(['lint', '-', '--output', 'json'], { stdin: inputOf(...objects) });
      expect(findingsOf(linted.stdout)).toEqual([]);
      const { status } = await run([...assume, '--strict'], ...objects);
      expect(status).toBe(0);
    });
  });

  test('a Job that is over has none', async () => {
    const over = { status: { conditions: [{ type: 'Complete', status: 'True' }] } };
    expect(await counts(service('web'), { ...workload('Job', 'web'), ...over })).toEqual({});
  });

  test('a kind that has the name of a workload is named with its version', async () => {
    const old = { ...workload('Deployment', 'web'), apiVersion: 'apps/v1alpha1' };
    expect((await run(assume, service('web'), old)).stderr).toContain('1 Deployment of apps/v1alpha1');
  });

  test('a CronJob is ignored, with the reason', async () => {
    const cron = { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'web' }, spec: {} };
    const { stderr } = await run(assume, service('web'), cron);
    expect(stderr).toMatch(/1 CronJob; CronJob .*\[skipped-kinds\]/);
  });

  test('bare Pods without a status', async () => {
    const bare = { ...pod('bare', ''), status: {} };
    const pinned = { ...pod('pinned', '', { spec: { nodeName: 'worker-2' } }), status: undefined as never };
    const { pods } = await run(assume, service('web'), bare, pinned, node(1), node(2));
    expect(Object.keys(pods)).toEqual(['Pod default/bare', 'Pod default/pinned']);
    expect(pods['Pod default/pinned']?.[0]).toMatch(/ worker-2$/);
  });

  test('what helm runs beside a release has none, but for what goes on', async () => {
    const hooked = (object: Manifest): Manifest => ({
      ...object,
      metadata: { ...(object['metadata'] as object), annotations: { 'helm.sh/hook': 'test' } },
    });
    const bare: Manifest = { ...pod('bare', ''), status: undefined };
    expect(await counts(service('web'), bare, workload('Job', 'web'))).toEqual({
      'Job default/web': 1,
      'Pod default/bare': 1,
    });
    expect(await counts(service('web'), hooked(bare), hooked(workload('Job', 'web')))).toEqual({});
    expect(await counts(service('web'), hooked(workload('Deployment', 'web')))).toEqual({
      'Deployment default/web': 1,
    });
  });

  test('what another object of the input controls does not count beside it', async () => {
    const labels = { app: 'web', 'pod-template-hash': '5d8' };
    const objects = [
      service('web'),
      workload('Deployment', 'web', { replicas: 2 }),
      workload(
        'ReplicaSet',
        'web',
        { replicas: 2 },
        { metadata: { name: 'web-5d8', labels, ...ownedBy('Deployment', 'web') } },
      ),
    ];
    const owned = {
      ...pod('web-5d8-x', '', { metadata: { labels, ...ownedBy('ReplicaSet', 'web-5d8') } }),
      status: {},
    };
    expect(await counts(...objects, owned)).toEqual({ 'Deployment default/web': 2 });
    const alone = workload('ReplicaSet', 'web', { replicas: 2 });
    expect(await counts(service('web'), alone, owned)).toEqual({
      'ReplicaSet default/web': 2,
      'Pod default/web-5d8-x': 1,
    });
  });

  test('Pods with a status win over the workload that they belong to', async () => {
    const labels = { app: 'web', 'pod-template-hash': '5d8' };
    const real = pod('web-5d8-x', '10.244.1.1', { metadata: { labels, ...ownedBy('ReplicaSet', 'web-5d8') } });
    const { pods, stderr } = await run(assume, service('web'), workload('Deployment', 'web', { replicas: 9 }), real);
    expect(pods).toEqual({});
    expect(stderr).toMatch(/note: .*\[endpoints-from-pods\]/);
  });

  test('Services that the input holds slices of keep them', async () => {
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [],
    };
    expect(await counts(service('web'), workload('Deployment', 'web'), slice)).toEqual({});
  });

  test('two that leave their names to the API server are two', async () => {
    const metadata = { name: undefined, generateName: 'web-' };
    const found = await run(
      assume,
      service('web'),
      workload('Job', 'web', {}, { metadata }),
      workload('Job', 'web', { parallelism: 2 }, { metadata }),
    );
    expect(
      Object.values(found.pods)
        .map(({ length }) => length)
        .toSorted(),
    ).toEqual([1, 2]);
  });

  test('a StatefulSet gives its Pods names, and labels by which a Service finds one', async () => {
    const selector = { 'statefulset.kubernetes.io/pod-name': 'db-6' };
    const spec = { replicas: 3, ordinals: { start: 5 }, serviceName: 'dns' };
    const { pods } = await run(assume, service('db', { selector }), workload('StatefulSet', 'db', spec));
    expect(pods['StatefulSet default/db']?.map((text) => text.split(' ')[0])).toEqual(['db-6']);
    const headless = service('dns', { clusterIP: 'None', selector: { app: 'db' } });
    const args = ['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'services', '--allow-empty', ...assume];
    const { stdout } = await runKpc(args, { stdin: inputOf(headless, workload('StatefulSet', 'db', spec)) });
    const { services } = JSON.parse(stdout) as { services: { headlessEndpoints: { hostname: string }[] }[] };
    expect(services[0]?.headlessEndpoints.map(({ hostname }) => hostname).toSorted()).toEqual(['db-5', 'db-6', 'db-7']);
  });

  test('without the flag nothing is assumed, and the warning names the flag', async () => {
    const { assumed, stderr } = await run([], service('web'), workload('Deployment', 'web'));
    expect(assumed).toBeUndefined();
    expect(stderr).toMatch(/\[no-endpoints-given\][^]*?\n {2}help: .*--assume-endpoints/);
    expect(stderr).toMatch(/note: .*: 1 Deployment \[skipped-kinds\]/);
    expect((await run([], service('web'), { ...pod('a', ''), status: {} })).stderr).toContain(': --assume-endpoints');
    expect((await run([], service('web'))).stderr).not.toContain('--assume-endpoints');
  });

  test('more Pods than a cluster has are refused', async () => {
    const { status, stderr } = await run(assume, service('web'), workload('Deployment', 'web', { replicas: 2e9 }));
    expect(status).toBe(2);
    expect(stderr).toMatch(/error: .*2000000000 .*150000\b.*\[too-many-pods\]/);
  });
});

describe('addresses', () => {
  const addressesOf = ({ assumed }: Result): string[] =>
    (assumed ?? []).flatMap(({ pods }) => pods.flatMap(({ addresses }) => addresses));
  const isIn = (text: string, ...networks: readonly string[]): boolean =>
    networks.some((each) => contains(parseNetwork(each) as never, parseAddress(text) as never));

  test('come from the Nodes, over which the Pods are spread', async () => {
    const spread = await run(
      ['--assume-endpoints'],
      service('web'),
      workload('Deployment', 'web', { replicas: 4 }),
      node(1),
      node(2),
    );
    const pods = spread.assumed?.[0]?.pods ?? [];
    expect(pods.filter(({ node: on }) => on === 'worker-1')).toHaveLength(2);
    expect(pods.filter(({ node: on }) => on === 'worker-2')).toHaveLength(2);
    for (const { node: on, addresses } of pods) {
      expect(isIn(addresses[0] ?? '', `10.244.${on?.at(-1)}.0/24`)).toBe(true);
    }
  });

  test.each([
    [['--assume-endpoints'], ['--cluster-cidr', '10.1.0.0/16'], '10.1.0.0/16'],
    [['--assume-endpoints', '10.2.0.0/16'], ['--cluster-cidr', '10.1.0.0/16'], '10.2.0.0/16'],
    [['--assume-endpoints=10.2.0.0/16'], [], '10.2.0.0/16'],
  ])('%o with %o', async (flag, more, network) => {
    const found = await run([...flag, ...more], service('web'), workload('Deployment', 'web', { replicas: 5 }));
    const addresses = addressesOf(found);
    expect(new Set(addresses).size).toBe(5);
    expect(addresses.every((address) => isIn(address, network))).toBe(true);
  });

  test("the flag's network wins over a Node's outside of it", async () => {
    const objects = [service('web'), workload('Deployment', 'web'), node(1)];
    expect(isIn(addressesOf(await run(['--assume-endpoints=10.9.0.0/16'], ...objects))[0] ?? '', '10.9.0.0/16')).toBe(
      true,
    );
    expect(isIn(addressesOf(await run(assume, ...objects))[0] ?? '', '10.244.1.0/24')).toBe(true);
  });

  test('of both families', async () => {
    const dual = { clusterIPs: ['10.96.0.10', 'fd00:96::10'], ipFamilies: ['IPv4', 'IPv6'] };
    const objects = [service('web', dual), workload('Deployment', 'web', { replicas: 2 })];
    const both = await run(['--assume-endpoints=10.244.0.0/16,fd00:244::/56'], ...objects);
    for (const { addresses } of both.assumed?.[0]?.pods ?? []) {
      expect(isIn(addresses[0] ?? '', '10.244.0.0/16')).toBe(true);
      expect(isIn(addresses[1] ?? '', 'fd00:244::/56')).toBe(true);
    }
    expect((await run(assume, ...objects)).stderr).toMatch(/IPv6 .*\[no-pod-address\]/);
  });

  test('Pods on the host network have that of their Node', async () => {
    const host = workload('DaemonSet', 'web', {}, { pod: { hostNetwork: true } });
    const { pods } = await run(assume, service('web'), host, node(1), node(2));
    expect(pods['DaemonSet default/web']).toEqual([
      'web-worker-1 192.168.50.11 worker-1',
      'web-worker-2 192.168.50.12 worker-2',
    ]);
    const without = await run(assume, service('web'), host);
    expect(without.pods).toEqual({});
    expect(without.stderr).toMatch(/warning: .*default\/web-0.*\[no-pod-address\]/);
  });

  test('nothing that the input holds is given away', async () => {
    const taken = Array.from({ length: 60 }, (_, i) =>
      pod(`p-${i}`, `10.244.0.${i + 2}`, { metadata: { labels: {} } }),
    );
    const small = ['--assume-endpoints=10.244.0.0/26'];
    const found = await run(small, service('web'), workload('Deployment', 'web'), ...taken);
    expect(addressesOf(found)).toEqual(['10.244.0.62']);
    const full = await run(small, service('web'), workload('Deployment', 'web', { replicas: 2 }), ...taken);
    expect(full.status).toBe(2);
    expect(full.stderr).toMatch(/error: .*default\/web-1: .*10\.244\.0\.0\/26 .*\[range-is-full\]/);
  });

  test('without any network there is an error, but not for Pods that no Service looks for', async () => {
    const { status, stderr } = await run(['--assume-endpoints'], service('web'), workload('Deployment', 'web'));
    expect(status).toBe(2);
    expect(stderr).toMatch(/^error: .*\[no-pod-address\]/);
    expect((await run(['--assume-endpoints'], service('web'), workload('Deployment', 'db'))).status).toBe(0);
  });

  test('a value that is no network, and a flag before a file', async () => {
    expect((await run(['--assume-endpoints=10.244.0.0'], service('web'))).stderr).toContain(
      '--assume-endpoints cannot be "10.244.0.0"',
    );
    const file = join(scratch, 'one.json');
    writeFileSync(file, inputOf(service('web'), workload('Deployment', 'web'), node(1)));
    const diff = await runKpc(['diff', '--rules', '--proxy-mode', 'ipvs', '--assume-endpoints', file, file]);
    expect(diff).toMatchObject({ status: 0, stdout: expect.stringMatching(/^No difference\./) as string });
  });
});

describe('addresses stay', () => {
  const names = [
    'adservice',
    'cart',
    'checkout',
    'currency',
    'email',
    'frontend',
    'payment',
    'products',
    'web',
    'redis',
  ];

  test.each([
    ['two Nodes', [node(1), node(2)]],
    ['no Node', []],
  ])('one replica more, or some, moves no other Pod: %s', async (_, nodes) => {
    const compile = (replicas: Readonly<Record<string, number>>): Promise<Result> => {
      const objects = names.flatMap((name) => [
        service(name, { clusterIP: 'None' }),
        workload('Deployment', name, { replicas: replicas[name] ?? 2 }),
      ]);
      return run(assume, ...objects, ...nodes);
    };
    const before = await compile({});
    expect(Object.keys(before.pods)).toHaveLength(names.length);
    for (const name of names) {
      for (const replicas of [3, 5, 8]) {
        const after = await compile({ [name]: replicas });
        for (const [of, pods] of Object.entries(before.pods)) expect(after.pods[of]?.slice(0, 2)).toEqual(pods);
        expect(after.pods[`Deployment default/${name}`]).toHaveLength(replicas);
      }
    }
  });

  test('nor does the first replica of a workload that had none', async () => {
    const compile = (replicas: number): Promise<Result> => {
      const objects = names.flatMap((name, i) => [
        service(name, { clusterIP: 'None' }),
        workload('Deployment', name, { replicas: i === 0 ? replicas : 3 }),
      ]);
      return run(['--assume-endpoints=10.244.0.0/24'], ...objects);
    };
    const [none, one] = [await compile(0), await compile(1)];
    expect(Object.keys(none.pods)).toHaveLength(names.length - 1);
    expect(one.pods).toMatchObject(none.pods);
  });

  test('the order of the input has no say', async () => {
    const objects = [...names.map((name) => workload('Deployment', name, { replicas: 3 })), node(1), node(2), node(3)];
    const services = names.map((name) => service(name, { clusterIP: 'None' }));
    const one = await run(assume, ...services, ...objects);
    expect(await run(assume, ...objects.toReversed(), ...services.toReversed())).toEqual(one);
  });

  test('full networks are filled to the last address', async () => {
    const small = ['--assume-endpoints=10.244.0.0/24'];
    const found = await run(small, service('web'), workload('Deployment', 'web', { replicas: 253 }));
    expect(new Set(found.pods['Deployment default/web']).size).toBe(253);
  });
});

describe('what a pull request shows', () => {
  const write = (name: string, ...objects: readonly Manifest[]): string => {
    const file = join(scratch, name);
    writeFileSync(file, inputOf(...objects));
    return file;
  };
  const web = service('web', { ports: [{ port: 80, targetPort: 'http' }] });
  const three = workload('Deployment', 'web', { replicas: 3 });
  const flags = ['--proxy-mode', 'ipvs', ...assume];
  const before = write('before.json', web, three);
  const golden = join(scratch, 'golden');

  const changes: readonly (readonly [string, readonly Manifest[], readonly string[]])[] = [
    ['replicas 3 to 5', [web, workload('Deployment', 'web', { replicas: 5 })], ['endpoints 3 → 5', '+ 2 real servers']],
    [
      'a changed target port',
      [
        web,
        workload(
          'Deployment',
          'web',
          { replicas: 3 },
          { pod: { containers: [{ name: 'c', image: 'x', ports: [{ name: 'http', containerPort: 9090 }] }] } },
        ),
      ],
      [':9090 added', ':8080 removed'],
    ],
    [
      'a selector that matches nothing',
      [service('web', { ports: [{ port: 80, targetPort: 'http' }], selector: { app: 'wep' } }), three],
      ['endpoints 3 → 0', '[selects-nothing]'],
    ],
  ];

  test.each(changes)('%s, in a diff and in a golden folder', async (name, objects, texts) => {
    const after = write(`${name.replaceAll(' ', '-')}.json`, ...objects);
    const diff = await runKpc(['diff', '--rules', before, after, ...flags]);
    expect(diff.status).toBe(1);
    for (const text of texts) expect(`${diff.stdout}${diff.stderr}`).toContain(text);
    expect((await runKpc(['compile', '-f', before, ...flags, '-o', golden])).status).toBe(0);
    expect((await runKpc(['compile', '-f', before, ...flags, '--check', golden])).status).toBe(0);
    const check = await runKpc(['compile', '-f', after, ...flags, '--check', golden]);
    expect(check.status).toBe(1);
    for (const text of texts) expect(check.stderr).toContain(text);
  });

  test('all of it is called assumed: in the note, the manifest, services.json and describe', async () => {
    const out = join(scratch, 'bundle');
    const { stderr } = await runKpc(['compile', '-f', before, ...flags, '-o', out]);
    expect(stderr.match(/\[assumed-endpoints\]/g)).toHaveLength(1);
    expect(stderr).toContain(
      'note: 3 ready Pods and their addresses are assumed: 3 of Deployment default/web; manifest.json in a bundle lists them all [assumed-endpoints]',
    );
    const manifest = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as { assumedEndpoints: object[] };
    expect(manifest.assumedEndpoints).toMatchObject([
      { workload: 'Deployment default/web', pods: [{ name: 'web-0' }, { name: 'web-1' }, { name: 'web-2' }] },
    ]);
    expect(readFileSync(join(out, 'services.json'), 'utf8').match(/"assumed":true/g)).toHaveLength(3);
    for (const from of [
      ['-f', before, ...flags],
      ['-f', out],
    ]) {
      const described = await runKpc(['describe', 'web', ...from]);
      expect(described.stdout.match(/used \(assumed\)/g)).toHaveLength(3);
    }
    const json = await runKpc(['describe', 'web', '-f', out, '--output', 'json']);
    expect(json.stdout.match(/"assumed": true/g)).toHaveLength(3);
  });

  test('real Pods leave no word of it', async () => {
    const { stdout } = await runKpc(['compile', '-f', '-', ...flags], { stdin: inputOf(web, pod('a', '10.244.1.1')) });
    expect(stdout).not.toContain('assumed');
  });
});
