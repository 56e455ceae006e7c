import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { headlessLabel } from '../../src/kube-proxy/skipped.ts';
import { runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-releases-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const web = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  loadBalancerSourceRanges: [0.0.0.0/0, 10.0.0.0/8]
  ports: [{port: 80, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.0.1], nodeName: node-1, zone: a, hints: {forZones: [{name: a}], forNodes: [{name: node-1}]}}
- {addresses: [10.1.0.2], nodeName: node-2, zone: a, hints: {forZones: [{name: a}], forNodes: [{name: node-2}]}}
- {addresses: [10.1.0.3], nodeName: node-3, zone: b, hints: {forZones: [{name: b}], forNodes: [{name: node-3}]}}
---
apiVersion: v1
kind: Service
metadata: {name: labelled, namespace: shop, labels: {service.kubernetes.io/headless: ""}}
spec: {clusterIP: 10.96.0.11, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: same, namespace: shop}
spec: {clusterIP: 10.96.0.12, ports: [{port: 80}]}
`;

function nodeText(name: string, version: string, address: string): string {
  const info = version === '' ? '' : `nodeInfo: {kubeletVersion: ${version}}, `;
  return `---
apiVersion: v1
kind: Node
metadata: {name: ${name}, labels: {topology.kubernetes.io/zone: a}}
status: {${info}addresses: [{type: InternalIP, address: ${address}}]}
`;
}

function write(name: string, text: string): string {
  writeFileSync(join(cwd, name), text);
  return name;
}

write('web.yaml', web + nodeText('node-1', '', '192.168.0.1'));
write('web-132.yaml', web + nodeText('node-1', 'v1.32.4-gke.100', '192.168.0.1'));
const kpc = (...args: readonly string[]) => runKpc(args, { cwd });

describe('kpc diff --to-kubernetes-version', () => {
  test('tells Service by Service what an upgrade changes, and which change of kube-proxy does it', async () => {
    const run = await kpc('diff', '--kubernetes-version', '1.30', '--to-kubernetes-version', '1.36', '-f', 'web.yaml');
    expect(run.status, run.stderr).toBe(1);
    const [head, labelled, changed] = run.stdout.split('\n\n');
    expect(head).toBe('release: 1.30 → 1.36');
    expect(labelled).toMatch(/^shop\/labelled added\n {4}kube-proxy 1\.30 ignores .*#134623\)\n/);
    expect(changed).toMatch(/^shop\/web changed\n/);
    expect(changed?.match(/#\d+/g)).toEqual(['#123487', '#130844', '#132722']);
    expect(changed).toContain('virtual server TCP 10.96.0.10:80: − 2 real servers 10.1.0.2:8080, 10.1.0.3:8080');
    expect(run.stdout).not.toContain('shop/same');
    expect(run.stderr).toContain('by Kubernetes 1.30 and 1.36');
    expect(run.stderr).toContain('with many cores');
  });

  test('one step names only what that step changes', async () => {
    const reasons = async (from: string, to: string) => {
      const flags = ['--kubernetes-version', from, '--to-kubernetes-version', to, '--output', 'json'];
      const run = await kpc('diff', ...flags, 'web.yaml');
      const { servicePorts } = resultOf(run.stdout) as {
        servicePorts: readonly { servicePort: string; reasons: readonly { behaviour?: string }[] }[];
      };
      expect(run.status).toBe(servicePorts.length > 0 ? 1 : 0);
      return servicePorts.map((port) => [
        port.servicePort,
        ...port.reasons.flatMap(({ behaviour }) => behaviour ?? []),
      ]);
    };
    expect(await reasons('1.30', '1.31')).toEqual([['shop/web', 'zone-hints-without-annotation']]);
    expect(await reasons('1.31', '1.33')).toEqual([]);
    expect(await reasons('1.33', '1.34')).toEqual([['shop/web', 'node-hints', 'open-source-range']]);
    expect(await reasons('1.34', '1.35')).toEqual([]);
    expect(await reasons('1.35', '1.36')).toEqual([['shop/labelled', 'separate-watches']]);
    expect(await reasons('1.36', '1.35')).toEqual([['shop/labelled', 'separate-watches']]);
  });

  test('a way back turns the words around', async () => {
    const run = await kpc('diff', '--kubernetes-version', '1.36', '--to-kubernetes-version', '1.35', 'web.yaml');
    expect(run.stdout).toMatch(
      /\n\nshop\/labelled removed\n {4}kube-proxy 1\.36 ignores Services only by .*; 1\.35 ignores /,
    );
  });

  test('Markdown and unified say the same', async () => {
    const flags = ['diff', '--kubernetes-version', '1.35', '--to-kubernetes-version', '1.36', 'web.yaml', '--output'];
    const markdown = await kpc(...flags, 'markdown');
    expect(markdown).toMatchObject({ status: 1 });
    expect(markdown.stdout).toContain('### shop/labelled added\n\n- kube-proxy 1.35 ignores');
    const unified = await kpc(...flags, 'unified');
    expect(unified).toMatchObject({ status: 1 });
    expect(unified.stdout).toContain('+++ b/ipvsadm.restore');
    expect(unified.stdout).toContain('\n+-A -t 10.96.0.11:80 -s rr\n');
  });

  test('the release that the cluster runs is the one that its Node names', async () => {
    for (const flags of [[], ['--kubernetes-version', 'auto']]) {
      const run = await kpc('diff', ...flags, '--to-kubernetes-version', '1.34', 'web-132.yaml');
      expect(run.status, run.stderr).toBe(1);
      expect(run.stdout).toContain('kube-proxy 1.32 ignores the node hints of endpoints; 1.34 follows');
    }
    const unknown = await kpc('diff', '--to-kubernetes-version', '1.34', 'web.yaml');
    expect(unknown).toMatchObject({ status: 2, stdout: '' });
    expect(unknown.stderr).toMatch(/error: --kubernetes-version: .*"node-1".*\[bad-kubernetes-version\]/);
  });

  test('every command follows the release that the Node names, unless a flag names one', async () => {
    const args = ['--from', 'iptables', '--to-kubernetes-version', '1.34', 'web-132.yaml'];
    const moved = await kpc('migrate', ...args);
    expect(moved.stdout).toMatch(/^1\.32 iptables → 1\.34 iptables: [1-9]/);
    const named = await kpc('migrate', ...args, '--kubernetes-version', '1.34');
    expect(named.stdout).toMatch(/^1\.34 iptables → 1\.34 iptables: .* no difference/);
    for (const command of [['compile'], ['trace', '--from', 'node', '--to', '10.96.0.10:80'], ['describe'], ['lint']]) {
      const followed = await kpc(...command, '-f', 'web-132.yaml', '--proxy-mode', 'nftables');
      expect(followed.status, command[0]).not.toBe(0);
      expect(followed.stdout + followed.stderr, command[0]).toContain('[bad-mode]');
    }
    const newest = await kpc(
      'compile',
      '-f',
      'web-132.yaml',
      '--proxy-mode',
      'nftables',
      '--kubernetes-version',
      '1.37',
    );
    expect(newest.status).toBe(0);
  });

  test('what cannot be compared is an error', async () => {
    const far = await kpc('diff', '--to-kubernetes-version', '1.39', 'web-132.yaml');
    expect(far).toMatchObject({ status: 2, stdout: '' });
    expect(far.stderr).toContain(
      '--to-kubernetes-version cannot be "1.39" [bad-value]\n  help: write a release of Kubernetes 1.30 to 1.38, or auto',
    );
    const two = await kpc('diff', '--to-kubernetes-version', '1.36', 'web-132.yaml', 'web.yaml');
    expect(two).toMatchObject({ status: 2, stdout: '' });
    expect(two.stderr).toContain('leave out web.yaml');
    await kpc('compile', '-f', 'web.yaml', '-o', 'bundle');
    const bundle = await kpc('diff', '--to-kubernetes-version', '1.36', 'bundle');
    expect(bundle).toMatchObject({ status: 2, stdout: '' });
    expect(bundle.stderr).toMatch(/error: bundle .*\[no-manifests\]/);
    const one = await kpc('diff', 'web.yaml');
    expect(one).toMatchObject({ status: 2, stdout: '' });
    const { stdout } = await kpc('diff', 'web.yaml', '--output', 'json');
    expect(findingsOf(stdout, 'bad-call')).toMatchObject([{ arguments: { problem: 'no-side' } }]);
  });

  test('a feature gate that the new kube-proxy locks keeps it from starting', async () => {
    const flags = ['--kubernetes-version', '1.32', '--feature-gates', 'TopologyAwareHints=false', 'web.yaml'];
    const run = await kpc('diff', '--to-kubernetes-version', '1.36', ...flags);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/v1\.36\.3 .*"TopologyAwareHints".* \[bad-feature-gate\]/);
    const same = await kpc('diff', '--to-kubernetes-version', '1.31', ...flags);
    expect(same, same.stderr).toMatchObject({ status: 0 });
    expect(same.stderr).not.toContain('feature gate');
  });
});

/** What the tools would print on a node that a kube-proxy of this release works on. */
async function dumpOf(release: string, mode: string): Promise<string> {
  const bundle = `bundle-${mode}-${release}`;
  const flags = ['--kubernetes-version', release, '--proxy-mode', mode];
  await kpc('compile', '-f', 'web.yaml', ...flags, '-o', bundle);
  const dump = `dump-${mode}-${release}`;
  mkdirSync(join(cwd, dump));
  cpSync(join(cwd, bundle, 'iptables.restore'), join(cwd, dump, 'iptables-save'));
  if (mode === 'ipvs') {
    cpSync(join(cwd, bundle, 'ipset.restore'), join(cwd, dump, 'ipset-save'));
    cpSync(join(cwd, bundle, 'ipvsadm.restore'), join(cwd, dump, 'ipvsadm-save'));
  }
  return dump;
}

describe('a dump beside manifests', () => {
  const taken = { '1.30': '1.30', '1.32': '1.33', '1.34': '1.35', '1.36': undefined };
  for (const mode of ['ipvs', 'iptables']) {
    test.each(Object.entries(taken))(`is found to be of %s without a flag: ${mode}`, async (release, expected) => {
      const run = await kpc('diff', await dumpOf(release, mode), 'web.yaml');
      expect(run.status, run.stdout).toBe(0);
      expect(run.stdout).toMatch(/^No difference/);
      const note = / Kubernetes (\S+) \(the dump fits it best\)/.exec(run.stderr)?.[1];
      expect(note).toBe(expected);
    });
  }

  test('is read by the release that the Node names, where that fits', async () => {
    const run = await kpc('diff', 'dump-ipvs-1.32', 'web-132.yaml');
    expect(run.stderr).toContain('Kubernetes 1.32 (as the Node "node-1" says)');
    expect(run.status).toBe(0);
  });

  test('is read by another release, where that fits better than the one that the Node names', async () => {
    const run = await kpc('diff', 'dump-ipvs-1.36', 'web-132.yaml');
    expect(run.stderr).toContain('Kubernetes 1.37 (the dump fits it better than 1.32, which the Node names)');
    expect(run.status).toBe(0);
  });

  test('is compared by the release that the flag names', async () => {
    const run = await kpc('diff', 'dump-ipvs-1.36', 'web.yaml', '--kubernetes-version', '1.35');
    expect(run).toMatchObject({ status: 1 });
    expect(run.stdout).toContain('virtual server TCP 10.96.0.11:80');
  });
});

describe('a bundle beside manifests', () => {
  test('lends its release', async () => {
    for (const release of ['1.30', '1.35']) {
      await kpc('compile', '-f', 'web.yaml', '--kubernetes-version', release, '-o', `lent-${release}`);
      const run = await kpc('diff', `lent-${release}`, 'web.yaml');
      expect(run, run.stderr).toMatchObject({ status: 0, stdout: 'No difference.\n' });
      expect(run.stderr).toContain(`Kubernetes ${release}`);
    }
    const newest = await kpc('diff', 'lent-1.35', 'web.yaml', '--kubernetes-version', '1.36');
    expect(newest.stdout).toContain('~ shop/labelled  ignored by kube-proxy');
  });

  test('of ignored externalIPs stays so', async () => {
    write('external.yaml', web.replace('clusterIP: 10.96.0.12,', 'clusterIP: 10.96.0.12, externalIPs: [192.0.2.9],'));
    const gates = ['--feature-gates', 'AllowServiceExternalIPs=false'];
    await kpc('compile', '-f', 'external.yaml', ...gates, '-o', 'no-external');
    const run = await kpc('diff', 'no-external', 'external.yaml');
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });
});

describe('--kubernetes-version auto', () => {
  test('an assumed node has no Node object to give', async () => {
    writeFileSync(
      join(cwd, 'service.yaml'),
      'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 80 }] }\n',
    );
    const run = await kpc('describe', '-f', 'service.yaml', '--kubernetes-version', 'auto', '--output', 'json');
    const { findings } = JSON.parse(run.stdout);
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'bad-kubernetes-version',
        arguments: expect.objectContaining({ node: 'node-1', nodeObject: 'assumed' }),
      }),
    );
  });

  const versionOf = (folder: string): unknown =>
    (JSON.parse(readFileSync(join(cwd, folder, 'manifest.json'), 'utf8')) as { kubeProxyVersion: unknown })
      .kubeProxyVersion;

  test('compile, describe and diff take the release that the Node names', async () => {
    const auto = ['--kubernetes-version', 'auto'];
    const compiled = await kpc('compile', '-f', 'web-132.yaml', ...auto, '-o', 'auto');
    expect(compiled.status, compiled.stderr).toBe(0);
    expect(versionOf('auto')).toBe('v1.32.10');
    const described = await kpc('describe', 'shop/labelled', '-f', 'web-132.yaml', ...auto);
    expect(described.stderr).toContain('Kubernetes 1.32, because Node "node-1" runs v1.32.4-gke.100');
    expect(described.stdout).toContain(`the label ${headlessLabel}`);
    expect(await kpc('diff', 'auto', 'web-132.yaml', ...auto)).toMatchObject({ status: 0 });
    const bundle = await kpc('describe', 'shop/web', '-f', 'auto');
    expect(bundle.stderr).toMatch(/note: .* 1\.32\b.*\[reading\]/);
  });

  test('each node of a fleet is compiled by its own release', async () => {
    const nodes = [nodeText('node-1', 'v1.32.4', '192.168.0.1'), nodeText('node-2', 'v1.36.0', '192.168.0.2')];
    write('fleet.yaml', web + nodes.join(''));
    const run = await kpc('compile', '-f', 'fleet.yaml', '--all-nodes', '--kubernetes-version', 'auto', '-o', 'fleet');
    expect(run.status, run.stderr).toBe(0);
    expect(['node-1', 'node-2'].map((name) => versionOf(`fleet/${name}`))).toEqual(['v1.32.10', 'v1.36.3']);
    for (const name of ['node-1', 'node-2']) {
      const alone = `alone-${name}`;
      await kpc('compile', '-f', 'fleet.yaml', '--node', name, '--kubernetes-version', 'auto', '-o', alone);
      expect(await kpc('diff', alone, `fleet/${name}`)).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^No difference/),
      });
    }
  });

  test('a feature gate is judged by the release of each node', async () => {
    const gate = (value: string) => ['--feature-gates', value, '--kubernetes-version', 'auto'];
    const old = await kpc('compile', '-f', 'web-132.yaml', ...gate('TopologyAwareHints=false'), '-o', 'gated');
    expect(old.status, old.stderr).toBe(0);
    const fleet = await kpc(
      'compile',
      '-f',
      'fleet.yaml',
      '--all-nodes',
      ...gate('AllowServiceExternalIPs=false'),
      '-o',
      'gated-fleet',
    );
    expect(fleet.status).toBe(2);
    expect(
      fleet.stderr.match(
        /error: kube-proxy v1\.32\.10 does not start with the unknown feature gate "AllowServiceExternalIPs"/g,
      ),
    ).toHaveLength(1);
  });

  test.each([
    ['v1.29.3', 'the Node "node-1" runs "v1.29.3", which kpc does not follow'],
    ['v1.40.0', 'the Node "node-1" runs "v1.40.0", which kpc does not follow'],
    ['', 'the Node "node-1" has no kubeletVersion'],
  ])('a Node of version %j is an error that says which releases there are', async (version, words) => {
    write('strange.yaml', web + nodeText('node-1', version, '192.168.0.1'));
    const auto = ['--kubernetes-version', 'auto'];
    for (const args of [
      ['compile', '-f', 'strange.yaml', ...auto, '-o', 'never'],
      ['describe', '-f', 'strange.yaml', ...auto],
      ['diff', 'dump-ipvs-1.32', 'strange.yaml', ...auto],
    ]) {
      const run = await kpc(...args);
      expect(run, args.join(' ')).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toContain(`error: --kubernetes-version: ${words}`);
    }
  });
});

test('primary is no value of nodePortAddresses up to 1.30, and a warning says so', async () => {
  const flags = ['compile', '-f', 'web.yaml', '--nodeport-addresses', 'primary', '-o', 'primary'];
  const told = 'does not start with it';
  const before = await kpc(...flags, '--kubernetes-version', '1.30');
  expect(before.status, before.stderr).toBe(0);
  expect(before.stderr).toContain(`warning: --nodeport-addresses cannot be "primary": kube-proxy v1.30.14 ${told}`);
  const since = await kpc(...flags, '--kubernetes-version', '1.31');
  expect(since.status, since.stderr).toBe(0);
  expect(since.stderr).not.toContain(told);
});
