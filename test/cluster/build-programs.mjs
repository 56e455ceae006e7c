// Builds the programs of a real cluster from their Go modules, once, into a folder of the user's cache.
// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The release that programs/go.mod names. */
const release = '1.37.2';

/** Each program's package. Its last part is the program's name, but for etcd's. */
const programs = {
  etcd: 'go.etcd.io/etcd/server/v3',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
};

const source = join(import.meta.dirname, 'programs');

/** The folder of the programs, which are built if they are not there: ten minutes or more on two cores. */
export function buildPrograms() {
  const sum = createHash('sha256')
    .update(readFileSync(join(source, 'go.sum')))
    .digest('hex');
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const folder = join(cache, 'kpc', `cluster-${release}-${sum.slice(0, 12)}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, path] of Object.entries(programs)) if (!existsSync(join(folder, name))) build(path, folder, name);
  return folder;
}

/**
 * Puts a program into its folder only when it is whole.
 *
 * @param {string} path
 * @param {string} folder
 * @param {string} name
 */
function build(path, folder, name) {
  const start = Date.now();
  console.log(`builds ${name} from ${path}`);
  const unfinished = join(folder, `.${name}-${process.pid}`);
  const args = ['build', '-trimpath', '-ldflags', linkerFlags(), '-o', unfinished, path];
  const env = { CGO_ENABLED: '0', GOFLAGS: '-p=2 -buildvcs=false', ...process.env };
  try {
    execFileSync('nice', ['go', ...args], { cwd: source, env, stdio: 'inherit' });
    renameSync(unfinished, join(folder, name));
  } finally {
    rmSync(unfinished, { force: true });
  }
  console.log(`built ${name} in ${Math.round((Date.now() - start) / 1000)} s`);
}

/** What Kubernetes' own build says of the version; without it a program says v0.0.0. */
function linkerFlags() {
  const [major, minor] = release.split('.');
  const facts = { gitVersion: `v${release}`, gitMajor: major, gitMinor: minor };
  const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'];
  const flags = packages.flatMap((name) => Object.entries(facts).map(([fact, value]) => `-X ${name}.${fact}=${value}`));
  return ['-s', '-w', ...flags].join(' ');
}
