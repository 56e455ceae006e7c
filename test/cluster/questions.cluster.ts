// kpc asks a real API server by the real kubectl: what it answers, and what it says where it may not read, or cannot.
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { projectFolder, runProgram, spawnKpc, type Run } from '../support/run-kpc.ts';
import { fillCluster, writeConfigMap } from './fill-cluster.ts';
import { apply, kubectl, oddContext } from './start-cluster.ts';

const cluster = inject('cluster');
const env = { PATH: [cluster.programs, process.env['PATH']].join(delimiter), KUBECONFIG: cluster.kubeconfig };
const kpc = (...words: readonly string[]): Promise<Run> => spawnKpc(words, { env });

const onNode = ['--cluster', '--node', 'node-1'] as const;

beforeAll(async () => {
  await fillCluster(cluster);
  writeConfigMap(cluster, { mode: 'nftables', clusterCIDR: '10.244.0.0/16,fd00:10:244::/56' });
});

interface LintFinding {
  readonly code: string;
  readonly text: string;
  readonly trace?: { readonly command: string };
}

/** The address of a Service. */
function clusterIPOf(service: string): string {
  return kubectl(cluster, ['get', 'service', service, '-o', 'jsonpath={.spec.clusterIP}']);
}

describe('a user who may read all', () => {
  test('describe: a table of all Services, and one of them', async () => {
    const table = await kpc('describe', ...onNode);
    expect(table, table.stderr).toMatchObject({ status: 0 });
    for (const name of ['default/kubernetes', 'default/web', 'default/two-ports', 'kube-system/host'])
      expect(table.stdout).toContain(name);
    expect(table.stderr).not.toMatch(/^(?:warning|error)/m);
    const one = await kpc('describe', 'web', ...onNode, '--output', 'json');
    expect(one.stdout).toContain(clusterIPOf('web'));
    expect(one.stdout).toContain('nftables');
  });

  test('describe: nothing is assumed', async () => {
    const run = await kpc('describe', 'no-pods', ...onNode);
    expect(run.stderr).not.toContain('assumed');
    expect(run.stdout).not.toContain('assumed');
  });

  test('trace: to a Service, from a Pod by its name', async () => {
    const run = await kpc('trace', ...onNode, '--from', 'pod/web-1', '--to', 'svc/sticky');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('delivered to 3 endpoints');
    expect(run.stdout).toContain('from Pod default/web-1 (10.244.1.10)');
    expect(run.stdout).toContain('in nftables mode');
  });

  test('trace: a policy of the cluster refuses, and a packet to an address of no Service is dropped', async () => {
    const guarded = await kpc('trace', ...onNode, '--from', 'pod/lonely-1', '--to', 'svc/guarded');
    expect(guarded.stdout).toContain('policy default/only-from-web');
    const allowed = await kpc('trace', ...onNode, '--from', 'pod/web-1', '--to', 'svc/guarded');
    expect(allowed.stdout).not.toContain('policy');
    const free = await kpc('trace', ...onNode, '--from', 'pod/web-1', '--to', '10.96.250.250:80');
    expect(free.stdout).toContain('dropped');
  });

  test('lint: what it finds in this cluster, and packets that can be asked again', async () => {
    const run = await kpc('lint', '--cluster', '--output', 'json');
    expect(run.status, run.stderr).not.toBe(2);
    const { findings } = JSON.parse(run.stdout) as { readonly findings: readonly LintFinding[] };
    expect(findings.map(({ code }) => code).toSorted()).toMatchInlineSnapshot(`
      [
        "external-ips",
        "local-without-endpoint",
        "no-ready-endpoint",
        "no-ready-endpoint",
        "open-node-port",
        "unserved-address",
      ]
    `);
    const [words = ''] = findings.flatMap(({ trace }) => trace?.command ?? []);
    expect(words).toContain('kpc trace --cluster ');
    const again = await runProgram('sh', ['-c', words.replace(/^kpc/, `${process.execPath} bin/kpc.js`)], { env });
    expect(again, again.stderr).toMatchObject({ status: 0 });
  });

  test('as kubectl kpc, without a flag', async () => {
    const folder = mkdtempSync(join(cluster.folder, 'plugin-'));
    symlinkSync(join(projectFolder, 'bin', 'kpc.js'), join(folder, 'kubectl-kpc'));
    const path = [folder, env.PATH].join(delimiter);
    const run = await runProgram('kubectl', ['kpc', 'describe', 'web', '--node', 'node-1'], {
      env: { ...env, PATH: path },
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain(clusterIPOf('web'));
  });

  test('a cluster without a ConfigMap of kube-proxy', async () => {
    const settings = { mode: 'nftables', clusterCIDR: '10.244.0.0/16,fd00:10:244::/56' } as const;
    kubectl(cluster, ['delete', 'configmap', 'kube-proxy', '--namespace', 'kube-system']);
    try {
      const run = await kpc('compile', ...onNode, '--print', 'nftables');
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toContain('could not read the ConfigMap kube-proxy (there is none)');
      const named = await kpc('compile', ...onNode, '--print', 'nftables', '--proxy-mode', 'nftables');
      expect(named, named.stderr).toMatchObject({ status: 0 });
      const described = await kpc('describe', 'web', ...onNode);
      expect(described, described.stderr).toMatchObject({ status: 0 });
    } finally {
      writeConfigMap(cluster, settings);
    }
  });
});

describe('contexts', () => {
  test("KUBECONFIG and --context are kubectl's own", async () => {
    const odd = await kpc('describe', 'web', ...onNode, '--context', oddContext);
    expect(odd, odd.stderr).toMatchObject({ status: 0 });
    expect(odd.stdout).toContain(clusterIPOf('web'));
    // The note is a command that a shell takes.
    const [, command = ''] = /^note: runs (kubectl .*get configmap .*)$/m.exec(odd.stderr) ?? [];
    const again = await runProgram('sh', ['-c', command], { env });
    expect(again, again.stderr).toMatchObject({ status: 0 });
    expect(again.stdout).toContain('"kube-proxy"');
  });

  test('one that there is not', async () => {
    const run = await kpc('describe', ...onNode, '--context', 'nowhere');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(
      /^error: "kubectl --context nowhere api-resources .*" failed: .*context "nowhere" does not exist/m,
    );
  });

  test('a server that does not answer', async () => {
    const run = await kpc('describe', ...onNode, '--context', 'gone');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: "kubectl --context gone api-resources .*" failed: .*refused/m);
  });

  test('no kubeconfig at all', async () => {
    const run = await spawnKpc(['describe', ...onNode], { env: { ...env, KUBECONFIG: '/nonexistent' } });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: "kubectl api-resources /m);
  });
});

describe('a user with few rights', () => {
  const dev = ['--cluster', '--context', 'dev', '--node', 'node-1'] as const;

  /** Gives the group of "dev" the right to list these, by group and resource. */
  function allow(...resources: readonly (readonly [group: string, name: string])[]): void {
    const metadata = { name: 'kpc-dev' };
    const rules = resources.map(([group, name]) => ({ apiGroups: [group], resources: [name], verbs: ['get', 'list'] }));
    apply(cluster, [
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kpc-dev' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'developers' }],
      },
    ]);
  }

  const least = [
    ['', 'services'],
    ['', 'nodes'],
    ['discovery.k8s.io', 'endpointslices'],
  ] as const;

  test('none at all', async () => {
    const run = await kpc('describe', ...dev);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(
      'error: kpc could not read services, endpointslices.discovery.k8s.io and nodes of this cluster',
    );
  });

  test('all but the Nodes', async () => {
    allow(...least.filter(([, name]) => name !== 'nodes'));
    const run = await kpc('trace', ...dev, '--from', 'external', '--to', 'svc/web');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: kpc could not read nodes of this cluster/m);
  });

  test('Services, EndpointSlices and Nodes: what depends on the others is not known', async () => {
    allow(...least);
    const web = await kpc('trace', ...dev, '--from', 'external', '--to', `${clusterIPOf('web')}:80`);
    expect(web, web.stderr).toMatchObject({ status: 0 });
    expect(web.stderr).toMatch(
      /^warning: kpc could not read servicecidrs.networking.k8s.io, pods, .* and the ConfigMap kube-proxy/m,
    );
    expect(web.stdout).toContain('whether a policy refuses it is not known');
    const pod = await kpc('trace', ...dev, '--from', 'pod/web-1', '--to', 'svc/web');
    expect(pod.status).toBe(2);
    expect(pod.stderr).toContain('Pod default/web-1 cannot be looked up');
    const way = await kpc('trace', ...dev, '--from', 'external', '--to', 'https://example.com/');
    expect(way.status).toBe(2);
    expect(way.stderr).toContain('kpc could not read Ingresses, routes');
    const mode = ['--proxy-mode', 'nftables'];
    const free = await kpc('trace', ...dev, ...mode, '--from', 'external', '--to', '10.96.250.250:80');
    expect(free.stdout).toContain('unknown: the ServiceCIDRs of the cluster could not be read');
    const compiled = await kpc('compile', ...dev, '--print', 'nftables');
    expect(compiled).toMatchObject({ status: 2, stdout: '' });
    expect(compiled.stderr).toContain(
      'error: kpc could not read servicecidrs.networking.k8s.io and the ConfigMap kube-proxy',
    );
  });

  test('lint finds nothing that all of the cluster does not show', async () => {
    allow(...least);
    const textsOf = async (...words: readonly string[]) => {
      const { stdout } = await kpc('lint', ...words, '--proxy-mode', 'nftables', '--output', 'json');
      const { findings } = JSON.parse(stdout) as { readonly findings: readonly LintFinding[] };
      return findings.map(({ text }) => text);
    };
    const [all, few] = [await textsOf('--cluster'), await textsOf('--cluster', '--context', 'dev')];
    expect(few.filter((text) => !all.includes(text))).toEqual([]);
  });

  test('compiles with what kube-proxy itself may read, and its ConfigMap', async () => {
    allow(...least, ['networking.k8s.io', 'servicecidrs'], ['', 'configmaps']);
    const print = (...words: readonly string[]) => kpc('compile', ...words, '--print', 'nftables');
    const [own, all] = await Promise.all([print(...dev), print(...onNode)]);
    expect(own, own.stderr).toMatchObject({ status: 0 });
    expect(own.stdout).toBe(all.stdout);
  });
});

test('an API whose server is gone hides nothing that kpc asks', async () => {
  const metadata = { name: 'v1beta1.metrics.k8s.io' };
  const spec = {
    group: 'metrics.k8s.io',
    version: 'v1beta1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    insecureSkipTLSVerify: true,
    service: { name: 'absent', namespace: 'kube-system' },
  };
  apply(cluster, [{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata, spec }]);
  try {
    const run = await spawnKpc(['describe', 'web', ...onNode], {
      env: { ...env, KUBECACHEDIR: join(cluster.folder, 'cache') },
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stderr).not.toMatch(/^(?:warning|error)/m);
  } finally {
    kubectl(cluster, ['delete', 'apiservice', metadata.name]);
  }
});

test('a golden of a cluster is the same a second time', async () => {
  const golden = join(cluster.folder, 'golden');
  const [first, second] = [
    await kpc('compile', ...onNode, '--golden', golden),
    await kpc('compile', ...onNode, '--check', golden),
  ];
  expect(first, first.stderr).toMatchObject({ status: 0 });
  expect(second, second.stderr).toMatchObject({ status: 0 });
});

test('beside files: what -f names comes to what the cluster has', async () => {
  const file = join(cluster.folder, 'more.yaml');
  const service = { selector: { app: 'web' }, clusterIP: '10.96.99.99', ports: [{ port: 80, targetPort: 8080 }] };
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'more' }, spec: service }));
  const run = await kpc('trace', ...onNode, '-f', file, '--from', 'external', '--to', 'svc/more');
  expect(run, run.stderr).toMatchObject({ status: 0 });
  expect(run.stdout).toContain('delivered to 3 endpoints');
});
