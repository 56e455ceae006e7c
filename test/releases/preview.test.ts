// Of a release that is not out, kpc programs what the newest version before it does.
import { expect, test } from 'vitest';
import { compile, type CompileOptions } from '../../src/library/compile.ts';
import { newestRelease } from '../../src/kube-proxy/releases.ts';

const text = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { type: NodePort, clusterIP: 10.96.0.7, ports: [{ port: 80, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.5], nodeName: worker-1, conditions: { ready: true } }]
---
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
spec: { podCIDR: 10.244.1.0/24 }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] }
`;

function rulesOf(options: Partial<CompileOptions>) {
  const manifests = [{ name: 'in.yaml', text }];
  const { bundle, diagnostics } = compile({ manifests, proxyMode: 'nftables', ...options });
  return {
    rules: bundle?.files.get('nftables.nft'),
    recorded: bundle?.manifest.settings.nftablesLocalhostNodePorts,
    notes: diagnostics.filter(({ severity }) => severity === 'note').map(({ code }) => code),
  };
}

const gate = 'KubeProxyNFTablesLocalhostNodePorts';

test('1.38 programs what 1.37 does with the gate on, says so, and is not the default', () => {
  const coming = rulesOf({ kubernetesVersion: '1.38' });
  expect(coming.rules).toContain('map localhost-nodeport-reject-ports');
  expect(coming.rules).toBe(rulesOf({ kubernetesVersion: '1.37', featureGates: `${gate}=true` }).rules);
  expect(coming.notes).toContain('kubernetes-preview');
  expect(newestRelease).toBe('1.37');
  expect(rulesOf({}).notes).not.toContain('kubernetes-preview');
});

test('a bundle records the gate where it is not at the default of its release', () => {
  expect(rulesOf({ kubernetesVersion: '1.37' }).recorded).toBeUndefined();
  expect(rulesOf({ kubernetesVersion: '1.37', featureGates: `${gate}=true` }).recorded).toBe(true);
  expect(rulesOf({ kubernetesVersion: '1.38' }).recorded).toBeUndefined();
  const off = rulesOf({ kubernetesVersion: '1.38', featureGates: `${gate}=false` });
  expect(off.recorded).toBe(false);
  expect(off.rules).toBe(rulesOf({ kubernetesVersion: '1.37' }).rules);
});

test.each([
  ['126.0.0.0/7', 'rejects', 'serves'],
  ['127.0.0.2/32', 'serves', 'rejects'],
  ['127.0.0.0/8', 'serves', 'serves'],
  ['0.0.0.0/0', 'rejects', 'rejects'],
])(
  'of TCP node ports on localhost with %s, 1.37 %s them, and 1.38 %s them itself',
  (nodeportAddresses, old, coming) => {
    const handlingBy = (kubernetesVersion: '1.37' | '1.38') => {
      const { rules = '' } = rulesOf({
        kubernetesVersion,
        nodeportAddresses,
        featureGates: `${gate}=true`,
        ipFamily: 'ipv4',
      });
      return rules.includes('tcp . 30080 : goto') && /localhost-nodeport-reject-ports \{[^}]*tcp \. 30080/.test(rules)
        ? 'rejects'
        : 'serves';
    };
    expect([handlingBy('1.37'), handlingBy('1.38')]).toEqual([old, coming]);
  },
);
