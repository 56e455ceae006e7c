// Packets on a node that nothing names, of several in the input: what all of them do, or unknown.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { equivalence, trace, type TraceOptions } from '../../src/library/index.ts';
import { costInMegabytes } from '../support/cpu-time.ts';
import { resultOf } from '../support/printed-json.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';

interface Placed {
  readonly address: string;
  readonly node: string;
  readonly zone?: string;
  readonly conditions?: object;
}

function nodes(zones: readonly string[]): readonly object[] {
  return zones.map((zone, i) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `n${i + 1}`, labels: zone === '' ? {} : { 'topology.kubernetes.io/zone': zone } },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.50.${i + 11}` }] },
  }));
}

function service(spec: object, endpoints: readonly Placed[]): readonly object[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { type: 'NodePort', clusterIP: '10.96.0.1', ports: [{ port: 80, nodePort: 30080 }], ...spec },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ port: 80 }],
      endpoints: endpoints.map(({ address, node, zone, conditions }) => ({
        addresses: [address],
        nodeName: node,
        conditions,
        ...(zone === undefined ? {} : { zone, hints: { forZones: [{ name: zone }] } }),
      })),
    },
  ];
}

const manifestsOf = (objects: readonly object[]) => ({
  'in.yaml': objects.map((each) => JSON.stringify(each)).join('\n---\n'),
});

const here = { address: '10.244.1.10', node: 'n1' };
const there = { address: '10.244.2.10', node: 'n2' };
const local = { internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' };

function ask(objects: readonly object[], asked: Partial<TraceOptions>, proxyMode: ProxyMode) {
  const found = trace({
    manifests: manifestsOf(objects),
    from: 'node',
    to: 'svc/web',
    proxyMode,
    ...asked,
  } as TraceOptions);
  const [only] = found.trace?.traces ?? [];
  return { verdict: only?.verdict, endpoints: only?.endpoints.map(({ address }) => address), reasons: only?.reasons };
}

const open = { verdict: 'unknown', endpoints: [], reasons: [{ kind: 'missing-flag', command: 'node n1' }] };

describe.each(['iptables', 'ipvs', 'nftables'] as const)('in %s mode', (mode) => {
  test('policy Local depends on the node, and is known of each', () => {
    const objects = [...nodes(['', '']), ...service(local, [here, there])];
    expect(ask(objects, {}, mode)).toMatchObject(open);
    expect(ask(objects, { node: 'n2' }, mode)).toMatchObject({ verdict: 'delivered', endpoints: [there.address] });
  });

  test('one of three nodes that differs is enough', () => {
    const objects = [...nodes(['', '', '']), ...service(local, [{ ...here, node: 'n3' }])];
    // In IPVS mode, nodes without an endpoint use those of others.
    expect(ask(objects, {}, mode)).toMatchObject({ verdict: mode === 'ipvs' ? 'delivered' : 'unknown' });
  });

  test('what all nodes do alike is known', () => {
    const objects = [...nodes(['', '']), ...service({}, [here, there])];
    expect(ask(objects, {}, mode)).toMatchObject({ verdict: 'delivered' });
    expect(ask(objects, { to: '10.96.0.1:81' }, mode).verdict).not.toBe('unknown');
    expect(ask([...nodes(['', '']), ...service(local, [])], {}, mode).verdict).not.toBe('unknown');
  });

  test('zones: unknown if they differ, those of the nodes if they do not', () => {
    const endpoints = [
      { ...here, zone: 'a' },
      { ...there, zone: 'b' },
    ];
    const spec = { trafficDistribution: 'PreferClose' };
    expect(ask([...nodes(['a', 'b']), ...service(spec, endpoints)], {}, mode)).toMatchObject(open);
    // Also where the first two nodes of a class are alike.
    expect(ask([...nodes(['a', 'a', 'b']), ...service(spec, endpoints)], {}, mode)).toMatchObject({
      verdict: 'unknown',
    });
    expect(ask([...nodes(['b', 'b']), ...service(spec, endpoints)], {}, mode)).toMatchObject({
      verdict: 'delivered',
      endpoints: [there.address],
    });
  });

  test('the address of a Node is its own alone', () => {
    const objects = [...nodes(['', '']), ...service({}, [here, there])];
    const asked = { from: 'external', to: '192.168.50.11:22' };
    expect(ask(objects, asked, mode)).toMatchObject({ verdict: 'unknown' });
    expect(ask(objects, { ...asked, node: 'n1' }, mode)).toMatchObject({ verdict: 'local' });
  });
});

describe('commands', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'kpc-any-node-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  const write = (name: string, objects: readonly object[]) =>
    writeFileSync(join(scratch, name), manifestsOf(objects)['in.yaml']);
  const describePort = async (file: string, args: readonly string[]) => {
    const call = ['describe', 'web', file, '--proxy-mode', 'iptables', '--output', 'json', ...args];
    const { services } = resultOf((await runKpc(call, { cwd: scratch })).stdout) as {
      readonly services: readonly { readonly ports: readonly { readonly families: readonly object[] }[] }[];
    };
    return services[0]?.ports[0]?.families[0];
  };
  write('old.yaml', [...nodes(['', '']), ...service(local, [here, there])]);
  write('new.yaml', [...nodes(['', '']), ...service(local, [here, { ...there, node: 'n1' }])]);
  writeFileSync(
    join(scratch, 't.yaml'),
    'inputs: old.yaml\nmode: iptables\ntests: [{ from: node, to: svc/web, expect: dropped }]\n',
  );

  test('kpc test does not pass where it depends on the node', async () => {
    const { status, stdout } = await runKpc(['test', 't.yaml', '-q', '--output', 'json'], { cwd: scratch });
    expect([status, resultOf(stdout)]).toMatchObject([
      1,
      { tests: [{ passed: false, trace: { verdict: 'unknown' } }] },
    ]);
  });

  test('a comparison counts such packets as not known, and names the flag', async () => {
    const call = ['diff', 'old.yaml', 'new.yaml', '-q', '--proxy-mode', 'iptables', '--output', 'json'];
    const compare = async (...more: readonly string[]) =>
      resultOf((await runKpc([...call, ...more], { cwd: scratch })).stdout) as { readonly unknown?: number };
    const [any, named] = [await compare(), await compare('--node', 'n2')];
    expect(any.unknown).toBeGreaterThan(named.unknown ?? 0);
  });

  test.each([
    ['describe', ['describe', 'web', 'old.yaml']],
    ['trace', ['trace', 'old.yaml', '--from', 'node', '--to', 'svc/web']],
    ['test', ['test', 't.yaml']],
    ['diff', ['diff', 'old.yaml', 'new.yaml']],
    ['compile', ['compile', 'old.yaml', '--output', 'json']],
  ])('%s reports that no node is named, once', async (_, call) => {
    const { stdout, stderr } = await runKpc([...call, '--proxy-mode', 'iptables'], { cwd: scratch });
    expect(`${stdout}${stderr}`.match(/\[no-node\]/g)).toHaveLength(1);
  });

  test('kpc describe says what all nodes share, and where an endpoint is used', async () => {
    write('zones.yaml', [
      ...nodes(['a', 'b']),
      ...service({ trafficDistribution: 'PreferClose', externalTrafficPolicy: 'Local' }, [
        { ...here, zone: 'a' },
        { ...there, zone: 'b' },
      ]),
    ]);
    const portOf = (args: readonly string[]) => describePort('zones.yaml', args);
    const use = { cluster: 'as-hinted', local: 'on-its-node' };
    expect(await portOf([])).toMatchObject({ endpoints: [use, use] });
    expect(await portOf([])).not.toHaveProperty('fallback');
    expect(await portOf([])).not.toHaveProperty('unboundHints');
    expect(await portOf(['--node', 'n1'])).toMatchObject({
      endpoints: [
        { cluster: 'ready', local: 'ready' },
        { cluster: 'other-zone-hinted', local: 'other-node' },
      ],
    });
  });

  test('kpc describe says why no node uses an endpoint as the node of the endpoint sees it', async () => {
    const terminating = {
      address: '10.244.2.11',
      node: 'n2',
      conditions: { ready: false, serving: true, terminating: true },
    };
    write('terminating.yaml', [...nodes(['', '']), ...service(local, [here, there, terminating])]);
    expect(await describePort('terminating.yaml', [])).toMatchObject({
      endpoints: [{ local: 'on-its-node' }, { local: 'on-its-node' }, { local: 'terminating' }],
    });
  });

  test('very many Nodes are asked by class', async () => {
    const many = Array.from({ length: triesAll ? 3000 : 1000 }, () => '');
    const all = many.map((_, i) => ({ address: `10.${i >> 8}.${i & 255}.1`, node: `n${i + 1}` }));
    const objects = [
      ...nodes(many).map((node, i) => ({
        ...node,
        status: { addresses: [{ type: 'InternalIP', address: `172.16.${i >> 8}.${i & 255}` }] },
      })),
      ...service(local, all),
    ];
    const cost = await costInMegabytes(() => {
      expect(ask(objects, {}, 'nftables')).toMatchObject({ verdict: 'unknown' });
    });
    expect(cost).toBeLessThan(triesAll ? 8 : 1.5);
  });

  test('a comparison of all nodes knows them', () => {
    const manifests = manifestsOf([...nodes(['', '']), ...service(local, [here, there])]);
    const compared = { manifests, from: 'iptables', to: 'nftables' } as const;
    const [one, all] = [equivalence({ ...compared, allNodes: false }), equivalence(compared)];
    expect(one.report?.unknown).toBeGreaterThan(all.report?.unknown ?? 0);
  });
});
