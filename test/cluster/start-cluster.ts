import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: ClusterFiles;
  }
}

/** Where tests find a cluster that runs. */
export interface ClusterFiles {
  /** Of etcd, kubectl and the programs of Kubernetes. */
  readonly programs: string;
  /** Removed in the end. */
  readonly folder: string;
  readonly kubeconfig: string;
  /** The API server's own certificate and its key, which a stand-in for a kubelet shows too. */
  readonly certificate: string;
  readonly key: string;
}

/** The API server's. A loopback address could not be an endpoint of the Service "kubernetes". */
const serverAddress = '198.18.0.1';
const server = `https://${serverAddress}:6443`;

/** The users of the cluster, by the names of their contexts: those whose group is not of masters have the rights that a test gives. */
const users = [
  { context: 'admin', name: 'admin', group: 'system:masters' },
  { context: 'dev', name: 'dev', group: 'developers' },
  { context: 'arn:aws:eks:eu-1:1/$(touch pwned) "ä"', name: 'odd', group: 'system:masters' },
];

export const oddContext = users[2]?.context ?? '';

/** Starts a cluster before all tests, and ends it after them. Vitest calls it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const programs = process.env['KPC_CLUSTER_PROGRAMS'];
  if (programs === undefined) throw new Error('run these tests with: npm run test:cluster');
  const folder = mkdtempSync(join(tmpdir(), 'kpc-cluster-'));
  const children: ChildProcess[] = [];
  const stop = async () => {
    for (const child of children.toReversed()) await endProcess(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const files = await startIn(folder, programs, children);
    project.provide('cluster', files);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

async function startIn(folder: string, programs: string, children: ChildProcess[]): Promise<ClusterFiles> {
  const certificates = join(folder, 'certificates');
  const files = {
    programs,
    folder,
    kubeconfig: join(folder, 'kubeconfig'),
    certificate: join(certificates, 'apiserver.crt'),
    key: join(certificates, 'apiserver.key'),
  };
  const run = (name: string, ...words: readonly string[]) => {
    const child = startProgram(files, name, words);
    children.push(child);
    return child;
  };
  execFileSync('ip', ['address', 'add', `${serverAddress}/32`, 'dev', 'lo']);
  const tokens = users.map(({ name, group }) => ({ token: randomUUID(), name, group }));
  const lines = tokens.map(({ token, name, group }) => `${token},${name},${name},${group}\n`);
  writeFileSync(join(folder, 'tokens.csv'), lines.join(''), { mode: 0o600 });
  const serviceAccounts = join(folder, 'service-accounts.pem');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(serviceAccounts, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  run('etcd', '--data-dir', join(folder, 'etcd'), '--log-level', 'warn', '--unsafe-no-fsync');
  run('kube-apiserver', ...serverFlags(folder, certificates, serviceAccounts));
  await waitFor('the certificate of the API server', () => existsSync(files.certificate));
  writeFileSync(files.kubeconfig, JSON.stringify(kubeconfigOf(files, tokens)), { mode: 0o600 });
  await waitFor('the API server', () => tryKubectl(files, 'get', '--raw', '/readyz'));
  run('kube-controller-manager', ...flagsOf({ kubeconfig: files.kubeconfig, 'leader-elect': 'false', controllers }));
  await waitFor('the Service "kubernetes"', () => tryKubectl(files, 'get', 'service', 'kubernetes'));
  return files;
}

function serverFlags(folder: string, certificates: string, serviceAccounts: string): readonly string[] {
  return flagsOf({
    'etcd-servers': 'http://127.0.0.1:2379',
    'cert-dir': certificates,
    'advertise-address': serverAddress,
    'bind-address': serverAddress,
    'service-cluster-ip-range': '10.96.0.0/16,fd00:10:96::/112',
    'authorization-mode': 'RBAC',
    'token-auth-file': join(folder, 'tokens.csv'),
    'service-account-issuer': server,
    'service-account-key-file': serviceAccounts,
    'service-account-signing-key-file': serviceAccounts,
    // No DNS knows the Nodes.
    'kubelet-preferred-address-types': 'InternalIP',
    // No kubelet is there, and no Pod needs a token.
    'disable-admission-plugins': 'ServiceAccount',
    'allow-privileged': 'true',
  });
}

function flagsOf(values: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

/** Those that make what kube-proxy reads. No controller here finds that the Nodes have no kubelets. */
const controllers = [
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'service-cidr-controller',
].join();

function kubeconfigOf(
  { certificate }: ClusterFiles,
  tokens: readonly { readonly token: string; readonly name: string }[],
) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'kpc',
        cluster: { server, 'certificate-authority-data': readFileSync(certificate).toString('base64') },
      },
      { name: 'gone', cluster: { server: `https://${serverAddress}:1` } },
    ],
    users: tokens.map(({ name, token }) => ({ name, user: { token } })),
    contexts: [
      ...users.map(({ context, name }) => ({ name: context, context: { cluster: 'kpc', user: name } })),
      { name: 'gone', context: { cluster: 'gone', user: 'admin' } },
    ],
    'current-context': 'admin',
  };
}

/** Starts a program of the cluster. What it says is in a file of its name beside the kubeconfig. */
export function startProgram({ programs, folder }: ClusterFiles, name: string, words: readonly string[]): ChildProcess {
  mkdirSync(join(folder, 'logs'), { recursive: true });
  const log = openSync(join(folder, 'logs', name), 'a');
  return spawn(join(programs, name), words, { stdio: ['ignore', log, log], cwd: folder });
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  if (!(await Promise.race([ended.then(() => true), sleep(10_000, false)]))) child.kill('SIGKILL');
  await ended;
}

/** Waits until something holds; a busy machine takes its time. */
export async function waitFor(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited two minutes for ${what}`);
    await sleep(250);
  }
}

function tryKubectl(files: ClusterFiles, ...words: readonly string[]): boolean {
  try {
    kubectl(files, words);
    return true;
  } catch {
    return false;
  }
}

/** What kubectl prints, as the administrator. `input` is its standard input. */
export function kubectl({ programs, kubeconfig }: ClusterFiles, words: readonly string[], input?: string): string {
  const flags = ['--kubeconfig', kubeconfig, '--context', 'admin'];
  return execFileSync(join(programs, 'kubectl'), [...flags, ...words], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    input: input ?? '',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Creates or changes objects. */
export function apply(files: ClusterFiles, objects: readonly object[]): void {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  kubectl(files, ['apply', '--server-side', '--force-conflicts', '-f', '-'], list);
}

interface WithStatus {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly status: object;
}

/** Says of objects what their controllers or kubelets would. A Node may have two addresses of a type, which no apply takes. */
export function setStatus(files: ClusterFiles, objects: readonly WithStatus[]): void {
  for (const { kind, metadata, status } of objects) {
    const words = ['patch', kind, metadata.name, '--namespace', metadata.namespace ?? 'default'];
    kubectl(files, [...words, '--subresource=status', '--type=merge', '--patch', JSON.stringify({ status })]);
  }
}
