// The API server refuses workloads that do not select their own Pods.
import { expect, test } from 'vitest';
import { lint } from '../../src/library/index.ts';

const workload = (kind: string, selector: string) =>
  `apiVersion: ${kind === 'Job' ? 'batch/v1' : kind === 'ReplicationController' ? 'v1' : 'apps/v1'}
kind: ${kind}
metadata: { name: web }
spec: { selector: { ${selector} }, template: { metadata: { labels: { app: web, tier: front } } } }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
`;

const errorsOf = (kind: string, selector: string) =>
  lint({ manifests: { 'in.yaml': workload(kind, selector) } })
    .findings.filter(({ severity }) => severity === 'error')
    .map(({ code, arguments: details }) => ({ code, ...details }));

test.each(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'])('%s', (kind) => {
  const error = { code: 'unmatched-selector', kind };
  expect(errorsOf(kind, 'matchLabels: { app: web, tier: back }')).toEqual([{ ...error, selector: 'tier=back' }]);
  expect(errorsOf(kind, 'matchExpressions: [{ key: app, operator: NotIn, values: [web] }]')).toEqual([
    { ...error, selector: 'app notin (web)' },
  ]);
  expect(errorsOf(kind, 'matchLabels: { app: web }')).toEqual([]);
});

test.each(['Job', 'ReplicationController'])('%s: the control plane decides', (kind) => {
  expect(errorsOf(kind, 'app: other')).toEqual([]);
});
