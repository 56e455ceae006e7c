// What kpc-apply dump writes of where packets go, and what kpc trace says of it.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { open } from '../../src/library/index.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-dumped-network-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const listing = readFileSync(join(fixturesFolder, 'connections/node.txt'), 'utf8')
  // The names of kube-proxy's own chains have sixteen characters.
  .replaceAll(
    /(KUBE-(?:SVC|EXT|SEP)-)(LOCAL|REMOTE)A+/g,
    (_, start: string, name: string) => start + name.padEnd(16, 'A'),
  )
  .replace(':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE', (found) =>
    found.replace(':KUBE', ':THEIRS - [0:0]\n:KUBE'),
  );

/** What a command of a pasted listing printed. */
function printed(command: string): string {
  const [, text = ''] = listing.split(`$ ${command}\n`);
  return text.split(/^\$ /m)[0] ?? '';
}

/** The links of the listing, with what people give links besides. */
const links = [
  { ifname: 'lo', addr_info: [{ family: 'inet', local: '127.0.0.1', prefixlen: 8, scope: 'host' }] },
  {
    ifname: 'eth0',
    ifalias: 'secret-alias',
    address: '02:00:00:00:00:11',
    addr_info: [{ family: 'inet', local: '192.168.10.11', prefixlen: 24, scope: 'global', label: 'secret-label' }],
  },
  {
    ifname: 'eth1',
    addr_info: [{ family: 'inet', local: '172.16.20.11', prefixlen: 24, scope: 'global' }],
  },
  {
    ifname: 'cni0',
    linkinfo: { info_kind: 'bridge' },
    addr_info: [{ family: 'inet', local: '10.244.1.1', prefixlen: 24, scope: 'global' }],
  },
  { ifname: 'gre.7', linkinfo: { info_kind: 'gre', info_data: { key: '0.0.48.57' } }, addr_info: [] },
  ...['veth11', 'veth12'].map((ifname) => ({
    ifname,
    master: 'cni0',
    linkinfo: { info_kind: 'veth', info_slave_kind: 'bridge', info_slave_data: { hairpin: true } },
    addr_info: [],
  })),
];

const settings: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/all/route_localnet': '0',
  'net/ipv4/conf/gre.7/rp_filter': '2',
  'net/ipv4/conf/eth0/rp_filter': '0',
  'net/ipv4/conf/cni0/rp_filter': '0',
  'net/ipv4/conf/cni0/forwarding': '1',
};

interface Node {
  readonly isBridgeSeen: boolean;
  /** Whether ip fails to list routes. */
  readonly failsRoutes?: boolean;
  /** A rule of another program. */
  readonly rule?: string;
  /** What ipset save prints. */
  readonly sets?: string;
  /** What /proc/net/netlink holds, and what ip xfrm policy prints. */
  readonly sockets?: string;
  readonly policies?: string;
  /** What nft lists beside what iptables-save prints. */
  readonly tables?: string;
}

function startNode(node: Node): Host {
  const { isBridgeSeen, failsRoutes = false, rule = '', sets = '', sockets = '', policies = '', tables } = node;
  const { host, files, useVariant } = createFakeNode();
  if (tables !== undefined) useVariant('nft');
  files.set('/proc/net/netlink', sockets);
  for (const [name, value] of Object.entries(settings)) files.set(`/proc/sys/${name}`, `${value}\n`);
  files.set('/proc/sys/net/bridge/bridge-nf-call-iptables', isBridgeSeen ? '1\n' : '0\n');
  const answer = (stdout: string) => ({ kind: 'ended', status: 0, stdout, stderr: '' }) as const;
  return {
    ...host,
    list: async (path) => (sets !== '' && path === '/sys/module/ip_set' ? ['refcnt'] : host.list(path)),
    run: async (command) => {
      if (command.tool === 'ipset' && sets !== '') return answer(command.args[0] === 'save' ? sets : '');
      const words = command.args.join(' ');
      if (command.tool === 'iptables-save' && words !== '--version')
        return answer(printed('iptables-save').replace('-A FORWARD', `${rule}-A FORWARD`));
      if (words === '-s list ruleset' && tables !== undefined) {
        const lines = tables.split('\n').filter((line) => command.keeps?.(line) ?? true);
        return answer(lines.join('\n'));
      }
      if (command.tool !== 'ip') return host.run(command);
      if (words === '-j -d addr') return answer(JSON.stringify(links));
      if (words === 'xfrm policy') return answer(policies);
      if (words === 'rule') return answer(printed('ip rule'));
      if (words !== 'route show table all') return host.run(command);
      if (failsRoutes) return { kind: 'ended', status: 2, stdout: '', stderr: 'Cannot open netlink socket\n' };
      return answer(printed('ip route show table all'));
    },
  };
}

async function dump(node: Node): Promise<{ readonly folder: string; readonly err: string }> {
  const folder = join(mkdtempSync(join(scratch, 'dump-')), 'dump');
  const { status, err } = await callApply(startNode(node), 'dump', '-o', folder);
  expect(status, err).toBe(0);
  return { folder, err };
}

async function connectionOf(...paths: string[]): Promise<unknown> {
  const { stdout } = await runKpc(
    ['trace', ...paths, '--from', '10.244.1.12', '--to', '10.96.0.1:80', '--output', 'json', '-q'],
    {},
  );
  return resultOf(stdout).traces[0].connection;
}

describe('network.txt', () => {
  test.each([
    [true, 'works'],
    [false, 'fails'],
  ])('kpc trace of the dump knows the connection: with bridged packets seen %j, it %s', async (isBridgeSeen, kind) => {
    expect(await connectionOf((await dump({ isBridgeSeen })).folder)).toBe(kind);
  });

  test.each([
    ['sk Eth Pid\n0000000000000000 0   0\n', 'works'],
    ['sk Eth Pid\n0000000000000000 6   0\n', 'fails'],
  ])('policies of IPsec, if the kernel lists them: %j, and it %s', async (sockets, kind) => {
    const policies = 'src 10.244.1.12/32 dst 10.96.0.0/16 \n\tdir fwd action block priority 0 ptype main \n';
    expect(await connectionOf((await dump({ isBridgeSeen: true, sockets, policies })).folder)).toBe(kind);
  });

  test('costs no second listing of rules', async () => {
    const asked: string[] = [];
    const node = startNode({ isBridgeSeen: true });
    const host: Host = {
      ...node,
      run: (command) => {
        asked.push([command.tool, ...command.args].join(' '));
        return node.run(command);
      },
    };
    await callApply(host, 'dump', '-o', join(mkdtempSync(join(scratch, 'dump-')), 'dump'));
    const listings = asked.filter((words) => /^ip6?tables-\S*save$/.test(words));
    expect(listings.length).toBeGreaterThan(0);
    expect(listings).toEqual([...new Set(listings)]);
  });

  test('holds routes, rules, links and the sysctls of routing, and no alias, label or key', async () => {
    const { folder } = await dump({ isBridgeSeen: true });
    const text = readFileSync(join(folder, 'network.txt'), 'utf8');
    expect(text.match(/^\$ .*$/gm)).toEqual([
      '$ iptables-legacy-save',
      '$ ip6tables-legacy-save',
      '$ ip route show table all',
      '$ ip -6 route show table all',
      '$ ip rule',
      '$ ip -6 rule',
      '$ ip neigh show proxy',
      '$ nft list ruleset',
      '$ ip -j -d addr',
      '$ sysctl -a',
    ]);
    expect(text).toContain(printed('ip route show table all'));
    expect(text).toContain('net.ipv4.conf.gre/7.rp_filter = 2\n');
    expect(text).not.toMatch(/secret|0\.0\.48\.57|02:00/);
  });

  test.each([
    ['-A FORWARD -o cni0 -m comment --comment secret-comment -j DROP\n', 'fails'],
    ['-A FORWARD -i eth0 -j DROP\n', 'works'],
    ['-A FORWARD -j THEIRS\n', 'works'],
  ])('a rule of another program: %j, and it %s', async (rule, kind) => {
    const { folder } = await dump({ isBridgeSeen: true, rule });
    expect(await connectionOf(folder)).toBe(kind);
    expect(readFileSync(join(folder, 'network.txt'), 'utf8')).not.toContain('secret');
  });

  test.each([
    ['10.244.1.12', 'fails'],
    ['10.244.1.99', 'works'],
  ])('a set of another program with %s, and it %s', async (entry, kind) => {
    const sets = `create theirs hash:ip family inet hashsize 1024 maxelem 65536 comment\nadd theirs ${entry} comment "secret word"\n`;
    const rule = '-A FORWARD -m set --match-set theirs dst -j DROP\n';
    const { folder } = await dump({ isBridgeSeen: true, rule, sets });
    expect(await connectionOf(folder)).toBe(kind);
    expect(readFileSync(join(folder, 'network.txt'), 'utf8')).not.toContain('secret');
  });

  test.each([0, 1])('a set that was printed beside it, named at place %i', async (place) => {
    const rule = '-A FORWARD -m set --match-set theirs dst -j DROP\n';
    const { folder } = await dump({ isBridgeSeen: true, rule });
    const beside = join(mkdtempSync(join(scratch, 'set-')), 'set.txt');
    writeFileSync(beside, 'create theirs hash:ip family inet hashsize 1024 maxelem 65536\nadd theirs 10.244.1.12\n');
    expect(await connectionOf(folder)).toBe('unknown');
    expect(await connectionOf(...[folder].toSpliced(place, 0, beside))).toBe('fails');
  });

  test('a set that the library gets beside its texts, which are those of one folder', async () => {
    const { folder } = await dump({ isBridgeSeen: true });
    const names = readdirSync(folder).map((name) => [`node/${name}`, readFileSync(join(folder, name), 'utf8')]);
    const texts = { ...Object.fromEntries(names), 'set.txt': '$ ipset save\ncreate theirs hash:ip family inet\n' };
    const { kind, snapshots, diagnostics } = open(texts);
    expect({ kind, diagnostics }).toEqual({ kind: 'dump', diagnostics: [] });
    expect(snapshots[0]?.state.sets.map(({ name }) => name)).toContain('theirs');
  });

  const base = '\t\ttype filter hook forward priority filter; policy accept;\n';
  const drop = (from: string) => `\t\tip saddr ${from} drop\n`;

  test.each([
    ['a rule with a set', 'FORWARD', base, drop('{ 10.244.1.12, 10.9.0.0/16 }'), 'fails'],
    ['a rule with a set of others', 'FORWARD', base, drop('{ 10.8.0.0/16, 10.9.0.0/16 }'), 'works'],
    ['a chain of another name', 'mine', base, drop('10.244.1.12'), 'fails'],
    ['a chain of another priority', 'FORWARD', base.replace('filter;', 'filter + 5;'), drop('10.244.1.12'), 'fails'],
    ['a rule that iptables shows', 'FORWARD', base, drop('10.244.1.12'), 'works'],
  ])('%s that nft put into a table of iptables', async (_, chain, hook, added, kind) => {
    const tables = `table ip raw {\n}\ntable ip filter {\n\tchain ${chain} {\n${hook}${added}\t}\n}\ntable inet theirs {\n}\n`;
    const { folder } = await dump({ isBridgeSeen: true, tables });
    expect(await connectionOf(folder)).toBe(kind);
    const listed = readFileSync(join(folder, 'network.txt'), 'utf8').match(/^table .* \{$/gm);
    expect(listed).toEqual(['table ip raw {', 'table ip filter {', 'table inet theirs {']);
  });

  test('a table of kube-proxy in nftables that is listed there too', async () => {
    const { folder } = await dump({ isBridgeSeen: true });
    const path = join(folder, 'network.txt');
    const table =
      'table ip kube-proxy {\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\ttcp dport 8080 drop\n\t}\n}\n';
    const command = '$ nft list ruleset\n';
    const given = readFileSync(path, 'utf8');
    const made = given.replace(command, `${command}${table}`);
    writeFileSync(path, made);
    const manifest = join(folder, 'manifest.json');
    const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(hashOf(given), hashOf(made)));
    expect(await connectionOf(folder)).toBe('fails');
  });

  test('a listing that fails is left out with a warning', async () => {
    const { folder, err } = await dump({ isBridgeSeen: true, failsRoutes: true });
    expect(err).toMatch(/warning: .*route show table all.*, so the dump lacks what it lists\n/);
    expect(await connectionOf(folder)).toBe('unknown');
  });
});
