import { describe, expect, test } from 'vitest';
import { runKpc } from '../../support/run-kpc.ts';
import { inputOf, node, pod, service, type Manifest } from './cluster-objects.ts';

interface Result {
  /** "address:port", with what is not as usual of an endpoint behind it. */
  readonly endpoints: readonly string[];
  readonly stderr: string;
}

/** The endpoints of the Service web in the services.json that results from the objects. */
async function endpointsOf(...objects: readonly Manifest[]): Promise<Result> {
  const args = ['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'services', '--ip-family', 'dual'];
  const { status, stdout, stderr } = await runKpc(args, { stdin: inputOf(...objects) });
  expect(status, stderr).toBe(0);
  const { servicePorts } = JSON.parse(stdout) as {
    servicePorts: readonly { readonly endpoints: readonly Record<string, unknown>[] }[];
  };
  const endpoints = servicePorts.flatMap((port) =>
    port.endpoints.map(({ address, port: number, ...rest }) => {
      const more = Object.entries(rest).map(([key, value]) => `${key} ${String(value)}`);
      return [`${String(address)}:${String(number)}`, ...more].join(', ');
    }),
  );
  return { endpoints, stderr };
}

describe('which Pods are endpoints', () => {
  test('states of Pods', async () => {
    const { endpoints } = await endpointsOf(
      service('web'),
      pod('ready', '10.244.1.1'),
      pod('not-ready', '10.244.1.2', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
      pod('no-condition', '10.244.1.3', { status: { conditions: [] } }),
      pod('going', '10.244.1.4', { metadata: { deletionTimestamp: '2026-01-02T03:04:05Z' } }),
      pod('succeeded', '10.244.1.5', { status: { phase: 'Succeeded' } }),
      pod('failed', '10.244.1.6', { status: { phase: 'Failed' } }),
      pod('no-address', '10.244.1.7', { status: { podIPs: [] } }),
      pod('other', '10.244.1.8', { metadata: { labels: { app: 'db' } } }),
      pod('elsewhere', '10.244.1.9', { metadata: { namespace: 'shop' } }),
    );
    expect(endpoints).toEqual([
      '10.244.1.1:8080, node worker-1',
      '10.244.1.2:8080, node worker-1, ready false, serving false',
      '10.244.1.3:8080, node worker-1, ready false, serving false',
      '10.244.1.4:8080, node worker-1, ready false, terminating true',
    ]);
  });

  test('publishNotReadyAddresses', async () => {
    const { endpoints } = await endpointsOf(
      service('web', { publishNotReadyAddresses: true }),
      pod('not-ready', '10.244.1.2', { status: { conditions: [] } }),
      pod('unscheduled', '10.244.1.3', { spec: { nodeName: '' } }),
    );
    expect(endpoints).toEqual(['10.244.1.2:8080, node worker-1, serving false', '10.244.1.3:8080']);
  });

  test('podIP alone, and podIP where podIPs says otherwise', async () => {
    const { endpoints } = await endpointsOf(
      service('web'),
      pod('one', '', { status: { podIP: '10.244.1.1', podIPs: [] } }),
      pod('two', '10.244.1.9', { status: { podIP: '10.244.1.2' } }),
    );
    expect(endpoints).toEqual(['10.244.1.1:8080, node worker-1', '10.244.1.2:8080, node worker-1']);
  });

  test('of two addresses of a family the first as text counts', async () => {
    const podIPs = [{ ip: '10.244.1.9' }, { ip: '10.244.1.10' }];
    expect((await endpointsOf(service('web'), pod('two', '', { status: { podIPs } }))).endpoints).toEqual([
      '10.244.1.10:8080, node worker-1',
    ]);
  });

  test('a Service that is being deleted gets none', async () => {
    const metadata = { deletionTimestamp: '2026-01-02T03:04:05Z' };
    expect((await endpointsOf(service('web', {}, metadata), pod('a', '10.244.1.1'))).endpoints).toEqual([]);
  });

  test('each family gets the addresses of its own', async () => {
    const both = { podIPs: [{ ip: '10.244.1.1' }, { ip: 'fd00:244:1::1' }] };
    const dual = { clusterIPs: ['10.96.0.10', 'fd00:96::10'], ipFamilies: ['IPv4', 'IPv6'] };
    const { endpoints } = await endpointsOf(
      service('web', dual),
      pod('both', '', { status: both }),
      pod('ipv4', '10.244.1.2'),
    );
    expect(endpoints).toEqual([
      '10.244.1.1:8080, node worker-1',
      '10.244.1.2:8080, node worker-1',
      'fd00:244:1::1:8080, node worker-1',
    ]);
  });
});

describe('named target ports', () => {
  const named = (targetPort: string, protocol = 'TCP') =>
    service('web', { ports: [{ port: 80, targetPort, protocol }] });
  const container = (name: string, containerPort: number, more: object = {}) => ({
    name,
    image: 'x',
    ports: [{ name: 'http', containerPort, ...more }],
  });

  test('each Pod has its own number', async () => {
    const { endpoints } = await endpointsOf(
      named('http'),
      pod('old', '10.244.1.1', { spec: { containers: [container('c', 8080)] } }),
      pod('new', '10.244.1.2', { spec: { containers: [container('c', 9090)] } }),
      pod('none', '10.244.1.3'),
    );
    expect(endpoints).toEqual(['10.244.1.1:8080, node worker-1', '10.244.1.2:9090, node worker-1']);
  });

  test('of a sidecar, but not of an init container; containers come first', async () => {
    const sidecar = { ...container('s', 7070), restartPolicy: 'Always' };
    const { endpoints } = await endpointsOf(
      named('http'),
      pod('sidecar', '10.244.1.1', { spec: { containers: [], initContainers: [container('i', 1), sidecar] } }),
      pod('init', '10.244.1.2', { spec: { containers: [], initContainers: [container('i', 1)] } }),
      pod('both', '10.244.1.3', { spec: { containers: [container('c', 8080)], initContainers: [sidecar] } }),
    );
    expect(endpoints).toEqual(['10.244.1.1:7070, node worker-1', '10.244.1.3:8080, node worker-1']);
  });

  test('of the same protocol', async () => {
    const containers = [container('c', 53, { protocol: 'UDP' })];
    expect(
      (await endpointsOf(named('http', 'UDP'), pod('a', '10.244.1.1', { spec: { containers } }))).endpoints,
    ).toEqual(['10.244.1.1:53, node worker-1']);
    expect((await endpointsOf(named('http'), pod('a', '10.244.1.1', { spec: { containers } }))).endpoints).toEqual([]);
  });
});

describe('Nodes', () => {
  test('without any in the input, Pods are taken at their word', async () => {
    const { endpoints, stderr } = await endpointsOf(service('web'), pod('a', '10.244.1.1'));
    expect(endpoints).toEqual(['10.244.1.1:8080, node worker-1']);
    expect(stderr).not.toContain('unknown-node');
  });

  test('a Pod on a Node that is not among those in the input is left out, and so is one without', async () => {
    const { endpoints, stderr } = await endpointsOf(
      service('web'),
      node(1, 'east'),
      pod('a', '10.244.1.1'),
      pod('b', '10.244.2.1', { spec: { nodeName: 'worker-2' } }),
      pod('c', '10.244.3.1', { spec: { nodeName: '' } }),
    );
    expect(endpoints).toEqual(['10.244.1.1:8080, node worker-1, zone east']);
    expect(stderr).toContain(
      'warning: default/b, default/c are on no Node in the input (nodeName worker-2), so the endpointslice controller leaves them out [unknown-node-of-pod]',
    );
  });

  test('of Pods that name no Node it is said that they name none', async () => {
    const { stderr } = await endpointsOf(
      service('web'),
      node(1, 'east'),
      pod('c', '10.244.3.1', { spec: { nodeName: '' } }),
    );
    expect(stderr).toContain(
      'warning: default/c is on no Node in the input (no nodeName), so the endpointslice controller leaves it out [unknown-node-of-pod]',
    );
    expect(stderr).toMatch(/\[unknown-node-of-pod\][^]*?\n {2}help: ./);
  });
});

describe('hints', () => {
  const zones = [node(1, 'east'), node(2, 'west')];
  const pods = [pod('a', '10.244.1.1'), pod('b', '10.244.2.1', { spec: { nodeName: 'worker-2' } })];

  test.each([
    ['PreferClose', ['zoneHints east', 'zoneHints west']],
    ['PreferSameZone', ['zoneHints east', 'zoneHints west']],
    ['PreferSameNode', ['zoneHints east, nodeHints worker-1', 'zoneHints west, nodeHints worker-2']],
  ])('trafficDistribution %s', async (trafficDistribution, [first, second]) => {
    const { endpoints } = await endpointsOf(service('web', { trafficDistribution }), ...zones, ...pods);
    expect(endpoints).toEqual([
      `10.244.1.1:8080, node worker-1, zone east, ${first}`,
      `10.244.2.1:8080, node worker-2, zone west, ${second}`,
    ]);
  });

  const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
  const sized = (cpu: unknown) => [
    node(1, 'east', { status: { ...ready, allocatable: { cpu } } }),
    node(2, 'west', { status: { ...ready, allocatable: { cpu } } }),
  ];
  const auto = service('web', {}, { annotations: { 'service.kubernetes.io/topology-mode': 'Auto' } });

  test.each(['4', 4, '3920m', '4e0', '0.5'])('topology-mode Auto with %o CPUs each', async (cpu) => {
    const { endpoints } = await endpointsOf(auto, ...sized(cpu), ...pods);
    expect(endpoints.map((text) => /zoneHints \w+/.exec(text)?.[0])).toEqual(['zoneHints east', 'zoneHints west']);
  });

  test('topology-mode Auto moves endpoints to a zone that lacks them', async () => {
    const four = ['1', '2', '3', '4'].map((n) => pod(`p-${n}`, `10.244.1.${n}`));
    const { endpoints } = await endpointsOf(auto, ...sized('4'), ...four);
    expect(endpoints.filter((text) => text.includes('zoneHints west'))).toHaveLength(2);
    expect(endpoints.filter((text) => text.includes('zoneHints east'))).toHaveLength(2);
  });

  // A zone's share is rounded up, so that the smallest one keeps an endpoint of its own.
  test('topology-mode Auto gives an endpoint to a zone whose share is half of one', async () => {
    const nodes = [
      node(1, 'east', { status: { ...ready, allocatable: { cpu: 9 } } }),
      node(2, 'west', { status: { ...ready, allocatable: { cpu: 9 } } }),
      node(3, 'edge', { status: { ...ready, allocatable: { cpu: 2 } } }),
    ];
    const places = [1, 1, 1, 2, 2];
    const five = places.map((n, index) =>
      pod(`p-${index}`, `10.244.${n}.${index + 1}`, { spec: { nodeName: `worker-${n}` } }),
    );
    const { endpoints } = await endpointsOf(auto, ...nodes, ...five);
    const zonesOf = endpoints.map((text) => /zoneHints (\w+)/.exec(text)?.[1]);
    expect(zonesOf.toSorted()).toEqual(['east', 'east', 'edge', 'west', 'west']);
  });

  test.each([
    ['the CPUs are not known', [node(1, 'east', { status: ready }), node(2, 'west', { status: ready })]],
    ['there is one zone', [node(1, 'east', { status: { ...ready, allocatable: { cpu: 4 } } })]],
  ])('topology-mode Auto gives none where %s', async (_, nodes) => {
    const { endpoints } = await endpointsOf(auto, ...nodes, ...pods);
    expect(endpoints.join()).not.toContain('Hints');
  });
});

describe('which Services get slices of Pods', () => {
  const slice = (name: string) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-x`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ port: 1234 }],
    endpoints: [{ addresses: ['10.244.9.9'] }],
  });

  test('those that the input holds a slice or Endpoints of keep it, which is said once', async () => {
    const { endpoints, stderr } = await endpointsOf(service('web'), slice('web'), pod('a', '10.244.1.1'));
    expect(endpoints).toEqual(['10.244.9.9:1234']);
    expect(stderr.match(/endpoints-from-pods/g)).toHaveLength(1);
    expect(stderr).toMatch(/^note: 1 Service .*\[endpoints-from-pods\]/m);
    const own = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web' } };
    const subsets = [{ addresses: [{ ip: '10.244.9.8' }], ports: [{ port: 1234 }] }];
    const given = await endpointsOf(service('web'), { ...own, subsets }, pod('a', '10.244.1.1'));
    expect(given.endpoints).toEqual(['10.244.9.8:1234']);
  });

  test('where some keep theirs, the note names those that do not', async () => {
    const { stderr } = await endpointsOf(
      service('web'),
      service('db', { clusterIP: '10.96.0.11' }),
      slice('db'),
      pod('a', '10.244.1.1'),
    );
    expect(stderr).toContain(
      'note: the endpoints of default/web are made from the Pods in the input, as the endpointslice controller makes them; 1 Service uses the EndpointSlices or Endpoints in the input [endpoints-from-pods]',
    );
  });

  test('one without a selector is left alone', async () => {
    const { endpoints, stderr } = await endpointsOf(service('web', { selector: null }), pod('a', '10.244.1.1'));
    expect(endpoints).toEqual([]);
    expect(stderr).not.toContain('endpoints-from-pods');
  });

  test('a headless one too: DNS answers with its Pods', async () => {
    const args = ['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'services', '--allow-empty'];
    const spec = { hostname: 'a', subdomain: 'web' };
    const stdin = inputOf(service('web', { clusterIP: 'None' }), pod('a', '10.244.1.1', { spec }));
    const { stdout } = await runKpc(args, { stdin });
    expect(JSON.parse(stdout)).toMatchObject({
      services: [{ headlessEndpoints: [{ address: '10.244.1.1', hostname: 'a', ready: true }] }],
    });
  });

  test('a Pod without a status is a manifest: no endpoint is made of it', async () => {
    const { endpoints, stderr } = await endpointsOf(
      service('web'),
      pod('a', '10.244.1.1', { status: undefined as never }),
      { ...pod('b', ''), status: {} },
    );
    expect(endpoints).toEqual([]);
    expect(stderr).toContain('no-endpoints-given');
  });
});

describe('a selector that selects nothing', () => {
  const stderrOf = async (selector: object, labels: object, metadata: object = {}) =>
    (await endpointsOf(service('web', { selector }), pod('a', '10.244.1.1', { metadata: { labels, ...metadata } })))
      .stderr;

  test('is said, with what it looks for', async () => {
    const stderr = await stderrOf({ app: 'web' }, { job: 'backup' });
    expect(stderr).toContain(
      'default/web matches no Pod in the input (app=web), so it has no endpoints [selects-nothing]',
    );
  });

  test('an empty one takes all, and is said not to last', async () => {
    const { endpoints, stderr } = await endpointsOf(service('web', { selector: {} }), pod('a', '10.244.1.1'));
    expect(endpoints).toHaveLength(1);
    expect(stderr).toContain('[empty-selector]');
  });
});

describe('what the API server refuses', () => {
  const errorsOf = async (...objects: readonly Manifest[]) => {
    const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'ipvs'], {
      stdin: inputOf(service('web'), ...objects),
    });
    expect(run.status).toBe(2);
    return run.stderr;
  };

  test.each([
    [pod('a', '10.244.1.300'), 'ip cannot be "10.244.1.300" [bad-value]'],
    [pod('a', '127.0.0.1'), 'is a loopback address'],
    [pod('a', '10.244.1.1', { spec: { nodeName: 'Worker_1' } }), 'nodeName cannot be "Worker_1"'],
    [pod('a', '10.244.1.1', { metadata: { name: 'a b' } }), 'name cannot be "a b"'],
    [pod('a', '10.244.1.1', { metadata: { labels: { app: 1 } } }), 'app is the number 1, not a string'],
    [pod('a', '10.244.1.1', { status: { phase: 'Runing' } }), 'phase cannot be "Runing"'],
  ])('%#', async (object, text) => {
    expect(await errorsOf(object)).toContain(text);
  });

  test('two Pods of one name', async () => {
    expect(await errorsOf(pod('a', '10.244.1.1'), pod('a', '10.244.1.2'))).toContain('duplicate Pod default/a');
  });
});
