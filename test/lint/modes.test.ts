// What rules say of nodes, modes and families beyond the example of each row.
import { describe, expect, test } from 'vitest';
import {
  aService,
  anIP,
  balancer,
  deployment,
  container,
  endpoint,
  noEndpoint,
  runningPod,
  slice,
  someNodes,
} from './manifests.ts';
import { inFolder } from '../findings/tripped.ts';
import { runKpc } from '../support/run-kpc.ts';
import type { Linted } from './linted.ts';

const ready = 'nodeName: worker-1, conditions: { ready: true }';
const cidr = ['--cluster-cidr', '10.244.0.0/16'];
const setup = [...cidr, '--proxy-mode', 'iptables'];

const oneEndpoint = `addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.1], ${ready} }]`;

async function lint(text: string, flags: readonly string[] = []): Promise<Linted> {
  const files = { 'in.yaml': text.replace(/---\n$/, '') };
  const { stdout } = await inFolder(files, (cwd) => runKpc(['lint', 'in.yaml', ...flags, '--output', 'json'], { cwd }));
  return JSON.parse(stdout) as Linted;
}

function told({ findings }: Linted): readonly string[] {
  return findings.map(({ code, trace }) => `${code}${trace ? ` ${trace.verdict}` : ''}`);
}

describe('policy Local', () => {
  const nodePort = aService(
    `type: NodePort, externalTrafficPolicy: Local, ${anIP}, ports: [{ port: 80, nodePort: 30080 }]`,
  );
  const two = someNodes('worker-1', 'worker-2');

  test('counts the nodes without an endpoint, and those are all', async () => {
    const elsewhere = nodePort + endpoint('nodeName: worker-9, conditions: { ready: true }') + two;
    const { findings } = await lint(elsewhere, setup);
    expect(findings[0]?.arguments).toMatchObject({ nodes: ['worker-1', 'worker-2'], of: 2 });
  });

  test.each([
    ['iptables', ['local-without-endpoint dropped']],
    ['nftables', ['local-without-endpoint dropped']],
    // IPVS mode sends such packets to endpoints elsewhere, whose answers do not come back.
    ['ipvs', ['local-without-endpoint fails']],
  ])('a node port, in %s mode', async (mode, expected) => {
    const linted = await lint(nodePort + endpoint(ready) + two, [...cidr, '--proxy-mode', mode]);
    expect(told(linted).filter((each) => !each.startsWith('ipvs-ends'))).toEqual(expected);
  });

  test.each([
    [[], ['local-without-endpoint fails']],
    [['--ipvs-strict-arp'], []],
  ])('a load balancer address that every node answers ARP for, in ipvs mode with %j', async (flags, expected) => {
    const balanced = `type: LoadBalancer, externalTrafficPolicy: Local, ${anIP}, ports: [{ port: 80 }]`;
    const service = aService(balanced, '{ loadBalancer: { ingress: [{ ip: 198.51.100.9 }] } }');
    const linted = await lint(service + endpoint(ready) + two, [...cidr, '--proxy-mode', 'ipvs', ...flags]);
    expect(told(linted).filter((each) => !each.startsWith('ipvs-ends'))).toEqual(expected);
  });

  test('names the nodes once', async () => {
    const { findings } = await lint(nodePort + endpoint(ready) + someNodes('worker-1', 'worker-2', 'worker-3'), setup);
    expect(findings.map(({ text }) => text)).toEqual([
      'default/web: externalTrafficPolicy is Local, but no endpoint runs on 2 of 3 nodes (worker-2, worker-3), so clients of node port 30080 there reach nothing',
    ]);
  });

  test('a node whose taints keep Pods away is a note', async () => {
    const local = aService(`${anIP}, internalTrafficPolicy: Local, ports: [{ port: 80 }]`) + endpoint(ready);
    const taint = '{ key: node-role.kubernetes.io/control-plane, effect: NoSchedule }';
    const tainted = someNodes('worker-1', 'cp-1').replace(
      'podCIDRs: [10.244.1',
      `taints: [${taint}], podCIDRs: [10.244.1`,
    );
    const severities = async (nodes: string) =>
      (await lint(local + nodes, setup)).findings.map(({ severity }) => severity);
    expect(await severities(tainted)).toEqual(['note']);
    expect(await severities(two)).toEqual(['warning']);
  });

  test('--node looks at one node, and refuses one that the input lacks', async () => {
    const text = nodePort + endpoint(ready) + two;
    expect(told(await lint(text, [...setup, '--node', 'worker-1']))).toEqual([]);
    expect(told(await lint(text, [...setup, '--node', 'worker-2']))).toEqual(['local-without-endpoint dropped']);
    expect(told(await lint(text, [...setup, '--node', 'worker-9']))).toEqual(['unknown-node']);
  });

  test('a load balancer that asks for health is right, and its external IPs are not', async () => {
    const fields = 'externalTrafficPolicy: Local, healthCheckNodePort: 30100';
    expect(told(await lint(balancer(fields) + endpoint(ready) + two, setup))).toEqual([]);
    const open = balancer(`${fields}, externalIPs: [203.0.113.9]`);
    expect(told(await lint(open + endpoint(ready) + two, setup))).toEqual([
      'local-without-endpoint dropped',
      'external-ips',
    ]);
  });

  test('a load balancer finds no node where no endpoint names one, whatever its address will be', async () => {
    const fields = 'type: LoadBalancer, externalTrafficPolicy: Local';
    const pending = aService(`${fields}, ports: [{ port: 80 }]`) + endpoint('conditions: { ready: true }') + two;
    expect((await lint(pending, setup)).findings.map((each) => each.arguments)).toEqual([
      { traffic: 'unplaced', service: 'default/web', way: 'loadBalancerIP' },
    ]);
    const written = balancer('externalTrafficPolicy: Local, healthCheckNodePort: 30100');
    const { findings } = await lint(written + endpoint('conditions: { ready: true }') + two, setup);
    expect(findings).toMatchObject([
      {
        arguments: { traffic: 'unplaced', way: 'loadBalancerIP', at: expect.stringMatching(/^\S+$/) },
        trace: { verdict: 'dropped' },
      },
    ]);
  });

  test('without Nodes, a node port is a note; with a DaemonSet behind it, nothing', async () => {
    const selecting = nodePort.replace('ports:', 'selector: { app: web }, ports:');
    expect(told(await lint(selecting + deployment(container), setup))).toEqual(['local-without-endpoint']);
    expect(told(await lint(selecting + deployment(container).replace('Deployment', 'DaemonSet'), setup))).toEqual([]);
  });
});

test('internalTrafficPolicy Local with fewer Pods than Nodes, of which nothing shows where they run', async () => {
  const web = aService('internalTrafficPolicy: Local, selector: { app: web }, ports: [{ port: 80 }]');
  const found = async (replicas: number, kind = 'Deployment', flags: readonly string[] = setup) => {
    const workload = deployment(container).replace('replicas: 3', `replicas: ${replicas}`).replace('Deployment', kind);
    const { findings } = await lint(web + workload + someNodes('a', 'b', 'c'), flags);
    return findings.filter(({ code }) => code === 'local-without-endpoint').map((each) => each.arguments);
  };
  expect(await found(2)).toEqual([{ traffic: 'internal-few', service: 'default/web', pods: 2, among: 3 }]);
  expect(await found(3)).toEqual([]);
  expect(await found(1, 'DaemonSet')).toEqual([]);
  expect(await found(1, 'Deployment', ['--proxy-mode', 'userspace', '--kubernetes-version', '1.25'])).toEqual([]);
});

test('no endpoint is ready, though the Service lists all as ready: the slices are old, or written by hand', async () => {
  const found = async (fields: string) => {
    const spec = `${anIP}, ${fields}ports: [{ port: 80 }]`;
    const { findings } = await lint(aService(spec) + endpoint('conditions: { ready: false }'));
    return findings.map((each) => each.arguments);
  };
  expect(await found('')).toMatchObject([{ publishes: false }]);
  expect(await found('publishNotReadyAddresses: true, ')).toMatchObject([{ publishes: true }]);
});

describe('slices that kube-proxy skips', () => {
  const withSlice = async (more: string) => {
    const { findings } = await lint(aService(`${anIP}, ports: [{ port: 80 }]`) + slice(more));
    return findings;
  };
  const none = (unused: object) => [
    { code: 'no-ready-endpoint', arguments: { service: 'default/web', unused }, trace: { verdict: 'refused' } },
  ];

  test.each([
    ['of the other family', 'IPv6', '["fd00::5"]'],
    ['of host names', 'FQDN', '[db.example.com]'],
  ])('%s', async (_, type, addresses) => {
    const text = `addressType: ${type}\nports: [{ port: 8080 }]\nendpoints: [{ addresses: ${addresses} }]`;
    expect(await withSlice(text)).toMatchObject(none({ by: 'address-type', types: [type] }));
  });

  test('with ports without a number', async () => {
    const text = 'addressType: IPv4\nports: [{ protocol: TCP }]\nendpoints: [{ addresses: [10.244.0.1] }]';
    expect(await withSlice(text)).toMatchObject(none({ by: 'port' }));
  });
});

test('a Service without slices beside others that have some', async () => {
  const served = aService('clusterIP: 10.96.0.11, ports: [{ port: 80 }]', '', 'api') + slice(oneEndpoint, 'api');
  const selecting = (more: string) => aService(`${more}selector: { app: web }, ports: [{ port: 80 }]`);
  expect(told(await lint(selecting(`${anIP}, `) + served))).toEqual(['no-endpoints-given']);
  const unselective = aService(`${anIP}, ports: [{ port: 80 }]`) + served;
  expect(told(await lint(unselective))).toEqual([]);
  expect(told(await lint(unselective + someNodes('worker-1')))).toEqual(['no-endpoints-given']);
  // A manifest of a repository, whose slices a cluster has yet to make.
  expect(told(await lint(selecting('') + served))).toEqual([]);
  expect(told(await lint(selecting(`${anIP}, `) + served + deployment(container)))).toEqual([]);
});

describe('cluster IPs that the API server refuses', () => {
  const range = (name: string) =>
    `apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: { name: ${name} }\nspec: { cidrs: [10.97.0.0/16] }\n---\n`;
  const one = aService(`${anIP}, ports: [{ port: 80 }]`);
  const other = (port: number) => aService(`${anIP}, ports: [{ port: ${port} }]`, '', 'api');

  test.each([
    ['outside of a ServiceCIDR', one + range('kubernetes'), [], ['refused-cluster-ip']],
    ['outside of another one, beside which there are more', one + range('more'), [], []],
    ['outside of a flag', one, ['--service-cluster-ip-range', '10.97.0.0/16'], ['refused-cluster-ip']],
    ['inside', one, ['--service-cluster-ip-range', '10.96.0.0/16'], []],
    ['of another Service', one + other(81), [], ['refused-cluster-ip']],
    ['of another Service, with its port', one + other(80), [], ['address-conflict']],
  ])('%s', async (_, text, flags, expected) => {
    expect(told(await lint(text, flags)).map((each) => each.split(' ')[0])).toEqual(expected);
  });
});

describe('a NetworkPolicy of the port of a Service', () => {
  const service = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: http }]`);
  const policy = (ports: string, name = 'web') => `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: ${name} }
spec: { podSelector: { matchLabels: { app: web } }, policyTypes: [Ingress], ingress: [{ ${ports} }] }
---
`;

  test.each([
    ['and no other', policy('ports: [{ port: 80 }]'), ['policy-port']],
    ['of another protocol', policy('ports: [{ port: 80, protocol: UDP }]'), []],
    ['and that of its Pods', policy('ports: [{ port: 80 }, { port: 8080 }]'), []],
    ['and the name of that', policy('ports: [{ port: 80 }, { port: http }]'), []],
    ['in a range with that', policy('ports: [{ port: 80, endPort: 9000 }]'), []],
    ['beside one that allows all', policy('ports: [{ port: 80 }]') + policy('from: [{ podSelector: {} }]', 'all'), []],
    ['that denies all: others may allow some', policy('ports: [{ port: 443 }]'), []],
  ])('%s', async (_, policies, expected) => {
    expect(told(await lint(service + deployment(container) + policies))).toEqual(expected);
  });
});

describe('references to Services', () => {
  const service = aService(`${anIP}, ports: [{ name: http, port: 80 }]`);
  const ingress = (name: string, port: string, annotations = '{}') => `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web, annotations: ${annotations} }
spec: { defaultBackend: { service: { name: ${name}, port: { ${port} } } } }
---
`;
  const route = (port: number) => `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: web }
spec: { rules: [{ backendRefs: [{ name: web, port: ${port} }] }] }
---
`;
  const stateful = (name: string) =>
    deployment(container).replace('Deployment', 'StatefulSet').replace('replicas: 3', `serviceName: ${name}`);
  const external = aService('type: ExternalName, externalName: db.example.com', '', 'db');
  const action = '{ alb.ingress.kubernetes.io/actions.redirect: "{}" }';

  test.each([
    ['an Ingress to a port', ingress('web', 'number: 80'), []],
    ['an Ingress to the name of a port', ingress('web', 'name: http'), []],
    ['an Ingress to no port', ingress('web', 'number: 8080'), ['warning unknown-service']],
    ['an Ingress to no Service', ingress('weeb', 'number: 80'), ['note unknown-service']],
    ['an Ingress to an ExternalName', external + ingress('db', 'number: 5432'), []],
    ['an Ingress to an action of its controller', ingress('redirect', 'name: use-annotation', action), []],
    ['a route to a port', route(80), []],
    ['a route to no port', route(8080), ['warning unknown-service']],
    ['a StatefulSet', stateful('web'), []],
    ['a StatefulSet of no Service', stateful('db'), ['note unknown-service']],
  ])('%s', async (_, text, expected) => {
    const { findings } = await lint(service + text);
    expect(findings.map(({ severity, code }) => `${severity} ${code}`)).toEqual(expected);
  });

  test('a Service that a custom resource of its name may make', async () => {
    const release = 'apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: { name: forge }\n---\n';
    const { findings } = await lint(service + release + ingress('forge-http', 'number: 80'));
    expect(findings).toMatchObject([{ code: 'unknown-service', arguments: { maker: 'HelmRelease default/forge' } }]);
  });

  test('nothing where the input has no Service of the namespace', async () => {
    const other = service.replace('name: web', 'name: web, namespace: prod');
    expect(told(await lint(other + ingress('web', 'number: 80')))).toEqual([]);
  });
});

test('a health check node port outside of the range', async () => {
  const text = balancer('externalTrafficPolicy: Local, healthCheckNodePort: 8080');
  const { findings } = await lint(text);
  expect(findings.map((each) => each.arguments)).toEqual([
    expect.objectContaining({ what: 'healthCheckNodePort', nodePort: 8080, range: '30000-32767', isUsual: true }),
  ]);
});

test.each([
  ['scaled to 0', 0, 'note', true],
  ['with replicas', 3, 'warning', false],
])('an empty slice beside a Deployment %s', async (_, replicas, severity, isScaledToZero) => {
  const text = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80 }]`) + noEndpoint('web');
  const workload = deployment(container).replace('replicas: 3', `replicas: ${replicas}`);
  const { findings } = await lint(text + workload);
  const details = { owner: 'Deployment default/web', isScaledToZero };
  expect(findings).toMatchObject([{ code: 'no-ready-endpoint', severity, arguments: details }]);
});

describe('a selector that no workload of the manifests has', () => {
  const service = (label: string) => aService(`${anIP}, selector: { app: ${label} }, ports: [{ port: 80 }]`);
  const frontend = deployment(container).replace('app: web', 'app: frontend');
  const idlePod = runningPod.replaceAll('web', 'db').replace(/^status:.*$/m, '');

  test.each([
    ['of another name', frontend, undefined],
    [
      'misspelled',
      frontend.replace('app: frontend', 'app: weeb'),
      'did you mean app=weeb, as Deployment default/web has?',
    ],
    [
      'of another namespace',
      deployment(container).replace('name: web', 'name: web, namespace: prod'),
      'Deployment prod/web has these labels, but a Service selects only Pods of its own namespace',
    ],
    ['of a Pod', idlePod, undefined],
  ])('%s', async (_, workload, help) => {
    const { findings } = await lint(service('web') + workload);
    expect(findings.map((finding) => [finding.code, finding.help])).toEqual([['selects-nothing', help]]);
  });

  test('of a Service that kube-proxy skips', async () => {
    expect(told(await lint(service('web').replace(anIP, 'clusterIP: None') + frontend))).toEqual(['selects-nothing']);
    const external = service('web').replace(anIP, 'type: ExternalName, externalName: example.com');
    expect(told(await lint(external + frontend))).toEqual([]);
  });

  test('says nothing where an operator may make the Pods', async () => {
    const database = (name: string, fields = '') =>
      `---\napiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: { name: ${name}${fields} }\n`;
    expect(told(await lint(service('web') + frontend + database('web')))).toEqual([]);
    expect(told(await lint(service('web') + frontend + database('db')))).toEqual(['selects-nothing']);
    expect(told(await lint(service('web') + frontend + database('web', ', namespace: prod')))).toEqual([
      'selects-nothing',
    ]);
  });

  const selecting = (selector: string) => aService(`${anIP}, selector: { ${selector} }, ports: [{ port: 80 }]`);
  const stateful = deployment(container).replace('Deployment', 'StatefulSet').replace('web }\nspec', 'pg }\nspec');
  const templated = (kind: string, template: string) =>
    `apiVersion: ${kind.split(' ')[0]}\nkind: ${kind.split(' ')[1]}\nmetadata: { name: other }\nspec: ${template}\n---\n`;
  const template = '{ metadata: { labels: { app: web } }, spec: { containers: [] } }';
  const gateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec: { gatewayClassName: x, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
`;

  test.each([
    ['the name of a Pod of a StatefulSet', 'statefulset.kubernetes.io/pod-name: pg-2', stateful],
    ['the index of one', 'app: web, apps.kubernetes.io/pod-index: "0"', stateful],
    [
      'a template of a CronJob',
      'app: web',
      templated('batch/v1 CronJob', `{ jobTemplate: { spec: { template: ${template} } } }`),
    ],
    [
      'a template of a custom resource',
      'app: web',
      templated('argoproj.io/v1alpha1 Rollout', `{ template: ${template} }`),
    ],
    [
      'a template in it',
      'app: web',
      templated('agones.dev/v1 Fleet', `{ template: { spec: { template: ${template} } } }`),
    ],
    [
      'a name made of that of a custom resource',
      'app: shop.other',
      templated('opentelemetry.io/v1 OpenTelemetryCollector', '{}'),
    ],
    ['a label of the domain of one', 'agones.dev/role: gameserver', templated('agones.dev/v1 Fleet', '{}')],
    ['the name of a Gateway', 'gateway.networking.k8s.io/gateway-name: edge', gateway],
  ])('says nothing of %s', async (_, selector, text) => {
    expect(told(await lint(selecting(selector) + frontend + text))).toEqual([]);
  });

  test.each([
    [
      'a Pod that a StatefulSet does not have',
      'app: web, statefulset.kubernetes.io/pod-name: pg-7',
      stateful,
      'warning',
      undefined,
    ],
    [
      'one label that a program may set',
      'app: web, role: leader',
      stateful,
      'note',
      /^StatefulSet default\/pg has all of these labels except role=leader: /,
    ],
    [
      'one label that the workload has itself',
      'app: web, tier: front',
      deployment(container).replace('name: web }', 'name: api, labels: { tier: front } }'),
      'warning',
      /^Deployment default\/api itself has tier=front, but its Pods do not: /,
    ],
    [
      'Pods that another program may make',
      'app: web',
      templated('helm.toolkit.fluxcd.io/v2 HelmRelease', '{ chart: {} }'),
      'note',
      /HelmRelease default\/other/,
    ],
    [
      'Pods that it may make in this namespace',
      'app: web',
      templated('argoproj.io/v1alpha1 Application', '{ source: {}, destination: { namespace: default } }').replace(
        'other',
        'other, namespace: argocd',
      ),
      'note',
      /Application argocd\/other/,
    ],
    [
      'the template of another program, misspelled',
      'app: weeb',
      templated('argoproj.io/v1alpha1 Rollout', `{ template: ${template} }`),
      'warning',
      /^did you mean app=web, as Rollout default\/other has/,
    ],
    ['a Gateway that a label does not name', 'x.io/owning-gateway-name: other', gateway, 'warning', undefined],
  ])('%s', async (_, selector, text, severity, help) => {
    const { findings } = await lint(selecting(selector) + frontend + text);
    expect(findings).toMatchObject([{ code: 'selects-nothing', severity }]);
    expect(findings[0]?.help ?? '').toMatch(help ?? /^$/);
  });

  test.each([
    ['kafka.strimzi.io/v1 Kafka', '{ kafka: { replicas: 3, storage: { type: ephemeral } } }'],
    ['acid.zalan.do/v1 postgresql', '{ teamId: acid, numberOfInstances: 2 }'],
    ['monitoring.coreos.com/v1 Prometheus', '{ serviceAccountName: prometheus, serviceMonitorSelector: {} }'],
    ['elasticsearch.k8s.elastic.co/v1 Elasticsearch', '{ version: 9.0.0, nodeSets: [{ name: default, count: 1 }] }'],
    ['redis.redis.opstreelabs.in/v1beta2 RedisCluster', '{ clusterSize: 3, kubernetesConfig: { image: redis } }'],
    ['argoproj.io/v1alpha1 Rollout', '{ replicas: 1, workloadRef: { kind: Deployment, name: x } }'],
    ['serving.knative.dev/v1 Service', '{ template: { spec: { containers: [{ image: x }] } } }'],
    ['kubevirt.io/v1 VirtualMachine', '{ running: true, template: { spec: { domain: {} } } }'],
    ['gateway.networking.k8s.io/v1 Gateway', '{ gatewayClassName: x, listeners: [] }'],
    ['helm.toolkit.fluxcd.io/v2 HelmRelease', '{ chart: { spec: { chart: x } } }'],
    ['argoproj.io/v1alpha1 Application', '{ sources: [] }'],
  ])('the Pods may be those of a %s', async (kind, spec) => {
    const { findings } = await lint(selecting('app: web') + frontend + templated(kind, spec));
    expect(findings).toMatchObject([{ code: 'selects-nothing', severity: 'note' }]);
  });

  test.each([
    ['external-secrets.io/v1 ExternalSecret', '{}'],
    [
      'external-secrets.io/v1 ExternalSecret',
      '{ dataFrom: [{ sourceRef: {} }], target: { template: { metadata: { labels: { app: web } }, data: {} } } }',
    ],
    ['external-secrets.io/v1 SecretStore', '{ provider: { vault: { server: https://vault } } }'],
    ['bitnami.com/v1alpha1 SealedSecret', '{ encryptedData: {}, template: { metadata: { labels: { app: web } } } }'],
    ['cert-manager.io/v1 Certificate', '{ secretName: web, privateKey: { algorithm: RSA, size: 2048 } }'],
    ['monitoring.coreos.com/v1 ServiceMonitor', '{ selector: { matchLabels: { app: web } }, endpoints: [] }'],
    ['monitoring.coreos.com/v1 PodMonitor', '{ selector: { matchLabels: { app: web } }, podMetricsEndpoints: [] }'],
    ['kyverno.io/v1 Policy', '{ rules: [{ validate: { pattern: { spec: { containers: [{ image: x }] } } } }] }'],
    ['cilium.io/v2 CiliumNetworkPolicy', '{ endpointSelector: { matchLabels: { app: web } } }'],
    ['traefik.io/v1alpha1 IngressRoute', '{ routes: [{ match: x, services: [{ name: web, port: 80 }] }] }'],
    ['keda.sh/v1alpha1 ScaledObject', '{ scaleTargetRef: { name: web }, minReplicaCount: 1 }'],
  ])('a %s makes no Pods: %s', async (kind, spec) => {
    const { findings } = await lint(selecting('app: web') + frontend + templated(kind, spec));
    expect(findings).toMatchObject([{ code: 'selects-nothing', severity: 'warning' }]);
  });

  test('says nothing where a slice has the endpoints', async () => {
    expect(told(await lint(service('web') + frontend + endpoint(ready)))).toEqual([]);
  });

  test('says so where the slice lists a Pod of the input that the selector does not match', async () => {
    const objects = endpoint(ready) + runningPod;
    expect(told(await lint(service('web') + objects))).toEqual([]);
    const { findings } = await lint(selecting('app: other') + objects);
    expect(findings).toMatchObject([{ code: 'selects-nothing', arguments: { isStale: true } }]);
    const elsewhere = runningPod.replace('10.244.0.1', '10.244.0.9');
    expect(told(await lint(selecting('app: other') + endpoint(ready) + elsewhere))).toEqual([]);
  });
});

describe('what the input cannot show is not said', () => {
  test('nothing of the addresses of Nodes that kpc assumes', async () => {
    const service = (address: string) =>
      aService(`externalIPs: [${address}], selector: { app: web }, ports: [{ port: 80 }]`) + deployment(container);
    const ofNodes = async (text: string) =>
      told(await lint(text, ['--proxy-mode', 'ipvs'])).filter((each) => each.startsWith('node-address'));
    expect(await ofNodes(service('198.51.100.1'))).toEqual([]);
    expect(await ofNodes(service('192.168.1.1') + someNodes('worker-1', 'worker-2'))).toEqual(['node-address refused']);
  });

  test('nothing of the addresses of Pods that kpc would assume', async () => {
    const onHost = deployment(`hostNetwork: true, ${container}`);
    const other = aService('clusterIP: 10.96.0.11, ports: [{ port: 80 }]', '', 'api') + slice(oneEndpoint, 'api');
    const text = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80 }]`) + onHost + other;
    expect(await lint(text)).toMatchObject({ findings: [], result: { notes: 0 } });
  });

  test('of endpoints without slices and Pods only what a cluster would have, which Nodes show', async () => {
    const service = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80 }]`);
    expect(told(await lint(service))).toEqual([]);
    expect(told(await lint(service + someNodes('worker-1')))).toEqual(['no-endpoints-given']);
  });

  test('nothing of a Service of a repository beside a Pod that somebody printed from a cluster', async () => {
    const service = (fields: string) => aService(`${fields}selector: { app: web }, ports: [{ port: 80 }]`);
    const other = runningPod.replaceAll('web', 'db');
    expect(told(await lint(service('') + other))).toEqual([]);
    expect(told(await lint(service(`${anIP}, `) + other))).toEqual(['selects-nothing refused']);
  });

  test('nothing of ports that the containers of a webhook may have', async () => {
    const named = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: http-envoy-prom }]`);
    const inject = 'sidecar.istio.io/inject: "true"';
    const asking = deployment(container).replace('{ app: web }', `{ app: web, ${inject} }`);
    const refusing = asking.replace('"true"', '"false"');
    const noted = deployment(container).replace(
      'labels: { app',
      'annotations: { linkerd.io/inject: enabled }, labels: { app',
    );
    const namespace =
      'apiVersion: v1\nkind: Namespace\nmetadata: { name: default, labels: { istio-injection: enabled } }\n---\n';
    const running = runningPod.replace('{ app: web }', `{ app: web, ${inject} }`);
    for (const text of [asking, noted, namespace + deployment(container)])
      expect(told(await lint(named + text))).toEqual([]);
    for (const text of [deployment(container), refusing, running])
      expect(told(await lint(named + text))).toContain('unknown-port refused');
  });

  test('nothing that may result from an error', async () => {
    const named = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: nowhere }]`);
    const text = named + deployment(container);
    expect(told(await lint(text))).toEqual(['unknown-port refused']);
    expect(told(await lint(text + text))).toEqual(['duplicate-object']);
  });

  test('nothing that rests on a mode which nothing names', async () => {
    const text = aService(`${anIP}, sessionAffinity: ClientIP, ports: [{ port: 80 }]`);
    expect(await lint(text)).toMatchObject({
      snapshots: [{ mode: 'ipvs', assumed: { mode: true } }],
      findings: [],
    });
  });
});

test.each([
  ['sh', ['idle-affinity']],
  ['mh', []],
  ['dh', []],
  ['rr', []],
])('session affinity beside the scheduler %s', async (scheduler, expected) => {
  const text = aService(`${anIP}, sessionAffinity: ClientIP, ports: [{ port: 80 }]`);
  const linted = await lint(text, ['--proxy-mode', 'ipvs', '--ipvs-scheduler', scheduler]);
  expect(told(linted).filter((each) => each !== 'ipvs-ends')).toEqual(expected);
});

describe('two Services on one address', () => {
  const external = 'externalIPs: [203.0.113.90], ports: [{ port: 80 }]';
  const nodePort = 'type: NodePort, ports: [{ port: 80, nodePort: 30080 }]';
  const slices = endpoint(ready) + endpoint(ready).replaceAll('web', 'api').replaceAll('10.244.0.1', '10.244.0.9');

  test.each([
    ['an external IP', external, '203.0.113.90:80', {}],
    ['a node port', nodePort, '30080', { isRefused: true }],
  ])('%s: the packet reaches the one that is said to get it', async (_, fields, to, what) => {
    const services = aService(`${anIP}, ${fields}`) + aService(`clusterIP: 10.96.0.11, ${fields}`, '', 'api');
    const { findings } = await lint(services + slices + someNodes('worker-1'), setup);
    const conflict = findings.find(({ code }) => code === 'address-conflict');
    expect(conflict).toMatchObject({
      about: { kind: 'service', name: 'default/web' },
      arguments: { holder: 'default/api', rival: 'default/web', ...what },
      trace: { verdict: 'delivered' },
    });
    const words = conflict?.trace?.command.split(' ').slice(1) ?? [];
    expect(words[words.indexOf('--to') + 1]).toContain(to);
    const files = { 'in.yaml': (services + slices + someNodes('worker-1')).replace(/---\n$/, '') };
    const { stdout } = await inFolder(files, (cwd) => runKpc(words, { cwd }));
    expect(stdout).toContain('100%  10.244.0.9:8080');
  });
});

test('a health check port that two Services claim is refused, as a node port is', async () => {
  const fields = 'type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30100, ports: [{ port: 80 }]';
  const both = aService(`${anIP}, ${fields}`) + aService(`clusterIP: 10.96.0.11, ${fields}`, '', 'api');
  const { findings } = await lint(both);
  const taken = findings.filter(({ code }) => code === 'taken-health-check-port').map((each) => each.arguments);
  expect(taken).toEqual([
    { taken: 'as-health-check-port', service: 'default/api', port: 30100, holder: 'default/web' },
  ]);
});

describe('source ranges', () => {
  const ranges = 'allocateLoadBalancerNodePorts: false, loadBalancerSourceRanges: [192.0.2.0/24]';
  const dual = 'clusterIPs: [10.96.0.10, "fd00:10:96::10"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack';
  const withStatus = (spec: string, ingress: string) =>
    aService(`type: LoadBalancer, ${anIP}, ${ranges}, ${spec}`, `{ loadBalancer: { ingress: [${ingress}] } }`);

  test.each([
    ['a host name', 'ports: [{ port: 80 }]', '{ hostname: lb.example.com }', ['unbound-source-ranges']],
    ['the other family', `${dual}, ports: [{ port: 80 }]`, '{ ip: "2001:db8::1" }', ['unbound-source-ranges']],
    ['ipMode Proxy', 'ports: [{ port: 80 }]', '{ ip: 203.0.113.1, ipMode: Proxy }', ['unbound-source-ranges']],
    ['an address of its own', 'ports: [{ port: 80 }]', '{ ip: 203.0.113.1 }', []],
  ])('%s', async (_, spec, ingress, expected) => {
    const v6 = slice(
      'addressType: IPv6\nports: [{ port: 8080 }]\nendpoints: [{ addresses: ["fd00:10:244::1"] }]',
    ).replace('web-1', 'web-2');
    const slices = endpoint('conditions: { ready: true }') + (spec.includes('IPv6') ? v6 : '');
    const { findings } = await lint(withStatus(spec, ingress) + slices);
    expect(findings.map(({ code }) => code)).toEqual(expected);
  });

  const open = 'loadBalancerSourceRanges: [10.0.0.0/8], ports: [{ port: 80 }]';
  const status = '{ loadBalancer: { ingress: [{ ip: 203.0.113.1 }] } }';

  test.each([
    ['with a Node', aService(`type: LoadBalancer, ${open}`) + someNodes('worker-1'), ['open-node-port']],
    ['with an address', aService(`type: LoadBalancer, ${open}`, status), ['open-node-port']],
    ['unless the cluster gave none', aService(`type: LoadBalancer, ${anIP}, ${open}`, status), []],
  ])('a node port that the API server will give, %s', async (_, text, expected) => {
    expect(told(await lint(text))).toEqual(expected);
  });

  test('of both families say nothing of an address that no load balancer has given', async () => {
    const families = 'ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack';
    const spec = `type: LoadBalancer, ${families}, ${ranges}, ports: [{ port: 80 }]`;
    expect(told(await lint(aService(spec) + deployment(container) + someNodes('worker-1')))).toEqual([]);
  });
});

describe('hints', () => {
  const hinted = aService(`${anIP}, trafficDistribution: PreferSameZone, ports: [{ port: 80 }]`);
  test.each([
    ['not in the release', hinted, endpoint(ready), ['--kubernetes-version', '1.30'], 'idle-hints'],
    ['no endpoint has any', hinted, endpoint(ready), [], 'idle-hints'],
    [
      'policy Local',
      hinted.replace('ports:', 'internalTrafficPolicy: Local, ports:'),
      endpoint(ready),
      [],
      'idle-hints',
    ],
    [
      'another zone',
      hinted,
      endpoint(`${ready}, zone: b, hints: { forZones: [{ name: b }] }`),
      [],
      'idle-hints delivered',
    ],
  ])('%s', async (_, service, slices, flags, expected) => {
    const node = someNodes('worker-1').replaceAll('labels: {}', 'labels: { topology.kubernetes.io/zone: a }');
    expect(told(await lint(service + slices + node, [...setup, ...flags]))).toEqual([expected]);
  });
});

test('an input without any object that kpc reads is an error, and was not checked', async () => {
  const { findings } = await lint('apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n');
  expect(findings).toMatchObject([{ code: 'no-input', arguments: { kinds: ['1 ConfigMap'] } }]);
});
