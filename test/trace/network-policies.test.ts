import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-policies-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const node = (name: string, number: number): string =>
  `{apiVersion: v1, kind: Node, metadata: {name: ${name}}, spec: {podCIDRs: [10.1.${number}.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.0.${number}}]}}`;

const pod = (name: string, namespace: string, at: number, address: string, more = ''): string =>
  `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, namespace: ${namespace}, labels: {app: ${name}, tier: front}}, ` +
  `spec: {nodeName: node${at}, ${more} containers: [{name: c, ports: [{name: http, containerPort: 8080}]}]}, ` +
  `status: {phase: Running, podIPs: [{ip: ${address}}], conditions: [{type: Ready, status: 'True'}]}}`;

/** web in namespace shop runs on node2; the packets are traced on node1. */
const cluster = [
  '{apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, clusterCIDR: 10.1.0.0/16, mode: nftables}',
  node('node1', 1),
  node('node2', 2),
  '{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}',
  '{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {team: b}}}',
  '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, clusterIP: 10.96.0.10, selector: {app: web}, ports: [{port: 80, targetPort: http, nodePort: 30080}]}}',
  pod('web', 'shop', 2, '10.1.2.10'),
  pod('client', 'shop', 1, '10.1.1.20'),
  // A Pod that has ended had the address before, and lends nobody its labels.
  pod('ended', 'shop', 1, '10.1.1.20').replace('Running', 'Succeeded'),
  pod('stranger', 'other', 1, '10.1.1.30'),
  pod('wanderer', 'unlisted', 1, '10.1.1.40'),
].join('\n---\n');

interface Finding {
  readonly direction: string;
  readonly verdict: string;
  readonly names: readonly string[];
}

let count = 0;

/** What is found with a policy of that spec, in the namespace of the Pod that is asked about. */
async function find(spec: string, from: string, to = 'svc/shop/web', namespace = 'shop'): Promise<readonly Finding[]> {
  const file = join(scratch, `${count++}.yaml`);
  const policy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: rule, namespace: ${namespace}}, spec: ${spec}}`;
  writeFileSync(file, `${cluster}\n---\n${policy}\n`);
  const run = await runKpc(['trace', file, '--node', 'node1', '--from', from, '--to', to, '--output', 'json'], {
    cwd: scratch,
  });
  expect(run.status, run.stderr).toBe(0);
  return (resultOf(run.stdout).traces[0] as { readonly policies?: readonly Finding[] }).policies ?? [];
}

/** What is found with a NetworkPolicy that refuses all, or none, and a policy of another kind. */
async function findBeside(kind: string, apiVersion: string, spec?: string): Promise<readonly Finding[]> {
  const file = join(scratch, `${count++}.yaml`);
  const other = `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: other}, spec: {anything: [1]}}`;
  const own = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: rule, namespace: shop}, spec: ${spec}}`;
  writeFileSync(file, [cluster, other, ...(spec === undefined ? [] : [own])].join('\n---\n'));
  const asked = ['trace', file, '--node', 'node1', '--from', 'shop/client', '--to', 'svc/shop/web', '--output', 'json'];
  const run = await runKpc(asked, { cwd: scratch });
  expect(run.status, run.stderr).toBe(0);
  return (resultOf(run.stdout).traces[0] as { readonly policies?: readonly Finding[] }).policies ?? [];
}

describe('a policy that kpc does not read', () => {
  test.for([
    ['ClusterNetworkPolicy', 'policy.networking.k8s.io/v1alpha2'],
    ['AdminNetworkPolicy', 'policy.networking.k8s.io/v1alpha1'],
    ['BaselineAdminNetworkPolicy', 'policy.networking.k8s.io/v1alpha1'],
    ['CiliumNetworkPolicy', 'cilium.io/v2'],
    ['GlobalNetworkPolicy', 'projectcalico.org/v3'],
  ] as const)('may refuse what it says nothing of, and allow what others refuse: %s', async ([kind, apiVersion]) => {
    const verdicts = (found: readonly Finding[]) => found.map(({ verdict, names }) => [verdict, ...names]);
    expect(verdicts(await findBeside(kind, apiVersion))).toEqual([['unknown']]);
    expect(verdicts(await findBeside(kind, apiVersion, '{podSelector: {}}'))).toEqual([['unknown']]);
  });
});

const ingress = (rule: string): string => `{podSelector: {matchLabels: {app: web}}, ingress: [${rule}]}`;
const egress = (rule: string): string => `{podSelector: {}, policyTypes: [Egress], egress: [${rule}]}`;

describe('what NetworkPolicies make of a packet that kube-proxy delivers', () => {
  test.for([
    // Who is selected, and by which direction.
    ['{podSelector: {}}', 'shop/client', 'refused'],
    ['{podSelector: {matchLabels: {app: else}}}', 'shop/client', undefined],
    ['{podSelector: {}, policyTypes: [Egress], egress: [{}]}', 'shop/client', undefined],
    ['{podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}}', 'shop/client', 'refused'],
    ['{podSelector: {matchExpressions: [{key: gone, operator: Exists}]}}', 'shop/client', undefined],
    ['{podSelector: {matchExpressions: [{key: tier, operator: constructor}]}}', 'shop/client', 'unknown'],
    ['{podSelector: {matchExpressions: [{key: gone, operator: DoesNotExist}]}}', 'shop/client', 'refused'],
    // Peers.
    [ingress('{}'), 'external', undefined],
    [ingress('{from: [{podSelector: {}}]}'), 'shop/client', undefined],
    [ingress('{from: [{podSelector: {matchLabels: {app: client}}}]}'), 'shop/client', undefined],
    [ingress('{from: [{podSelector: {}}]}'), 'other/stranger', 'refused'],
    [ingress('{from: [{namespaceSelector: {matchLabels: {team: b}}}]}'), 'other/stranger', undefined],
    [
      ingress('{from: [{namespaceSelector: {matchLabels: {team: b}}, podSelector: {matchLabels: {app: else}}}]}'),
      'other/stranger',
      'refused',
    ],
    [
      ingress('{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: unlisted}}}]}'),
      'unlisted/wanderer',
      undefined,
    ],
    [ingress('{from: [{namespaceSelector: {matchLabels: {team: b}}}]}'), 'unlisted/wanderer', 'unknown'],
    [ingress('{from: [{podSelector: {}}]}'), 'pod', 'unknown'],
    [ingress('{from: [{podSelector: {}}]}'), 'external', 'refused'],
    [ingress('{from: [{ipBlock: {cidr: 10.1.0.0/16, except: [10.1.1.0/27]}}]}'), 'shop/client', 'refused'],
    [ingress('{from: [{ipBlock: {cidr: 10.1.0.0/16, except: [10.1.1.0/29]}}]}'), 'shop/client', undefined],
    // Ports are those of the Pod.
    [ingress('{ports: [{port: 80}]}'), 'shop/client', 'refused'],
    [ingress('{ports: [{port: 8080}]}'), 'shop/client', undefined],
    [ingress('{ports: [{port: http}]}'), 'shop/client', undefined],
    [ingress('{ports: [{port: metrics}]}'), 'shop/client', 'refused'],
    [ingress('{ports: [{port: 8080, protocol: UDP}]}'), 'shop/client', 'refused'],
    [ingress('{ports: [{port: 8000, endPort: 8100}]}'), 'shop/client', undefined],
    // endPort is the last port that is allowed.
    [ingress('{ports: [{port: 8000, endPort: 8080}]}'), 'shop/client', undefined],
    [ingress('{ports: [{port: 8000, endPort: 8079}]}'), 'shop/client', 'refused'],
  ] as const)('%s from %s: %s', async ([spec, from, verdict]) => {
    const found = await find(spec, from);
    expect(found.map((each) => [each.direction, each.verdict, each.names])).toEqual(
      verdict === undefined ? [] : [['ingress', verdict, ['shop/rule']]],
    );
  });

  test.for([
    [egress(''), 'refused'],
    [egress('{to: [{podSelector: {matchLabels: {app: web}}}]}'), undefined],
    [egress('{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 80}]}'), 'refused'],
    [egress('{to: [{ipBlock: {cidr: 10.96.0.0/16}}]}'), 'refused-endpoint'],
    [egress('{to: [{ipBlock: {cidr: 10.97.0.0/16}}]}'), 'refused'],
    [egress('{to: [{ipBlock: {cidr: 10.96.0.0/16}}], ports: [{port: 80}]}'), 'refused-endpoint'],
    [egress('{to: [{ipBlock: {cidr: 10.96.0.0/16}}], ports: [{port: 81}]}'), 'refused'],
    ['{podSelector: {}, egress: [{to: [{podSelector: {}}]}], ingress: [{}]}', undefined],
  ] as const)('of the sender: %s: %s', async ([spec, verdict]) => {
    const found = await find(spec, 'shop/client');
    expect(found.map((each) => [each.direction, each.verdict])).toEqual(
      verdict === undefined ? [] : [['egress', verdict]],
    );
  });

  test('a policy of another namespace says nothing', async () => {
    expect(await find('{podSelector: {}}', 'other/stranger', 'svc/shop/web', 'unlisted')).toEqual([]);
  });

  test('a client that kube-proxy masquerades may be seen as itself or as the node', async () => {
    const byNode = ingress('{from: [{ipBlock: {cidr: 192.168.0.0/24}}]}');
    const byClient = ingress('{from: [{ipBlock: {cidr: 198.51.100.0/24}}]}');
    const [asClient, asNode] = await Promise.all([
      find(byNode, 'external', '192.168.0.1:30080'),
      find(byClient, 'external', '192.168.0.1:30080'),
    ]);
    expect(asClient.map(({ verdict }) => verdict)).toEqual(['refused-client']);
    expect(asNode.map(({ verdict }) => verdict)).toEqual(['refused-node']);
  });

  test("what comes from a Pod's own node gets there, on whatever node it is traced", async () => {
    const toPod = (from: string) => find('{podSelector: {}}', from, '10.1.2.10:8080');
    expect(await toPod('192.168.0.2')).toEqual([]);
    expect((await toPod('192.168.0.1')).map(({ verdict }) => verdict)).toEqual(['refused']);
    // By way of a cluster IP, this node masquerades what is not from a Pod.
    const masqueraded = await find('{podSelector: {}}', '192.168.0.2');
    expect(masqueraded.map(({ verdict }) => verdict)).toEqual(['refused-node']);
  });

  test('a Pod in the network of its host is no Pod to them, also where the input has no Nodes', async () => {
    const file = join(scratch, 'host-network.yaml');
    const text = [
      '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}',
      '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 8080}], endpoints: [{addresses: [192.168.0.7], nodeName: node2}]}',
      pod('web', 'shop', 2, '192.168.0.7', 'hostNetwork: true,'),
      '{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: rule, namespace: shop}, spec: {podSelector: {}}}',
    ];
    writeFileSync(file, text.join('\n---\n'));
    const flags = ['--node', 'node1', '--proxy-mode', 'nftables', '--from', '198.51.100.7', '--output', 'json'];
    const run = await runKpc(['trace', file, ...flags, '--to', '10.96.0.10:80'], { cwd: scratch });
    expect(resultOf(run.stdout).traces, run.stderr).toMatchObject([{ verdict: 'delivered' }]);
    expect(resultOf(run.stdout).traces[0]).not.toHaveProperty('policies.0');
  });

  test('a Pod that is asked without a Service, and one that asks itself', async () => {
    expect((await find('{podSelector: {}}', 'other/stranger', '10.1.2.10:8080')).map(({ verdict }) => verdict)).toEqual(
      ['refused'],
    );
    expect(await find('{podSelector: {}}', 'shop/web', '10.1.2.10:8080')).toEqual([]);
  });

  test('what is wrong with a policy is said at its place', async () => {
    const file = join(scratch, 'wrong.yaml');
    const spec = '{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.1.0.0/40}}], ports: [{endPort: 0}]}]}';
    writeFileSync(
      file,
      `${cluster}\n---\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: rule}, spec: ${spec}}\n`,
    );
    const run = await runKpc(['trace', 'wrong.yaml', '--node', 'node1', '--from', 'pod', '--to', 'web'], {
      cwd: scratch,
    });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/wrong\.yaml:\d+:\d+: error: .*10\.1\.0\.0\/40/);
    expect(run.stderr).toMatch(/wrong\.yaml:\d+:\d+: error: .*endPort/);
  });
});

describe('an Ingress', () => {
  const cwd = projectFolder;
  const input = ['fixtures/questions', '--node', 'worker-1', '-q', '--from', 'external', '--output', 'json'];
  const ask = (to: string, ...more: readonly string[]) => runKpc(['trace', ...input, '--to', to, ...more], { cwd });

  test.for([
    ['ingress/shop', ['/ shop/web:http', '/admin shop/admin:8080']],
    ['ing/shop/shop', ['/ shop/web:http', '/admin shop/admin:8080']],
    ['https://shop.example.com/admin/users', ['/admin shop/admin:8080']],
    ['https://shop.example.com/admin?tab=users', ['/admin shop/admin:8080']],
    ['https://shop.example.com/admin#top', ['/admin shop/admin:8080']],
    ['https://shop.example.com?next=/admin', ['/ shop/web:http']],
    ['shop.example.com/administration', ['/ shop/web:http']],
    ['shop.example.com', ['/ shop/web:http']],
  ] as const)('%s', async ([to, routes]) => {
    const { stdout, stderr } = await ask(to);
    const { requests, traces } = resultOf(stdout) as {
      readonly requests: readonly { readonly routes: readonly { readonly path: string; readonly to: string }[] }[];
      readonly traces: readonly { readonly verdict: string }[];
    };
    const ways = requests.flatMap((request) => request.routes.map((each) => `${each.path} ${each.to}`));
    expect(ways, stderr).toEqual(routes);
    expect(traces.map(({ verdict }) => verdict)).toEqual(routes.map(() => 'delivered'));
  });

  test('an Ingress whose Service does not exist', async () => {
    const text = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {defaultBackend: {service: {name: gone, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
`;
    const run = await runKpc(['trace', '-', '--from', 'external', '--to', 'ingress/shop', '--output', 'json'], {
      stdin: text,
    });
    expect(run.status).toBe(1);
    expect(resultOf(run.stdout)).toMatchObject({ traces: [], requests: [{ routes: [{ to: 'default/gone:80' }] }] });
  });

  test.for([
    ['ingress/shpo', 'no Ingress shpo here [not-found]\n  help: did you mean shop/shop?'],
    ['https://else.example.com/', 'no Ingress or Gateway in the input accepts https://else.example.com/'],
  ] as const)('%s', async ([to, message]) => {
    const run = await ask(to);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain(message);
    expect(findingsOf(run.stdout, 'not-found')).toHaveLength(1);
    expect(resultOf(run.stdout)).toBeUndefined();
  });
});

test('a table says once which policies may refuse some of its packets, and at which endpoints', async () => {
  const file = join(scratch, 'table.yaml');
  const policy = (name: string, selector: string): string =>
    `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: ${name}, namespace: shop}, spec: {podSelector: ${selector}}}`;
  writeFileSync(file, [cluster, policy('deny', '{}'), policy('aside', '{matchLabels: {app: else}}')].join('\n---\n'));
  const { stdout } = await runKpc(['trace', file, '--node', 'node1', '--all', 'svc/shop/web'], { cwd: scratch });
  const lines = stdout.split('\n').filter((text) => text.includes('shop/deny'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('10.1.2.10:8080');
  expect(stdout).not.toContain('shop/aside');
});
