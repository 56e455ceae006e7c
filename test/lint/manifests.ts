// Manifests for tests of kpc lint.
export function aService(spec: string, status = '', name = 'web'): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name} }
spec: { ${spec} }
${status === '' ? '' : `status: ${status}\n`}---
`;
}

export const anIP = 'clusterIP: 10.96.0.10';

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

function pod(spec: string, status: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: web-0, labels: { app: web } }
spec: { ${spec} }
status: { ${status} }
---
`;
}

export const container =
  'containers: [{ name: web, image: web, ports: [{ name: http, containerPort: 8080 }, { containerPort: 80 }] }]';

export const runningPod = pod(container, 'phase: Running, podIP: 10.244.0.1');

export function deployment(spec: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 3, template: { metadata: { labels: { app: web } }, spec: { ${spec} } } }
---
`;
}

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
