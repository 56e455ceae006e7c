import type { DiagnosticCode } from '../../src/diagnostics/codes.ts';
import type { Files } from '../support/write-folder.ts';

/** Files and a command of kpc that make a diagnostic. The manifests are in in.yaml, unless the words say otherwise. */
export interface Input {
  readonly words?: readonly string[];
  readonly files: Files;
}

const compile = ['compile', '-f', 'in.yaml', '--print', 'manifest'] as const;

/** Manifests that are compiled with these flags. */
function manifests(text: string, ...flags: readonly string[]): Input {
  return { words: [...compile, ...flags], files: { 'in.yaml': text } };
}

/** What a node printed, which is compared with a Service. */
function dump(files: Files): Input {
  const inFolder = Object.entries(files).map(([name, text]) => [`dump/${name}`, text] as const);
  return {
    words: ['diff', 'dump', 'in.yaml', '--node', 'worker-1'],
    files: { 'in.yaml': web, ...Object.fromEntries(inFolder) },
  };
}

/** A configuration of kube-proxy, beside a Service. */
function configured(...lines: readonly string[]): Input {
  const config = ['apiVersion: kubeproxy.config.k8s.io/v1alpha1', 'kind: KubeProxyConfiguration', ...lines, ''];
  return {
    words: [...compile, '--config', 'config.yaml'],
    files: { 'in.yaml': web, 'config.yaml': config.join('\n') },
  };
}

function service(spec: string, status = '{}'): string {
  return `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { ${spec} }
status: ${status}
---
`;
}

const clusterIP = 'clusterIP: 10.96.0.10';
const web = service(`${clusterIP}, ports: [{ port: 80 }]`);

function slice(more: string): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
${more}
---
`;
}

function endpoint(fields: string): string {
  return slice(`addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.0.1], ${fields} }]`);
}

function node(more: string, labels = '{}'): string {
  return `apiVersion: v1
kind: Node
metadata: { name: worker-1, labels: ${labels} }
${more}
---
`;
}

function pod(spec: string, status: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: web-0, labels: { app: web } }
spec: { ${spec} }
status: { ${status} }
---
`;
}

const container = 'containers: [{ name: web, image: web, ports: [{ name: http, containerPort: 8080 }] }]';

function deployment(spec: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 3, template: { metadata: { labels: { app: web } }, spec: { ${spec} } } }
---
`;
}

const selecting = service(`${clusterIP}, selector: { app: web }, ports: [{ port: 80 }]`);

const rules = `*nat
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j RETURN
COMMIT
`;

/** More pairs of a port and an endpoint, and more addresses, than a file of this size may come to. */
function largeInput(): string {
  const ports = Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
  const externalIPs = Array.from({ length: 200 }, (_, i) => `192.0.2.${i + 1}`);
  const endpoints = Array.from({ length: 500 }, (_, i) => ({ addresses: [`10.244.${i >> 8}.${i & 255}`] }));
  const items = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { clusterIP: '10.96.0.10', externalIPs, ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports,
      endpoints,
    },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

/** An input for each code that no fixture shows. */
export const inputs: { readonly [C in DiagnosticCode]?: Input } = {
  'bad-address-type': manifests(web + slice('addressType: ipv4')),
  'bad-bind-address': configured('healthzBindAddress: localhost:10256'),
  'bad-bundle': { words: ['diff', 'bundle', 'in.yaml'], files: { 'in.yaml': web, 'bundle/manifest.json': '{}' } },
  'bad-cluster-ips': manifests(service('clusterIP: none, ports: [{ port: 80 }]')),
  'bad-detect-local': manifests(web, '--detect-local-mode', 'PodCIDR'),
  'bad-feature-gate': manifests(web, '--feature-gates', 'NoSuchGate=true'),
  'bad-flag': manifests(web, '--masquerade-all=maybe'),
  'bad-hint': manifests(web + endpoint('hints: { forZones: [{ name: "zone a" }] }')),
  'bad-ip-family': manifests(service(`${clusterIP}, ipFamilies: [IPv4, IPv4], ports: [{ port: 80 }]`)),
  'bad-ip-mode': manifests(
    service(
      `type: LoadBalancer, ${clusterIP}, ports: [{ port: 80 }]`,
      '{ loadBalancer: { ingress: [{ ip: 192.0.2.1, ipMode: vip }] } }',
    ),
  ),
  'bad-expectation': {
    words: ['test', 'test.yaml', '-f', 'in.yaml'],
    files: { 'in.yaml': web, 'test.yaml': 'tests: [{ from: pod, to: svc/web }]\n' },
  },
  'bad-kpc-yaml': { words: ['compile'], files: { 'in.yaml': web, 'kpc.yaml': 'file: in.yaml\nproxy-mod: ipvs\n' } },
  'bad-kubernetes-version': manifests(web, '--kubernetes-version', '1.12'),
  'bad-number': manifests(web, '--conntrack-min', 'few'),
  'bad-phase': manifests(web + pod(container, 'phase: running')),
  'bad-prune': manifests(web, '--prune'),
  'bad-quantity': manifests(web + node('status: { allocatable: { cpu: many } }')),
  'bad-range': manifests(web, '--service-node-port-range', '32767-30000'),
  'bad-shard': {
    words: ['compile', '-f', 'in.yaml', '--all-nodes', '--shard', '8/8', '-o', 'out'],
    files: { 'in.yaml': web + node('') },
  },
  'bad-sync-period': configured('mode: iptables', 'iptables: { syncPeriod: -1s }'),
  'bad-timeout': manifests(
    service(
      `${clusterIP}, sessionAffinity: ClientIP, sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } }, ports: [{ port: 80 }]`,
    ),
  ),
  'bad-traffic-distribution': manifests(service(`${clusterIP}, trafficDistribution: PreferFar, ports: [{ port: 80 }]`)),
  'bad-zone': manifests(web + node('', '{ topology.kubernetes.io/zone: "zone a" }')),
  'cut-off-file': dump({ 'iptables-save': rules.replace('COMMIT\n', '') }),
  'covered-addresses': manifests(
    service('type: NodePort, clusterIP: 10.96.0.10, ports: [{ port: 80, nodePort: 30080 }]'),
    '--nodeport-addresses',
    '10.0.0.0/8',
  ),
  'default-mode': manifests(web),
  'dump-folder': {
    words: ['diff', 'dumps', 'in.yaml'],
    files: { 'in.yaml': web, 'dumps/worker-1/iptables-save': rules },
  },
  'empty-folder': { words: ['compile', '-f', 'folder'], files: { 'folder/notes.txt': '' } },
  'empty-selector': manifests(
    service(`${clusterIP}, selector: {}, ports: [{ port: 80 }]`) + pod(container, 'phase: Running, podIP: 10.244.0.1'),
  ),
  'extra-addresses': manifests(
    web + slice('addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.1, 10.244.0.2] }]'),
  ),
  'fleet-folder': {
    words: ['diff', 'fleet', 'in.yaml'],
    files: { 'in.yaml': web, 'fleet/worker-1/manifest.json': '{ "formatVersion": 1 }' },
  },
  'helm-template': manifests('apiVersion: v1\nkind: Service\nmetadata: { name: {{ .Values.name }} }\n'),
  'ignored-field': manifests(service(`${clusterIP}, healthCheckNodePort: 30100, ports: [{ port: 80 }]`)),
  'ignored-files': {
    words: ['compile', '-f', 'folder', '--print', 'manifest'],
    files: { 'folder/in.yaml': web, 'folder/old.yaml': web, 'folder/.kpcignore': 'old.yaml\n' },
  },
  'odd-pattern': {
    words: ['compile', '-f', 'folder', '--print', 'manifest'],
    files: { 'folder/in.yaml': web, 'folder/.kpcignore': '*.{yml,json}\n' },
  },
  'unrendered-template': manifests(service(`clusterIP: $ADDRESS`)),
  'left-out': manifests(web + service('clusterIP: $ADDRESS'), '--skip-invalid'),
  'no-services': manifests(node('spec: {}')),
  'nothing-programmed': manifests(service('clusterIP: None')),
  'kubernetes-version': manifests(
    web + node('status: { nodeInfo: { kubeletVersion: v1.35.4 } }'),
    '--kubernetes-version',
    'auto',
  ),
  kustomized: {
    words: ['compile', '-f', 'folder', '--print', 'manifest'],
    files: { 'folder/in.yaml': web, 'folder/kustomization.yaml': 'namePrefix: shop-\nresources: [in.yaml]\n' },
  },
  'legacy-tables': dump({
    'iptables-save': `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n${rules}`,
  }),
  'merge-conflict': manifests(`<<<<<<< ours\n${web}=======\n${web}>>>>>>> theirs\n`),
  'missing-cluster-ip': manifests(service('clusterIPs: [10.96.0.10], ports: [{ port: 80 }]')),
  'missing-ip-families': manifests(
    service('clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, "fd00:10:96::10"], ports: [{ port: 80 }]'),
  ),
  'no-config': { words: [...compile, '--config', 'in.yaml'], files: { 'in.yaml': web } },
  'no-endpoints-given': manifests(selecting),
  'no-health-check-port': manifests(
    service(`type: LoadBalancer, ${clusterIP}, externalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }]`),
  ),
  'no-host-addresses': {
    words: ['compile', '-f', 'in.yaml', '--all-nodes', '--host-addresses', 'hosts', '-o', 'out'],
    files: { 'in.yaml': web + node(''), 'hosts/worker-2.json': '[]' },
  },
  'no-load-balancer-ip': manifests(
    service(`type: LoadBalancer, ${clusterIP}, externalIPs: [192.0.2.1], ports: [{ port: 80, nodePort: 30080 }]`),
    '--load-balancer-ip-range',
    '192.0.2.1/32',
  ),
  'no-manifests': { words: ['compile', '-f', 'node.txt'], files: { 'node.txt': rules } },
  'no-node-object': manifests(web, '--node', 'worker-1'),
  'no-pod-address': manifests(selecting + deployment(container), '--assume-endpoints=10.244.0.0/31'),
  'no-pod-cidr': manifests(selecting + deployment(container), '--assume-endpoints'),
  'no-such-service': manifests(web + endpoint('').replace('service-name: web', 'service-name: api')),
  'no-table': dump({ 'node.txt': '-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j RETURN\n' }),
  'not-shown': manifests(
    service(`${clusterIP}, ports: [${Array.from({ length: 201 }, () => '{ port: 0 }').join(', ')}]`),
  ),
  'nothing-to-check': {
    words: ['compile', '-f', 'in.yaml', '--check', 'nowhere'],
    files: { 'in.yaml': web },
  },
  'null-value': manifests(service(`${clusterIP}, selector: { app: }, ports: [{ port: 80 }]`)),
  'outside-range': manifests(
    service(`type: NodePort, ${clusterIP}, ports: [{ port: 80, nodePort: 8080 }]`),
    '--service-node-port-range',
    '30000-32767',
  ),
  'odd-address': manifests(service('clusterIP: 10.96.0.010, ports: [{ port: 80 }]')),
  'odd-cidr': manifests(
    service(`type: LoadBalancer, ${clusterIP}, loadBalancerSourceRanges: [10.0.0.1/8], ports: [{ port: 80 }]`),
  ),
  'skipped-files': {
    words: ['compile', '-f', 'folder', '--print', 'manifest'],
    files: { 'folder/in.yaml': web, 'folder/values.yaml': 'replicas: 3\n' },
  },
  'other-host': dump({
    'node.txt': `root@worker-1:~# ipvsadm -Ln\nTCP  10.96.0.10:80 rr\nroot@worker-2:~# ipvsadm -Ln\nTCP  10.96.0.11:80 rr\n`,
  }),
  'second-listing': dump({
    'node.txt': 'TCP  10.96.0.10:80 rr\n  -> 10.244.0.1:80  Masq  1  0  0\nTCP  10.96.0.10:80 rr\n',
  }),
  'stray-lines': dump({ 'node.txt': `${rules}the addresses:\n$ ipset save\ncreate KUBE-CLUSTER-IP hash:ip,port\n` }),
  'taken-whole': dump({ 'node.txt': '-A -t 10.96.0.10:80 -s rr\n-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1\n' }),
  'too-deep': manifests('- '.repeat(2000)),
  'too-large': manifests(largeInput()),
  'too-many': manifests(
    web + endpoint(`hints: { forZones: [${Array.from({ length: 9 }, (_, i) => `{ name: zone-${i} }`).join(', ')}] }`),
  ),
  'not-applicable': manifests(web, '--conntrack-max-per-core', '12'),
  'unknown-kind': manifests(web.replace('kind: Service', 'kind: Servcie')),
  'unknown-slice-port': manifests(
    service(`${clusterIP}, ports: [{ name: http, port: 80 }]`) + endpoint('').replace('{ port', '{ name: htpp, port'),
  ),
  'unknown-target-port': manifests(
    service(`${clusterIP}, selector: { app: web }, ports: [{ port: 80, targetPort: htpp }]`) +
      pod(container, 'phase: Running, podIP: 10.244.0.1'),
  ),
  'unread-file': dump({ 'iptables-save': rules, 'ipset-save': 'permission denied\n' }),
  'unread-line': dump({ 'iptables-save': rules.replace('COMMIT', 'nonsense\nCOMMIT') }),
  'unread-output': dump({ 'node.txt': 'Chain KUBE-SERVICES (2 references)\ntarget prot opt source destination\n' }),
  unreadable: {
    words: ['diff', 'bundle', 'in.yaml'],
    files: { 'in.yaml': web, 'bundle/manifest.json': '{}', 'bundle/ipset.restore/x': '' },
  },
  'wrong-family': manifests(web, '--bind-address', 'fd00::1', '--cluster-cidr', '10.244.0.0/16'),
};
