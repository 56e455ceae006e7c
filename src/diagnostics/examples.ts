/** Files, and the words after "kpc" that make a diagnostic of them. */
export interface Example {
  readonly words: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

/** A command line without its "kpc", and the files that it reads. */
export function run(line: string, files: Example['files']): Example {
  return { words: line.split(' '), files };
}

export function manifests(text: string, flags = ''): Example {
  return run(`compile -f in.yaml ${flags}`.trimEnd(), { 'in.yaml': text.replace(/---\n$/, '') });
}

/** Manifests for kpc lint, and other files. */
export function lint(text: string, flags = '', more: Example['files'] = {}): Example {
  return run(`lint in.yaml ${flags}`.trimEnd(), { 'in.yaml': text.replace(/---\n$/, ''), ...more });
}

/** What a node printed, which is compared with a Service. */
export function dump(files: Example['files']): Example {
  const inFolder = Object.entries(files).map(([name, text]) => [`dump/${name}`, text] as const);
  return run('diff dump in.yaml --node worker-1', { 'in.yaml': web, ...Object.fromEntries(inFolder) });
}

export const configuration = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

export function aService(spec: string, status = '', name = 'web'): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name} }
spec: { ${spec} }
${status === '' ? '' : `status: ${status}\n`}---
`;
}

export const anIP = 'clusterIP: 10.96.0.10';

/** A Service with these fields beside its type, address and port. */
export function withFields(fields: string, type?: 'LoadBalancer'): Example {
  return manifests(aService(`${type ? `type: ${type}, ` : ''}${anIP}, ${fields}, ports: [{ port: 80 }]`));
}

export function withPorts(ports: string): Example {
  return manifests(aService(`${anIP}, ports: [${ports}]`));
}

export const web = aService(`${anIP}, ports: [{ port: 80 }]`);

export function slice(more: string, service = 'web'): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${service.slice(0, 9)}-1, labels: { kubernetes.io/service-name: ${service} } }
${more}
---
`;
}

export function endpoint(fields: string): string {
  return slice(`addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.0.1], ${fields} }]`);
}

/** What the control plane makes for a Service without Pods. */
export function noEndpoint(service: string): string {
  return slice('addressType: IPv4\nports: []\nendpoints: []', service);
}

export function aNode(more: string, labels = '{}'): string {
  return `apiVersion: v1
kind: Node
metadata: { name: worker-1, labels: ${labels} }
${more}
---
`;
}

export function pod(spec: string, status: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: web-0, labels: { app: web } }
spec: { ${spec} }
status: { ${status} }
---
`;
}

export const container = 'containers: [{ name: web, image: web, ports: [{ name: http, containerPort: 8080 }] }]';

export const itsAddress = 'status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }';

export const runningPod = pod(container, 'phase: Running, podIP: 10.244.0.1');

export function balanced(fields: string): string {
  return aService(`type: LoadBalancer, ${anIP}, ${fields}, ports: [{ port: 80, nodePort: 30080 }]`);
}

export function deployment(spec: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 3, template: { metadata: { labels: { app: web } }, spec: { ${spec} } } }
---
`;
}

export const aSelector = aService(`${anIP}, selector: { app: web }, ports: [{ port: 80 }]`);

export const rules = `*nat
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j RETURN
COMMIT
`;

/** More pairs of a port and an endpoint, and more addresses, than the limit for a file of this size. */
export function largeInput(): string {
  const list = (length: number, item: (i: number) => string): string =>
    Array.from({ length }, (_, i) => item(i)).join(', ');
  const ports = `ports: [${list(100, (i) => `{ name: p${i}, port: ${i + 1} }`)}]`;
  const endpoints = list(500, (i) => `{ addresses: [10.244.${i >> 8}.${i & 255}] }`);
  return (
    aService(`${anIP}, externalIPs: [${list(200, (i) => `192.0.2.${i + 1}`)}], ${ports}`) +
    slice(`addressType: IPv4\n${ports}\nendpoints: [${endpoints}]`)
  );
}

/** A Service whose annotation this is, with a target port that differs from its port. */
export function annotated(annotation: string): string {
  return aService(`${anIP}, ports: [{ port: 80, targetPort: 8080 }]`).replace(
    'name: web',
    `name: web, annotations: { ${annotation} }`,
  );
}

export const aNodePort = aService(`type: NodePort, ${anIP}, ports: [{ port: 80, nodePort: 30080 }]`);

/** Nodes with the addresses 192.168.1.1 and so on, and Pods of 10.244.0.0/24 and so on. */
export function someNodes(...names: readonly string[]): string {
  return names
    .map(
      (name, i) => `apiVersion: v1
kind: Node
metadata: { name: ${name}, labels: {} }
spec: { podCIDRs: [10.244.${i}.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.1.${i + 1} }] }
---
`,
    )
    .join('');
}

/** A Service of type LoadBalancer with an address and further fields. */
export function balancer(fields = 'loadBalancerClass: a.example/b'): string {
  return aService(
    `type: LoadBalancer, ${anIP}, ${fields}, ports: [{ port: 80, nodePort: 30080 }]`,
    '{ loadBalancer: { ingress: [{ ip: 203.0.113.10 }] } }',
  );
}
