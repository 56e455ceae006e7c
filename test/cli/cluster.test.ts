// --cluster and --render start programs of the user's. Stand-ins on the PATH record their arguments and print what real ones do.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { renderInputs } from '../../src/programs/run-program.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { kpcProgram, spawnKpc, projectFolder, runKpc, runProgram, type Run } from '../support/run-kpc.ts';

const root = mkdtempSync(join(tmpdir(), 'kpc-cluster-'));
const bin = join(root, 'bin');
const calls = join(root, 'calls');
const fixtures = join(projectFolder, 'fixtures');

/** A program on the PATH that records its arguments, one a line, and runs a script. */
function standIn(name: string, script: string): void {
  writeFileSync(
    join(bin, name),
    `#!/bin/sh\n{ printf '%s' "${name}"; for word; do printf ' [%s]' "$word"; done; echo; } >>"${calls}"\n${script}\n`,
  );
  chmodSync(join(bin, name), 0o755);
}

const kubectl = `
[ "$1" = --context ] && shift 2
case "$1 $2" in
  "api-resources "*) printf '%s\\n' services endpointslices.discovery.k8s.io nodes pods secrets;;
  "get configmap") ;;
  "get "*) cat "${fixtures}/kubectl-list/all.json";;
  "kustomize "*) cat "${fixtures}/assigned-addresses/svc.yaml";;
  "debug "*) echo 'Creating debugging pod node-debugger-worker-1-x7z2p with container debugger on node worker-1.';;
  "wait "*) echo 'pod/node-debugger-worker-1-x7z2p condition met';;
  "logs "*) echo '# kpc: the dump begins here'
    echo '+ iptables-save'; cat "${fixtures}/dumps/kube-proxy-iptables-session-affinity/iptables-save"
    echo '+ ip6tables-save'; cat "${fixtures}/dumps/kube-proxy-iptables-session-affinity/ip6tables-save"
    echo '# kpc: the dump ends here';;
  "delete "*) echo 'pod "node-debugger-worker-1-x7z2p" deleted';;
  *) echo "error: unknown command $1" >&2; exit 1;;
esac`;

beforeAll(() => {
  mkdirSync(bin);
});
beforeEach(() => {
  rmSync(calls, { force: true });
  standIn('kubectl', kubectl);
  standIn('helm', `cat "${fixtures}/assigned-addresses/svc.yaml"`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const env = { PATH: [bin, process.env['PATH']].join(delimiter) };
const kpc = (...words: readonly string[]) => callWithPath(env.PATH, words);
const recorded = (): readonly string[] => (existsSync(calls) ? readFileSync(calls, 'utf8').trimEnd().split('\n') : []);

/** Without the programs: the PATH holds no more than a shell needs. */
const bare = (...words: readonly string[]) => callWithPath('/nonexistent', words);

async function callWithPath(path: string, words: readonly string[]): Promise<Run> {
  const before = process.env['PATH'];
  process.env['PATH'] = path;
  try {
    return await runKpc(words, { cwd: root });
  } finally {
    process.env['PATH'] = before;
  }
}

/** The arguments of the findings of this code. */
async function told(code: string, ...words: readonly string[]) {
  return findingsOf((await kpc(...words, '--output', 'json')).stdout, code).map((each) => each.arguments);
}

describe('--cluster', () => {
  test('reads what the cluster serves, with the context, and shows each command', async () => {
    const run = await kpc('describe', '--cluster', '--context', 'prod', '--node', 'worker-1');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('ClusterIP');
    expect(recorded()).toEqual([
      'kubectl [--context] [prod] [api-resources] [--verbs=list] [-o] [name]',
      'kubectl [--context] [prod] [get] [services,endpointslices.discovery.k8s.io,nodes,pods] [--all-namespaces] [-o] [json]',
      'kubectl [--context] [prod] [get] [configmap] [kube-proxy] [--namespace] [kube-system] [--ignore-not-found] [-o] [json]',
    ]);
    expect(run.stderr).toContain('note: runs kubectl --context prod api-resources --verbs=list -o name');
  });

  test.each(['trace', 'compile'])('is the same as a pipe for kpc %s', async (name) => {
    const words = [
      name,
      '-q',
      '--proxy-mode',
      'iptables',
      '--node',
      'worker-1',
      ...(name === 'trace' ? ['--from', 'pod', '--to', '10.96.0.10:53'] : []),
    ];
    const [asked, piped] = await Promise.all([
      kpc(...words, '--cluster'),
      spawnKpc([...words, '-'], { stdin: readFileSync(join(fixtures, 'kubectl-list', 'all.json'), 'utf8') }),
    ]);
    expect(asked.stdout).toBe(piped.stdout);
    expect(asked.status).toBe(piped.status);
  });

  test('is never run without being asked, nor by a kpc.yaml', async () => {
    const folder = mkdtempSync(join(root, 'repository-'));
    writeFileSync(join(folder, 'kpc.yaml'), 'cluster: true\nrender: true\n');
    const run = await spawnKpc(['describe'], { cwd: folder, env });
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(/cluster[^]*render/);
    expect(recorded()).toEqual([]);
  });

  test('as kubectl kpc, a call without inputs asks the cluster, and one with inputs does not', async () => {
    const plugin = join(bin, 'kubectl-kpc');
    symlinkSync(join(projectFolder, 'bin', 'kpc.js'), plugin);
    const run = await runProgram(process.execPath, [plugin, 'describe', '--node', 'worker-1'], { cwd: root, env });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(recorded()).toHaveLength(3);
    rmSync(calls);
    await runProgram(process.execPath, [plugin, 'describe', '-f', join(fixtures, 'clusterip')], { cwd: root, env });
    expect(recorded()).toEqual([]);
  });

  test.each([
    [['--context', 'prod', '-f', '-'], '--context: only with --cluster'],
    [['--cluster', '-f', '-'], '--cluster replaces standard input'],
  ] as const)('%j', async (flags, message) => {
    const run = await kpc('describe', ...flags);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(message);
    expect(recorded()).toEqual([]);
  });

  const refusal = (name: string) =>
    `echo 'Error from server (Forbidden): ${name} is forbidden: User "dev" cannot list resource' >&2`;
  /** kubectl with a user who may not list these. */
  const without = (...names: readonly string[]) => {
    const refusals = names.map((name) => `case ",$2," in *,${name},*) ${refusal(name)}; fails=1;; esac`);
    return kubectl.replace('"get "*) cat', `"get "*) ${refusals.join('; ')}; cat`).concat('\nexit $fails');
  };

  test('what the user may not list leaves verdicts open', async () => {
    const { items } = JSON.parse(readFileSync(join(fixtures, 'kubectl-list', 'all.json'), 'utf8'));
    const left = items.filter(({ kind }: { readonly kind: string }) => kind !== 'ServiceCIDR');
    writeFileSync(join(root, 'left.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: left }));
    standIn(
      'kubectl',
      without('servicecidrs.networking.k8s.io', 'pods', 'networkpolicies.networking.k8s.io')
        .replace('nodes pods secrets', 'nodes pods servicecidrs.networking.k8s.io networkpolicies.networking.k8s.io')
        .replace(join(fixtures, 'kubectl-list', 'all.json'), join(root, 'left.json')),
    );
    const words = ['--cluster', '--node', 'worker-1', '--proxy-mode', 'nftables', '--from', 'external'];
    const known = await kpc('trace', ...words, '--to', '10.96.0.1:443');
    expect(known, known.stderr).toMatchObject({ status: 0 });
    expect(known.stderr).toMatch(/warning: .*\[unread-cluster\]/);
    expect(await told('unread-cluster', 'trace', ...words, '--to', '10.96.0.1:443')).toMatchObject([
      { lists: ['serviceCidrs', 'pods', 'policies'], isNeeded: false },
    ]);
    expect(known.stdout).toMatch(/policy .*not known/);
    const free = await kpc('trace', ...words, '--to', '10.96.200.200:53', '--output', 'json');
    expect(resultOf(free.stdout).traces).toMatchObject([{ verdict: 'unknown' }]);
    const pod = ['trace', ...words.slice(0, -2), '--from', 'pod/shop/web-1', '--to', '10.96.0.1:443'];
    expect(await kpc(...pod)).toMatchObject({ status: 2 });
    expect(await told('bad-packet', ...pod)).toEqual([{ problem: 'unread', what: 'Pod shop/web-1', kinds: ['Pods'] }]);
    const strict = await kpc('trace', ...words, '--to', '10.96.0.1:443', '--strict');
    expect(strict).toMatchObject({ status: 2, stdout: '' });
    const compiled = await kpc('compile', '--cluster', '--node', 'worker-1');
    expect(compiled).toMatchObject({ status: 2, stdout: '' });
    expect(compiled.stderr).toMatch(/\[unread-cluster\]\n {2}help: .*--service-cluster-ip-range/);
    const flags = ['--service-cluster-ip-range', '10.96.0.0/12', '--proxy-mode', 'nftables'];
    const range = await kpc('compile', '--cluster', '--node', 'worker-1', ...flags);
    expect(range, range.stderr).toMatchObject({ status: 0 });
  });

  test.each(['nodes', 'services'])('nothing is said without %s', async (name) => {
    standIn('kubectl', without(name));
    const run = await kpc('describe', '--cluster', '--node', 'worker-1');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(await told('unread-cluster', 'describe', '--cluster', '--node', 'worker-1')).toEqual([
      { kinds: [name], lists: [name], isNeeded: true },
    ]);
  });

  test('an API that does not answer hides only its own kinds', async () => {
    const said =
      'error: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion';
    standIn('kubectl', kubectl.replace('pods secrets;;', `pods secrets; echo '${said}' >&2; exit 1;;`));
    const run = await kpc('describe', '--cluster', '--node', 'worker-1');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stderr).not.toContain('[unread-cluster]');
    standIn(
      'kubectl',
      kubectl.replace(
        'pods secrets;;',
        `pods secrets; echo '${said}, gateway.networking.k8s.io/v1: stale' >&2; exit 1;;`,
      ),
    );
    const to = 'https://example.com/';
    const routes = ['trace', '--cluster', '--node', 'worker-1', '--from', 'external', '--to', to];
    expect(await kpc(...routes)).toMatchObject({ status: 2 });
    expect(await told('bad-packet', ...routes)).toMatchObject([{ problem: 'unread', what: to }]);
  });

  test("kubectl's settings are the ConfigMap's, or those of --config", async () => {
    const said = `${refusal('configmaps "kube-proxy"')}; exit 1`;
    standIn('kubectl', kubectl.replace('"get configmap") ;;', `"get configmap") ${said};;`));
    const run = await kpc('describe', '--cluster', '--node', 'worker-1');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stderr).toMatch(/\[unread-cluster\]\n {2}help: .*--proxy-mode.*--config/);
    const compiled = await kpc('compile', '--cluster', '--node', 'worker-1');
    expect(compiled).toMatchObject({ status: 2, stdout: '' });
    writeFileSync(
      join(root, 'config.yaml'),
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n',
    );
    const given = await kpc('compile', '--cluster', '--node', 'worker-1', '--config', 'config.yaml');
    expect(given, given.stderr).toMatchObject({ status: 0 });
  });

  test('rules are compiled of no mode that nothing names', async () => {
    const run = await kpc('compile', '--cluster', '--node', 'worker-1');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: .*ConfigMap kube-proxy.*\[unread-cluster\]\n {2}help: .*--proxy-mode/);
    const described = await kpc('describe', '--cluster', '--node', 'worker-1');
    expect(described.status).toBe(0);
  });

  test('kpc lint looks at a cluster, and its packets are asked of that cluster', async () => {
    const run = await kpc('lint', '--cluster', '--context', 'prod', '--output', 'json');
    expect(run.status, run.stderr).not.toBe(2);
    expect(recorded()).toHaveLength(3);
    expect(run.stdout).not.toContain('kpc trace -');
  });

  test('what kubectl says of a failure, and what to do without kubectl', async () => {
    standIn('kubectl', 'echo "The connection to the server localhost:8080 was refused" >&2; exit 1');
    const failed = await kpc('describe', '--cluster');
    expect(failed).toMatchObject({ status: 2, stdout: '' });
    expect(failed.stderr).toMatch(/The connection to the server localhost:8080 was refused \[bad-call\]/);
    const missing = await bare('describe', '--cluster');
    expect(missing).toMatchObject({ status: 2, stdout: '' });
    expect(missing.stderr).toMatch(/error: .*kubectl.* \[bad-call\]/);
    expect(missing.stderr).toContain(
      'kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml | kpc describe -',
    );
  });
});

describe('--from-node', () => {
  test("describes the node's dump, and removes the debugging pod", async () => {
    const run = await kpc('describe', '--cluster', '--from-node', 'worker-1');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('default/nginx-service');
    const [debug = '', ...others] = recorded();
    expect(debug).toContain('kubectl [debug] [node/worker-1] [--image] [busybox]');
    expect(debug).toContain('[--profile] [sysadmin] [--] [sh] [-c] [chroot /host sh -c "$0"; true]');
    expect(others.slice(0, 2)).toEqual([
      'kubectl [wait] [pod/node-debugger-worker-1-x7z2p] [--for=jsonpath={.status.phase}=Succeeded] [--timeout=240s]',
      'kubectl [logs] [node-debugger-worker-1-x7z2p]',
    ]);
    expect(others[2]).toBe('kubectl [delete] [pod] [node-debugger-worker-1-x7z2p] [--wait=false] [--ignore-not-found]');
    expect(run.stderr).toContain('note: runs kubectl debug node/worker-1');
  });

  test('the pod is removed too where its command fails', async () => {
    const line = 'Creating debugging pod node-debugger-worker-1-x7z2p with container debugger on node worker-1.';
    standIn('kubectl', `[ "$1" = debug ] || exit 0; echo '${line}'; echo 'error: timed out' >&2; exit 1`);
    const run = await kpc('describe', '--cluster', '--from-node', 'worker-1');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(recorded().at(-1)).toContain('[delete] [pod] [node-debugger-worker-1-x7z2p]');
  });

  test.each([
    ['lacks its beginning', "echo '*filter'; echo '# kpc: the dump ends here'", 'but: *filter'],
    ['lacks its end', "echo '# kpc: the dump begins here'; echo '*filter'", 'but: *filter'],
    ['is no dump', `echo "chroot: can't execute 'sh': No such file or directory"`, "but: chroot: can't execute 'sh'"],
  ])('a log that %s is refused, and the pod is removed', async (_, log, said) => {
    const line = 'Creating debugging pod node-debugger-worker-1-x7z2p with container debugger on node worker-1.';
    standIn('kubectl', `case "$1" in debug) echo '${line}';; logs) ${log};; esac`);
    const run = await kpc('describe', '--cluster', '--from-node', 'worker-1');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: "kubectl logs node-debugger-worker-1-x7z2p".* \[bad-call\]/);
    expect(run.stderr).toContain(said);
    expect(recorded().at(-1)).toContain('[delete] [pod] [node-debugger-worker-1-x7z2p]');
  });

  test('each command is shown before it runs', async () => {
    const shown = join(root, 'shown');
    // The stand-in goes on only when the test has seen the note.
    standIn('kubectl', `while [ ! -e "${shown}" ]; do sleep 0.05; done; echo 'error: enough' >&2; exit 1`);
    const run = spawn(process.execPath, [kpcProgram, 'describe', '--cluster', '--from-node', 'worker-1'], {
      env: { ...process.env, ...env },
    });
    let said = '';
    run.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('note: runs kubectl debug node/worker-1 --image busybox')) writeFileSync(shown, '');
    });
    const status = await new Promise((resolve) => run.on('close', resolve));
    expect(said).toContain('failed: error: enough');
    expect(status).toBe(2);
  });

  test.each([
    [['--from-node', 'worker-1'], '--from-node: only with --cluster'],
    [['--cluster', '--from-node', '--privileged'], 'is not the name of a node'],
    [['--cluster', '--from-node', 'a;b'], 'is not the name of a node'],
    [['--debug-image', 'alpine', '-f', '-'], '--debug-image: only with --from-node'],
  ] as const)('%j', async (flags, message) => {
    const run = await kpc('describe', ...flags);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(message);
    expect(recorded()).toEqual([]);
  });
});

describe('--render', () => {
  const chart = join(root, 'charts', 'web');
  const overlay = join(root, 'overlay');
  beforeAll(() => {
    mkdirSync(join(chart, 'templates'), { recursive: true });
    writeFileSync(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: web\nversion: 0.1.0\n');
    writeFileSync(join(chart, 'templates', 'service.yaml'), 'kind: {{ .Values.kind }}\n');
    mkdirSync(overlay);
    writeFileSync(join(overlay, 'kustomization.yaml'), 'resources: [../base]\n');
    writeFileSync(join(root, 'values.yaml'), 'kind: Service\n');
  });

  test.each([
    [['charts/web'], 'helm [template] [web] [./charts/web]'],
    [['charts/web', '--render-values', 'values.yaml'], 'helm [template] [web] [./charts/web] [--values] [values.yaml]'],
    [['charts/web/Chart.yaml'], 'helm [template] [web] [./charts/web]'],
    [['./overlay'], 'kubectl [kustomize] [./overlay]'],
    [['overlay/kustomization.yaml'], 'kubectl [kustomize] [./overlay]'],
  ] as const)('%j', async (words, call) => {
    const run = await kpc('describe', '--render', ...words);
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(recorded()).toEqual([call]);
    // Without the flag, nothing is run.
    rmSync(calls);
    await kpc('describe', ...words.filter((word) => !/values/.test(word)));
    expect(recorded()).toEqual([]);
  });

  test('a folder whose name is no word of a shell, nor an option', async () => {
    const odd = join(root, '-x $(touch pwned)');
    mkdirSync(odd);
    writeFileSync(join(odd, 'Chart.yaml'), 'name: "$(touch pwned)"\n');
    const run = await kpc('describe', '--render', '-f', './-x $(touch pwned)');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(recorded()).toEqual(['helm [template] [kpc] [./-x $(touch pwned)]']);
    expect(existsSync(join(root, 'pwned'))).toBe(false);
  });

  test('what helm says of a failure, and the pipe to copy without helm', async () => {
    standIn('helm', 'echo "Error: chart requires kubeVersion: >=1.99" >&2; exit 1');
    const failed = await kpc('describe', '--render', 'charts/web');
    expect(failed).toMatchObject({ status: 2, stdout: '' });
    expect(failed.stderr).toContain('Error: chart requires kubeVersion: >=1.99');
    const missing = await bare('compile', '--render', '-f', 'charts/web', '-f', 'overlay');
    expect(missing).toMatchObject({ status: 2, stdout: '' });
    expect(missing.stderr).toMatch(/error: .*helm.* \[not-rendered\]/);
    expect(missing.stderr).toContain('helm template web ./charts/web | kpc compile -f -');
    expect(missing.stderr).toContain('kubectl kustomize ./overlay | kpc compile -f -');
  });

  test('a git revision is not rendered', () => {
    const render = (revision: string | undefined) =>
      renderInputs(['HEAD:overlay'], [], { into: { command: '' }, revision });
    const [none, own] = [undefined, 'HEAD:overlay'].map((each) => JSON.stringify(render(each).diagnostics));
    expect([none?.includes('HEAD:overlay'), own?.includes('HEAD:overlay')]).toEqual([false, true]);
  });

  test('inputs that nothing renders, and values that nothing takes', async () => {
    const plain = await kpc('describe', '--render', '-f', join(fixtures, 'clusterip'));
    expect(plain.status).toBe(2);
    expect(plain.stderr).toMatch(/error: --render: .*\[not-rendered\]/);
    const idle = await kpc('describe', '--render', '--render-values', 'values.yaml', './overlay');
    expect(idle.stderr).toMatch(/error: --render-values: .*\[not-rendered\]/);
    const alone = await kpc('describe', '--render-values', 'values.yaml', './overlay');
    expect(alone.stderr).toMatch(/error: --render-values: .*--render \[bad-call\]/);
    expect(alone.status).toBe(2);
  });
});
