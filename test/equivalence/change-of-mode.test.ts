// What kpc migrate and kpc diff say of packets: of senders that exist, and with commands that show it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { planChange } from '../../src/ask/equivalence/change.ts';
import { runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-change-of-mode-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, ...documents: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, documents.join('\n---\n'));
  return path;
}

const service = (spec: string, status = '{}'): string =>
  `{ apiVersion: v1, kind: Service, metadata: { name: web, namespace: shop }, spec: { clusterIP: 10.96.0.80, ${spec} }, status: ${status} }`;
const endpoints = (...own: readonly string[]): string => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [${own.join(', ')}]`;
const endpoint = (address: string, node: string, more = ''): string =>
  `{ addresses: [${address}], nodeName: ${node}${more} }`;
const node = (number: number, more = ''): string =>
  `{ apiVersion: v1, kind: Node, metadata: { name: worker-${number} }, spec: { podCIDRs: [10.244.${number}.0/24] }, status: { addresses: [{ type: InternalIP, address: 192.168.50.1${number} }${more}] } }`;
const nodes = [node(1), node(2)];
const one = endpoint('10.244.1.10', 'worker-1');
const other = endpoint('10.244.2.10', 'worker-2');

describe('kpc diff', () => {
  const plain = service('ports: [{ port: 80 }]');
  const diff = async (before: readonly string[], after: readonly string[], ...flags: readonly string[]) => {
    const [from, to] = [write('before.yaml', ...before), write('after.yaml', ...after)];
    const mode = ['--proxy-mode', 'nftables', '--node', 'worker-1', '-q'];
    return (await runKpc(['diff', from, to, ...mode, ...flags])).stdout;
  };

  test('counts endpoints and their shares, and no pod of another node', async () => {
    const more = endpoints(one, other, endpoint('10.244.2.11', 'worker-2'));
    const printed = await diff([plain, endpoints(one, other), ...nodes], [plain, more, ...nodes]);
    expect(printed).toMatch(/cluster IP of shop\/web .*, from .*pods.* and the node: 2 → 3 endpoints, 33\.3% each\n/);
    // No client outside is to ask for a cluster IP.
    expect(printed).not.toMatch(/lost|other nodes|outside/);
  });

  test('says how many endpoints are new where their number stays', async () => {
    const moved = endpoints(one, endpoint('10.244.2.77', 'worker-2'));
    const printed = await diff([plain, endpoints(one, other), ...nodes], [plain, moved, ...nodes]);
    expect(printed).toContain('2 endpoints, 1 of them new: 10.244.2.77:8080, 50% each');
  });

  test('a new Service has no packets from endpoints elsewhere', async () => {
    const printed = await diff(nodes, [plain, endpoints(other), ...nodes]);
    expect(printed).toContain('left to routing → delivered');
    expect(printed).not.toMatch(/an endpoint of the Service|→ dropped/);
  });

  test('names the source range that clients are in', async () => {
    const balanced = (ranges: string): string =>
      service(
        `type: LoadBalancer, ports: [{ port: 80, nodePort: 30080 }], loadBalancerSourceRanges: [${ranges}]`,
        '{ loadBalancer: { ingress: [{ ip: 198.51.100.9 }] } }',
      );
    const slice = endpoints(one, other);
    const printed = await diff(
      [balanced('203.0.113.0/24'), slice, ...nodes],
      [balanced('203.0.113.0/24, 192.0.2.0/25'), slice, ...nodes],
    );
    expect(printed).toContain('from a client in 192.0.2.0/25: dropped → delivered');
  });

  test('names no source range for node ports, which ranges do not bind', async () => {
    const balanced = (fields: string): string =>
      service(
        `type: LoadBalancer, ports: [{ port: 80, nodePort: 30080 }]${fields}`,
        '{ loadBalancer: { ingress: [{ ip: 198.51.100.9 }] } }',
      );
    const local = ', externalTrafficPolicy: Local, loadBalancerSourceRanges: [203.0.113.0/24]';
    const slice = endpoints(other);
    const printed = await diff([balanced(''), slice, ...nodes], [balanced(local), slice, ...nodes]);
    const [atNodePort] = /^.*node port of shop\/web.*$/m.exec(printed) ?? [];
    expect(atNodePort).toMatch(/from outside\b.*: delivered → dropped/);
    expect(atNodePort).not.toContain('203.0.113.0');
    expect(printed).toMatch(/load balancer address of .*a client in 203\.0\.113\.0\/24/);
  });

  test('says in Markdown what becomes of packets, before the rules', async () => {
    const balanced = service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]');
    const printed = await diff(
      [balanced, endpoints(one), ...nodes],
      [plain, endpoints(one), ...nodes],
      '--output',
      'markdown',
    );
    const packets = printed.indexOf('### Packets on worker-1');
    expect(printed.slice(packets)).toMatch(
      /^- \*\*worse\*\*: node port of shop\/web .*: delivered → left to the node itself$/m,
    );
    expect(packets).toBeGreaterThan(0);
    expect(printed.indexOf('<details>')).toBeGreaterThan(packets);
  });

  test('has the same packets in JSON', async () => {
    const printed = await diff(
      [plain, endpoints(one), ...nodes],
      [plain, endpoints(one, other), ...nodes],
      '--output',
      'json',
    );
    const { packets } = resultOf(printed) as { readonly packets: readonly Record<string, unknown>[] };
    expect(packets).toContainEqual(
      expect.objectContaining({
        services: ['shop/web'],
        target: 'cluster-ip',
        choice: expect.objectContaining({ kept: 1, to: { endpoints: 2, least: 0.5, most: 0.5 } }),
        trace: expect.stringContaining('kpc trace '),
      }),
    );
  });

  test('says whose address endpoints see where that changes with their number', async () => {
    const nodePort = (spec: string): string => service(`type: NodePort, ${spec}ports: [{ port: 80, nodePort: 30080 }]`);
    const slice = endpoints(one, other);
    const printed = await diff(
      [nodePort(''), slice, ...nodes],
      [nodePort('externalTrafficPolicy: Local, '), slice, ...nodes],
    );
    expect(printed).toContain(": 2 → 1 endpoint, with the client's address as source, before: the node's address");
  });

  test('prints commands that can be pasted, whatever the names of the files', async () => {
    const path = write("it's $HOME.yaml", plain, endpoints(one, other), ...nodes);
    const empty = write('empty.yaml', ...nodes);
    const flags = ['--proxy-mode', 'nftables', '--nodeport-addresses', '10.0.0.0/8', '--nodeport-addresses', 'primary'];
    const { stdout } = await runKpc(['diff', empty, path, '--node', 'worker-1', '-q', ...flags]);
    const [command = ''] = /kpc trace .*/.exec(stdout) ?? [];
    expect(command).toContain('--nodeport-addresses 10.0.0.0/8 --nodeport-addresses primary');
    const words = execFileSync('bash', ['-c', `printf '%s\\0' ${command.replace(/^kpc /, '')}`], { encoding: 'utf8' });
    const traced = await runKpc(words.split('\0').slice(0, -1));
    expect(traced).toMatchObject({ status: 0 });
    expect(traced.stdout).toContain('delivered to 2 endpoints');
  });
});

interface Migration {
  readonly summary: string;
  readonly causes: readonly {
    readonly cause: string;
    readonly services: readonly string[];
    readonly reasons: readonly string[];
    readonly severity: string;
    readonly help: readonly string[];
    readonly effects: readonly {
      readonly target: string;
      readonly from: string;
      readonly to: string;
      readonly severity: string;
      readonly classes: number;
    }[];
  }[];
  readonly preparations: ReturnType<typeof findingsOf>;
}

async function migrate(documents: readonly string[], ...flags: readonly string[]) {
  const path = write('cluster.yaml', ...documents);
  const { status, stdout, stderr } = await runKpc(['migrate', path, '--output', 'json', ...flags]);
  return {
    status,
    stderr,
    migration: { ...(resultOf(stdout) as Migration), preparations: findingsOf(stdout, 'preparation') },
  };
}

/** The steps without which something is lost. */
const requiredOf = ({ preparations }: Migration) =>
  preparations.filter(({ severity }) => severity === 'warning').map((each) => each.arguments);

const withPods = ['--cluster-cidr', '10.244.0.0/16'];

describe('kpc migrate', () => {
  test('is content where nothing breaks and nothing has to be set', async () => {
    const balanced = service(
      'type: LoadBalancer, ports: [{ port: 80 }]',
      '{ loadBalancer: { ingress: [{ ip: 198.51.100.9 }] } }',
    );
    const path = write('plain.yaml', balanced, endpoints(one, other), ...nodes);
    const { status, stdout } = await runKpc(['migrate', path, ...withPods, '-q']);
    expect(stdout).toMatch(
      /^ipvs \(nothing names a mode\) → nftables on 2 nodes: nothing that works changes \(\d+ classes of packets\)\n/,
    );
    expect(status).toBe(0);
    const blocks = stdout.split('\n\n');
    expect(blocks.at(-2)).toMatch(/^No action needed, because these packets work on neither side\n {2}Other ports/);
  });

  test('counts what breaks by its causes', async () => {
    const local = service('type: NodePort, internalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }]');
    const { status, migration } = await migrate([local, endpoints(other), ...nodes], ...withPods);
    const breaking = migration.causes.filter(({ effects }) => effects.some(({ severity }) => severity === 'breaks'));
    expect(breaking.length).toBeGreaterThan(0);
    expect(migration.summary).toContain(`: ${breaking.length} thing`);
    expect(status).toBe(1);
  });

  test('external IPs that every node answers ARP for come first, and are to be announced', async () => {
    // The second is a Node's own.
    const external = service('externalIPs: [192.168.50.201, 192.168.50.12, "2001:db8::5"], ports: [{ port: 80 }]');
    const { status, migration } = await migrate([external, endpoints(one, other), ...nodes], ...withPods);
    expect(status).toBe(1);
    const [first] = migration.preparations;
    expect(first).toMatchObject({
      severity: 'warning',
      arguments: { step: 'announce-external-ips', addresses: ['192.168.50.201'], to: 'nftables' },
    });
    const strict = await migrate([external, endpoints(one, other), ...nodes], ...withPods, '--ipvs-strict-arp');
    expect(requiredOf(strict.migration)).toEqual([]);
    const iptables = await migrate([external, endpoints(one, other), ...nodes], ...withPods, '--from', 'iptables');
    expect(requiredOf(iptables.migration)).toEqual([]);
  });

  test('advises to make pods known where policy Local drops them for want of it', async () => {
    const balanced = service(
      'type: LoadBalancer, externalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }], healthCheckNodePort: 30100',
      '{ loadBalancer: { ingress: [{ ip: 198.51.100.9 }] } }',
    );
    const input = [balanced, endpoints(other), ...nodes];
    const adviceOf = ({ causes }: Migration): string =>
      causes.flatMap(({ cause, help }) => (cause === 'external-policy-local' ? help : [])).join('\n');
    expect(adviceOf((await migrate(input)).migration)).toContain('set clusterCIDR');
    expect(adviceOf((await migrate(input, '--cluster-cidr', '10.99.0.0/16')).migration)).toContain('set clusterCIDR');
    const { status, migration } = await migrate(input, ...withPods);
    expect(adviceOf(migration)).toBe('');
    // What IPVS mode sends to endpoints on other nodes is answered past this one: it never worked.
    const local = migration.causes.filter(({ cause }) => cause === 'external-policy-local');
    expect(local.flatMap(({ effects }) => effects.map(({ from, to, severity }) => [from, to, severity]))).toEqual(
      Array.from({ length: 2 }, () => ['delivered, but the connection fails', 'dropped', 'fails-otherwise']),
    );
    // IPVS mode answers health checks at the Service's addresses too.
    expect(migration.causes.flatMap(({ cause, severity }) => (severity === 'breaks' ? cause : []))).toEqual([
      'health-check',
    ]);
    expect(status).toBe(1);
  });

  test('to iptables mode speaks of iptables mode', async () => {
    const { migration } = await migrate(
      [service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]'), endpoints(one), ...nodes],
      ...withPods,
      '--to',
      'iptables',
    );
    const asked = migration.preparations.map((each) => each.arguments);
    expect(asked).toContainEqual({ step: 'scheduler', schedulers: ['rr'], to: 'iptables' });
    expect(asked.filter(({ to }) => to === 'nftables')).toEqual([]);
    const better = migration.causes.filter(({ severity }) => severity === 'opens' || severity === 'fails-otherwise');
    expect(better.flatMap(({ help }) => help)).toEqual([]);
  });

  test('names rules of table filter that the new mode lacks, if the cluster has such traffic', async () => {
    const filters = new Set(['accept-health-checks', 'accept-forwarded', 'invalid-packets']);
    const asked = async (spec: string, ...flags: readonly string[]) =>
      (await migrate([service(spec), endpoints(one), ...nodes], ...withPods, ...flags)).migration.preparations
        .map((each) => each.arguments)
        .filter(({ step }) => filters.has(String(step)));
    const modes = (from: string) => ({ from, to: 'nftables' });
    const local = 'externalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }], healthCheckNodePort: 30100';
    expect(await asked(`type: LoadBalancer, ${local}`, '--from', 'iptables')).toEqual([
      { step: 'accept-health-checks', ...modes('iptables'), ports: [30_100] },
      { step: 'accept-forwarded', ...modes('iptables') },
      { step: 'invalid-packets', ...modes('iptables') },
    ]);
    expect(await asked('ports: [{ port: 80 }]', '--from', 'iptables')).toEqual([
      { step: 'invalid-packets', ...modes('iptables') },
    ]);
    expect(await asked('ports: [{ port: 80 }]', '--from', 'iptables', '--conntrack-tcp-be-liberal')).toEqual([]);
    expect(await asked('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]', '--from', 'ipvs')).toEqual([
      { step: 'accept-forwarded', ...modes('ipvs') },
    ]);
  });

  test('says what nodePortAddresses means in each mode, whichever comes first', async () => {
    const input = [service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]'), endpoints(one), ...nodes];
    const asked = async (...flags: readonly string[]) =>
      (await migrate(input, ...withPods, ...flags)).migration.preparations
        .map((each) => each.arguments)
        .find(({ step }) => step === 'node-port-addresses');
    expect(await asked('--from', 'iptables')).toMatchObject({
      from: 'iptables',
      was: 'all',
      to: 'nftables',
      is: 'primary',
    });
    const back = await asked('--proxy-mode', 'nftables', '--to', 'iptables');
    expect(back).toMatchObject({ from: 'nftables', was: 'primary', to: 'iptables', is: 'all' });
  });

  test('the mode that is named is the one before, and refused if it is the one afterwards', async () => {
    const path = write('named.yaml', service('ports: [{ port: 80 }]'), endpoints(one), ...nodes);
    const { status, stderr } = await runKpc(['migrate', path, '--proxy-mode', 'nftables']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('kube-proxy is in nftables mode already')]);
    expect((await runKpc(['migrate', path, '--from', 'nftables', '--to', 'iptables', '-q'])).status).toBe(0);
  });

  test('a release without one of the modes is refused as a change, whose flags are the ones to change', () => {
    const nodesOf = (...versions: readonly string[]) =>
      new Map(versions.map((kubernetesVersion, i) => [`n${i}`, { kubernetesVersion }]));
    const before = {
      settings: { mode: 'iptables' },
      gates: new Map(),
      cluster: { servicePorts: [] },
      modeNote: undefined,
      version: undefined,
      nodes: nodesOf('v1.34.2', 'v1.32.1'),
    } as const;
    const refused = (mode: string, by: string) => ({
      kind: 'refused',
      why: { problem: 'unknown-mode', mode, release: '1.32', by },
    });
    expect(planChange({ from: 'iptables' }, before)).toEqual(refused('nftables', 'release'));
    expect(planChange({ from: 'nftables', to: 'iptables' }, before)).toEqual(refused('nftables', 'present-mode'));
    expect(planChange({ from: 'iptables', node: 'n0' }, before).kind).toBe('change');
    const upgrade = { from: 'iptables', to: 'nftables', toKubernetesVersion: '1.33' } as const;
    expect(planChange(upgrade, before).kind).toBe('change');
  });

  test('refuses a dump and a bundle by one sentence', async () => {
    const dump = join(folder, 'iptables-save.txt');
    writeFileSync(dump, '*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n');
    const { status, stdout, stderr } = await runKpc(['migrate', dump]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain('[no-manifests]');
  });

  test.each([
    ['policy Local', 'externalTrafficPolicy: Local, ', endpoints(other)],
    ['no endpoints', '', endpoints()],
  ])('node ports at a second address are a matter of addresses, with %s too', async (_, spec, slice) => {
    const second = node(1, ', { type: ExternalIP, address: 203.0.113.11 }');
    const nodePort = service(`type: NodePort, ${spec}ports: [{ port: 80, nodePort: 30080 }]`);
    const { migration } = await migrate([nodePort, slice, second], '--node', 'worker-1', ...withPods);
    const found = migration.causes.filter(({ effects }) => effects.some(({ target }) => target === 'node-port'));
    expect(found.map(({ cause }) => cause)).toContain('node-port-addresses');
  });

  test.each(['Cluster', 'Local'])('a cluster IP that the node has too, policy %s', async (policy) => {
    const dns = service('ports: [{ port: 53, protocol: UDP }]').replace('web', 'dns').replace('.80', '.10');
    const nodePort = service(
      `type: NodePort, externalTrafficPolicy: ${policy}, ports: [{ port: 80, nodePort: 30080 }]`,
    );
    const withDns = node(1, ', { type: InternalIP, address: 10.96.0.10 }');
    const args = ['--node', 'worker-1', '--from', 'iptables', ...withPods];
    const { migration } = await migrate([nodePort, dns, endpoints(one), withDns], ...args);
    const refusedAt = (kind: string) =>
      migration.causes.filter(({ effects }) => effects.some(({ target, to }) => target === kind && to === 'refused'));
    expect(refusedAt('node-port').map(({ cause }) => cause)).toEqual(['node-port-addresses']);
    expect(refusedAt('node')).toMatchObject([{ cause: 'unserved-port', severity: 'breaks' }]);
    expect(refusedAt('node')[0]?.services).toContain('shop/dns');
  });

  test('the side that serves node ports at a second address is the same for Services without endpoints', async () => {
    const second = node(1, ', { type: ExternalIP, address: 203.0.113.11 }');
    const nodePort = service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]');
    const [served, empty] = await Promise.all(
      [endpoints(other), endpoints()].map(async (slice) => {
        const { migration } = await migrate([nodePort, slice, second], '--node', 'worker-1', ...withPods);
        return migration.causes.find(({ cause }) => cause === 'node-port-addresses')?.reasons;
      }),
    );
    expect(served).toHaveLength(3);
    expect(empty).toEqual(served);
  });

  test('a Service whose endpoints are not ready has none', async () => {
    const unready = endpoints(endpoint('10.244.2.10', 'worker-2', ', conditions: { ready: false }'));
    const { migration } = await migrate([
      service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]'),
      unready,
      ...nodes,
    ]);
    expect(migration.causes.map(({ cause }) => cause)).not.toContain('other');
  });

  test('asks the node that has the external address of a Service', async () => {
    const external = service('externalIPs: [192.168.50.12], ports: [{ port: 80 }]');
    const { migration, stderr } = await migrate([external, endpoints(one), ...nodes, node(3)], ...withPods);
    expect(migration).toMatchObject({ nodes: 3, standIns: 3 });
    expect(stderr).toContain('other nodes cannot reach worker-2');
    expect(stderr).toContain('[node-address]');
  });
});

describe('kpc migrate --to-kubernetes-version', () => {
  const plain = service('ports: [{ port: 80 }]');
  const upgradeTo = ['--kubernetes-version', '1.37', '--to-kubernetes-version'];

  test('a release that kpc follows changes no mode', async () => {
    const { status, migration } = await migrate([plain, endpoints(one), ...nodes], ...withPods, ...upgradeTo, '1.37');
    expect(migration.summary).toMatch(
      /^1\.37 iptables \(kube-proxy's default\) → 1\.37 iptables on 2 nodes: \d+ classes of packets, no difference$/,
    );
    expect(migration.preparations).toEqual([]);
    expect(status).toBe(0);
  });

  test('says that the default mode becomes nftables, and what that changes', async () => {
    const nodePort = service('type: NodePort, ports: [{ port: 80, nodePort: 30080 }]');
    const flags = [...withPods, ...upgradeTo, '1.40'];
    const input = [nodePort, endpoints(one), ...nodes];
    const unnamed = await migrate(input, ...flags);
    expect(unnamed.migration.summary).toContain("iptables (kube-proxy's default) → 1.40 nftables");
    expect(unnamed.migration.preparations.map((each) => each.arguments)).toContainEqual({
      step: 'set-mode',
      mode: 'iptables',
    });
    expect(unnamed.migration.causes.map(({ cause }) => cause)).toContain('node-port-loopback');
    const named = await migrate(input, ...flags, '--proxy-mode', 'iptables');
    expect(named.migration.summary).toContain('iptables → 1.40 iptables');
    expect(named.status).toBe(0);
  });

  test.each([
    ['1.39', [], undefined],
    ['1.40', [], 40],
    ['1.40', ['--feature-gates', 'KubeProxyIPVS=true'], undefined],
    ['1.43', ['--feature-gates', 'KubeProxyIPVS=true'], 43],
  ])('IPVS mode in %s with %j', async (release, gates, minor) => {
    const flags = [...withPods, '--proxy-mode', 'ipvs', ...upgradeTo, release, ...gates];
    const { migration } = await migrate([plain, endpoints(one), ...nodes], ...flags);
    const leaves = requiredOf(migration).filter(({ step }) => step === 'leave-mode');
    expect(leaves).toEqual(minor === undefined ? [] : [{ step: 'leave-mode', mode: 'ipvs', minor }]);
    expect(migration.summary).toContain(minor === undefined ? `${release} ipvs` : `${release} nftables`);
  });

  test('names a gate with which no kube-proxy of the new release starts', async () => {
    const flags = ['--proxy-mode', 'iptables', ...upgradeTo, '1.38', '--feature-gates'];
    const input = [plain, endpoints(one), ...nodes];
    const refused = await migrate(input, ...withPods, ...flags, 'MultiCIDRServiceAllocator=true,NodeSwap=true');
    expect(refused.status).toBe(1);
    expect(requiredOf(refused.migration)).toEqual([
      { step: 'gate', fault: expect.objectContaining({ problem: 'unknown', gate: 'MultiCIDRServiceAllocator' }) },
      { step: 'gate', fault: expect.objectContaining({ problem: 'unknown', gate: 'NodeSwap' }) },
    ]);
    const taken = await migrate(input, ...withPods, ...flags, 'StrictIPCIDRValidation=true');
    expect(requiredOf(taken.migration)).toEqual([]);
  });

  test('does not name a gate that no longer helps', async () => {
    const external = service('externalIPs: [192.168.50.201], ports: [{ port: 80 }]');
    const flags = ['--proxy-mode', 'ipvs', ...upgradeTo];
    const whyOf = async (release: string) =>
      (await migrate([external, endpoints(one), ...nodes], ...withPods, ...flags, release)).migration.preparations
        .filter(({ severity }) => severity === 'warning')
        .map(({ text }) => text)
        .join();
    expect(await whyOf('1.40')).toContain('unless the feature gate KubeProxyIPVS is true');
    expect(await whyOf('1.43')).not.toContain('is true');
  });

  test('names the Services whose external IPs go, and what breaks', async () => {
    const external = service('externalIPs: [192.168.50.201], ports: [{ port: 80 }]');
    const flags = [...withPods, '--proxy-mode', 'nftables', ...upgradeTo];
    const input = [external, endpoints(one), ...nodes];
    const { status, migration } = await migrate(input, ...flags, '1.40');
    expect(status).toBe(1);
    expect(requiredOf(migration)[0]).toMatchObject({ step: 'replace-external-ips', services: ['shop/web'] });
    expect(migration.causes[0]).toMatchObject({ cause: 'external-ips', severity: 'breaks' });
    const kept = await migrate(input, ...flags, '1.40', '--feature-gates', 'AllowServiceExternalIPs=true');
    expect(kept.status).toBe(0);
  });

  test.each([
    ['5.10.0-23-amd64', true],
    ['6.1.0', false],
    ['4.18.0-553.el8', true],
    ['5.13.0', false],
  ])('kernel %s of a Node', async (kernel, required) => {
    const named = (number: number): string =>
      node(number).replace('status: {', `status: { nodeInfo: { kernelVersion: ${kernel} },`);
    const { migration } = await migrate([plain, endpoints(one), named(1), named(2)], ...withPods, '--from', 'iptables');
    const old = [1, 2].map((number) => `worker-${number} (${kernel})`);
    const asked = migration.preparations.filter((each) => each.arguments['step'] === 'kernel');
    expect(asked).toMatchObject(required ? [{ severity: 'warning', arguments: { oldest: '5.13', nodes: old } }] : []);
  });

  test.each([
    ['no Node', [], ''],
    ['a Node that names no release', nodes, ''],
    [
      'a Node of a release that kpc does not follow',
      nodes.map((each) => each.replace('status: {', 'status: { nodeInfo: { kubeletVersion: v1.29.3 },')),
      'v1.29.3',
    ],
  ])('refuses to guess the release before, with %s', async (_, beside, version) => {
    const path = write('unnamed.yaml', plain, endpoints(one), ...beside);
    const flags = ['--from', 'iptables', '--to-kubernetes-version', '1.37', '--output', 'json'];
    const { status, stdout } = await runKpc(['migrate', path, ...flags]);
    const { findings, result } = JSON.parse(stdout) as { findings: readonly unknown[]; result: unknown };
    expect({ status, result }).toEqual({ status: 2, result: undefined });
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'bad-kubernetes-version', arguments: expect.objectContaining({ version }) }),
    );
  });

  test.each(['1.44', '1.2', 'x'])('refuses %s', async (release) => {
    const path = write('refused.yaml', plain);
    const { status, stdout, stderr } = await runKpc(['migrate', path, '--to-kubernetes-version', release]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/\b1\.25\b.*\b1\.43\b/);
  });
});
