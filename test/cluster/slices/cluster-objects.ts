/** A Kubernetes object as it would be written into a manifest. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Objects as one input, which is JSON and so YAML. */
export function inputOf(...objects: readonly Manifest[]): string {
  return `${objects.map((object) => JSON.stringify(object)).join('\n')}\n`;
}

/** A Service that looks for Pods with the label app=NAME. */
export function service(name: string, spec: object = {}, metadata: object = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...metadata },
    spec: { clusterIP: '10.96.0.10', selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
  };
}

/** A ready Pod on worker-1 with the label app=web. */
export function pod(name: string, ip: string, { spec = {}, status = {}, metadata = {} } = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'web' }, ...metadata },
    spec: { nodeName: 'worker-1', containers: [{ name: 'c', image: 'x' }], ...spec },
    status: {
      phase: 'Running',
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
      ...status,
    },
  };
}

export function node(n: number, zone = '', fields: { spec?: object; status?: object } = {}): Manifest {
  const labels = zone === '' ? {} : { 'topology.kubernetes.io/zone': zone };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `worker-${n}`, labels },
    spec: { podCIDRs: [`10.244.${n}.0/24`], ...fields.spec },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.50.1${n}` }], ...fields.status },
  };
}
