import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const dumps = join(projectFolder, 'fixtures/dumps');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-diff-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What kube-proxy v1.36.3 left in a kernel, beside the manifests that it was given. */
const ofKubeProxy = readdirSync(dumps).filter((name) => name.startsWith('kube-proxy-'));

function inputsOf(name: string): readonly string[] {
  const at = join(dumps, name);
  const files = ['-f', join(at, 'cluster.yaml'), '-f', join(at, 'node.yaml')];
  return [...files, '--config', join(at, 'config.yaml'), '--ip-family', 'dual'];
}

describe.concurrent('a dump of a node that the real kube-proxy programmed', () => {
  test('there are some of both modes', () => {
    expect(ofKubeProxy.filter((name) => name.includes('-ipvs-')).length).toBeGreaterThan(1);
    expect(ofKubeProxy.filter((name) => name.includes('-iptables-')).length).toBeGreaterThan(1);
  });

  for (const name of ofKubeProxy) {
    test(`${name}: no difference from the bundle of its input`, async () => {
      const bundle = join(scratch, name);
      const host = ['--host-addresses', join(dumps, name, 'ip-addr.json')];
      const compiled = await runKpc(['compile', ...inputsOf(name), ...host, '-o', bundle]);
      expect(compiled.status, compiled.stderr).toBe(0);
      for (const sides of [
        [join(dumps, name), bundle],
        [bundle, join(dumps, name)],
      ]) {
        const run = await runKpc(['diff', ...sides]);
        expect(run).toMatchObject({ status: 0, stdout: 'No difference.\n' });
        expect(run.stderr).not.toContain('warning');
      }
    });
  }

  test('a rule, an entry, a real server or an address that is missing is told with its Service', async () => {
    const name = 'kube-proxy-ipvs-dual-stack-nodeport';
    const broken = join(scratch, 'broken');
    cpSync(join(dumps, name), broken, { recursive: true });
    const edit = (file: string, pattern: RegExp) => {
      const text = readFileSync(join(broken, file), 'utf8');
      expect(text).toMatch(pattern);
      writeFileSync(join(broken, file), text.replace(pattern, ''));
    };
    edit('ipset-save', /add KUBE-CLUSTER-IP 10\.96\.7\.7,.*\n/);
    edit('ipvsadm-save', /-a -t 10\.96\.7\.7:.*\n/);
    edit('iptables-save', /-A KUBE-POSTROUTING .*RETURN\n/);
    const run = await runKpc(['diff', broken, join(dumps, name, 'cluster.yaml'), ...inputsOf(name).slice(2)]);
    expect(run.status).toBe(1);
    expect(run.stdout).toBe(
      [
        'prod/web:http changed',
        '  ~ virtual server TCP 10.96.7.7:80: + 1 real server 10.244.1.9:8080',
        '  + KUBE-CLUSTER-IP 10.96.7.7,tcp:80',
        '',
        'What belongs to no Service',
        '  ~ chain KUBE-POSTROUTING (nat): + 1 rule',
        '',
        '1 Service port changed; 1 difference in what belongs to no Service.',
        '',
      ].join('\n'),
    );
  });
});
