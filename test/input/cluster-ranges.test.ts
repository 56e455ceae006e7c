import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-cluster-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

let count = 0;

function write(text: string): string {
  const name = `${++count}.yaml`;
  writeFileSync(join(cwd, name), text);
  return name;
}

const service = write(
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { type: NodePort, ports: [{ port: 80 }] }\n',
);

/** What the manifest of the bundle says. */
async function compile(...args: readonly string[]) {
  const run = await runKpc(['compile', ...args, '--print', 'manifest'], { cwd });
  expect(run, run.stderr).toMatchObject({ status: 0 });
  const manifest = JSON.parse(run.stdout);
  const [{ clusterIPs, nodePorts, loadBalancerIPs } = { clusterIPs: [], nodePorts: {}, loadBalancerIPs: [] }] =
    manifest.assigned;
  const { mode, settings } = manifest;
  const clusterCIDRs: readonly string[] = settings.clusterCIDRs;
  return { mode, clusterCIDRs, clusterIPs, nodePorts, loadBalancerIPs, scheduler: settings.ipvs.scheduler, manifest };
}

const kubeadm = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking: { serviceSubnet: 172.20.0.0/16, podSubnet: 10.200.0.0/16 }
apiServer: { extraArgs: [{ name: service-node-port-range, value: 31000-31999 }] }
`;
const indent = (text: string) => text.replaceAll(/^/gm, '    ');

/** Each says that cluster IPs begin with 172.20. */
const sources: Readonly<Record<string, string>> = {
  kubeadm,
  'kubeadm v1beta3': kubeadm
    .replace('v1beta4', 'v1beta3')
    .replace('[{ name: service-node-port-range, value: 31000-31999 }]', '{ service-node-port-range: 31000-31999 }'),
  'kubeadm-config': `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: kubeadm-config, namespace: kube-system }\ndata:\n  ClusterConfiguration: |\n${indent(kubeadm)}`,
  kind: 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: { serviceSubnet: 172.20.0.0/16, podSubnet: 10.200.0.0/16, kubeProxyMode: ipvs }\n',
  k3s: 'cluster-cidr: 10.200.0.0/16\nservice-cidr: 172.20.0.0/16\nservice-node-port-range: 31000-31999\nkube-proxy-arg: ["proxy-mode=ipvs", "ipvs-scheduler=lc"]\n',
};

describe.each(Object.entries(sources))('the configuration of %s', (name, text) => {
  test.each(['-f', '--config'])('says the ranges by %s', async (flag) => {
    const found = await compile('-f', service, flag, write(text));
    expect(found.clusterIPs[0]).toMatch(/^172\.20\./);
    expect(found.clusterCIDRs).toEqual(['10.200.0.0/16']);
    expect(found.mode).toBe(name === 'kind' || name === 'k3s' ? 'ipvs' : 'iptables');
    const [nodePort] = Object.values(found.nodePorts).map(Number);
    expect(nodePort).toBeGreaterThanOrEqual(name === 'kind' ? 30_000 : 31_000);
    expect(found.scheduler).toBe(name === 'k3s' ? 'lc' : 'rr');
  });
});

const settingsOf = async (...args: readonly string[]) => (await compile('-f', service, ...args)).manifest.settings;
const kindCluster = 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n';
const proxyConfig = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n';
const inConfigMap = (text: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata:\n  config.conf: |\n${indent(text)}`;

test.each(['-f', '--config'])('kubeadm fills what a KubeProxyConfiguration leaves open: %s', async (flag) => {
  const both = `${kubeadm}---\n${proxyConfig}`;
  expect(await settingsOf(flag, write(both))).toMatchObject({ mode: 'ipvs', clusterCIDRs: ['10.200.0.0/16'] });
  const named = `${both}clusterCIDR: 10.7.0.0/16\n`;
  expect(await settingsOf(flag, write(named))).toMatchObject({ clusterCIDRs: ['10.7.0.0/16'] });
});

test('what the ConfigMaps of a cluster leave open stays open', async () => {
  const both = `${inConfigMap(kubeadm)}\n---\n${inConfigMap(proxyConfig).replace('name: c', 'name: d')}`;
  expect(await settingsOf('-f', write(both))).toMatchObject({ mode: 'ipvs', clusterCIDRs: [] });
});

test.each(['-f', '--config'])('kind applies its patches, gates and settings of conntrack: %s', async (flag) => {
  const patched = `${kindCluster}networking: { kubeProxyMode: nftables }
featureGates: { AllowServiceExternalIPs: false }
kubeadmConfigPatches:
- |
  kind: KubeProxyConfiguration
  nodePortAddresses: [10.1.0.0/16]
- |
  kind: InitConfiguration
`;
  expect(await settingsOf(flag, write(patched))).toMatchObject({
    mode: 'nftables',
    clusterCIDRs: ['10.244.0.0/16'],
    nodePortAddresses: ['10.1.0.0/16'],
    ignoresExternalIPs: true,
    conntrack: { maxPerCore: 0, tcpBeLiberal: true },
  });
  const own = patched.replace('nodePortAddresses: [10.1.0.0/16]', 'conntrack: { maxPerCore: 4096 }');
  expect(await settingsOf(flag, write(own))).toMatchObject({ conntrack: { maxPerCore: 4096, tcpBeLiberal: true } });
  expect(await settingsOf(flag, write(kindCluster))).toMatchObject({ conntrack: { maxPerCore: 0 } });
});

test('k3s leaves conntrack alone', async () => {
  const conntrack = { maxPerCore: 0, tcpEstablishedTimeout: 0, tcpCloseWaitTimeout: 0 };
  expect(await settingsOf('-f', write('write-kubeconfig-mode: "0644"\n'))).toMatchObject({ conntrack });
  const own = write('kube-proxy-arg: conntrack-max-per-core=4096\n');
  expect(await settingsOf('-f', own)).toMatchObject({ conntrack: { ...conntrack, maxPerCore: 4096 } });
});

const apiServer = `apiVersion: v1
kind: Pod
metadata: { name: kube-apiserver-a, namespace: kube-system }
spec:
  containers:
    - command: [kube-apiserver, --advertise-address=1.2.3.4, --service-cluster-ip-range=172.20.0.0/16]
`;

test('the Pod of a kube-apiserver says the ranges, and nothing of kube-proxy', async () => {
  const found = await compile('-f', service, '-f', write(apiServer));
  expect(found.clusterIPs[0]).toMatch(/^172\.20\./);
  expect(found.mode).toBe('ipvs');
});

/** A Pod, or the template of a DaemonSet, with a container of these words. */
const podOf = (kind: 'Pod' | 'DaemonSet', name: string, words: string) => {
  const spec = `{ containers: [{ name: other, args: [--cluster-cidr=10.1.0.0/16] }, { name: kube-proxy, ${words} }] }`;
  const template = `{ selector: {}, template: { metadata: { labels: { a: b } }, spec: ${spec} } }`;
  return `apiVersion: ${kind === 'Pod' ? 'v1' : 'apps/v1'}\nkind: ${kind}\nmetadata: { name: ${name}, namespace: kube-system }\nspec: ${kind === 'Pod' ? spec : template}\n`;
};

describe('the arguments of a kube-proxy', () => {
  const given = ['-f', service, '--service-cluster-ip-range', '10.96.0.0/16'];
  const args =
    'args: [--cluster-cidr=10.42.0.0/16, --proxy-mode, iptables, --masquerade-all, --hostname-override=$(NODE)]';

  test.each([
    ['Pod', `command: [kube-proxy], ${args}`],
    ['DaemonSet', `command: [/usr/local/bin/kube-proxy], ${args}`],
    [
      'Pod',
      `command: [/bin/sh, -c, "exec kube-proxy --proxy-mode=iptables --cluster-cidr=10.42.0.0/16 --masquerade-all"]`,
    ],
  ] as const)('are its settings in a %s: %s', async (kind, words) => {
    const found = await compile(...given, '-f', write(podOf(kind, 'p', words)));
    expect(found).toMatchObject({ mode: 'iptables', clusterCIDRs: ['10.42.0.0/16'] });
    expect(found.manifest.settings.masqueradeAll).toBe(true);
    const { stderr } = await runKpc(['compile', '-f', service, '-f', write(podOf(kind, 'p', words))], { cwd });
    expect(stderr).not.toContain('[skipped-kinds]');
  });

  test('are its settings in a systemd unit', async () => {
    const unit = (words: string) => write(`[Unit]\nDescription=x\n[Service]\nExecStart=${words}\nRestart=always\n`);
    const config = unit(
      '/usr/bin/kube-proxy \\\n  --cluster-cidr=10.42.0.0/16 \\\n  --proxy-mode iptables --masquerade-all',
    );
    const found = await compile(...given, '--config', config);
    expect(found).toMatchObject({ mode: 'iptables', clusterCIDRs: ['10.42.0.0/16'] });
    expect(found.manifest.settings.masqueradeAll).toBe(true);
    for (const words of ['/usr/bin/kube-proxy $KUBE_PROXY_ARGS', '/usr/bin/kubelet --cluster-cidr=10.42.0.0/16']) {
      expect(await runKpc(['compile', ...given, '--config', unit(words)], { cwd })).toMatchObject({
        status: 2,
        stdout: '',
      });
    }
  });

  test('that name no mode mean the default of kube-proxy', async () => {
    const pod = write(podOf('Pod', 'p', 'command: [kube-proxy, --kubeconfig=/k]'));
    expect(await compile(...given, '-f', pod)).toMatchObject({ mode: 'iptables', clusterCIDRs: [] });
  });

  test('count for nothing beside --config, as for kube-proxy, and less than a flag of kpc', async () => {
    const configured = write(podOf('DaemonSet', 'p', `command: [kube-proxy, --config=/c, --proxy-mode=iptables]`));
    expect(await compile(...given, '-f', configured)).toMatchObject({ mode: 'ipvs' });
    const pod = write(podOf('Pod', 'p', `command: [kube-proxy], ${args}`));
    expect(await compile(...given, '-f', pod, '--proxy-mode', 'ipvs')).toMatchObject({
      mode: 'ipvs',
      clusterCIDRs: ['10.42.0.0/16'],
    });
  });

  test('of several nodes are one setting, and an error where they differ', async () => {
    const on = (name: string, mode: string) =>
      podOf('Pod', name, `command: [kube-proxy, --proxy-mode=${mode}, --hostname-override=${name}]`);
    const same = write(`${on('a', 'iptables')}---\n${on('b', 'iptables')}`);
    expect(await compile(...given, '-f', same)).toMatchObject({ mode: 'iptables' });
    const differing = write(`${on('a', 'iptables')}---\n${on('b', 'nftables')}`);
    const run = await runKpc(['compile', ...given, '-f', differing, '--print', 'manifest'], { cwd });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(
      'error: the arguments of this kube-proxy differ from those of another kube-proxy in the input',
    );
  });

  test('do not keep its Pod from being an endpoint', async () => {
    const metrics = write(
      `apiVersion: v1\nkind: Service\nmetadata: { name: m, namespace: kube-system }\nspec: { clusterIP: 10.96.0.9, selector: { k8s-app: kube-proxy }, ports: [{ port: 80 }] }\n---\napiVersion: v1\nkind: Node\nmetadata: { name: node-1 }\n---\n` +
        podOf('Pod', 'p', 'command: [kube-proxy, --proxy-mode=ipvs]')
          .replace('spec: {', 'spec: { nodeName: node-1, ')
          .replace(
            'namespace: kube-system }',
            'namespace: kube-system, labels: { k8s-app: kube-proxy } }\nstatus: { phase: Running, podIP: 10.42.0.5, podIPs: [{ ip: 10.42.0.5 }], conditions: [{ type: Ready, status: "True" }] }',
          ),
    );
    const run = await runKpc(['compile', '-f', metrics, '--print', 'ipvsadm'], { cwd });
    expect(run.stdout, run.stderr).toContain('-r 10.42.0.5:80');
  });
});

test('a flag counts more than a configuration, and a KubeProxyConfiguration more than what is made of another', async () => {
  const config =
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nclusterCIDR: 10.9.0.0/16\n';
  const found = await compile(
    '-f',
    service,
    '-f',
    write(`${kubeadm}---\n${config}`),
    '--service-cluster-ip-range',
    '10.96.0.0/16',
  );
  expect(found.clusterIPs[0]).toMatch(/^10\.96\./);
  expect(found).toMatchObject({ mode: 'ipvs', clusterCIDRs: ['10.9.0.0/16'] });
});

test('the ConfigMap of kube-proxy counts by -f as by --config', async () => {
  const config =
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs: { scheduler: sh }\n';
  const map = write(
    `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: kube-proxy }\ndata:\n  kubeconfig.conf: 'a: b'\n  config.conf: |\n${indent(config)}`,
  );
  const ranges = ['--service-cluster-ip-range', '10.96.0.0/16', '--service-node-port-range', '30000-30999'];
  for (const flag of ['-f', '--config']) {
    expect(await compile('-f', service, flag, map, ...ranges)).toMatchObject({ mode: 'ipvs', scheduler: 'sh' });
  }
});

test('of several clusters in one file, none is an object that is skipped', async () => {
  const run = await runKpc(['compile', '-f', service, '-f', write(kubeadm), '--print', 'iptables'], { cwd });
  expect(run.stderr).not.toContain('ignored');
});

describe('--load-balancer-ip-range', () => {
  const balanced = (name: string, more = '') =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { type: LoadBalancer, clusterIP: 10.96.0.${name.length}, allocateLoadBalancerNodePorts: false, ports: [{ port: 80 }]${more} }\n---\n`;

  test('gives load balancers addresses, always the same ones', async () => {
    const one = await compile('-f', write(balanced('web')), '--load-balancer-ip-range', '203.0.113.0/24');
    expect(one.loadBalancerIPs).toHaveLength(1);
    expect(one.loadBalancerIPs[0]).toMatch(/^203\.0\.113\./);
    const file = write(balanced('shop') + balanced('web'));
    const two = await compile('-f', file, '--load-balancer-ip-range', '203.0.113.0/24');
    expect(two.manifest.assigned[1].loadBalancerIPs).toEqual(one.loadBalancerIPs);
    const ipvs = await runKpc(
      [
        'compile',
        '-f',
        file,
        '--load-balancer-ip-range',
        '203.0.113.0/24',
        '--proxy-mode',
        'ipvs',
        '--print',
        'ipvsadm',
      ],
      { cwd },
    );
    expect(ipvs.stdout).toContain(`-A -t ${one.loadBalancerIPs[0]}:80`);
  });

  test('leaves those alone that have one, and stops where none is left', async () => {
    const has = balanced('web').replace('---\n', 'status: { loadBalancer: { ingress: [{ ip: 198.51.100.7 }] } }\n');
    expect((await compile('-f', write(has), '--load-balancer-ip-range', '203.0.113.0/24')).manifest.assigned).toEqual(
      [],
    );
    const run = await runKpc(
      ['compile', '-f', write(balanced('web') + balanced('shop')), '--load-balancer-ip-range', '203.0.113.7/32'],
      { cwd },
    );
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('no load balancer address of 203.0.113.7/32 is free'),
    });
  });

  test('is refused where it is no network', async () => {
    const run = await runKpc(['compile', '-f', write(balanced('web')), '--load-balancer-ip-range', '203.0.113.1-9'], {
      cwd,
    });
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--load-balancer-ip-range cannot be "203.0.113.1-9"'),
    });
  });
});

describe('--namespace', () => {
  const text =
    'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.9, ports: [{ port: 80 }] }\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: a, labels: { kubernetes.io/service-name: web } }\naddressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.1.1.1] }]\n';

  test('is that of objects that name none', async () => {
    const other = text
      .slice(0, text.indexOf('---'))
      .replace('name: web }', 'name: web, namespace: other }')
      .replaceAll('10.96.0.9', '10.96.0.8');
    const run = await runKpc(['describe', '-f', write(`${text}---\n${other}`), '-n', 'shop', '--output', 'json'], {
      cwd,
    });
    expect(resultOf(run.stdout).services).toMatchObject([
      { service: 'other/web' },
      { service: 'shop/web', endpoints: { total: 1 } },
    ]);
    const one = await runKpc(['describe', 'web', '-f', write(`${text}---\n${other}`), '-n', 'shop'], { cwd });
    expect(one.stdout).toContain('shop/web');
    expect(one.stdout).not.toContain('other/web');
  });

  test('must be one', async () => {
    const run = await runKpc(['compile', '-f', write(text), '-n', 'A b'], { cwd });
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('--namespace cannot be "A b"') });
  });
});

test('an EndpointSlice of v1beta1, which no release that kpc follows serves, is not read, and that is said', async () => {
  const slice = 'apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: { name: a }\naddressType: IPv4\n';
  const web =
    'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.9, ports: [{ port: 80 }] }\n---\n';
  const run = await runKpc(['compile', '-f', write(web + slice), '--print', 'services'], { cwd });
  expect(run.stderr).toContain('[unknown-kind]');
  expect(run.stderr).toContain('discovery.k8s.io/v1');
});
