import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
import { fixtureBundle, forge } from '../bundle/forge.ts';
import { listFixtures } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-hostile-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What must not come out: lines of its own, commands of both kinds, an escape, a turn of the text. */
const hostile =
  'x\n::set-env name=PATH::/tmp\r\n  ::stop-commands::y ##[add-mask]z \u001b[2J\u009b1m\u202e\u2028::debug::w';

const inLine = hostile.replace(/[\n\r]/g, ' ');

const input = listFixtures().find(({ name }) => name === 'dual-stack')?.folder ?? '';
const compileArgs = (mode: string) => {
  const command = readFileSync(join(input, 'command'), 'utf8').trim().split(/\s+/).slice(1);
  return [...command, '--proxy-mode', mode];
};

/** A bundle in which texts are hostile, with checksums that match: all that its shape leaves free, or names too. */
function hostileBundle(mode: 'ipvs' | 'iptables', withNames = false): string {
  const folder = join(scratch, `${mode}-${withNames}`);
  const files = forge(fixtureBundle(`dual-stack/expected-${mode}`), (texts) => {
    const services = JSON.parse(texts.get('services.json') ?? '');
    const names = { namespace: hostile, service: hostile, port: hostile, scheduler: hostile };
    if (withNames) for (const service of services.services) Object.assign(service, { externalName: hostile });
    for (const port of services.servicePorts) {
      if (withNames) Object.assign(port, names);
      const places = { node: hostile, zone: hostile, zoneHints: [hostile] };
      if (withNames) for (const endpoint of port.endpoints) Object.assign(endpoint, places);
    }
    texts.set('services.json', JSON.stringify(services));
    const manifest = JSON.parse(texts.get('manifest.json') ?? '');
    Object.assign(manifest, {
      kpcVersion: hostile,
      counts: { [hostile]: 1 },
      tools: { [hostile]: hostile },
    });
    if (withNames) Object.assign(manifest.node, { name: hostile, zone: hostile });
    if (withNames) manifest.settings.hostnameOverride = hostile;
    texts.set('manifest.json', JSON.stringify(manifest));
    const rule = `-A KUBE-SERVICES -m comment --comment "${inLine}" -j KUBE-MARK-MASQ\n:"::debug::${inLine}" - [0:0]\n`;
    texts.set('iptables.restore', (texts.get('iptables.restore') ?? '').replace('COMMIT\n', `${rule}COMMIT\n`));
    if (mode === 'ipvs') {
      texts.set('ipset.restore', `${texts.get('ipset.restore') ?? ''}create ::debug::\u001b[2J hash:ip\n`);
      texts.set('ip.batch', `${texts.get('ip.batch') ?? ''}link add ::debug::\u001b[2J type dummy\n`);
    }
    texts.set('modules.conf', `${texts.get('modules.conf') ?? ''}x\n`);
  });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  return folder;
}

function expectHarmless(text: string): void {
  expect(text).not.toMatch(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|##\[/u);
  for (const line of text.split('\n')) expect(line).not.toMatch(/^\s*::(?!(?:error|warning|notice) (?:file=|title=))/);
}

describe.each(['ipvs', 'iptables'] as const)('no text of a bundle acts on a terminal or on a CI, mode %s', (mode) => {
  const bad = hostileBundle(mode);
  const good = `fixtures/dual-stack/expected-${mode}`;

  test.each(['text', 'markdown', 'json', 'unified'])('kpc diff --output %s', async (output) => {
    const { status, stdout, stderr } = await runKpc(['diff', good, bad, '--output', output]);
    expect(status).toBe(1);
    expect(stdout.length).toBeGreaterThan(100);
    expectHarmless(stdout);
    expectHarmless(stderr);
  });

  test.each<readonly [name: string, args: readonly string[]]>([
    ['all', []],
    ['one', ['10.96.32.60']],
    ['one as JSON', ['10.96.32.60', '--output', 'json']],
    ['all as JSON', ['--output', 'json']],
    ['what the command line names', [hostile]],
  ])('kpc describe: %s', async (_, args) => {
    const { stdout, stderr } = await runKpc(['describe', '-f', bad, ...args]);
    expect(stdout + stderr).not.toBe('');
    expectHarmless(stdout);
    expectHarmless(stderr);
  });

  test.each(['text', 'json', 'github', 'junit'])('kpc compile --check --output %s', async (output) => {
    const args = [...compileArgs(mode), '--check', bad, '--output', output];
    const { status, stdout, stderr } = await runKpc(args, { cwd: input });
    expect(status).toBe(1);
    expect(stdout.length).toBeGreaterThan(20);
    expectHarmless(stdout);
    expectHarmless(stderr);
  });

  test.each(['text', 'json', 'github', 'junit'])('kpc compile --check of a fleet --output %s', async (output) => {
    const fleet = join(scratch, `fleet-${mode}`);
    cpSync(bad, join(fleet, 'worker-1'), { recursive: true });
    cpSync(bad, join(fleet, '##[error]gone\n::error::x'), { recursive: true });
    const args = [
      ...compileArgs(mode).filter((arg, i, all) => arg !== '--node' && all[i - 1] !== '--node'),
      '--all-nodes',
    ];
    const { status, stdout, stderr } = await runKpc([...args, '--check', fleet, '--output', output], { cwd: input });
    expect(status).not.toBe(0);
    expectHarmless(stdout);
    expectHarmless(stderr);
  });

  test.each(['apply', 'plan', 'verify', 'doctor'])('kpc-apply %s', async (command) => {
    const { status, out, err } = await callApply(createFakeNode().host, command, bad);
    expect(status).toBe(2);
    expectHarmless(out);
    expectHarmless(err);
    expect(err).toContain('[bad-bundle]');
  });

  test('names that are none are refused by all, and harmless', async () => {
    const worse = hostileBundle(mode, true);
    const { status, stdout, stderr } = await runKpc(['diff', good, worse]);
    const applied = await callApply(createFakeNode().host, 'apply', worse);
    expect([status, applied.status]).toEqual([2, 2]);
    for (const text of [stdout, stderr, applied.out, applied.err]) expectHarmless(text);
  });
});

test('no text of a dump does', async () => {
  const dump = join(scratch, 'dump');
  cpSync('fixtures/dumps/kube-proxy-iptables-session-affinity', dump, { recursive: true });
  const saved = readFileSync(join(dump, 'iptables-save'), 'utf8');
  const rules = saved
    .replace(/--comment "?([^" ]+)( [^"]*)?"?/g, '--comment "$1\u001b[2J##[error]\u202e$2"')
    .replace('*nat\n', '*nat\n:"::error::\u202e" - [0:0]\n');
  expect(rules).toContain('##[error]');
  writeFileSync(join(dump, 'iptables-save'), `${rules}::error::unread\u001b[2J\n`);
  for (const args of [
    ['describe', '--from-dump', dump],
    ['describe', '--from-dump', dump, '--output', 'json'],
    ['diff', dump, 'fixtures/dual-stack/expected-iptables', '--foreign'],
    ['diff', dump, 'fixtures/dual-stack/expected-iptables', '--foreign', '--output', 'json'],
    ['diff', dump, 'fixtures/dual-stack/expected-iptables', '--output', 'unified'],
    ['diff', dump, 'fixtures/dual-stack/expected-iptables', '--output', 'markdown', '--foreign'],
  ]) {
    const { stdout, stderr } = await runKpc(args);
    expect(stdout + stderr).not.toBe('');
    expectHarmless(stdout);
    expectHarmless(stderr);
  }
});

test('what is printed as JSON means what it meant', async () => {
  const args = ['diff', 'fixtures/dual-stack/expected-ipvs', hostileBundle('ipvs'), '--output', 'json'];
  const { stdout } = await runKpc(args);
  expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(inLine).slice(1, -1));
});
