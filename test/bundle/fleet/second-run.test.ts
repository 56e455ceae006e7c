import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { FleetFolder, type NodeFiles } from '../../../src/bundle/fleet/fleet-folder.ts';
import type { RawObjects } from '../../../src/input/objects/validate.ts';
import { readTree } from '../../support/read-tree.ts';
import { triesAll } from '../../support/rounds.ts';
import { runKpc } from '../../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-second-run-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folders = 0;
const freshPath = () => join(scratch, `out-${++folders}`);

type Objects = ReturnType<typeof makeObjects>;

/** Two nodes in two zones; a Service with a node port and endpoints on both, and one that few fields are set of. */
function makeObjects() {
  const node = (name: string, zone: string, address: string) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } as Record<string, string>, resourceVersion: '1' },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      addresses: [{ type: 'InternalIP', address }],
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }],
      nodeInfo: { kubeletVersion: 'v1.35.0' },
    },
  });
  const endpoint = (address: string, nodeName: string, zone: string) => ({
    addresses: [address],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName,
    zone,
    hints: { forZones: [{ name: zone }] } as object | undefined,
  });
  return {
    node1: node('node-1', 'east', '192.168.0.1'),
    node2: node('node-2', 'west', '192.168.0.2'),
    service: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'shop', annotations: {} as Record<string, string> },
      spec: {
        type: 'LoadBalancer',
        clusterIP: '10.96.0.10',
        clusterIPs: ['10.96.0.10'],
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30080 }],
        externalIPs: ['203.0.113.1'],
        loadBalancerSourceRanges: ['198.51.100.0/24'],
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: 32000,
      } as Record<string, unknown>,
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } },
    },
    slice: {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [endpoint('10.0.0.1', 'node-1', 'east'), endpoint('10.0.1.1', 'node-2', 'west')],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    },
    cidr: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'ServiceCIDR',
      metadata: { name: 'kubernetes' },
      spec: { cidrs: ['10.96.0.0/16'] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
  };
}

interface Change {
  readonly name: string;
  readonly change?: (objects: Objects) => void;
  readonly flags?: readonly string[];
  /** How many of the two nodes have another bundle then. */
  readonly written: number;
}

const spec = (fields: Readonly<Record<string, unknown>>) => (objects: Objects) => {
  Object.assign(objects.service.spec, fields);
};
const first = (fields: object) => (objects: Objects) => {
  Object.assign(objects.slice.endpoints[0] ?? {}, fields);
};

const changes: readonly Change[] = [
  { name: 'nothing', written: 0 },
  // What a node says of itself every few minutes.
  {
    name: "a node's heartbeat",
    written: 0,
    change: ({ node1 }) =>
      Object.assign(node1.status.conditions[0] ?? {}, { lastHeartbeatTime: '2026-02-02T00:00:00Z' }),
  },
  { name: "a node's resourceVersion", written: 0, change: ({ node1 }) => (node1.metadata.resourceVersion = '2') },
  {
    name: "a node's address",
    written: 1,
    change: ({ node1 }) => Object.assign(node1.status.addresses[0] ?? {}, { address: '192.168.0.7' }),
  },
  {
    name: "a node's zone",
    written: 1,
    change: ({ node2 }) => (node2.metadata.labels['topology.kubernetes.io/zone'] = 'east'),
  },
  { name: "a node's podCIDR", written: 1, change: ({ node2 }) => (node2.spec.podCIDR = '10.0.7.0/24') },
  {
    name: "a node's release",
    written: 1,
    flags: ['--kubernetes-version', 'auto'],
    change: ({ node2 }) => (node2.status.nodeInfo.kubeletVersion = 'v1.31.0'),
  },
  { name: 'a cluster IP', written: 2, change: spec({ clusterIP: '10.96.0.11', clusterIPs: ['10.96.0.11'] }) },
  {
    name: 'a port',
    written: 2,
    change: spec({ ports: [{ name: 'http', port: 81, protocol: 'TCP', targetPort: 8080, nodePort: 30080 }] }),
  },
  {
    name: 'a node port',
    written: 2,
    change: spec({ ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30081 }] }),
  },
  { name: 'external IPs', written: 2, change: spec({ externalIPs: ['203.0.113.2'] }) },
  { name: 'source ranges', written: 2, change: spec({ loadBalancerSourceRanges: ['198.51.100.0/25'] }) },
  { name: 'affinity', written: 2, change: spec({ sessionAffinity: 'ClientIP' }) },
  { name: 'the internal policy', written: 2, change: spec({ internalTrafficPolicy: 'Local' }) },
  { name: 'the external policy', written: 2, change: spec({ externalTrafficPolicy: 'Cluster' }) },
  { name: 'the health check port', written: 2, change: spec({ healthCheckNodePort: 32001 }) },
  {
    name: 'an ingress address',
    written: 2,
    change: ({ service }) => (service.status.loadBalancer.ingress = [{ ip: '203.0.113.8' }]),
  },
  {
    name: 'the scheduler of a Service',
    written: 2,
    change: ({ service }) => (service.metadata.annotations['kpc.dev/ipvs-scheduler'] = 'wrr'),
  },
  { name: 'the Service', written: 2, change: ({ service }) => (service.metadata.name = 'shop') },
  { name: "an endpoint's address", written: 2, change: first({ addresses: ['10.0.0.2'] }) },
  { name: "an endpoint's node", written: 2, change: first({ nodeName: 'node-2' }) },
  { name: "an endpoint's zone", written: 2, change: first({ zone: 'north' }) },
  { name: "an endpoint's readiness", written: 2, change: first({ conditions: { ready: false } }) },
  {
    name: 'an endpoint that ends',
    written: 2,
    change: first({ conditions: { ready: false, serving: true, terminating: true } }),
  },
  { name: "an endpoint's hints", written: 2, change: first({ hints: undefined }) },
  {
    name: "a slice's port",
    written: 2,
    change: ({ slice }) => (slice.ports = [{ name: 'http', port: 8081, protocol: 'TCP' }]),
  },
  {
    name: 'the range of cluster IPs, which only rules of nftables name',
    written: 2,
    flags: ['--proxy-mode', 'nftables'],
    change: ({ cidr }) => (cidr.spec.cidrs = ['10.96.0.0/17']),
  },
];

/** A kind of object, in two inputs beside what makeObjects gives. */
interface KindChange {
  readonly before: readonly object[];
  readonly after: readonly object[];
  readonly flags?: readonly string[];
  /** How many of how many nodes have another bundle then. */
  readonly written: number;
  readonly nodes?: number;
}

const extraService = (name: string, fields: object) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  spec: { clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20'], ports: [{ port: 80, targetPort: 8080 }], ...fields },
});

const endpointsAt = (ip: string) => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'mainframe', namespace: 'shop' },
  subsets: [{ addresses: [{ ip }], ports: [{ port: 8080 }] }],
});

const podAt = (ip: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'api-1', namespace: 'shop', labels: { app: 'api' } },
  spec: { nodeName: 'node-1', containers: [{ name: 'api', image: 'nginx' }] },
  status: { phase: 'Running', podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
});

const deploymentOf = (replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'api', namespace: 'shop' },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'api' } },
    template: { metadata: { labels: { app: 'api' } }, spec: { containers: [{ name: 'api', image: 'nginx' }] } },
  },
});

const autoscalerOf = (minReplicas: number) => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'api', namespace: 'shop' },
  spec: { scaleTargetRef: { kind: 'Deployment', name: 'api' }, minReplicas, maxReplicas: 9 },
});

const configOf = (scheduler: string) => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  ipvs: { scheduler },
});

const cidrOf = (name: string, cidr: string) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  metadata: { name },
  spec: { cidrs: [cidr] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

/** One for each kind that kpc compile reads: a kind more does not compile without a change of it here. */
const kindChanges: {
  readonly [
    Kind in Exclude<
      keyof RawObjects,
      | 'PacketTests'
      | 'NetworkPolicy'
      | 'ClusterPolicy'
      | 'Ingress'
      | 'Route'
      | 'Gateway'
      | 'ReferenceGrant'
      | 'Namespace'
    >
  ]: KindChange;
} = {
  Service: { before: [], after: [extraService('api', {})], written: 2 },
  EndpointSlice: {
    before: [],
    after: [
      {
        ...makeObjects().slice,
        metadata: { ...makeObjects().slice.metadata, name: 'web-2' },
        endpoints: [{ addresses: ['10.0.0.9'] }],
      },
    ],
    written: 2,
  },
  Endpoints: {
    before: [extraService('mainframe', {}), endpointsAt('10.9.0.1')],
    after: [extraService('mainframe', {}), endpointsAt('10.9.0.2')],
    written: 2,
  },
  Node: {
    before: [],
    after: [{ ...makeObjects().node2, metadata: { name: 'node-3' } }],
    flags: ['--prune'],
    written: 1,
    nodes: 3,
  },
  ServiceCIDR: {
    before: [],
    after: [cidrOf('more', '10.97.0.0/16')],
    flags: ['--proxy-mode', 'nftables'],
    written: 2,
  },
  Pod: {
    before: [extraService('api', { selector: { app: 'api' } }), podAt('10.0.0.7')],
    after: [extraService('api', { selector: { app: 'api' } }), podAt('10.0.0.8')],
    written: 2,
  },
  Workload: {
    before: [extraService('api', { selector: { app: 'api' } }), deploymentOf(2)],
    after: [extraService('api', { selector: { app: 'api' } }), deploymentOf(3)],
    flags: ['--assume-endpoints'],
    written: 2,
  },
  Autoscaler: {
    before: [extraService('api', { selector: { app: 'api' } }), deploymentOf(2)],
    after: [extraService('api', { selector: { app: 'api' } }), deploymentOf(2), autoscalerOf(3)],
    flags: ['--assume-endpoints'],
    written: 2,
  },
  KubeProxyConfiguration: { before: [configOf('rr')], after: [configOf('wrr')], written: 2 },
};

const options: readonly (readonly string[])[] = [
  ['--proxy-mode', 'iptables'],
  ['--kubernetes-version', '1.31'],
  ['--ip-family', 'dual'],
  ['--masquerade-all'],
  ['--cluster-cidr', '10.0.0.0/8'],
  ['--nodeport-addresses', '192.168.0.2/32'],
  ['--ipvs-scheduler', 'wrr'],
  ['--ipvs-strict-arp'],
  ['--ipvs-tcp-timeout', '5m'],
  ['--iptables-masquerade-bit', '15'],
  ['--kubernetes-version', '1.34', '--feature-gates', 'PreferSameTrafficDistribution=false'],
];

function writeInput(objects: Objects | readonly object[]): string {
  const path = `${freshPath()}.json`;
  writeFileSync(
    path,
    Object.values(objects)
      .map((object) => JSON.stringify(object))
      .join('\n'),
  );
  return path;
}

async function compileFleet(input: string, out: string, flags: readonly string[]): Promise<string> {
  const mode = flags.includes('--proxy-mode') ? [] : ['--proxy-mode', 'ipvs'];
  const { status, stderr } = await runKpc(['compile', '-f', input, '--all-nodes', ...mode, ...flags, '-o', out]);
  expect(status, stderr).toBe(0);
  return stderr;
}

/** Compiles one input, then another into the same folder, which has to be what the second alone gives. */
async function compileTwice(before: readonly [string, readonly string[]], after: readonly [string, readonly string[]]) {
  const [out, fresh] = [freshPath(), freshPath()];
  await compileFleet(before[0], out, before[1]);
  const said = await compileFleet(after[0], out, after[1]);
  await compileFleet(after[0], fresh, after[1]);
  expect(readTree(out)).toEqual(readTree(fresh));
  return said;
}

/** Kinds of which `npm test` tries the way back, too: an object that goes, and a Node. */
const undone: ReadonlySet<string> = new Set(['Service', 'Node']);

describe('a second run for all nodes', () => {
  test.each(changes)('after a change of $name writes $written nodes', async ({ change, flags = [], written }) => {
    const objects = makeObjects();
    const input = writeInput(objects);
    change?.(objects);
    const said = await compileTwice([input, flags], [writeInput(objects), flags]);
    expect(said).toContain(`2 nodes: ${written} written, ${2 - written} unchanged`);
  });

  test.each(Object.entries(kindChanges))('finds a changed %s, and the change undone', async (kind, change) => {
    const { before, after, flags = [], written, nodes = 2 } = change;
    const inputOf = (more: readonly object[]) => writeInput([...Object.values(makeObjects()), ...more]);
    const [one, other] = [inputOf(before), inputOf(after)];
    const said = await compileTwice([one, flags], [other, flags]);
    expect(said).toContain(`${nodes} nodes: ${written} written, ${nodes - written} unchanged`);
    if (!triesAll && !undone.has(kind)) return;
    // A Node less leaves the bundles of the others as they are.
    const back = nodes === 2 ? written : 0;
    expect(await compileTwice([other, flags], [one, flags])).toContain(
      `2 nodes: ${back} written, ${2 - back} unchanged`,
    );
  });

  test.each(options)('with %s %s writes what that alone gives', async (...flags) => {
    const input = writeInput(makeObjects());
    const isUndone = triesAll || flags.includes('--proxy-mode');
    for (const [before, after] of [[[], flags] as const, ...(isUndone ? [[flags, []] as const] : [])])
      expect(await compileTwice([input, before], [input, after])).not.toContain('0 written');
  });

  test('takes the addresses of each node into account', async () => {
    const input = writeInput(makeObjects());
    const hosts = (address: string) => {
      const folder = freshPath();
      const link = { ifname: 'eth0', addr_info: [{ family: 'inet', local: address, prefixlen: 24 }] };
      return { folder, text: JSON.stringify([link]) };
    };
    const before = hosts('192.168.0.1');
    const after = hosts('192.168.0.9');
    for (const { folder, text } of [before, after]) {
      cpSync(scratchFolder(), folder, { recursive: true });
      writeFileSync(join(folder, 'node-1.json'), text);
      writeFileSync(join(folder, 'node-2.json'), before.text);
    }
    const said = await compileTwice(
      [input, ['--host-addresses', before.folder]],
      [input, ['--host-addresses', after.folder]],
    );
    expect(said).toContain('1 written, 1 unchanged');
  });

  test.each<[string, (node: string) => void]>([
    [
      'a file has other bytes',
      (node) =>
        writeFileSync(join(node, 'ip.batch'), readFileSync(join(node, 'ip.batch'), 'utf8').replace('ipvs0', 'ipvs1')),
    ],
    ['a file is missing', (node) => rmSync(join(node, 'sysctl.conf'))],
    [
      'the manifest has other bytes',
      (node) => writeFileSync(join(node, 'manifest.json'), `${readFileSync(join(node, 'manifest.json'), 'utf8')} `),
    ],
    [
      'a file is that of another node, and the manifest too',
      (node) => {
        for (const name of readdirSync(node)) {
          rmSync(join(node, name));
          copyFileSync(join(node, '..', 'node-2', name), join(node, name));
        }
      },
    ],
    ['the stamp is missing', (node) => rmSync(join(node, '..', '.compiled', 'node-1~'))],
    ['the stamp is another', (node) => writeFileSync(join(node, '..', '.compiled', 'node-1~'), '0'.repeat(64))],
    ['the stamp is long', (node) => writeFileSync(join(node, '..', '.compiled', 'node-1~'), '0'.repeat(1e6))],
    ['the folder is missing', (node) => rmSync(node, { recursive: true })],
  ])('mends a node of which %s', async (_, harm) => {
    const input = writeInput(makeObjects());
    const [out, fresh] = [freshPath(), freshPath()];
    for (const folder of [out, fresh]) await compileFleet(input, folder, []);
    harm(join(out, 'node-1'));
    await compileFleet(input, out, []);
    expect(readTree(out)).toEqual(readTree(fresh));
    expect(await compileFleet(input, out, [])).toContain('0 written, 2 unchanged');
  });

  test('leaves the files of an unchanged node alone', async () => {
    const input = writeInput(makeObjects());
    const out = freshPath();
    await compileFleet(input, out, []);
    const before = statSync(join(out, 'node-1', 'manifest.json')).ino;
    await compileFleet(input, out, []);
    expect(statSync(join(out, 'node-1', 'manifest.json')).ino).toBe(before);
  });

  test('makes no bundle of an unchanged node, and one of each other', async () => {
    const out = freshPath();
    let made = 0;
    const make = (): NodeFiles => {
      made++;
      return { files: new Map([['manifest.json', '{"formatVersion": 1, "files": {}}']]), digests: {} };
    };
    expect(await new FleetFolder(out).write('a', make, 'inputs')).toBe('written');
    expect(await new FleetFolder(out).write('a', make, 'inputs')).toBe('unchanged');
    expect(made).toBe(1);
    expect(await new FleetFolder(out).write('a', make, 'others')).toBe('unchanged');
    expect(made).toBe(2);
  });
});

function scratchFolder(): string {
  return mkdtempSync(join(scratch, 'hosts-'));
}
