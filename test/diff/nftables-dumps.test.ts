import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const dumps = join(projectFolder, 'fixtures/dumps');
const asText = join(dumps, 'kube-proxy-nftables-affinity-external-policy-local');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-nftables-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of a dump, in which a file is edited. */
function edited(name: string, dump: string, file: string, edit: (text: string) => string): string {
  const copy = join(scratch, name);
  cpSync(dump, copy, { recursive: true });
  const text = readFileSync(join(copy, file), 'utf8');
  const changed = edit(text);
  expect(changed).not.toBe(text);
  writeFileSync(join(copy, file), changed);
  return copy;
}

/** A dump of one file. */
function dumpOf(name: string, file: string, text: string): string {
  const folder = join(scratch, name);
  mkdirSync(folder);
  writeFileSync(join(folder, file), text);
  return folder;
}

const nftText = readFileSync(join(asText, 'nft-ruleset'), 'utf8');

/** What `nft list table` prints of one family. */
function tableOf(family: 'ip' | 'ip6'): string {
  const start = nftText.indexOf(`table ${family} kube-proxy {`);
  return `${nftText.slice(start, nftText.indexOf('\n}\n', start))}\n}\n`;
}

describe('two dumps of nftables mode', () => {
  test('are the same if one is pasted behind a prompt', async () => {
    const pasted = dumpOf('pasted', 'notes.txt', `root@node-1:~# nft list ruleset\n${nftText}root@node-1:~# exit\n`);
    const run = await runKpc(['diff', pasted, asText]);
    expect(run).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });

  test('differ in what belongs to which Service port', async () => {
    const broken = edited('broken', asText, 'nft-ruleset', (text) =>
      text
        // A node port that is gone, an endpoint that is another, and a rule that every node has.
        .replace(/tcp \. 31080 : goto [^\s,}]+/, '')
        .replace('dnat to 10.244.2.9:8080', 'dnat to 10.244.2.99:8080')
        .replace(/\n\t\tct state new jump cluster-ips-check\n/, '\n'),
    );
    const run = await runKpc(['diff', broken, asText]);
    expect(run.status, run.stderr).toBe(1);
    expect(run.stdout).toBe(
      [
        'default/web:http changed',
        '    endpoint 10.244.2.9:8080 added',
        '    endpoint 10.244.2.99:8080 removed',
        '  + service-nodeports (nftables) tcp . 31080 : goto external-SUSTUHLJ-default/web/tcp/http',
        '  ~ chain endpoint-YDPZ3OAX-default/web/tcp/http__10.244.2.9/8080 (nftables): + 1 endpoint 10.244.2.9:8080, − 1 endpoint 10.244.2.99:8080',
        '',
        'Objects of no Service',
        '  ~ chain filter-forward (nftables): 1 → 2 rules',
        '',
        '1 Service port changed; 1 difference in objects of no Service.',
        '',
      ].join('\n'),
    );
  });

  test('do not differ in the clients that session affinity has learned', async () => {
    const learned = edited('learned', asText, 'nft-ruleset', (text) =>
      text.replace(/(set affinity-[^\n]* \{\n(?:\t\t[^\n]*\n)*?\t\ttimeout [^\n]*\n)/, (head) => {
        return `${head}\t\telements = { 10.0.0.1 timeout 3h expires 2h59m }\n`;
      }),
    );
    expect(await runKpc(['diff', learned, asText])).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });

  test('differ in a table that one of them lacks, told by the Service ports in it', async () => {
    const table = dumpOf('only-ipv4', 'nft-ruleset', tableOf('ip'));
    const run = await runKpc(['diff', asText, table]);
    expect(run.stdout).toBe(
      [
        'Objects of no Service',
        '  - table kube-proxy (IPv6 nftables) with 15 chains and 8 sets',
        '',
        '1 difference in objects of no Service.',
        '',
      ].join('\n'),
    );
  });
});

describe('a dump that does not hold all of nftables', () => {
  test('of one table, as nft list table prints it, says nothing of the other', async () => {
    const run = await runKpc(['diff', dumpOf('one table', 'nft', tableOf('ip')), asText]);
    const stdout = 'No difference in what could be compared; not compared: IPv6 nftables rules.\n';
    expect(run).toMatchObject({ status: 0, stdout });
    const { stderr } = await runKpc(['describe', dumpOf('one table described', 'nft', tableOf('ip'))]);
    expect(stderr).toMatch(/note: .*nft list table ip6 kube-proxy\b.*\[reading\]/);
  });

  test.for([
    ['a chain, as nft list chain prints it', 'nft', 'table ip kube-proxy {\n\tchain services {\n\t}\n}\n'],
    ['text cut off', 'nft-ruleset', nftText.slice(0, 3000)],
  ] as const)('%s: is not taken for a node that is as wanted', async ([name, file, text]) => {
    const part = dumpOf(name, file, text);
    const run = await runKpc(['diff', part, asText]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(
      'not compared, because one side lacks them: IPv4 nftables rules, IPv6 nftables rules\n',
    );
    const { stdout } = await runKpc(['diff', part, asText, '--output', 'json']);
    expect(findingsOf(stdout, 'bad-call')).toMatchObject([{ arguments: { problem: 'nothing-in-common' } }]);
  });

  test('cut off, it is warned of', async () => {
    const run = await runKpc(['diff', dumpOf('cut', 'nft-ruleset', nftText.slice(0, -3)), asText]);
    expect(run.stderr).toContain(
      'warning: the output of nft list ruleset is cut off, and the rest is unknown [unread-file]\n  help: print it again',
    );
  });

  test('of rules that iptables made, the tool to print them with is named', async () => {
    const text = 'table ip nat {\n\tchain KUBE-SERVICES {\n\t\tcounter packets 1 bytes 2 jump KUBE-NODEPORTS\n\t}\n}\n';
    const run = await runKpc(['describe', '--from-dump', dumpOf('iptables-nft', 'nft-ruleset', text)]);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain(
      'nft list ruleset shows the rules of iptables mode in other words: print iptables-save',
    );
  });
});

describe('a ruleset without a table of kube-proxy', () => {
  test('lacks all Service ports', async () => {
    const text = 'table inet firewall {\n\tchain input {\n\t\ttcp dport > 1024 accept\n\t}\n}\n';
    const empty = dumpOf('ruleset of another program', 'nft-ruleset.txt', text);
    const run = await runKpc(['diff', empty, asText]);
    expect(run.status, run.stderr).toBe(1);
    expect(run.stdout).toContain('default/web:http added\n');
    expect(run.stdout).toContain('  + table kube-proxy (nftables) with 15 chains and 8 sets\n');
  });
});

describe('manifests and bundles', () => {
  const manifests = join(projectFolder, 'test/diff/cases/scale-deployment');

  test('manifests beside a dump are compiled for the mode that the dump shows, with its defaults', async () => {
    const bundle = join(scratch, 'bundle');
    const before = join(manifests, 'before');
    await runKpc(['compile', '-f', before, '--proxy-mode', 'nftables', '--ip-family', 'dual', '-o', bundle]);
    const dump = join(scratch, 'dump');
    mkdirSync(dump);
    cpSync(join(bundle, 'nftables.nft'), join(dump, 'nft-ruleset'));
    const run = await runKpc(['diff', dump, join(manifests, 'after')]);
    expect(run.status, run.stderr).toBe(1);
    expect(run.stderr).toContain('mode nftables');
    expect(run.stdout).toBe(
      [
        'store/shop:http changed',
        '    endpoints 3 → 5',
        '    endpoint 10.244.1.8:8080 added',
        '    endpoint 10.244.2.9:8080 added',
        '  + hairpin-connections (nftables) 10.244.1.8 . 10.244.1.8 . tcp . 8080',
        '  ~ chain service-5YE2KF2R-store/shop/tcp/http (nftables): + 2 endpoints 10.244.1.8:8080, 10.244.2.9:8080',
        '',
        '1 Service port changed.',
        '',
      ].join('\n'),
    );
  });

  test('a change of the mode adds the table, and takes the rules of the other mode away', async () => {
    const other = join(scratch, 'iptables');
    const [from, to] = [join(scratch, 'mode-iptables'), join(scratch, 'mode-nftables')];
    const after = join(manifests, 'after');
    for (const [folder, mode] of [
      [from, 'iptables'],
      [to, 'nftables'],
    ] as const) {
      await runKpc(['compile', '-f', after, '--proxy-mode', mode, '-o', folder]);
    }
    renameSync(from, other);
    const run = await runKpc(['diff', other, to, '--output', 'json']);
    expect(run.status, run.stderr).toBe(1);
    const { base, servicePorts } = resultOf(run.stdout) as {
      base: readonly { kind: string; change: string }[];
      servicePorts: readonly { servicePort: string; kernel: readonly { kind: string; change: string }[] }[];
    };
    expect(base).toContainEqual(expect.objectContaining({ kind: 'nft-table', change: 'added', chains: 15, sets: 8 }));
    expect(servicePorts.map(({ servicePort }) => servicePort)).toEqual(['store/shop:http']);
    const kinds = new Set(servicePorts[0]?.kernel.map(({ kind, change }) => `${kind} ${change}`));
    expect([...kinds].toSorted()).toEqual(['chain changed', 'chain removed', 'nft-chain added', 'nft-element added']);
  });

  test('--check tells what differs from a bundle in words of Services', async () => {
    const bundle = join(scratch, 'checked');
    await runKpc(['compile', '-f', join(manifests, 'before'), '--proxy-mode', 'nftables', '-o', bundle]);
    const same = await runKpc([
      'compile',
      '-f',
      join(manifests, 'before'),
      '--proxy-mode',
      'nftables',
      '--check',
      bundle,
    ]);
    expect(same).toMatchObject({ status: 0 });
    const run = await runKpc([
      'compile',
      '-f',
      join(manifests, 'after'),
      '--proxy-mode',
      'nftables',
      '--check',
      bundle,
    ]);
    expect(run.status).toBe(1);
    expect(`${run.stdout}${run.stderr}`).toContain('nftables.nft');
    expect(`${run.stdout}${run.stderr}`).toContain('10.244.1.8:8080');
  });
});
