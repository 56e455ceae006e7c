// The examples of how to run kpc-apply, each with exactly the rights and mounts that it asks for, in a real kernel.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runsAsRoot } from '../support/other-user.ts';
import { projectFolder } from '../support/run-kpc.ts';

const has = (tool: string): boolean => spawnSync('sh', ['-c', `command -v ${tool}`]).status === 0;
const lacking = ['unshare', 'setpriv', 'ip', 'nft'].filter((tool) => !has(tool));
const reason = !runsAsRoot
  ? 'needs root'
  : lacking.length > 0
    ? `lacks ${lacking.join(', ')}`
    : spawnSync('unshare', ['-n', '-m', 'true']).status === 0
      ? undefined
      : 'may not unshare';

/**
 * $A is kpc-apply. /run/a and /run/z are two bundles. `kube_proxy WORDS…` starts one by WORDS, as $k; `becomes BUNDLE` waits until
 * the node is as the bundle says.
 */
const prepare = `
mount --make-rprivate /; mount -t tmpfs -o mode=0755 tmpfs /run; mkdir -p /var/lib/kpc /run/bundles /run/kpc-apply
mount -t tmpfs -o mode=0755 tmpfs /var/lib/kpc; ip link set lo up; touch /run/xtables.lock
A="${process.execPath} dist/kpc-apply.js"; f=fixtures/quickstart/svc.yaml
compile() { ${process.execPath} dist/kpc.js compile --ip-family ipv4 "$@" >/dev/null 2>&1; }
sed 's/ready: false/ready: true/' $f > /run/z.yaml
compile -f $f --proxy-mode nftables -o /run/bundles/a; compile -f /run/z.yaml --proxy-mode nftables -o /run/bundles/z
cp "$(command -v sleep)" /run/kube-proxy
kube_proxy() { "$@" /run/kube-proxy 300 & k=$!; until grep -qs kube-proxy /proc/[0-9]*/comm; do sleep .1; done; }
becomes() { for i in $(seq 600); do $A verify $1 >/dev/null 2>&1 && echo as wanted && return; sleep .1; done; echo not as wanted; }
`;

function print(script: string): string {
  const { stdout, stderr } = spawnSync('unshare', ['-n', '-m', 'bash', '-c', prepare + script], {
    cwd: projectFolder,
    encoding: 'utf8',
  });
  return stdout === '' ? stderr : stdout;
}

const readExample = (path: string): string => readFileSync(`${projectFolder}/${path}`, 'utf8');

/** The values of a key of a systemd unit. */
function valuesOf(unit: string, key: string): readonly string[] {
  return unit.split('\n').flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));
}

/** Mounts what a unit may not write read-only, and returns the words that give a program its rights. */
function rightsOfUnit(path: string): { readonly unit: string; readonly mounts: string; readonly rights: string } {
  const unit = readExample(path);
  const names = valuesOf(unit, 'CapabilityBoundingSet').join(' ').toLowerCase().replaceAll('cap_', '+').split(' ');
  const only = ['-all', ...names].join(',');
  expect(valuesOf(unit, 'NoNewPrivileges')).toEqual(['true']);
  expect(valuesOf(unit, 'ProtectSystem')).toEqual(['strict']);
  const writable = new Set(['/proc', '/sys', ...valuesOf(unit, 'ReadWritePaths').flatMap((value) => value.split(' '))]);
  const readOnly = ['/', '/run', '/var/lib/kpc'].filter((folder) => !writable.has(folder));
  return {
    unit,
    mounts: readOnly.map((folder) => `mount -o remount,bind,ro ${folder}`).join('\n'),
    rights: ['setpriv --no-new-privs', `--bounding-set ${only}`, `--inh-caps ${only}`]
      .concat('env', valuesOf(unit, 'Environment'))
      .join(' '),
  };
}

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext: { readonly privileged: boolean; readonly readOnlyRootFilesystem: boolean };
  readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface DaemonSet {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly hostPID?: boolean;
        readonly containers: readonly Container[];
      };
    };
  };
}

/** A container has processes of its own unless it asks for those of the node. */
const processesOf = (isNodes: boolean): string => (isNodes ? '' : 'unshare -p --fork --mount-proc');

/** How the recipe at the head of the Dockerfile starts a container. */
function rightsOfRecipe(): string {
  const recipe = /docker run --rm (--privileged [^\\]*)\\/.exec(readExample('Dockerfile'))?.[1] ?? '';
  expect(recipe).toMatch(/^--privileged --network host /);
  return processesOf(recipe.includes('--pid host'));
}

const seen = `
kube_proxy unshare -n; $RIGHTS $A apply /run/bundles/a >/dev/null 2>&1; echo "of another network: $?"
$RIGHTS $A cleanup --adopt --dry-run >/dev/null 2>&1; echo "of another network: $?"; kill $k; wait $k 2>/dev/null
kube_proxy env; $RIGHTS $A cleanup --adopt 2>&1 | grep -o 'kube-proxy is running'; kill $k`;
const allSeen = 'of another network: 0\nof another network: 0\nkube-proxy is running\n';

describe.skipIf(reason !== undefined)(`the examples${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  test('the unit of kpc-apply keeps a node, and sees every kube-proxy', () => {
    const { unit, mounts, rights } = rightsOfUnit('examples/systemd/kpc-apply.service');
    const [, args = ''] = /^\S+ (watch .*)$/.exec(valuesOf(unit, 'ExecStart')[0] ?? '') ?? [];
    expect(args).toContain(' /etc/kpc/bundle ');
    const script = `${mounts}
      RIGHTS="${rights}"; touch /etc/kpc-is-writable 2>/dev/null && echo writable
      $RIGHTS $A ${args.replace('/etc/kpc/bundle', '/run/bundles/a')} >/dev/null 2>&1 & w=$!
      becomes /run/bundles/a; nft flush table ip kube-proxy; kill -HUP $w; becomes /run/bundles/a; kill $w; wait $w; echo $?
      ${seen}`;
    expect(print(script)).toBe(`as wanted\nas wanted\n0\n${allSeen}`);
  });

  test('the DaemonSet keeps a node, and sees every kube-proxy', () => {
    const { spec } = (parse(readExample('examples/kubernetes/apply-daemonset.yaml')) as DaemonSet).spec.template;
    const [container] = spec.containers;
    expect([spec.hostNetwork, container?.securityContext]).toEqual([
      true,
      { privileged: true, readOnlyRootFilesystem: true },
    ]);
    const mounted = container?.volumeMounts.filter(({ readOnly }) => readOnly !== true) ?? [];
    const kept = mounted.flatMap(({ mountPath }) => (/^\/(?:run|var)\//.test(mountPath) ? [mountPath] : []));
    const env = container?.env.flatMap(({ name, value }) => (value === undefined ? [] : [`${name}=${value}`])) ?? [];
    const args = container?.args.join(' ').replace('/bundles/$(NODE_NAME)', '/run/bundles/a');
    const script = `
      ${kept.map((path) => `mount --bind ${path} ${path}`).join('\n')}
      mount -o remount,bind,ro /; mount -o remount,bind,ro /run; touch /run/writable 2>/dev/null && echo writable
      RIGHTS="env ${env.join(' ')} ${processesOf(spec.hostPID === true)}"
      $RIGHTS $A ${args} >/dev/null 2>&1 & w=$!; becomes /run/bundles/a; kill $w; wait $w; echo $?
      ${seen}`;
    expect(print(script)).toBe(`as wanted\n0\n${allSeen}`);
  });

  test('the recipe of the Dockerfile sees every kube-proxy', () => {
    expect(print(`RIGHTS="${rightsOfRecipe()}"\n${seen}`)).toBe(allSeen);
  });

  test.skipIf(!has('nginx'))('the unit of the balancer serves what kpc-apply wrote', () => {
    const { unit, mounts, rights } = rightsOfUnit('examples/systemd/kpc-balancer.service');
    const [check = '', start = ''] = ['ExecStartPre', 'ExecStart'].flatMap((key) => valuesOf(unit, key));
    const script = `
      compile -f $f --proxy-mode userspace --kubernetes-version 1.25 -o /run/u; $A apply /run/u >/dev/null 2>&1; echo $?
      port=$(grep -om1 'listen [^;]*' /var/lib/kpc/balancer.conf | grep -o '[0-9]*' | tail -1); ${mounts}
      ${rights} ${check.replace('/usr/sbin/', '')} 2>&1; echo $?
      ${rights} ${start.replace('/usr/sbin/', '')} >/dev/null 2>&1 & n=$!
      for i in $(seq 100); do grep -qsi ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 && echo listens && break; sleep .1; done
      kill -QUIT $n; wait $n; echo $?`;
    expect(print(script)).toBe('0\n0\nlistens\n0\n');
  });
});
