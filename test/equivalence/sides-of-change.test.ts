// What is asked of a change belongs to the side after it: advice that is followed must not change the present side.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { planChange } from '../../src/ask/equivalence/change.ts';
import { migrate, type MigrateOptions } from '../../src/library/index.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-sides-of-change-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const write = (name: string, text: string): string => {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
};

const head = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16
`;
const config = (name: string, more: string) => ({ name, text: `${head}${more}` });
const present = config('present.yaml', 'mode: ipvs\n');
const kubeadm = {
  name: 'kubeadm.yaml',
  text: `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking: { podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12 }
`,
};

const documents = (spec: string): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.80, ${spec} }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: n1 }, { addresses: [10.244.2.10], nodeName: n2 }]
${[1, 2, 3]
  .map(
    (at) => `---
apiVersion: v1
kind: Node
metadata: { name: n${at} }
spec: { podCIDR: 10.244.${at}.0/24 }
status:
  addresses: [{ type: InternalIP, address: 10.0.0.${at} }${at === 1 ? ', { type: ExternalIP, address: 203.0.113.1 }' : ''}]
  nodeInfo: { kubeletVersion: v1.35.0 }
`,
  )
  .join('')}`;
const nodePort = documents('type: NodePort, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }]');

function ask(options: Omit<MigrateOptions, 'manifests'>, manifests = nodePort) {
  const { passed, report, findings, diagnostics } = migrate({ manifests: { 'web.yaml': manifests }, ...options });
  const breaking = report?.causes.flatMap(({ cause, severity }) => (severity === 'breaks' ? cause : []));
  const steps = findings.map(({ arguments: details }) => (details as { readonly step?: string }).step);
  return { passed, report, breaking, steps, diagnostics };
}

describe('kpc migrate', () => {
  test.each([
    ['a flag', { nodeportAddresses: '10.0.0.0/24' }, { nodeportAddresses: '0.0.0.0/0' }],
    [
      'a configuration',
      { toConfig: config('new.yaml', 'mode: nftables\nnodePortAddresses: [10.0.0.0/24]\n') },
      { toConfig: config('new.yaml', 'mode: nftables\nnodePortAddresses: [0.0.0.0/0]\n') },
    ],
  ])('sees what %s after the change leaves broken', (_, less, all) => {
    expect(ask({ config: present }).steps).toContain('node-port-addresses');
    const { breaking, report } = ask({ config: present, ...less });
    expect(breaking).toEqual(['node-port-addresses']);
    expect(report?.to).toMatch(/^nftables \(--[a-z-]+ [\w./]+\)$/);
    const { passed, steps } = ask({ config: present, ...all });
    expect({ passed, isTold: steps.includes('node-port-addresses') }).toEqual({ passed: true, isTold: false });
  });

  test('traces with the configuration of the side that it shows', () => {
    const { report } = ask({ config: present, toConfig: config('new.yaml', 'mode: nftables\n') });
    const traces = report?.causes.flatMap(({ effects }) => effects.map(({ trace }) => trace)) ?? [];
    expect(traces).not.toEqual([]);
    expect(traces).toEqual(traces.map(() => expect.stringContaining('--config new.yaml')));
  });

  test.each([
    [{ conntrackTcpBeLiberal: 'true' }, 'invalid-packets'],
    [{ toConfig: config('new.yaml', 'mode: nftables\nconntrack: { tcpBeLiberal: true }\n') }, 'invalid-packets'],
    [{ masqueradeAll: 'true' }, 'masquerade-setting'],
    [{ toConfig: config('new.yaml', 'mode: nftables\nnftables: { masqueradeAll: true }\n') }, 'masquerade-setting'],
  ])('%j ends the step %s', (options, step) => {
    const old = config('old.yaml', 'mode: iptables\niptables: { masqueradeAll: true }\n');
    expect(ask({ config: old }).steps).toContain(step);
    expect(ask({ config: old, ...options }).steps).not.toContain(step);
  });

  test('a flag for what the old side does not do is a difference', () => {
    const old = config('old.yaml', 'mode: iptables\n');
    const { report } = ask({ config: old, masqueradeAll: 'true' });
    expect(report?.causes.map(({ cause }) => cause)).toContain('masquerade');
    expect(ask({ config: old }).report?.causes.map(({ cause }) => cause)).not.toContain('masquerade');
  });

  test.each([
    ['1.41', 'KubeProxyIPVS=true', '1.41 ipvs (--feature-gates KubeProxyIPVS=true)'],
    ['1.43', 'KubeProxyIPVS=true', '1.43 nftables (--feature-gates KubeProxyIPVS=true)'],
    ['1.40', 'AllowServiceExternalIPs=true', '1.40 nftables (--feature-gates AllowServiceExternalIPs=true)'],
  ])('to %s with %s, which the old release does not know', (toKubernetesVersion, featureGates, to) => {
    const { report, diagnostics } = ask({ config: present, toKubernetesVersion, featureGates });
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(report).toMatchObject({ from: '1.35 ipvs', to });
  });

  test('names localhost for a release that takes the word', () => {
    const old = config('old.yaml', 'mode: iptables\n');
    const upgrade = { config: old, to: 'nftables', toKubernetesVersion: '1.38' } as const;
    expect(ask(upgrade).breaking).toContain('node-port-loopback');
    expect(ask({ ...upgrade, nodeportAddresses: '0.0.0.0/0,localhost' }).breaking).not.toContain('node-port-loopback');
  });

  test('takes the mode of the new configuration, and refuses two', () => {
    const setupOf = (mode: 'ipvs' | 'iptables') => ({ settings: { mode }, gates: new Map(), modeNote: undefined });
    const before = { ...setupOf('ipvs'), cluster: { servicePorts: [] }, version: undefined, nodes: new Map() };
    const asked = { toConfig: 'new.yaml' };
    expect(planChange(asked, before, setupOf('iptables'))).toMatchObject({
      to: { options: { proxyMode: 'iptables' } },
    });
    const why = { problem: 'other-mode', mode: 'iptables', to: 'nftables' };
    expect(planChange({ ...asked, to: 'nftables' }, before, setupOf('iptables'))).toEqual({ kind: 'refused', why });
    const upgrade = { ...asked, toKubernetesVersion: '1.43' };
    expect(planChange(upgrade, before, setupOf('ipvs'))).toMatchObject({ why: { mode: 'ipvs', to: 'nftables' } });
  });

  test('the command line does the same', async () => {
    const [cluster, old] = [write('web.yaml', nodePort), write('present.yaml', present.text)];
    const fresh = write('new.yaml', `${head}mode: nftables\nnodePortAddresses: [10.0.0.0/24]\n`);
    const run = async (...flags: readonly string[]) => runKpc(['migrate', '-q', cluster, '--config', old, ...flags]);
    const { status, stdout } = await run('--to-config', fresh);
    expect(status).toBe(1);
    expect(stdout).toContain(`ipvs → nftables (--to-config ${fresh})`);
    expect(stdout).toContain(`kpc trace ${cluster} --config ${fresh} --proxy-mode nftables`);
    expect((await run('--nodeport-addresses', '0.0.0.0/0')).status).toBe(0);
    const refused = await run('--to-config', fresh, '--to', 'iptables');
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('nftables mode, but')]);
  });

  test.each([
    ['kubeadm', kubeadm],
    ['a KubeProxyConfiguration', config('open.yaml', '')],
  ])('a configuration of %s that names no mode leaves it to the release', (_, own) => {
    const { report, steps } = ask({ config: own, toKubernetesVersion: '1.40' });
    expect(report).toMatchObject({ from: '1.35 iptables', to: '1.40 nftables' });
    expect(report?.summary).toContain("1.35 iptables (kube-proxy's default) → 1.40 nftables");
    expect(steps).toContain('set-mode');
  });

  const local = 'externalTrafficPolicy: Local, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }]';

  test('advises on Local by who sends', async () => {
    const cluster = write('local.yaml', documents(`type: NodePort, ${local}`));
    const { stdout } = await runKpc(['migrate', '-q', cluster, '--from', 'ipvs', '--cluster-cidr', '10.244.0.0/16']);
    const section = stdout.split('\n\n').find((each) => each.startsWith('externalTrafficPolicy Local')) ?? '';
    expect(section).toContain('from a pod on another node');
    expect(section).toContain('use the cluster IP');
    expect(section).not.toContain('load balancers');
  });

  test('says where only the old mode answers health checks', async () => {
    const cluster = write('balanced.yaml', documents(`type: LoadBalancer, healthCheckNodePort: 32000, ${local}`));
    const { stdout } = await runKpc(['migrate', '-q', cluster, '--from', 'ipvs', '--node', 'n2']);
    const section = stdout.split('\n\n').find((each) => each.startsWith('A health check')) ?? '';
    expect(section).toContain('only the old side answers on 10.96.0.80:32000.');
    expect(section).toMatch(/IPVS mode answers .*\n.*nftables mode answers /);
    expect(section).toContain('To do: let load balancers check the primary address');
  });
});
