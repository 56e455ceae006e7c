// EndpointSlices that both sides give, although the Service changes in what the controller makes them from.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { remadeSlices, stalePortsOf } from '../../src/cluster/stale-slices.ts';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { sceneOfManifests } from '../support/manifest-scene.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const service = ({ app = 'web', port = 'http', target = 8080 }) =>
  `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, ${app && `selector: {app: ${app}}, `}ports: [{name: ${port}, port: 80, targetPort: ${target}}]}}\n---\n`;
const slice =
  '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.244.1.10], nodeName: n1}]}\n---\n';
const node =
  '{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDRs: [10.244.1.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.50.11}]}}\n---\n';
const pod = (ip: string) =>
  `{apiVersion: v1, kind: Pod, metadata: {name: web-0, labels: {app: web}}, spec: {nodeName: n1, containers: [{name: web}]}, status: {podIP: ${ip}, podIPs: [{ip: ${ip}}], conditions: [{type: Ready, status: "True"}]}}\n`;

const changes = [{ app: 'wob' }, { target: 9090 }, { port: 'web' }];

const read = (text: string) =>
  collectInputs({ files: [new TextFile('a.yaml', text)], diagnostics: [], unreadable: [] });

describe('slices are made again', () => {
  const remade = (before: string, after: string) => [...(remadeSlices(read(before), read(after)) ?? [])];
  const pods = pod('10.244.1.10');

  test.each(changes)('if both sides have the Pods: %j', (change) => {
    const [before, after] = [service({}) + slice, service(change) + slice];
    expect(remade(before + pods, after + pods)).toEqual(['default/web']);
    expect(remade(before, after)).toEqual([]);
    expect(remade(before + pod('10.244.1.11'), after + pods)).toEqual([]);
  });

  test.each([
    [
      'order',
      (text: string) =>
        text.replace(
          '{addresses: [10.244.1.10]',
          '{addresses: [10.244.1.11], nodeName: n1}, {addresses: [10.244.1.10]',
        ),
    ],
    ['note', (text: string) => text.replace('metadata: {name: web-1', 'metadata: {annotations: {a: b}, name: web-1')],
  ] as const)('also if only their %s differs', (what, change) => {
    const two = slice.replace('nodeName: n1}', 'nodeName: n1}, {addresses: [10.244.1.11], nodeName: n1}');
    const [given, pods2] =
      what === 'order' ? [two, pods + '---\n' + pod('10.244.1.11').replace('web-0', 'web-1')] : [slice, pods];
    const other = what === 'order' ? change(slice) : change(given);
    expect(remade(service({}) + given + pods2, service({ app: 'wob' }) + other + pods2)).toEqual(['default/web']);
  });

  test('not if they differ too, or if nothing makes them', () => {
    const others = slice.replace('10.244.1.10', '10.244.1.11');
    expect(remade(service({}) + slice + pods, service({ target: 9090 }) + others + pods)).toEqual([]);
    expect(remade(service({ app: '' }) + slice + pods, service({ app: '', target: 9090 }) + slice + pods)).toEqual([]);
    expect(remade(service({}) + slice + pods, service({}) + slice + pods)).toEqual([]);
  });
});

describe('ports are stale', () => {
  const https = '{name: https, port: 443, targetPort: 8443}';
  const given = slice.replace('port: 8080}', 'port: 8080}, {name: https, port: 8443}');
  const stateOf = (ports: string, spec = 'selector: {app: web}') =>
    `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, ${spec}, ports: [${ports}]}}\n---\n${given}${node}`;
  const sideOf = (text: string) => sceneOfManifests(text, 'n1').side;
  const stale = (before: string, after: string) => {
    const [from, to] = [sideOf(before), sideOf(after)];
    return [stalePortsOf(from, to), stalePortsOf(to, from)].map((ports) =>
      [...ports].map(([label, { fields }]) => `${label} ${fields.join()}`),
    );
  };
  const http = '{name: http, port: 80, targetPort: 8080}';
  const both = stateOf(`${http}, ${https}`);

  test.each([
    ['a port is gone', stateOf(http), []],
    ['a target port', stateOf(`${http.replace('8080', '8081')}, ${https}`), ['default/web:http targetPort']],
    ['a protocol', stateOf(`${http.replace('port', 'protocol: UDP, port')}, ${https}`), ['default/web:http protocol']],
    ['a name', stateOf(`${http.replace('http', 'web')}, ${https}`), ['default/web:web ports']],
    ['a port more', stateOf(`${http}, ${https}, {name: x, port: 1}`), ['default/web:x ports']],
    ['a number in a name', stateOf(`${http.replace('8080', 'http')}, ${https}`), ['default/web:http targetPort']],
  ])('only on the side that the slices do not fit: %s', (_, changed, expected) => {
    expect(stale(both, changed)).toEqual([[], expected]);
    expect(stale(changed, both)).toEqual([expected, []]);
  });

  test.each([
    ['selector', 'selector: {app: wob}'],
    ['publishNotReadyAddresses', 'selector: {app: web}, publishNotReadyAddresses: true'],
    ['trafficDistribution', 'selector: {app: web}, trafficDistribution: PreferClose'],
  ])('on both sides, by %s', (field, spec) => {
    const all = [`default/web:http ${field}`, `default/web:https ${field}`];
    expect(stale(both, stateOf(`${http}, ${https}`, spec))).toEqual([all, all]);
  });
});

describe('a workload makes the slices', () => {
  const workload = (replicas: number, { app = 'web', version = '1' } = {}) =>
    `---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: ${replicas}, selector: {matchLabels: {}}, template: {metadata: {labels: {app: ${app}, version: "${version}"}}, spec: {containers: [{name: web, image: web}]}}}}\n`;
  const cwd = mkdtempSync(join(tmpdir(), 'kpc-stale-workload-'));
  afterAll(() => rmSync(cwd, { recursive: true }));

  test.each([
    ['scaled down', workload(0), 1],
    ['scaled up', workload(3), 1],
    ['with labels that no longer match', workload(2, { app: 'wob' }), 1],
    ['deleted', '', 1],
    ['with a label that no Service selects', workload(2, { version: '2' }), 0],
  ])('that is %s', async (_, changed, count) => {
    writeFileSync(join(cwd, 'old.yaml'), service({}) + node + slice + workload(2));
    writeFileSync(join(cwd, 'new.yaml'), service({}) + node + slice + changed);
    for (const command of ['diff', 'equivalence']) {
      const { stdout } = await runKpc([command, 'old.yaml', 'new.yaml', '--output', 'json'], { cwd });
      const { notCompared } = resultOf(stdout);
      expect(notCompared.filter((each: string) => each.includes('fit only one side'))).toHaveLength(count);
    }
  });
});

describe('kpc diff', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'kpc-stale-'));
  afterAll(() => rmSync(cwd, { recursive: true }));

  const run = async (change: Parameters<typeof service>[0], objects: string) => {
    writeFileSync(join(cwd, 'old.yaml'), service({}));
    writeFileSync(join(cwd, 'new.yaml'), service(change));
    writeFileSync(join(cwd, 'cluster.yaml'), node + slice + objects);
    const { stdout } = await runKpc(['diff', '-f', 'cluster.yaml', 'old.yaml', 'new.yaml', '--output', 'json'], {
      cwd,
    });
    return resultOf(stdout) as {
      notCompared: readonly string[];
      packets: readonly { readonly severity: string }[];
      servicePorts: readonly { readonly reasons: readonly object[] }[];
      unknown: number;
    };
  };

  test.each(changes)('makes the slices again from Pods: %j', async (change) => {
    const { notCompared, packets, unknown } = await run(change, pod('10.244.1.10'));
    const severities = new Set(packets.map(({ severity }) => severity));
    const expected = change.app ? ['breaks'] : change.target ? ['changes'] : [];
    expect({ notCompared, unknown, severities: [...severities] }).toEqual({
      notCompared: [],
      unknown: 0,
      severities: expected,
    });
  });

  test.each(changes)('claims nothing about packets without the Pods: %j', async (change) => {
    const { notCompared, packets, servicePorts } = await run(change, '');
    expect(new Set(packets.map(({ severity }) => severity))).toEqual(new Set(['unknown']));
    expect(packets).toMatchObject([{ lacks: expect.stringMatching('default/web fit only one side') as unknown }]);
    expect(notCompared).toEqual([expect.stringMatching(/^endpoints of default\/web.*EndpointSlices/)]);
    expect(servicePorts.flatMap(({ reasons }) => reasons)).toHaveLength(1);
  });

  const compare = async (command: 'diff' | 'equivalence', before: string, after: string) => {
    writeFileSync(join(cwd, 'from.yaml'), before + node + slice);
    writeFileSync(join(cwd, 'to.yaml'), after + node + slice);
    await runKpc(['compile', '-f', 'from.yaml', '--proxy-mode', 'nftables', '--golden', 'golden'], { cwd });
    const ofManifests = await runKpc([command, 'from.yaml', 'to.yaml'], { cwd });
    return [ofManifests.status, (await runKpc([command, 'golden', 'to.yaml'], { cwd })).status];
  };

  test.each(['diff', 'equivalence'] as const)(
    'and kpc equivalence fail alike, also beside a golden: %s',
    async (command) => {
      expect(await compare(command, service({}), service({}))).toEqual([0, 0]);
      expect(await compare(command, service({}), service({ target: 9090 }))).toEqual([1, 1]);
      expect(await compare(command, service({}), service({ app: 'wob' }))).toEqual([1, 1]);
      for (const spec of ['publishNotReadyAddresses: true', 'trafficDistribution: PreferClose']) {
        const after = service({}).replace('selector', `${spec}, selector`);
        expect(await compare(command, service({}), after)).toEqual([1, 1]);
      }
    },
  );
});

describe('the commands that show packets give the answer that is named', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'kpc-shown-'));
  afterAll(() => rmSync(cwd, { recursive: true }));
  const given = slice + node;

  interface Printed {
    readonly packets: readonly {
      readonly from: string;
      readonly to: string;
      readonly shownBy?: 'old' | 'new';
      readonly trace: string;
    }[];
  }

  const packetsOf = async (before: string, after: string) => {
    writeFileSync(join(cwd, 'from.yaml'), before);
    writeFileSync(join(cwd, 'to.yaml'), after);
    const words = ['diff', 'from.yaml', 'to.yaml', '--proxy-mode', 'nftables', '--output', 'json'];
    return (resultOf((await runKpc(words, { cwd })).stdout) as unknown as Printed).packets;
  };

  test.each([
    [
      'slices are made again',
      service({}) + given + pod('10.244.1.10'),
      service({ app: 'wob' }) + given + pod('10.244.1.10'),
    ],
    [
      'each side has its own',
      service({}) + given,
      service({ target: 9090 }) + given.replaceAll('8080', '9090').replace('1.10]', '1.11]'),
    ],
  ])('%s', async (_, before, after) => {
    const packets = await packetsOf(before, after);
    expect(packets).not.toEqual([]);
    for (const { trace, shownBy = 'new', ...ends } of packets) {
      const { stdout } = await runKpc([...trace.split(' ').slice(1), '--output', 'json'], { cwd });
      const { traces } = resultOf(stdout) as { readonly traces: readonly { readonly verdict: string }[] };
      const [named] = ends[shownBy === 'old' ? 'from' : 'to'].split(' ');
      expect({ trace, verdict: traces.map(({ verdict }) => verdict) }).toEqual({ trace, verdict: [named] });
    }
  });

  test('none is named where no side alone gives it', async () => {
    const packets = await packetsOf(service({}) + given, service({ target: 9090 }) + given);
    expect(packets.map(({ shownBy, trace }) => [shownBy, trace.startsWith('kpc')])).toEqual([[undefined, false]]);
  });
});
