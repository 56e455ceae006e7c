import { describe, expect, test } from 'vitest';
import { aService, anIP } from './manifests.ts';
import { inFolder } from '../findings/tripped.ts';
import { commitAll } from '../support/git.ts';
import { runKpc, type Run } from '../support/run-kpc.ts';
import type { Files } from '../support/write-folder.ts';

const externalIPs = 'externalIPs: [203.0.113.90], ports: [{ port: 80 }]';
const web = aService(`${anIP}, ${externalIPs}`);
const api = aService(`clusterIP: 10.96.0.11, ${externalIPs.replace('.90', '.91')}`, '', 'api');

function annotated(text: string, annotation: string): string {
  return text.replace(/name: (\w+) /, `name: $1, annotations: { kpc.dev/ignore: "${annotation}" } `);
}

function lint(files: Files, ...flags: readonly string[]): Promise<Run> {
  return inFolder(files, (cwd) => runKpc(['lint', 'in.yaml', '--proxy-mode', 'iptables', ...flags], { cwd }));
}

/** The code and the start of the text of each finding. */
function told({ stdout }: Run): readonly string[] {
  return [...stdout.matchAll(/^(?:[^ ]+: )?(error|warning|note): (.*) \[([a-z-]+)\]$/gm)].map(
    ([, severity, text = '', code]) => {
      const [, service = ''] = /\b(default\/\w+)/.exec(text) ?? [];
      return `${severity} ${code} ${service}`.trim();
    },
  );
}

const summary = ({ stdout }: Run) => stdout.trimEnd().split('\n').at(-1);

describe('--ignore', () => {
  test('leaves out a code, and counts it', async () => {
    const run = await lint({ 'in.yaml': web + api }, '--ignore', 'external-ips');
    expect(run.status).toBe(0);
    expect(told(run)).toEqual([]);
    expect(summary(run)).toBe('no problems in 1 file; 2 ignored; endpoints of 2 Services not given; iptables mode');
  });

  test('takes several codes with commas, as the annotation does', async () => {
    const run = await lint({ 'in.yaml': web }, '--ignore', 'open-node-port, external-ips');
    expect(told(run)).toEqual(['note idle-ignore']);
    const wrong = await lint({ 'in.yaml': web }, '--ignore', 'open-node-port,external-ip');
    expect(wrong.stderr).toContain('did you mean external-ips?');
  });

  test('says that it matches nothing', async () => {
    const run = await lint({ 'in.yaml': web }, '--ignore', 'open-node-port');
    expect(told(run)).toEqual(['note idle-ignore', 'warning external-ips default/web']);
    expect(run.stdout).toContain('note: --ignore ignores open-node-port, but there is no such finding [idle-ignore]');
  });

  test('refuses what is no code, and suggests one', async () => {
    const run = await lint({ 'in.yaml': web }, '--ignore', 'external-ip');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('did you mean external-ips?');
  });

  test('ignores no error: nothing else is known to be right then', async () => {
    const wrong = web.replace('port: 80', 'port: 70000');
    const run = await lint({ 'in.yaml': wrong }, '--ignore', 'bad-value');
    expect(run.status).toBe(1);
    expect(told(run)).toEqual(['warning idle-ignore', 'error bad-value']);
    expect(run.stdout).toContain('errors cannot be ignored');
    expect(summary(run)).toContain('1 error, 1 warning in 1 file; the rules of kpc lint run once');
    const skipping = await lint({ 'in.yaml': wrong + api }, '--ignore', 'bad-value', '--skip-invalid');
    expect(told(skipping)).toContain('warning external-ips default/api');
  });
});

test('names --skip-invalid only where other objects remain', async () => {
  const wrong = web.replace('port: 80', 'port: 70000');
  expect(summary(await lint({ 'in.yaml': wrong }))).not.toContain('--skip-invalid');
  expect(summary(await lint({ 'in.yaml': wrong }, '--skip-invalid'))).not.toContain('--skip-invalid');
  expect(summary(await lint({ 'in.yaml': wrong + api }))).toContain('(or with --skip-invalid)');
});

describe('the annotation', () => {
  test('of a Service is about this Service alone', async () => {
    const run = await lint({ 'in.yaml': annotated(web, 'external-ips') + api });
    expect(told(run)).toEqual(['warning external-ips default/api']);
    expect(summary(run)).toBe('1 warning in 1 file; 1 ignored; endpoints of 2 Services not given; iptables mode');
  });

  test('may hold several codes; one that matches nothing is said at its place, and one that is none is a warning', async () => {
    const run = await lint({ 'in.yaml': annotated(web, 'external-ips, host-port,extrnal-ips') });
    expect(told(run)).toEqual(['note idle-ignore default/web', 'warning idle-ignore default/web']);
    expect(run.stdout).toContain('in.yaml:3:');
    expect(run.stdout).toContain('did you mean external-ips?');
  });

  test('is reported if its name is misspelt, on any object', async () => {
    const policy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: deny, annotations: { kpc.dev/ignores: external-ips } }
spec: { podSelector: {} }
`;
    const run = await lint({ 'in.yaml': annotated(web, 'external-ips').replace('/ignore', '/ingore') + policy });
    expect(told(run).toSorted()).toEqual([
      'warning external-ips default/web',
      'warning unknown-field',
      'warning unknown-field',
    ]);
    expect(run.stdout.match(/did you mean kpc.dev\/ignore\?/g)).toHaveLength(2);
  });

  test('of an object with an error is read, and ends where the next object begins, right or not', async () => {
    const wrong = web.replace('port: 80', 'port: 70000, odd: 1');
    const both = annotated(wrong, 'unknown-field') + wrong.replaceAll('web', 'api');
    const run = await lint({ 'in.yaml': both });
    expect(run.stdout.match(/^in\.yaml:\d+:/gm)).toEqual(['in.yaml:4:', 'in.yaml:9:', 'in.yaml:9:']);
    expect(summary(run)).toContain('2 errors, 1 warning in 1 file; 1 ignored;');
  });

  test('of either of two Services covers what is about both', async () => {
    const same = web + api.replace('.91', '.90');
    expect(told(await lint({ 'in.yaml': same }, '--ignore', 'external-ips'))).toEqual([
      'warning address-conflict default/api',
    ]);
    for (const name of ['web', 'api']) {
      const text = same.replace(`name: ${name} `, `name: ${name}, annotations: { kpc.dev/ignore: address-conflict } `);
      expect(told(await lint({ 'in.yaml': text }, '--ignore', 'external-ips'))).toEqual([]);
    }
  });

  test('of another object covers what is found in its lines', async () => {
    const slice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web }, annotations: { kpc.dev/ignore: unused-slice-port } }
addressType: IPv4
ports: [{ port: 8080 }, { name: extra, port: 9090 }]
endpoints: [{ addresses: [10.244.0.1] }]
---
`;
    const plain = aService(`${anIP}, ports: [{ port: 80 }]`);
    expect(told(await lint({ 'in.yaml': plain + slice.replace(/, annotations: \{[^}]*\}/, '') }))).toEqual([
      'warning unused-slice-port default/web',
    ]);
    expect(told(await lint({ 'in.yaml': plain + slice + api }))).toEqual(['warning external-ips default/api']);
    // The next object is not covered.
    const other = slice
      .replace('web-1', 'web-2')
      .replace(/, annotations: \{[^}]*\}/, '')
      .replace('extra', 'more');
    expect(told(await lint({ 'in.yaml': plain + slice + other }))).toEqual(['warning unused-slice-port default/web']);
  });
});

describe('kpc.yaml', () => {
  const accepted = `lint:
  ignore:
    - { code: external-ips, service: default/web, reason: gone in spring }
    - { code: external-ips, service: nothing, reason: who knows }
`;

  test('accepts a code of one Service, and a place is said where nothing matches', async () => {
    const run = await lint({ 'in.yaml': web + api, 'kpc.yaml': accepted });
    expect(told(run)).toEqual(['warning external-ips default/api', 'note idle-ignore']);
    expect(run.stdout).toContain(
      'kpc.yaml:4:7: note: kpc.yaml ignores external-ips of nothing, but there is no such finding',
    );
  });

  test.each([
    ['top', 'ignore: external-ips\n'],
    ['list', 'ignore: [external-ips]\n'],
    ['both', 'ignore: [external-ips]\nlint: { ignore: [] }\n'],
  ])('takes codes alone, for all Services: %s', async (_, text) => {
    const run = await lint({ 'in.yaml': web + api, 'kpc.yaml': text });
    expect(told(run)).toEqual([]);
    expect(summary(run)).toContain('2 ignored');
  });

  test('accepts what is found in the lines of one Service', async () => {
    const odd = web.replace('port: 80', 'port: 80, odd: 1') + api.replace('port: 80', 'port: 80, odd: 1');
    const text = 'ignore: [external-ips, { code: unknown-field, service: api, reason: known }]\n';
    const run = await lint({ 'in.yaml': odd, 'kpc.yaml': text }, '--output', 'json');
    expect(JSON.parse(run.stdout)).toMatchObject({
      findings: [{ code: 'unknown-field', about: { kind: 'service', name: 'default/web' } }],
      result: { ignored: 3 },
    });
  });

  test('adds to those of the command line', async () => {
    const text = 'ignore: [{ code: external-ips, service: web, reason: known }]\n';
    const run = await lint({ 'in.yaml': web + api, 'kpc.yaml': text }, '--ignore', 'node-port-range');
    expect(told(run)).toEqual(['note idle-ignore', 'warning external-ips default/api']);
  });

  test.each([
    ['no reason', 'ignore: [{ code: external-ips }]\n', 'write codes, or mappings such as { code: CODE, reason: TEXT'],
    [
      'no reason in the second entry',
      'lint:\n  ignore:\n    - external-ips\n    - { code: external-ips, service: shop/shop }\n',
      'kpc.yaml:4:7: error: ignore[1] has no reason',
    ],
    ['a misspelt key', 'ignore: [{ code: external-ips, services: web, reason: known }]\n', 'did you mean service?'],
    ['an empty reason', 'ignore: [{ code: external-ips, reason: " " }]\n', 'ignore[0].reason cannot be " "'],
    ['a code that is a number', 'ignore: [{ code: 7, reason: known }]\n', '1:18: error: ignore[0].code cannot be 7'],
    ['an entry that is a list', 'ignore: [[a]]\n', '1:10: error: ignore[0] cannot be a list'],
    ['no code', 'ignore: [extrnal-ips]\n', 'did you mean external-ips?'],
    ['a number', 'ignore: 7\n', 'write codes, or mappings such as { code: CODE, reason: TEXT'],
    ['another command', 'compile: { ignore: [external-ips] }\n', 'kpc compile has no flag --ignore'],
  ])('refuses an ignore with %s', async (_, text, help) => {
    const run = await lint({ 'in.yaml': web, 'kpc.yaml': text });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(help);
    expect(run.stderr).toContain('[bad-kpc-yaml]');
  });
});

describe('exit statuses', () => {
  test.each([
    ['warnings', { 'in.yaml': web }, [], 0],
    ['warnings that are errors', { 'in.yaml': web }, ['--strict'], 1],
    ['warnings that are ignored', { 'in.yaml': web }, ['--strict', '--ignore', 'external-ips'], 0],
    ['errors', { 'in.yaml': web.replace('port: 80', 'port: 70000') }, [], 1],
    ['nothing to read', {}, [], 2],
    ['no object', { 'in.yaml': '# nothing\n' }, [], 2],
  ] as const)('%s', async (_, files, flags, status) => {
    const run = await lint(files as Files, ...flags);
    expect(run.status, run.stdout + run.stderr).toBe(status);
  });

  test.each(['lint', 'migrate'])('kpc %s says why a revision cannot be read', async (command) => {
    const run = await inFolder({ 'in.yaml': web }, (cwd) => {
      commitAll(cwd);
      return runKpc([command, 'nope:in.yaml'], { cwd });
    });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('and "nope" is not a revision of this repository');
  });

  test('a bundle is not linted', async () => {
    const run = await inFolder({ 'in.yaml': web }, async (cwd) => {
      await runKpc(['compile', '-f', 'in.yaml', '-o', 'bundle'], { cwd });
      return runKpc(['lint', 'bundle'], { cwd });
    });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('[no-manifests]');
  });
});
