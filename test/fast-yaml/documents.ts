/** Documents as kubectl prints them and as people write them: what the fast reader is for. */
export const realDocuments: readonly string[] = [
  `apiVersion: v1
kind: Service
metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","kind":"Service","metadata":{"annotations":{},"name":"web","namespace":"shop"},"spec":{"ports":[{"port":80}]}}
    example.com/note: 'it''s "quoted": # not a comment'
    example.com/long: The quick brown fox jumps over the lazy dog, and then it
      does so again, since this line is folded by kubectl

      and goes on
    example.com/escaped: "tab\\there \\"x\\" \\u00e9 and a long text that kubectl folds\\
      \\ in double quotes as well\\n"
  creationTimestamp: "2024-05-01T10:11:12Z"
  finalizers:
  - service.kubernetes.io/load-balancer-cleanup
  generateName: web-
  labels: {}
  managedFields:
  - apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:annotations:
          .: {}
          f:kubectl.kubernetes.io/last-applied-configuration: {}
      f:spec:
        f:ports:
          .: {}
          k:{"port":80,"protocol":"TCP"}:
            .: {}
            f:port: {}
        f:selector: {}
    manager: kubectl-client-side-apply
    operation: Update
    time: "2024-05-01T10:11:12Z"
  name: web
  namespace: shop
  resourceVersion: "123456"
  uid: 12345678-9e10-4abc-8def-0123456789ab
spec:
  allocateLoadBalancerNodePorts: true
  clusterIP: 10.96.0.10
  clusterIPs:
  - 10.96.0.10
  - fd00:10:96::a
  ports:
  - name: http
    nodePort: 30080
    port: 80
    protocol: TCP
    targetPort: 8080
  - name: metrics
    port: 9090
    targetPort: metrics
  selector: null
  sessionAffinity: None
status:
  loadBalancer: {}
`,
  `# Source: chart/templates/service.yaml
apiVersion: v1
kind: Service
metadata:
    name:   web    # the name
    labels: {app: web, "tier": 'front', count: "3"}

spec:
    type: NodePort
    # ports follow

    ports:
        -   port: 80
            targetPort: 8080
        - { port: 443, targetPort: https, protocol: TCP }
    externalIPs: [192.0.2.1, "192.0.2.2"]
    loadBalancerSourceRanges:
        - 10.0.0.0/8

        - 2001:db8::/32
        - ::/0
    publishNotReadyAddresses: false
`,
  `---
addressType: IPv4
apiVersion: discovery.k8s.io/v1
endpoints:
- addresses:
  - 10.244.1.12
  conditions:
    ready: true
    serving: true
    terminating: false
  hints:
    forZones:
    - name: zone-a
  nodeName: node-1
  targetRef:
    kind: Pod
    name: web-7d4b9c6f5-abcde
    uid: 0e1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7
  zone: zone-a
- addresses: ["10.244.2.7"]
  conditions: {ready: false}
  nodeName: node-2
kind: EndpointSlice
metadata:
  labels:
    kubernetes.io/service-name: web
  name: web-x7k2p
ports:
- name: ""
  port: 8080
  protocol: TCP
`,
  `apiVersion: v1
data:
  config.conf: |-
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    mode: ipvs

    ipvs:
      strictARP: true
  kept: |+
    a line

  folded: >-
    one
    two

    three
  clipped: >
    one
    two


  script: |
    #!/bin/sh
    exec kube-proxy --v=2
kind: ConfigMap
metadata:
  name: kube-proxy
`,
  `apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      node.alpha.kubernetes.io/ttl: "0"
    labels:
      kubernetes.io/hostname: node-1
      topology.kubernetes.io/zone: zone-a
  spec:
    podCIDRs:
    - 10.244.1.0/24
  status:
    addresses:
    - address: 192.168.0.11
      type: InternalIP
    - address: node-1
      type: Hostname
    capacity:
      cpu: "4"
      memory: 8Gi
      pods: 110
      ratio: 1.5
- - nested
  -
    - 1
    - -2
  -
kind: List
metadata:
  resourceVersion: ""
`,
  `a: [true, false, null, ~, yes, No, on, OFF, y, n, 0, -0, 1e3, 0x10, 0o7, 010, 1_000, .5, +1, 5.]
b:
  - True
  - TRUE
  - Null
  - 2001-01-01
  - 2001-01-01T00:00:00Z
  - 2001-12-14 21:59:43.10 -5
  - 190:20:30
  - 123456789012345678901234567890
  - 1234567890123456
  - 0b101
  - 1.2.3
  - 1.50
  - 00
  - 08
c:
  "8080": quoted
  '1': quoted
  two words: 1
`,
];

const alphabet = Array.from(' \n:-#\'"{}[]|>&*!%@`,?=<~\\/_.+09aeEnNyxXoTtZ\t\r\0').concat(
  '\n  ',
  '\n- ',
  ': ',
  ' #',
  '- ',
  '\n\n',
  '\n---\n',
  '\n...\n',
  '\n... ',
  '\n--- ',
  '<<: ',
  '__proto__: ',
  '\u0085',
  '\u00e9',
  '\u2028',
  '\ufeff',
  '\u{1f600}',
  '\\x41',
  '\\u12',
  '\\\n',
);

const scalars =
  '~|null|True|no|y|-0|0x1F|0o17|017|1e3|1.0|.5|1_0|-.inf|2001-01-01|\'a\'|"b\\n"|{}|[]|[a, b]|{a: 1}|{"a":1}|- x|a: b'
    .split('|')
    .concat(
      [
        '|',
        '>-',
        '|+',
        '&a x',
        '*a',
        '!!str 1',
        '<<',
        '=',
        '---',
        '...',
        '# c',
        '',
        '1:2',
        'a b',
        '-',
        '--x',
        'x:',
        ':x',
      ],
      ['a\n    b', '"a\n    b"', "'a\n\n    b'", '{a: 1,\n  b: 2}'],
    );

/** A number in [0, below), the same for the same seed: what makes a failing case repeatable. */
export type Random = (below: number) => number;

/** Marsaglia's xorshift. */
export function createRandom(seed: number): Random {
  let state = seed * 2654435761 + 1 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Breaks a document in one to four places, as a slip of the hand would, or an attacker. */
export function mutate(text: string, random: Random): string {
  let mutated = text;
  for (let i = random(4); i >= 0; i--) mutated = mutateOnce(mutated, random);
  return mutated;
}

function mutateOnce(text: string, random: Random): string {
  const at = random(text.length + 1);
  const lines = text.split('\n');
  const line = random(lines.length);
  const content = lines[line] ?? '';
  switch (random(9)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1 + random(3));
    case 1:
    case 2:
      return text.slice(0, at) + (alphabet[random(alphabet.length)] ?? '') + text.slice(at);
    case 3:
      return text.slice(0, at) + text.charAt(at + 1) + text.charAt(at) + text.slice(at + 2);
    case 4:
      return lines.with(line, ' '.repeat(random(4)) + content).join('\n');
    case 5:
      return lines.with(line, content.slice(Math.min(random(4), content.search(/[^ ]|$/)))).join('\n');
    case 6:
      return lines.toSpliced(line, random(2), ...lines.slice(line, line + 1 + random(2))).join('\n');
    case 7:
      return lines.toSpliced(line, 1 + random(2)).join('\n');
    default:
      return lines
        .with(line, content.replace(/(?<=^[^:]*: |^ *- ).*/, scalars[random(scalars.length)] ?? ''))
        .join('\n');
  }
}

/** A few lines in a row of one document, so that most of a small text is what a mutation hits. */
export function excerpt(text: string, random: Random): string {
  const lines = text.split('\n');
  const start = random(lines.length);
  const chosen = lines.slice(start, start + 2 + random(12));
  const indent = Math.min(...chosen.filter((line) => line.trim() !== '').map((line) => line.search(/[^ ]/)));
  return chosen.map((line) => line.slice(Number.isFinite(indent) ? indent : 0)).join('\n');
}
