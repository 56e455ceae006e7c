import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc, type Run } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-families-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1' },
  spec: { podCIDRs: ['10.244.1.0/24'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.168.1.1' }] },
};

interface Input {
  readonly families?: readonly ('IPv4' | 'IPv6')[];
  readonly service?: object;
  readonly name?: string;
  readonly endpointNode?: string;
  readonly zone?: string;
}

let count = 0;

/** Manifests of one Service, in a file of their own. */
function write(input: Input = {}): string {
  const { families = ['IPv4'], service = {}, name = 'web', endpointNode = 'node-2', zone } = input;
  const clusterIPs = families.map((family) => (family === 'IPv4' ? '10.96.0.9' : 'fd00:96::9'));
  const slices = families.map((family) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-${family.toLowerCase()}`, labels: { 'kubernetes.io/service-name': name } },
    addressType: family,
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: [family === 'IPv4' ? '10.244.2.5' : 'fd00:244:2::5'], nodeName: endpointNode, zone }],
  }));
  const spec = { clusterIP: clusterIPs[0], clusterIPs, ipFamilies: families, ports: [{ port: 80, nodePort: 30080 }] };
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'NodePort', ...spec, ...service },
  };
  const file = join(scratch, `${count++}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [node, object, ...slices] }));
  return file;
}

async function bundle(input: string, ...flags: readonly string[]): Promise<string> {
  const folder = join(scratch, `bundle-${count++}`);
  const run = await runKpc(['compile', '-f', input, ...flags, '-o', folder]);
  expect(run.status, run.stderr).toBe(0);
  return folder;
}

function all({ stdout, stderr }: Run): string {
  return stdout + stderr;
}

/** What shows in the kernel of the Service in its new family, by mode. */
const ofService: Readonly<Record<string, RegExp>> = {
  ipvs: /\+ virtual server TCP \[fd00:96::9\]:80 with 1 real server/,
  iptables: /\+ chain KUBE-SEP-\w+ \(IPv6 nat\) with 2 rules/,
};

describe('a family that comes or goes between two compiled sides', () => {
  const single = write();
  const dual = write({ families: ['IPv4', 'IPv6'] });
  const other = write({ families: ['IPv6'] });

  test.for(['ipvs', 'iptables'])('%s: a Service that becomes dual-stack', async (mode) => {
    const flags = ['--proxy-mode', mode];
    const golden = await bundle(single, ...flags);
    for (const sides of [
      [single, dual, ...flags],
      [golden, await bundle(dual, ...flags)],
    ]) {
      const run = await runKpc(['diff', '--rules', ...sides, '--limit', '0']);
      expect(run.status).toBe(1);
      expect(run.stdout).toContain('families: + ipv6');
      expect(run.stdout).toContain('+ chain KUBE-SERVICES (IPv6 nat)');
      expect(run.stdout).toMatch(ofService[mode] ?? /^$/);
      expect(all(run)).not.toMatch(/nothing changes|not compared: (?!selectors)/);
    }
    for (const output of ['text', 'github']) {
      const check = await runKpc(['compile', '-f', dual, ...flags, '--check', golden, '--output', output]);
      expect(check.status).toBe(1);
      expect(all(check)).not.toMatch(/nothing changes|not compared:/);
      expect(all(check)).toMatch(/IPv6|ip6tables/);
    }
    const markdown = await runKpc(['diff', single, dual, ...flags, '--output', 'markdown']);
    expect(markdown.stdout).not.toMatch(/nothing changes|not compared/);
  });

  test('a family that goes, and one that takes the place of the other', async () => {
    const gone = await runKpc(['diff', '--rules', dual, single, '--limit', '0']);
    expect(gone.stdout).toContain('families: − ipv6');
    expect(gone.stdout).toContain('- chain KUBE-SERVICES (IPv6 nat)');
    const swapped = await runKpc(['diff', '--rules', single, other, '--ip-family', 'dual']);
    expect(swapped.stdout).toContain('- virtual server TCP 10.96.0.9:80');
    expect(swapped.stdout).toContain('+ virtual server TCP [fd00:96::9]:80');
    const families = await runKpc([
      'diff',
      await bundle(dual, '--ip-family', 'ipv4'),
      await bundle(dual, '--ip-family', 'ipv6'),
    ]);
    expect(families.status).toBe(1);
    // What no bundle records is all that is not compared.
    expect(all(families)).not.toMatch(/not compared: (?!selectors)/);
  });
});

describe('what changes on a node though no Service does', () => {
  const input = write();
  const config = (fields: string) => {
    const file = join(scratch, `config-${count++}.yaml`);
    writeFileSync(
      file,
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n${fields}`,
    );
    return ['--config', file];
  };

  test.for([
    ['IPVS timeouts', 'ipvs: { tcpTimeout: 15m }\n', 'IPVS timeouts: tcp (left as it is) → 900 s', 'ipvsTimeouts'],
    [
      'connection tracking',
      'conntrack: { maxPerCore: 1000 }\n',
      'setting conntrack.maxPerCore: 32768 → 1000',
      'maxPerCore',
    ],
    [
      'excluded networks',
      'ipvs: { excludeCIDRs: [172.30.0.0/16] }\n',
      'ipvs.excludeCIDRs: (none) → 172.30.0.0/16',
      '172.30',
    ],
    ['sysctls', 'ipvs: { strictARP: true }\n', 'sysctl net.ipv4.conf.all.arp_ignore: (not set) → 1', 'arp_ignore'],
    ['a scheduler', 'ipvs: { scheduler: mh }\n', 'kernel module ip_vs_mh', 'mh'],
  ])('%s', async ([, fields = '', expected = '', unified = '']) => {
    const before = await bundle(input, ...config(''));
    const after = await bundle(input, ...config(fields));
    const run = await runKpc(['diff', '--rules', before, after]);
    expect(run.status).toBe(1);
    expect(run.stdout).toContain(expected);
    expect((await runKpc(['diff', '--rules', after, before])).status).toBe(1);
    expect((await runKpc(['diff', before, after, '--output', 'unified'])).stdout).toContain(unified);
  });
});

describe('a Service that changes with little or no effect', () => {
  const balancer = (fields: object) => ({
    service: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32000, ...fields },
  });

  test.for([
    ['its name', write(), write({ name: 'www' }), 'endpoint\n    … nothing changes in the kernel'],
    ['the zone of an endpoint', write(), write({ zone: 'a' }), 'zone (none) → a\n    … nothing changes in the kernel'],
    [
      'its targetPort',
      write(),
      write({ service: { ports: [{ port: 80, nodePort: 30080, targetPort: 8080 }] } }),
      'targetPort 80 → 8080',
    ],
    [
      'its affinity',
      write({ service: { sessionAffinity: 'ClientIP' } }),
      write({ service: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } } }),
      'sessionAffinity ClientIP for 10800 s → ClientIP for 60 s\n  ~ virtual server TCP 10.96.0.9:80: -s rr -p 10800 → -s rr -p 60',
    ],
    [
      'its health check node port',
      write(balancer({})),
      write(balancer({ healthCheckNodePort: 32001 })),
      '+ KUBE-HEALTH-CHECK-NODE-PORT 32001',
    ],
    [
      'what its health check answers',
      write(balancer({})),
      write({ ...balancer({}), endpointNode: 'node-1' }),
      'endpoint 10.244.2.5:8080 now on node-1 (was on node-2)',
    ],
  ])('%s', async ([, before = '', after = '', expected = '']) => {
    const run = await runKpc(['diff', '--rules', before, after]);
    expect(run.status).toBe(1);
    expect(run.stdout).toContain(expected);
  });
});
