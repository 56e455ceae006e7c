import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, inject } from 'vitest';
import { compareStates } from '../kube-proxy/compare.ts';
import { readState } from '../kube-proxy/read-state.ts';
import { kpcProgram } from '../support/run-kpc.ts';
import { writeConfigMap, type ProxyConfig } from './fill-cluster.ts';
import { printRules, runKubeProxy, type Printed, type RuleMode } from './kube-proxy.ts';

const cluster = inject('cluster');
const env = { ...process.env, PATH: `${cluster.programs}:${process.env['PATH']}`, KUBECONFIG: cluster.kubeconfig };

/** Compiles for a node what kubectl gets, applies the bundle in a network of its own, and prints what its kernel then has. */
function applyCompiled(node: string, mode: RuleMode): Printed {
  const bundle = join(cluster.folder, `bundle-${node}`);
  execFileSync(process.execPath, [kpcProgram, 'compile', '--cluster', '--node', node, '-o', bundle], {
    env,
    stdio: 'pipe',
  });
  const name = 'kpc';
  execFileSync('ip', ['netns', 'add', name]);
  try {
    const inside = ['ip', 'netns', 'exec', name];
    const program = join(import.meta.dirname, '../../dist/kpc-apply.js');
    const words = ['apply', bundle, '--force', '--state-dir', join(cluster.folder, `state-${node}`)];
    const [tool = '', ...rest] = [...inside, process.execPath, program, ...words];
    execFileSync(tool, rest, { stdio: 'pipe' });
    return printRules(mode, inside);
  } finally {
    execFileSync('ip', ['netns', 'delete', name]);
    execFileSync('rm', ['-rf', join(cluster.folder, `state-${node}`)]);
  }
}

/** What kpc compiles from the output of kubectl is what the real kube-proxy programs that reads the same API server. */
export async function expectSame(config: ProxyConfig, node: string): Promise<void> {
  const { mode } = config;
  const text = writeConfigMap(cluster, config);
  const theirs = await runKubeProxy(cluster, text, node, mode);
  const ours = applyCompiled(node, mode);
  expect([...compareStates(readState(theirs, mode), readState(ours, mode))]).toEqual([]);
}

export const configs: readonly (readonly [string, ProxyConfig])[] = [
  ['iptables mode', { mode: 'iptables', clusterCIDR: '10.244.0.0/16,fd00:10:244::/56' }],
  ['nftables mode', { mode: 'nftables', clusterCIDR: '10.244.0.0/16,fd00:10:244::/56' }],
  [
    'iptables mode, masquerading all, by interface',
    { mode: 'iptables', masqueradeAll: true, detectLocalMode: 'InterfaceNamePrefix', localhostNodePorts: false },
  ],
  [
    'nftables mode, with node ports on a network, by the CIDRs of the node',
    { mode: 'nftables', nodePortAddresses: ['192.0.2.0/24', '2001:db8::/32'], detectLocalMode: 'NodeCIDR' },
  ],
];
