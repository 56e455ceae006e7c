import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { DifferenceJson } from '../../src/say/differences.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-node-wide-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Written {
  readonly addresses?: readonly string[];
  readonly config?: object;
  /** The Services' cluster IPs. */
  readonly services?: readonly string[];
}

function write(name: string, { addresses, config, services = ['10.96.10.1'] }: Written): string {
  const objects = [
    {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      clusterCIDR: '10.244.0.0/16',
      ...config,
    },
    ...(addresses
      ? [
          {
            apiVersion: 'v1',
            kind: 'Node',
            metadata: { name: 'n1' },
            spec: { podCIDR: '10.244.1.0/24' },
            status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
          },
        ]
      : []),
    ...services.flatMap((clusterIP, i) => [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `s${i}` },
        spec: { type: 'NodePort', clusterIP, ports: [{ port: 80, nodePort: 30080 + i }] },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: `s${i}`, labels: { 'kubernetes.io/service-name': `s${i}` } },
        addressType: 'IPv4',
        ports: [{ port: 80 }],
        endpoints: [{ addresses: [`10.244.${1 + Math.trunc(i / 250)}.${(i % 250) + 1}`], nodeName: 'n1' }],
      },
    ]),
  ];
  const file = join(scratch, `${name}.json`);
  writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

async function differences(from: string, to: string): Promise<DifferenceJson & { readonly status: number | null }> {
  const { status, stdout } = await runKpc(['diff', from, to, '--node', 'n1', '--output', 'json']);
  return { ...(resultOf(stdout) as DifferenceJson), status };
}

const own = '192.168.50.11';
const other = '203.0.113.11';

describe('what every Service port shares', () => {
  test('an address of the node that is gone differs, and so do the packets to node ports there', async () => {
    const found = await differences(
      write('two', { addresses: [own, other], config: { mode: 'iptables' } }),
      write('one', { addresses: [own], config: { mode: 'iptables' } }),
    );
    expect(found).toMatchObject({ status: 1, differs: true, servicePorts: [] });
    expect(found.base).toEqual([{ kind: 'address', change: 'removed', link: 'node', address: other }]);
    expect(found.packets?.find(({ target }) => target === 'node-port')).toMatchObject({
      severity: 'breaks',
      services: ['default/s0'],
      example: { to: `${other}:30080` },
    });
  });

  test.for(['ipvs', 'iptables', 'nftables'])(
    '%s: a trace is named only on the side that alone gives that answer',
    async (mode) => {
      const config = { mode };
      const [from, to] = [
        write(`${mode}-was`, { addresses: [own], config }),
        write(`${mode}-is`, { addresses: [other], config }),
      ];
      const { packets } = await differences(from, to);
      const lost = packets?.find(({ target, example }) => target === 'node-port' && example.to.startsWith(own));
      expect(lost).toMatchObject({ severity: 'breaks', shownBy: 'old' });
    },
  );

  test("the Nodes that one side alone has are both sides'", async () => {
    const found = await differences(
      write('known', { addresses: [own], config: { mode: 'iptables' } }),
      write('unknown', { config: { mode: 'iptables' } }),
    );
    expect(found).toMatchObject({ status: 0, differs: false, base: [], notCompared: [] });
  });

  test.for([
    ['nftables', { nodePortAddresses: ['primary'] }, { nodePortAddresses: ['10.0.0.0/8'] }, 'node-port', 'breaks'],
    ['iptables', { nodePortAddresses: ['primary'] }, { nodePortAddresses: ['10.0.0.0/8'] }, 'node-port', 'breaks'],
    ['nftables', {}, { nftables: { masqueradeAll: true } }, 'cluster-ip', 'changes'],
    ['iptables', {}, { iptables: { localhostNodePorts: false } }, 'node-port', 'breaks'],
  ] as const)('%s: %j → %j is traced', async ([mode, before, after, target, severity], { task: { id } }) => {
    const found = await differences(
      write(`${id}-old`, { addresses: [own], config: { mode, ...before } }),
      write(`${id}-new`, { addresses: [own], config: { mode, ...after } }),
    );
    expect(found).toMatchObject({ status: 1, servicePorts: [] });
    expect(found.packets?.map((each) => [each.target, each.severity])).toContainEqual([target, severity]);
  });

  test('of hundreds of Services that are alike, all are asked', async () => {
    const services = Array.from({ length: 420 }, (_, i) => `10.96.${10 + Math.trunc(i / 250)}.${(i % 250) + 1}`);
    const config = { mode: 'nftables' };
    const found = await differences(
      write('many-old', { addresses: [own], config, services }),
      write('many-new', { addresses: [own], config: { ...config, nodePortAddresses: ['10.0.0.0/8'] }, services }),
    );
    expect(found.notCompared).toEqual([expect.stringMatching(/^node ports of .*--host-addresses/)]);
    expect(new Set(found.packets?.flatMap((each) => each.services)).size).toBe(services.length);
  });
});

test("the first of a Service's families is its own: clusterIP has it", async () => {
  const of = (name: string, clusterIPs: readonly [string, string]) => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'both' },
      spec: {
        clusterIP: clusterIPs[0],
        clusterIPs,
        ipFamilies: clusterIPs.map((text) => (text.includes(':') ? 'IPv6' : 'IPv4')),
        ipFamilyPolicy: 'RequireDualStack',
        ports: [{ port: 80 }],
      },
    };
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      status: { addresses: [own, 'fd00:50::11'].map((address) => ({ type: 'InternalIP', address })) },
    };
    const file = join(scratch, `${name}.json`);
    writeFileSync(file, [service, node].map((object) => JSON.stringify(object)).join('\n---\n'));
    return file;
  };
  const [v4, v6] = ['10.96.10.1', 'fd00:96::10:1'];
  const [four, six] = [of('four', [v4, v6]), of('six', [v6, v4])];
  const found = await differences(four, six);
  expect(found).toMatchObject({ status: 1, servicePorts: [{ reasons: [{ kind: 'field', field: 'ipFamilies' }] }] });
  expect(await differences(four, four)).toMatchObject({ status: 0 });
});

test.each([
  ['another setting', ['0.0.0.0/0'], [own], undefined, true],
  ['the same networks, written otherwise', ['192.168.50.11/24'], [own], ['192.168.50.0/24'], false],
  ['addresses that the Node has', [`${own}/32`], [own], ['primary'], false],
  ['another address of the Node', ['primary'], ['192.168.50.99'], ['primary'], true],
])('node ports at addresses that no Node lists: %s', async (name, fresh, addresses, old, isNamed) => {
  const of = (nodePortAddresses: readonly string[] | undefined) => ({ mode: 'nftables', nodePortAddresses });
  const from = write(`${name}-old`, { addresses: [own], config: of(old) });
  const to = write(`${name}-new`, { addresses, config: of(fresh) });
  for (const command of ['diff', 'equivalence']) {
    const listing = [{ local: '127.0.0.1' }, ...addresses.map((local) => ({ local }))].map((each) => ({
      family: 'inet',
      prefixlen: 24,
      ...each,
    }));
    const hosts = join(scratch, 'hosts.json');
    writeFileSync(hosts, JSON.stringify([{ ifname: 'eth0', addr_info: listing }]));
    const compare = async (...flags: readonly string[]) => {
      const { stdout } = await runKpc([command, from, to, ...flags, '--output', 'json']);
      const { notCompared } = resultOf(stdout) as { readonly notCompared: readonly string[] };
      return notCompared.some((each) => each.startsWith('node ports of default/s0'));
    };
    expect(await compare()).toBe(isNamed);
    expect(await compare('--host-addresses', hosts)).toBe(false);
  }
});
