// A listing of 0 bytes, as a tool without root leaves it, and a dump that no object of kube-proxy gives a mode.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { diff, formatDiff } from '../../src/library/diff.ts';
import { open } from '../../src/library/open.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-empty-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;

function filesOf(dump: string): Files {
  const folder = `fixtures/dumps/kube-proxy-${dump}`;
  const names = readdirSync(folder).filter((name) => name.startsWith('ip') && !name.endsWith('.yaml'));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

function write(name: string, files: Files): string {
  writeFolder(join(scratch, name), files);
  return join(scratch, name);
}

test.each([
  ['$ nft list ruleset\n$ date\n', ['ipv4', 'ipv6']],
  ['$ nft list ruleset | grep kube\n$ date\n', []],
  ['$ nft list ruleset 2>/dev/null\n$ date\n', []],
  ['$ nft list table ip kube-proxy\n$ date\n', []],
  ['== nft list ruleset\n== date\n', []],
  // The paste may end before the output.
  ['$ nft list ruleset\n', []],
])('a ruleset that nft printed nothing of is read: %j', (typed, shown) => {
  const table = '$ iptables-save\n*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n';
  expect(readDump(new Map([['node.txt', table + typed]])).coverage.nftables).toEqual(shown);
});

async function ask(folder: string, to = '10.96.7.7:80') {
  const run = await runKpc(['trace', folder, '--from', '10.244.9.9', '--to', to, '--output', 'json']);
  const { verdict, reasons } = resultOf(run.stdout).traces[0] as {
    verdict: string;
    reasons?: readonly { command: string; text: string }[];
  };
  return { verdict, commands: (reasons ?? []).map(({ command }) => command), stderr: run.stderr };
}

const address = (text: string): string =>
  `1: lo: <LOOPBACK,UP>\n    inet 127.0.0.1/8 scope host lo\n    inet6 ::1/128 scope host\n2: eth0: <UP>\n    inet ${text}/24 scope global eth0\n`;
const rules =
  '*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n';
const ruleset =
  'table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n';

test.each([
  ['rules.txt', ''],
  ['rules.txt', '# no rules\n\n'],
  ['-', ''],
])('a file beside manifests that holds nothing is no manifest: %s', async (name, text) => {
  const folder = write('nothing', {
    'web.yaml': 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\n',
    'rules.txt': text,
  });
  const given = name === '-' ? name : join(folder, name);
  const run = await runKpc(['describe', 'web', given, '-f', join(folder, 'web.yaml'), '--output', 'json'], {
    stdin: '',
  });
  expect(findingsOf(run.stdout).map(({ code, severity }) => [code, severity])).toEqual([['unread-file', 'error']]);
  const { diagnostics, snapshots } = open({ 'web.yaml': 'kind: Service', [name]: text });
  expect([diagnostics.map(({ code }) => code), snapshots]).toEqual([['unread-file'], []]);
});

describe('an empty listing', () => {
  test('is one that was not given', () => {
    const names = ['iptables-save', 'ip6tables-save', 'nft-ruleset', 'ipset-save', 'ipvsadm-save'];
    const { coverage, faults, files } = readDump(new Map(names.map((name) => [name, ''])));
    expect(coverage).toMatchObject({
      iptables: { ipv4: [], ipv6: [] },
      nftables: [],
      sets: false,
      virtualServers: false,
    });
    expect(faults.map(({ code, file }) => `${code} ${file}`)).toEqual(names.map((name) => `unread-file ${name}`));
    expect(files).toEqual([]);
  });

  test('makes all that hangs on it unknown, and is to be printed again', async () => {
    const empty = { 'iptables-save': '', 'nft-ruleset': '', 'ip-addr': address('192.168.50.11') };
    const answer = await ask(write('nothing', empty));
    expect(answer).toMatchObject({ verdict: 'unknown', commands: ['iptables-save', 'nft list ruleset'] });
    const { verdict, commands } = await ask(
      write('ipvs', { ...filesOf('ipvs-dual-stack-nodeport'), 'iptables-save': '' }),
    );
    expect({ verdict, commands }).toEqual({ verdict: 'unknown', commands: ['iptables-save'] });
    const text = await runKpc(['trace', '-q', write('said', empty), '--from', '10.244.9.9', '--to', '10.96.7.7:80']);
    expect(text.stdout).toContain('unknown: iptables-save is empty; print it as root\n');
  });

  test('takes nothing from answers that need it not', async () => {
    const whole = filesOf('iptables-session-affinity');
    const firm = await ask(write('whole', whole));
    const less = { ...whole, 'ip6tables-save': '', 'ipset-save': '', 'ipvsadm-save': '', 'nft-ruleset': '' };
    expect(firm.verdict).not.toBe('unknown');
    expect((await ask(write('less', less))).verdict).toBe(firm.verdict);
  });

  test('is warned of only if the mode of the node makes such objects', () => {
    const emptyOf = (files: Files): readonly string[] => {
      const names = ['iptables-save', 'ip6tables-save', 'nft-ruleset', 'ipset-save', 'ipvsadm-save'];
      const all = { ...Object.fromEntries(names.map((name) => [name, ''])), ...files };
      return readDump(new Map(Object.entries(all))).faults.map(({ file }) => file);
    };
    const { 'iptables-save': saved = '' } = filesOf('iptables-session-affinity');
    const { 'ipvsadm-save': servers = '' } = filesOf('ipvs-dual-stack-nodeport');
    const tables = readFileSync('fixtures/dumps/kube-proxy-nftables-dual-stack-nodeport/nft-ruleset', 'utf8');
    expect(emptyOf({ 'iptables-save': saved })).toEqual(['ip6tables-save']);
    expect(emptyOf({ 'nft-ruleset': tables })).toEqual([]);
    expect(emptyOf({ 'ipvsadm-save': servers })).toEqual([
      'iptables-save',
      'ip6tables-save',
      'nft-ruleset',
      'ipset-save',
    ]);
  });

  test('is warned of alike by all commands', async () => {
    const folder = write('warned', { ...filesOf('iptables-session-affinity'), 'ip6tables-save': '' });
    const warning = `${folder}/ip6tables-save: warning: the file is empty, so the output of ip6tables-save counts as missing [unread-file]`;
    for (const args of [
      ['describe', folder],
      ['describe', '--from-dump', folder],
      ['diff', folder, folder],
      ['trace', folder, '--from', '10.244.9.9', '--to', '10.96.7.7:80'],
    ]) {
      const { stderr } = await runKpc(args);
      expect(stderr.split(warning)).toHaveLength(2);
      expect(stderr).not.toContain('may hold more');
    }
  });
});

describe('a dump without objects of kube-proxy', () => {
  const all = { 'ip-addr': address('192.168.50.11'), 'iptables-save': rules, 'nft-ruleset': ruleset };

  test.each([
    ['nft-ruleset', 'nft list ruleset'],
    ['iptables-save', 'iptables-save'],
    ['ip-addr', 'ipvsadm -Sn'],
  ] as const)('does not show the mode without %s', async (file, command) => {
    const { [file]: _, ...others } = all;
    const { verdict, commands } = await ask(write(`without-${file}`, others));
    expect(verdict).toBe('unknown');
    expect(commands[0]).toBe(command);
  });

  test('shows with the listings of all modes that no rule is a Service’s', async () => {
    expect((await ask(write('all', all))).verdict).toBe('forwarded');
    const service = {
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name: 'web' },
      spec: { clusterIP: '10.96.7.7', ports: [{ port: 80 }] },
    };
    const manifest = join(write('manifests', { 'web.json': JSON.stringify(service) }), 'web.json');
    const run = await runKpc([
      'trace',
      join(scratch, 'all'),
      '-f',
      manifest,
      '--from',
      '10.244.9.9',
      '--to',
      'svc/web',
      '--output',
      'json',
    ]);
    expect(resultOf(run.stdout).traces[0]).toMatchObject({ verdict: 'forwarded', connection: 'depends' });
  });

  test('is described with what it lacks', async () => {
    const { stderr } = await runKpc(['describe', write('pasted', { ...all, 'nft-ruleset': '' })]);
    expect(stderr).toContain('the dump does not hold all of ip6tables-save, nft list ruleset');
  });

  test('is not compared with Services that it cannot show', async () => {
    const run = await runKpc(['diff', 'fixtures/loadbalancer-source-ranges/expected-ipvs', join(scratch, 'all')]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('does not show how packets reach the endpoints of Services');
  });
});

test('nft is not told to be replaced by an iptables-save that the dump holds', () => {
  const listed = 'table ip nat {\n\tchain KUBE-SERVICES {\n\t\tjump KUBE-NODEPORTS\n\t}\n}\n';
  const saved = '*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -j KUBE-NODEPORTS\nCOMMIT\n';
  const codes = (files: Files) => readDump(new Map(Object.entries(files))).faults.map(({ code }) => code);
  expect(codes({ 'nft-ruleset': listed })).toContain('unread-output');
  expect(codes({ 'nft-ruleset': listed, 'iptables-save': saved })).not.toContain('unread-output');
});

describe('two dumps, of which one shows no object of kube-proxy', () => {
  const served = '$ nft list ruleset\n$ date\n$ iptables-save\n';
  const ofServices = readFileSync('fixtures/dumps/kube-proxy-iptables-session-affinity/iptables-save', 'utf8');
  const bare = '*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n';
  const sideOf = (text: string) => {
    const [side] = open({ 'node.txt': text }).snapshots;
    if (!side) throw new Error('the dump cannot be read');
    return side;
  };
  const old = sideOf(served + ofServices);

  test('has lost the Services if it shows what would hold them', () => {
    const changes = diff(old, sideOf(served + bare)).servicePorts.map(({ change }) => change);
    expect(new Set(changes)).toEqual(new Set(['removed']));
  });

  test('is not compared if it does not', () => {
    const modeless = sideOf('$ ip addr\n1: lo: <LOOPBACK,UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n');
    expect(() => diff(old, modeless)).toThrow(/does not show/);
    expect(() => formatDiff(old, modeless, 'text')).toThrow(/does not show/);
  });
});
