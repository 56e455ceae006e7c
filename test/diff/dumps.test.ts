import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { diff, open } from '../../src/library/index.ts';
import { resultOf } from '../support/printed-json.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const dumps = join(projectFolder, 'fixtures/dumps');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-diff-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What kube-proxy v1.36.3 left in a kernel, beside the manifests that it was given. */
const ofKubeProxy = readdirSync(dumps).filter((name) => name.startsWith('kube-proxy-'));

/** The text for two sides that are the same, as far as both show. */
function sameBut(missed: string): string {
  return `No difference in what could be compared; not compared: ${missed}.\n`;
}

/** A dump of iptables mode has no sets and no virtual servers to show; sysctls are in none, and none in nftables mode. */
function sameAs(name: string): string {
  if (name.includes('-nftables-')) return 'No difference.\n';
  return sameBut(name.includes('-iptables-') ? 'sets, virtual servers, sysctls' : 'sysctls');
}

function cut(file: string, length: number): void {
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, length));
}

function inputsOf(name: string): readonly string[] {
  const at = join(dumps, name);
  const files = ['-f', join(at, 'cluster.yaml'), '-f', join(at, 'node.yaml')];
  return [...files, '--config', join(at, 'config.yaml'), '--ip-family', 'dual'];
}

describe('a dump of a node that the real kube-proxy programmed', () => {
  test('there are some of each mode', () => {
    expect(ofKubeProxy.filter((name) => name.includes('-nftables-')).length).toBeGreaterThan(1);
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
        expect(run).toMatchObject({ status: 0, stdout: sameAs(name) });
        expect(run.stderr).not.toContain('warning');
      }
    });
  }

  const original = join(dumps, 'kube-proxy-ipvs-dual-stack-nodeport');
  const damages = [
    [
      'garbage for JSON',
      'ip-addr.json',
      (file: string) => writeFileSync(file, 'garbage\n'),
      'unread-file',
      'addresses',
    ],
    ['JSON cut off', 'ip-addr.json', (file: string) => cut(file, 500), 'unread-file', 'addresses'],
    ['bytes', 'iptables-save', (file: string) => writeFileSync(file, '\0\u0001\ufffd\n'), 'unread-file', 'IPv4 rules'],
    ['rules cut off', 'ip6tables-save', (file: string) => cut(file, 3000), 'unread-file', 'IPv6 rules'],
    ['a folder', 'ipset-save', (file: string) => (rmSync(file), mkdirSync(file)), 'unread-file', 'sets'],
    [
      'a link to nothing',
      'ipvsadm-save',
      (file: string) => (rmSync(file), symlinkSync('nowhere', file)),
      'unread-file',
      'virtual servers',
    ],
  ] as const;
  test.for(damages)('%s in place of %s is told, and not taken for a node that is as wanted', async (damage) => {
    const [what, name, make, code, missed] = damage;
    const damaged = join(scratch, `damaged ${what}`);
    cpSync(original, damaged, { recursive: true });
    make(join(damaged, name));
    const run = await runKpc(['diff', damaged, original]);
    const isAlike = missed !== 'virtual servers';
    expect(run).toMatchObject({ status: isAlike ? 0 : 2, stdout: isAlike ? sameBut(`${missed}, sysctls`) : '' });
    const [warning] = run.stderr.split('\n');
    expect(warning).toContain(join(damaged, name));
    expect(warning).toMatch(new RegExp(`: warning: .* \\[${code}\\]$`));
  });

  test('a link to nothing beside a dump or manifests does no harm', async () => {
    for (const [name, side, stdout] of [
      ['linked-dump', original, sameBut('sysctls')],
      ['linked-manifests', join(projectFolder, 'test/diff/cases/scale-deployment/before'), 'No difference.\n'],
    ] as const) {
      const linked = join(scratch, name);
      cpSync(side, linked, { recursive: true });
      symlinkSync('nowhere', join(linked, 'README.txt'));
      expect(await runKpc(['diff', linked, side])).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(stdout),
      });
    }
  });

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
        'Objects of no Service',
        '  ~ chain KUBE-POSTROUTING (nat): + 1 rule',
        '',
        '1 Service port changed; 1 difference in objects of no Service; not compared: sysctls.',
        '',
      ].join('\n'),
    );
  });
});

test('the library reads Service ports back from dumps as kpc diff does', async () => {
  const whole = readFileSync(join(dumps, 'kube-proxy-iptables-session-affinity/iptables-save'), 'utf8');
  const changed = whole.replaceAll('--seconds 10800', '--seconds 60');
  writeFileSync(join(scratch, 'whole'), whole);
  writeFileSync(join(scratch, 'changed'), changed);
  const [from] = open({ whole }).snapshots;
  const [to] = open({ changed }).snapshots;
  if (!from || !to) throw new Error('not opened');
  const { stdout } = await runKpc(['diff', 'whole', 'changed', '-q', '--output', 'json'], { cwd: scratch });
  const found = diff(from, to);
  expect(found.servicePorts.map(({ change, reasons }) => [change, reasons.length])).toEqual([['changed', 1]]);
  expect(JSON.parse(JSON.stringify(found))).toEqual(resultOf(stdout));
});
