import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ipAddr, ipsetList, ipvsServers, ipvsTitles, natTable, rules, scaledDown, service } from '../dumps/pasted.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-pasted-diff-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

const before = write('before.txt', natTable);
const manifests = write('svc.yaml', service);

/** The result of a command, in JSON. */
const asked = async (...args: readonly string[]) => resultOf((await runKpc([...args, '--output', 'json'])).stdout);

/** The arguments of a command's findings of this code. */
async function told(code: string, ...args: readonly string[]) {
  return findingsOf((await runKpc([...args, '--output', 'json'])).stdout, code).map((each) => each.arguments);
}

describe('rules that one side shows in part', () => {
  const wrap = (text: string): string => text.replaceAll(/.{80}(?=.)/g, '$&\n');

  test('as grep found them: what is not there is no difference', async () => {
    const text = rules.split('\n').filter((line) => line.includes('KUBE-SVC'));
    const sides = [before, write('part.txt', text.join('\n'))];
    expect(await runKpc(['diff', '-q', ...sides])).toMatchObject({ status: 0 });
    expect(await asked('diff', ...sides)).toMatchObject({
      differs: false,
      notCompared: expect.arrayContaining(['IPv4 rules']),
    });
  });

  test('wrapped: none of them is read, and all commands say so', async () => {
    const wrapped = write('wrapped.txt', wrap(natTable));
    const diff = await runKpc(['diff', before, wrapped]);
    expect(diff).toMatchObject({ stdout: '', status: 2 });
    expect(await told('unread-line', 'diff', before, wrapped)).toMatchObject([{ reason: 'wrapped', of: 'rules' }]);
    expect(await told('not-found', 'describe', wrapped)).toMatchObject([
      { problem: 'no-service', why: { kind: 'unread' } },
    ]);
    const { traces } = await asked('trace', wrapped, '--from', '192.0.2.7', '--to', '10.96.7.7:80');
    const reasons = expect.arrayContaining([
      expect.objectContaining({ kind: 'missing-listing', text: expect.stringContaining('wrapped.txt') }),
    ]);
    expect(traces).toMatchObject([{ verdict: 'unknown', reasons }]);
  });

  test('while those of iptables-legacy, which are not there, may have the Services', async () => {
    const text = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
# Warning: iptables-legacy tables present, use iptables-legacy-save to see them
`;
    const legacy = write('legacy.txt', text);
    expect(await told('dump-reading', 'diff', legacy, manifests)).toEqual([{ problem: 'legacy-tables' }]);
    expect((await runKpc(['diff', legacy, manifests])).stdout).not.toContain('added');
    const both = `$ iptables-nft-save\n${text}$ iptables-legacy-save\n${natTable}`;
    expect(await told('dump-reading', 'describe', write('both-variants.txt', both))).toEqual([]);
  });
});

describe('the Services of two dumps', () => {
  test('an endpoint that is gone is told as such, not by the rules that go with it', async () => {
    const scaled = write('scaled.txt', scaledDown);
    const run = await runKpc(['diff', before, scaled]);
    expect(run.status).toBe(1);
    expect(run.stdout).not.toContain('KUBE-');
    const { servicePorts, notCompared } = await asked('diff', before, scaled);
    expect(servicePorts).toMatchObject([
      {
        servicePort: 'shop/web:http',
        change: 'changed',
        reasons: [
          { kind: 'scaled', from: 2, to: 1 },
          { kind: 'endpoint-removed', endpoint: '10.244.1.6:8080' },
        ],
      },
    ]);
    expect(servicePorts[0].kernel).toHaveLength(2);
    expect(notCompared).toEqual([
      'IPv4 rules of table filter',
      'IPv6 rules',
      'sets',
      'virtual servers',
      'addresses',
      'sysctls',
    ]);
  });

  test('another endpoint, another node port, and a rule of the chain that no endpoint explains', async () => {
    const moved = natTable.replaceAll('10.244.1.6', '10.244.1.9');
    const other = await runKpc(['diff', before, write('moved.txt', moved)]);
    expect(other.stdout).toContain('    endpoint 10.244.1.9:8080 added\n    endpoint 10.244.1.6:8080 removed\n');
    const bare = natTable.replace(/^-A KUBE-SEP-CCCCCCCCCCCCCCCC -s .*\n/m, '');
    const run = await runKpc(['diff', before, write('bare.txt', bare)]);
    expect(run.stdout).toContain('shop/web:http changed\n  ~ chain KUBE-SEP-CCCCCCCCCCCCCCCC (nat): 2 → 1 rule\n');
  });

  test('comments alone are no difference of a Service, but are counted', async () => {
    const after = write(
      'comments.txt',
      natTable.replaceAll(/ -> [\d.:]+"/g, '"').replace('service portals', 'service portals'),
    );
    const run = await runKpc(['diff', before, after]);
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/\b2 rules\b/);
    expect(await asked('diff', before, after)).toMatchObject({ differs: false, rulesThatDifferInCommentsAlone: 2 });
    const without = write('none.txt', natTable.replaceAll(/ -m comment --comment "[^"]*"/g, ''));
    expect(await runKpc(['diff', before, without])).toMatchObject({ status: 0 });
  });

  test('the comment of another Service is another rule', async () => {
    const refusal = (name: string): string => `*filter
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.7.9/32 -p tcp -m comment --comment "shop/${name} has no endpoints" -m tcp --dport 80 -j REJECT
COMMIT
`;
    const run = await runKpc(['diff', write('one.txt', refusal('one')), write('other.txt', refusal('other'))]);
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('shop/one removed');
    expect(run.stdout).toContain('shop/other added');
  });

  test('an excerpt is compared as far as it goes, and never called the whole', async () => {
    const excerpt = write('excerpt.txt', rules);
    expect(await runKpc(['diff', excerpt, before])).toMatchObject({
      status: 0,
      stdout: expect.not.stringContaining('No difference.'),
    });
    expect(await asked('diff', excerpt, before)).toMatchObject({
      differs: false,
      compared: { servicePorts: 1, withoutEndpoints: 0 },
      notCompared: expect.arrayContaining(['IPv4 rules']),
      servicePorts: [],
    });
    const changed = await runKpc([
      'diff',
      before,
      write('less.txt', rules.replace('10.244.1.5:8080\n', '10.244.1.7:8080\n')),
    ]);
    expect(changed.stdout).toContain(
      'shop/web:http changed\n    endpoint 10.244.1.7:8080 added\n    endpoint 10.244.1.5:8080 removed\n',
    );
    expect(changed.stdout).not.toContain('nothing changes');
  });

  test('a table that is cut off tells nothing of endpoints', async () => {
    const cut = write('cut.txt', natTable.slice(0, natTable.indexOf('-A KUBE-SEP-BBBB')));
    const run = await runKpc(['diff', before, cut]);
    expect(run.stdout).not.toContain('removed');
    expect(run.stdout).not.toContain('No difference.');
  });

  test('what iptables-save -t nat does not show of filter is not called gone', async () => {
    const filter = '*filter\n:KUBE-FORWARD - [0:0]\n-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n';
    const both = write('both.txt', `${natTable}${filter}`);
    expect(await runKpc(['diff', both, before])).toMatchObject({ status: 0 });
    expect(await asked('diff', both, before)).toMatchObject({
      differs: false,
      notCompared: expect.arrayContaining(['IPv4 rules of table filter']),
    });
  });
});

describe('a part of the rules', () => {
  const inNat = [
    '-A KUBE-SERVICES -d 203.0.113.9/32 -p tcp -m comment --comment "shop/web:http loadbalancer IP" -m tcp --dport 80 -j KUBE-EXT-AAAAAAAAAAAAAAAA',
    '-A KUBE-EXT-AAAAAAAAAAAAAAAA -m addrtype --src-type LOCAL -j KUBE-SVC-AAAAAAAAAAAAAAAA',
  ];
  const inFilter =
    '-A KUBE-EXTERNAL-SERVICES -d 203.0.113.9/32 -p tcp -m comment --comment "shop/web:http has no local endpoints" -m tcp --dport 80 -j DROP';
  const nat = natTable.replace(/^COMMIT$/m, `${inNat.join('\n')}\nCOMMIT`);
  const table = `*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-EXTERNAL-SERVICES - [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -j KUBE-FORWARD\n-A FORWARD -j KUBE-EXTERNAL-SERVICES\n${inFilter}\nCOMMIT\n`;
  const both = write('nat-and-filter.txt', nat + table);
  const filter = write('filter.txt', table);

  test('a rule for packets without a local endpoint does not show the endpoints', async () => {
    const text = await runKpc(['describe', 'shop/web', '-f', filter]);
    expect(text.stdout).toMatch(/endpoints: unknown\b/);
    const json = await runKpc(['describe', 'shop/web', '-f', filter, '-q', '--output', 'json']);
    expect(json.stdout).toContain('"fallback": "local-drops"');
    expect(json.stdout).not.toContain('"endpoints"');
  });

  test.each([
    ['table filter', filter, 2, { findings: expect.arrayContaining([expect.objectContaining({ code: 'bad-call' })]) }],
    ['what grep found', write('grep.txt', rules), 0, { result: { differs: false, compared: { servicePorts: 1 } } }],
  ])('%s lacks no address, and no endpoint', async (_title, part, expected, envelope) => {
    for (const sides of [
      [both, part],
      [part, both],
    ]) {
      expect(await runKpc(['diff', ...sides])).toMatchObject({ status: expected });
      const { stdout } = await runKpc(['diff', ...sides, '--output', 'json']);
      expect(JSON.parse(stdout)).toMatchObject(envelope);
    }
  });

  test('an address that the whole lacks is a difference', async () => {
    const part = write(
      'other-address.txt',
      [rules, inNat.join('\n').replace('203.0.113.9', '203.0.113.7'), ''].join('\n'),
    );
    const { stdout } = await runKpc(['diff', both, part]);
    expect(stdout).toContain(' + 203.0.113.7\n');
    expect(stdout).not.toContain('203.0.113.9');
  });
});

describe('IPVS', () => {
  const servers = write('ipvs.txt', `${ipvsTitles}${ipvsServers}`);
  const changed = write(
    'ipvs-changed.txt',
    `${ipvsTitles}${ipvsServers.replaceAll('10.244.1.6:8080', '10.244.1.7:8080')}`,
  );

  test('Services go by their addresses, and by their names where manifests tell them', async () => {
    const run = await runKpc(['diff', servers, changed]);
    expect(run.stdout).toContain('10.96.7.7:80/TCP changed\n    endpoint 10.244.1.7:8080 added\n');
    expect(run.stdout).toContain('node:30080/TCP changed\n');
    const named = await runKpc(['diff', servers, changed, '-f', manifests]);
    expect(named.status).toBe(1);
    expect(named.stdout).toMatch(
      /^shop\/web:http changed\n {4}endpoint 10\.244\.1\.7:8080 added\n {4}endpoint 10\.244\.1\.6:8080 removed\n/,
    );
    expect(named.stdout).not.toContain('node:30080');
    expect((await asked('diff', servers, changed, '-f', manifests)).servicePorts).toHaveLength(1);
  });

  test('kpc describe names them likewise, and asks for manifests where there are none', async () => {
    const all = write('all.txt', `$ ipvsadm -Ln\n${ipvsServers}$ ipset list\n${ipsetList}$ ip a\n${ipAddr}`);
    const named = await runKpc(['describe', all, '-f', manifests]);
    expect(named.stdout).toMatch(/^shop\/web:http +NodePort +10\.96\.7\.7 +80\/TCP +30080\/TCP +2$/m);
    expect(named.stdout).toMatch(/^10\.96\.0\.10:53\/UDP /m);
    expect(named.stderr).not.toContain('no-endpoints-given');
    expect(await told('reading', 'describe', all)).toContainEqual({
      problem: 'dump',
      note: 'nameless',
      mode: 'ipvs',
      isNamed: false,
    });
    const one = await runKpc(['describe', 'shop/web', '--from-dump', all, '-f', manifests]);
    expect(one.stdout).toMatch(/^shop\/web:http\n {2}cluster IP 10\.96\.7\.7 port 80\/TCP\n {2}node port 30080\/TCP\n/);
  });
});

const ipvsRules = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-BBBBBBBBBBBBBBBB - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.1.5:8080
COMMIT
*filter
:INPUT ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.7.9/32 -p tcp -m comment --comment "shop/gone has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT
`;

describe('what another mode left', () => {
  const left = write('left.txt', ipvsRules);

  test('is called so: what nothing jumps to, and what still refuses packets', async () => {
    const [unreached, reached, ...others] = (await runKpc(['describe', left])).stdout.split('\n');
    expect(unreached).toMatch(/iptables.*: 2 chains \(KUBE-SVC-AAAAAAAAAAAAAAAA, KUBE-SEP-BBBBBBBBBBBBBBBB\)$/);
    expect(reached).toMatch(/iptables.* INPUT: chain KUBE-SERVICES \(filter\).* 1 rule$/);
    expect(others).toEqual(['']);
    expect(await asked('describe', left)).toMatchObject({ servicePorts: [] });
    expect((await runKpc(['describe', 'shop/gone', left])).stdout).toMatch(/iptables mode/);
    expect(await asked('describe', 'shop/gone', left)).toEqual({ servicePorts: [] });
  });

  test('is no Service port that differs', async () => {
    const clean = ipvsRules
      .replaceAll(/^(?::|-A )KUBE-S(?:VC|EP)-.*\n/gm, '')
      .replace(/^-A KUBE-SERVICES -d .*\n/m, '');
    const run = await runKpc(['diff', left, write('clean.txt', clean)]);
    expect(run.stdout).toMatch(/iptables.*\n {2}- chain KUBE-SVC-AAAAAAAAAAAAAAAA \(nat\) with 1 rule\n/);
    expect(run.stdout).not.toContain('Service port');
    expect(await asked('diff', left, join(scratch, 'clean.txt'))).toMatchObject({
      servicePorts: [],
      leftovers: {
        dead: [{ chain: 'KUBE-SVC-AAAAAAAAAAAAAAAA' }, { chain: 'KUBE-SEP-BBBBBBBBBBBBBBBB' }],
        live: [{ chain: 'KUBE-SERVICES', table: 'filter' }],
      },
    });
  });

  test('of IPVS mode on a node that is in iptables mode', async () => {
    const run = await runKpc([
      'describe',
      write('back.txt', `${natTable}$ ipset list\n${ipsetList}$ ip a\n${ipAddr}$ ipvsadm -Ln\n${ipvsServers}`),
    ]);
    expect(run.stdout).toMatch(/^shop\/web:http +ClusterIP .* 2$/m);
    expect(run.stdout).toMatch(
      /^.*IPVS.*: \d virtual servers \(.*\), 2 sets \(KUBE-CLUSTER-IP, .*\), 2 addresses on kube-ipvs0 /m,
    );
  });
});

describe('inputs are told apart by what they hold', () => {
  const bundle = join(projectFolder, 'fixtures/quickstart/expected-ipvs');
  const fleet = join(scratch, 'fleet');
  const shop = ['shop.yaml', 'nodes.yaml'].map((name) => join(projectFolder, 'fixtures/cluster', name));

  test('kpc describe takes each as an argument and by -f', async () => {
    for (const args of [
      ['describe', bundle],
      ['describe', '-f', bundle],
      ['describe', 'nginx', '-f', bundle],
      ['describe', 'nginx', bundle],
    ]) {
      expect((await runKpc(args)).stdout).toContain('default/nginx');
    }
    for (const args of [
      ['describe', manifests],
      ['describe', 'web', manifests],
    ]) {
      expect((await runKpc(args)).stdout).toContain('shop/web');
    }
  });

  test('parts of a dump in several files are one dump', async () => {
    const files = [write('s.txt', `${ipvsTitles}${ipvsServers}`), write('i.txt', ipsetList), write('a.txt', ipAddr)];
    const run = await runKpc(['describe', ...files.flatMap((file) => ['-f', file])]);
    expect(await told('reading', 'describe', ...files.flatMap((file) => ['-f', file]))).not.toContainEqual(
      expect.objectContaining({ note: 'incomplete' }),
    );
    expect(run.stdout).toMatch(/^10\.96\.7\.7:80\/TCP +ClusterIP .* 2$/m);
  });

  test('of a folder with the bundles of a fleet, --node says which', async () => {
    await runKpc(['compile', ...shop, '--all-nodes', '--proxy-mode', 'ipvs', '-o', fleet]);
    expect(await told('nodes-folder', 'describe', fleet)).toEqual([
      { path: fleet, example: join(fleet, 'worker-1'), of: 'bundles' },
    ]);
    const run = await runKpc(['describe', 'cart', fleet, '--node', 'worker-3']);
    expect(run.stdout).toContain('Service shop/cart');
    const diff = await runKpc(['diff', fleet, join(fleet, 'worker-1'), '--node', 'worker-3']);
    expect(diff.status).toBe(1);
    expect(diff.stderr).toContain(`${join(fleet, 'worker-3')}: a bundle for node worker-3`);
  });

  test('kpc diff takes its sides by -f too', async () => {
    const after = write('after-f.txt', scaledDown);
    for (const args of [
      ['diff', '-f', before, '-f', after],
      ['diff', before, '-f', after],
    ]) {
      expect((await runKpc(args)).stdout).toContain('endpoint 10.244.1.6:8080 removed');
    }
    const piped = await runKpc(['diff', before, '-'], { stdin: scaledDown });
    expect(piped.stdout).toContain('endpoint 10.244.1.6:8080 removed');
  });

  test('kpc compile takes manifests as arguments, and says what anything else is', async () => {
    const run = await runKpc(['compile', join(projectFolder, 'fixtures/quickstart/svc.yaml'), '--print', 'ipvsadm']);
    expect(run.stdout).toContain('-A -t 10.96.0.80:80 -s rr\n');
    for (const [path, what] of [
      [bundle, 'bundle'],
      [before, 'dump'],
    ] as const) {
      const refused = await runKpc(['compile', '-f', path]);
      expect(refused).toMatchObject({ status: 2, stdout: '' });
      for (const command of [['compile', '-f'], ['lint'], ['migrate', '--from', 'iptables']])
        expect(await told('no-manifests', ...command, path)).toEqual([{ what, path }]);
      expect(refused.stderr.match(/error: /g)).toHaveLength(1);
    }
    expect((await runKpc(['compile', '-'], { stdin: natTable })).stderr).toMatch(/error: .*\[no-manifests\]/);
  });

  test('flags for manifests are refused of anything else, and so is what does not go together', async () => {
    expect(await told('bad-call', 'describe', before, '--proxy-mode', 'ipvs')).toEqual([
      {
        problem: 'idle-flag',
        flags: ['--proxy-mode'],
        because: { kind: 'compiled-already', path: before, of: 'dump' },
      },
    ]);
    const mixed = await runKpc(['describe', bundle, '-f', before]);
    expect(mixed).toMatchObject({ status: 2, stdout: '' });
    expect(await told('no-manifests', 'describe', bundle, '-f', before)).toEqual([
      { what: 'bundle', path: bundle, beside: before },
    ]);
  });
});
