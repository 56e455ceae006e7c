// What checks nothing does not pass.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-nothing-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = (name: string, more: string): string =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ${more}, ports: [{ port: 80 }] }\n---\n`;
const unknown = service('web', 'clusterIP: 10.96.0.10, selector: { app: web }');
const known = `${service('api', 'clusterIP: 10.96.0.11')}apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: api-1, labels: { kubernetes.io/service-name: api } }\naddressType: IPv4\nports: []\nendpoints: []\n---\n`;
const node = 'apiVersion: v1\nkind: Node\nmetadata: { name: n1 }\n';

const natOf = (endpoint: string): string => `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-2CMXP7HKUVJN7L6M - [0:0]
:KUBE-SEP-YVT6EXXEKT4LDXBC - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.43.0.2/32 -p tcp -m tcp --dport 80 -m comment --comment "default/web cluster IP" -j KUBE-SVC-2CMXP7HKUVJN7L6M
-A KUBE-SVC-2CMXP7HKUVJN7L6M -m comment --comment "default/web -> ${endpoint}:80" -j KUBE-SEP-YVT6EXXEKT4LDXBC
-A KUBE-SEP-YVT6EXXEKT4LDXBC -p tcp -m comment --comment "default/web" -m tcp -j DNAT --to-destination ${endpoint}:80
COMMIT
`;

writeFolder(cwd, {
  'a.txt': natOf('10.64.2.4'),
  'b.txt': natOf('10.64.2.9'),
  'settings.yaml': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n',
  'name.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\n',
  'headless.yaml': service('h', 'clusterIP: None, selector: { app: h }'),
  'two.yaml': service('six', 'clusterIP: "fd00::7", ipFamilies: [IPv6]'),
  'unknown.yaml': unknown,
  'both.yaml': unknown + known,
  'node.yaml': known + node,
  'policy.yaml':
    'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: deny }\nspec: { podSelector: {} }\n',
});

const run = async (words: string) => {
  const { stderr, ...ran } = await runKpc(words.split(' '), { cwd });
  return { ...ran, stderr, codes: [...stderr.matchAll(/\[([a-z-]+)\]$/gm)].map(([, code]) => code) };
};

describe('kpc test --init', () => {
  test.each(['settings.yaml', 'headless.yaml', 'unknown.yaml'])('%s holds nothing to test', async (file) => {
    const { status, stdout, codes } = await run(`test --init ${file}`);
    expect({ status, stdout, last: codes.at(-1) }).toEqual({ status: 2, stdout: '', last: 'bad-call' });
  });

  test.each([
    ['is headless', 'clusterIP: None'],
    ['is of type ExternalName', 'type: ExternalName, externalName: example.com'],
  ])('says why nothing is programmed: a Service %s', async (why, spec) => {
    writeFolder(cwd, {
      'skipped.yaml': `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ${spec}, ports: [{ port: 80 }] }\n`,
    });
    for (const command of ['test --init', 'init']) {
      const { status, stdout, stderr } = await run(`${command} skipped.yaml`);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr).toContain('help: name manifests with Services that have a cluster IP\n');
      expect(stderr).not.toContain('--allow-empty');
    }
    expect((await run('test --init skipped.yaml')).stderr).toContain(`default/web ${why}`);
  });

  test('names what is left out, in the file too', async () => {
    const { status, stdout, stderr, codes } = await run('test --init both.yaml');
    expect(status).toBe(0);
    expect(codes).toContain('reading');
    for (const text of [stdout, stderr]) expect(text).toContain('default/web cluster IP');
    expect(stdout).toContain('default/api cluster IP');
  });
});

describe('a comparison', () => {
  test.each(['settings.yaml settings.yaml', 'name.yaml settings.yaml --proxy-mode nftables'])(
    'kpc diff %s, without any Service',
    async (words) => {
      const { status, stdout, codes } = await run(`diff ${words}`);
      expect({ status, stdout, last: codes.at(-1) }).toEqual({ status: 2, stdout: '', last: 'bad-call' });
    },
  );

  test('kpc equivalence of two dumps that show of no packet what becomes of it', async () => {
    const { status, codes } = await run('equivalence a.txt b.txt');
    expect({ status, last: codes.at(-1) }).toEqual({ status: 2, last: 'bad-call' });
    expect((await run('equivalence a.txt a.txt')).status).toBe(2);
  });

  test.each([
    'equivalence ipvs nftables -f headless.yaml',
    'migrate headless.yaml',
    'equivalence headless.yaml headless.yaml',
    'migrate node.yaml --ip-family ipv6',
    'migrate unknown.yaml --from iptables',
  ])('kpc %s: no packet could be compared', async (words) => {
    const { status, stdout, codes } = await run(words);
    expect({ status, stdout, last: codes.at(-1) }).toEqual({ status: 2, stdout: '', last: 'bad-call' });
  });

  test('names the Services of a family that was left out', async () => {
    const { stdout } = await run('migrate node.yaml two.yaml --from iptables --ip-family ipv4');
    expect(stdout).toMatch(/not compared: .*\bdefault\/six\b/i);
  });

  test('of what has Services passes, and so do bundles that are meant to have none', async () => {
    expect((await run('diff headless.yaml headless.yaml')).status).toBe(0);
    await run('compile settings.yaml --allow-empty -o none');
    expect((await run('diff none settings.yaml')).status).toBe(0);
    expect((await run('compile settings.yaml --allow-empty --check none')).status).toBe(0);
  });

  test('kpc compile --check of a shard without nodes', async () => {
    await run('compile node.yaml --all-nodes -o nodes');
    const shards = await Promise.all(
      ['0/2', '1/2'].map((shard) => run(`compile node.yaml --all-nodes --shard ${shard} --check nodes`)),
    );
    expect(shards.map(({ status }) => status).toSorted()).toEqual([0, 2]);
    expect(shards.find(({ status }) => status === 2)).toMatchObject({ stdout: '', codes: ['bad-call'] });
  });
});

describe('an input with a NetworkPolicy alone', () => {
  test('removes all Services of the other side, which diff shows', async () => {
    const { status, stdout, codes } = await run('diff both.yaml policy.yaml');
    expect(status).toBe(1);
    expect(stdout).toContain('- default/web');
    expect(codes).toContain('nothing-programmed');
  });

  test('has no Service to describe, which JSON says too', async () => {
    const { status, stdout } = await run('describe policy.yaml --output json');
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ result: { services: [] } });
  });

  test('has no problem, and no Service that kpc lint looked at', async () => {
    const looked = async (file: string) => {
      const { status, stdout } = await run(`lint ${file} --output json`);
      return { status, result: JSON.parse(stdout) as unknown };
    };
    expect(await looked('policy.yaml')).toMatchObject({ status: 0, result: { result: { services: 0, warnings: 0 } } });
    expect(await looked('unknown.yaml')).toMatchObject({ result: { result: { services: 1, unserved: 1 } } });
    const [policy, headless] = [await run('lint policy.yaml'), await run('lint headless.yaml')];
    expect(policy.stdout.split(';').length).toBe(headless.stdout.split(';').length + 1);
  });
});
