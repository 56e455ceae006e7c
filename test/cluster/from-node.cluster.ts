// kpc describe --cluster --from-node: the API server takes the pod of kubectl debug, and a stand-in for the node's kubelet runs its
// command beside the real kube-proxy's rules.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { spawnKpc } from '../support/run-kpc.ts';
import { fillCluster, writeConfigMap } from './fill-cluster.ts';
import { printRules, runKubeProxy } from './kube-proxy.ts';
import { StandInKubelet } from './stand-in-kubelet.ts';
import { apply, kubectl } from './start-cluster.ts';
import { resultOf } from '../support/printed-json.ts';

const cluster = inject('cluster');
const env = { PATH: [cluster.programs, process.env['PATH']].join(delimiter), KUBECONFIG: cluster.kubeconfig };
const kubelet = new StandInKubelet(cluster, 0);
const fromNode = ['describe', '--cluster', '--from-node', 'node-1'] as const;

beforeAll(async () => {
  await fillCluster(cluster);
  await kubelet.start();
});
afterAll(() => kubelet.stop());

const podsLeft = () => kubectl(cluster, ['get', 'pods', '-A', '-o', 'name']).match(/node-debugger/g);

describe.each(['nftables', 'iptables'] as const)('the rules of kube-proxy in %s mode', (mode) => {
  test('are described as the same dump in a file', async () => {
    const text = writeConfigMap(cluster, { mode, clusterCIDR: '10.244.0.0/16,fd00:10:244::/56' });
    const rules = await runKubeProxy(cluster, text, 'node-1', mode);
    const title = mode === 'nftables' ? '+ nft list ruleset' : '+ iptables-save';
    const [first = '', second] = rules.values();
    const dump = join(cluster.folder, `dump-${mode}.txt`);
    writeFileSync(dump, [title, first, ...(second === undefined ? [] : ['+ ip6tables-save', second])].join('\n'));
    loadRules(mode, rules);
    expect([...printRules(mode).values()].join('')).toContain('default/sticky');
    try {
      const asked = await spawnKpc([...fromNode, '--output', 'json'], { env });
      expect(asked, asked.stderr).toMatchObject({ status: 0 });
      const read = await spawnKpc(['describe', '--from-dump', dump, '--output', 'json'], {});
      const services = ({ stdout }: { readonly stdout: string }) => resultOf(stdout).services as unknown;
      expect(services(asked)).toEqual(services(read));
      expect(asked.stdout).toContain('default/sticky');
    } finally {
      execFileSync('nft', ['flush', 'ruleset']);
    }
    expect(podsLeft()).toBeNull();
  });
});

test("the pod has the node's network, processes and root, and the command that was shown", () => {
  const [pod] = kubelet.ran;
  const { spec } = pod ?? {};
  expect(spec).toMatchObject({ hostNetwork: true, hostPID: true, hostIPC: true, restartPolicy: 'Never' });
  const [container] = spec?.containers ?? [];
  expect(container).toMatchObject({ image: 'busybox', securityContext: { privileged: true } });
  expect([...(container?.command ?? []), ...(container?.args ?? [])].slice(0, 3)).toEqual([
    'sh',
    '-c',
    'chroot /host sh -c "$0"; true',
  ]);
  const root = spec?.volumes?.find(({ hostPath }) => hostPath?.path === '/');
  expect(container?.volumeMounts).toContainEqual(expect.objectContaining({ name: root?.name, mountPath: '/host' }));
});

test('a namespace that takes no privileged pods', async () => {
  const enforce = (level: string) => {
    const labels = { 'pod-security.kubernetes.io/enforce': level };
    apply(cluster, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels } }]);
  };
  enforce('restricted');
  try {
    const run = await spawnKpc([...fromNode], { env });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: "kubectl debug node\/node-1 .*" failed: .*violates PodSecurity/m);
  } finally {
    enforce('privileged');
  }
});

test('a node that there is not', async () => {
  const run = await spawnKpc(['describe', '--cluster', '--from-node', 'node-9'], { env });
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr).toMatch(/^error: "kubectl debug node\/node-9 .*" failed: .*nodes "node-9" not found/m);
});

test('another image', async () => {
  const run = await spawnKpc([...fromNode, '--debug-image', 'registry.example.com/tools:1'], { env });
  expect(run.stderr).toContain('--image registry.example.com/tools:1');
  expect(kubelet.ran.at(-1)?.spec.containers[0]?.image).toBe('registry.example.com/tools:1');
  expect(podsLeft()).toBeNull();
});

/** Loads what was printed of kube-proxy's rules, whose process has ended. */
function loadRules(mode: 'nftables' | 'iptables', rules: ReadonlyMap<string, string>): void {
  const loaders = mode === 'nftables' ? [['nft', '-f', '-']] : [['iptables-restore'], ['ip6tables-restore']];
  for (const [i, text] of [...rules.values()].entries()) {
    const [program = '', ...words] = loaders[i] ?? [];
    execFileSync(program, words, { input: text });
  }
}
