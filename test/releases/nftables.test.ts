import { cpSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { families } from '../../src/kernel/address.ts';
import { formatElement, formatNftRule } from '../../src/kernel/nftables/format.ts';
import { nftRuleMeaning } from '../../src/kernel/nftables/nft-delta.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import { findTable, type NftTable } from '../../src/kernel/nftables/table.ts';
import { behavioursOf, type Behaviour, type Release } from '../../src/kube-proxy/releases.ts';
import type { ServicePort } from '../../src/cluster/model.ts';
import type { ProxySettings } from '../../src/cluster/objects.ts';
import { compileNftables, NftablesMemo } from '../../src/modes/nftables/compile-nftables.ts';
import { clusterOf, defaults, endpoint, remote, servicePort, worker } from '../modes/iptables/compile.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nft-releases-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const settings: ProxySettings = { ...defaults, mode: 'nftables', nodePortAddresses: ['primary'] };

function tableOf(tables: readonly NftTable[]): NftTable {
  const table = findTable(tables, 'ipv4', 'kube-proxy');
  if (!table) throw new Error('no table');
  return table;
}

function compile(port: ServicePort, release: Release, changed: Partial<ProxySettings> = {}): NftTable {
  return tableOf(compileNftables(clusterOf(port), worker, { ...settings, ...changed, release }, families).nftables);
}

const rules = ({ chains }: NftTable, chain: string) => chains.get(chain)?.rules.map(formatNftRule);
/** The chain of the Service port, or of its first endpoint, whose name begins so. */
const chain = ({ chains }: NftTable, prefix: string) =>
  [...chains.keys()].find((name) => new RegExp(`^${prefix}[A-Z2-7]{8}-`).test(name)) ?? '';
const local = endpoint('10.1.0.7', { nodeName: worker.name });
const away = remote('10.1.0.8');
const web = servicePort({ nodePort: 30080, endpoints: [local, away] });
const mark = 'mark set mark or 0x00004000';

describe('the rules that kube-proxy of a release writes', () => {
  test.each(['1.33', '1.34', '1.35'] as const)('up to 1.35 an endpoint has a chain of its own: %s', (release) => {
    const table = compile(web, release);
    const own = [...table.chains.keys()].filter((name) => name.startsWith('endpoint-'));
    expect(own).toHaveLength(2);
    expect(rules(table, own[0] ?? '')).toEqual([
      'ip saddr 10.1.0.7 jump mark-for-masquerade',
      'meta l4proto tcp dnat to 10.1.0.7:8080',
    ]);
    expect(rules(table, chain(table, 'service-'))?.at(-1)).toBe(
      `numgen random mod 2 vmap { 0 : goto ${own[0]}, 1 : goto ${own[1]} }`,
    );
    expect(table.sets.has('hairpin-connections')).toBe(false);
    expect([...table.sets.keys()].some((name) => name.startsWith('affinity-'))).toBe(false);
  });

  test('since 1.36 it has none, and the set of hairpin connections holds the local one', () => {
    const table = compile(web, '1.36');
    expect(chain(table, 'endpoint-')).toBe('');
    expect(table.sets.get('hairpin-connections')?.elements.map(formatElement)).toEqual([
      '10.1.0.7 . 10.1.0.7 . tcp . 8080',
    ]);
  });

  test('up to 1.35 the mark is set in a chain, and looked at in three rules', () => {
    const table = compile(web, '1.35');
    expect(rules(table, 'mark-for-masquerade')).toEqual([mark]);
    expect(rules(table, 'masquerading')).toEqual([
      'mark and 0x00004000 == 0 return',
      'mark set mark xor 0x00004000',
      'masquerade fully-random',
    ]);
    expect(rules(table, chain(table, 'external-'))?.[0]).toBe('jump mark-for-masquerade');
    const newest = compile(web, '1.36');
    expect(newest.chains.has('mark-for-masquerade')).toBe(false);
    expect(rules(newest, chain(newest, 'external-'))?.[0]).toBe(`${mark} comment "masquerade"`);
  });

  const clusterIP = web.clusterIP.text;
  test.each([
    ['1.33', {}, `ip daddr ${clusterIP} tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade`],
    ['1.34', {}, `ip daddr ${clusterIP} ip saddr != 10.0.0.0/8 jump mark-for-masquerade`],
    ['1.33', { masqueradeAll: true }, `ip daddr ${clusterIP} tcp dport 80 jump mark-for-masquerade`],
    ['1.35', { masqueradeAll: true }, `ip daddr ${clusterIP} jump mark-for-masquerade`],
  ] as const)(
    'up to 1.35 the chain that packets to the cluster IP come to masquerades: %s %o',
    (release, changed, first) => {
      const table = compile(web, release, { clusterCIDRs: ['10.0.0.0/8'], ...changed });
      expect(rules(table, chain(table, 'service-'))?.[0]).toBe(first);
      expect(rules(table, 'services')).toHaveLength(2);
    },
  );

  test('the other chain does not, and none where nothing tells pods', () => {
    const near = servicePort({ nodePort: 30080, endpoints: [local, away], internalPolicyLocal: true });
    const table = compile(near, '1.35', { clusterCIDRs: ['10.0.0.0/8'] });
    expect(rules(table, chain(table, 'local-'))).toHaveLength(2);
    expect(rules(table, chain(table, 'service-'))).toHaveLength(1);
    const unknown = compile(near, '1.35', { clusterCIDRs: [] });
    expect(rules(unknown, chain(unknown, 'local-'))).toHaveLength(1);
  });

  test('session affinity stands between the two', () => {
    const table = compile(servicePort({ endpoints: [local], affinitySeconds: 90 }), '1.35');
    const name = chain(table, 'endpoint-');
    const set = name.replace('endpoint-', 'affinity-');
    expect(rules(table, name)).toEqual([
      'ip saddr 10.1.0.7 jump mark-for-masquerade',
      `update @${set} { ip saddr }`,
      'meta l4proto tcp dnat to 10.1.0.7:8080',
    ]);
    expect(table.sets.get(set)).toMatchObject({ timeoutSeconds: 90 });
  });

  test('a memo keeps the releases apart', () => {
    const memo = new NftablesMemo();
    const cluster = clusterOf(web);
    for (const release of ['1.33', '1.36', '1.35', '1.33'] as const) {
      const { nftables } = compileNftables(cluster, worker, { ...settings, release }, families, memo);
      expect(tableOf(nftables), release).toEqual(compile(web, release));
    }
  });

  test.each(['mark and 0x00004000 == 0 return', 'meta mark & 0x00004000 == 0x00000000 return'])(
    'a mark that is not set is read back: %s',
    (written) => {
      const { tables, unread } = parseNftText(`table ip t {\n\tchain c {\n\t\t${written}\n\t}\n}\n`);
      expect(unread).toEqual([]);
      const [rule] = tables[0]?.chains.get('c')?.rules ?? [];
      expect(rule && nftRuleMeaning(rule)).toBe('mark and 0x00004000 == 0 return');
    },
  );
});

describe('the behaviours of nftables mode', () => {
  const ofMode: readonly Behaviour[] = [
    'masquerade-by-address',
    'inline-masquerade',
    'shared-masquerade',
    'hairpin-set',
    'direct-dnat',
  ];

  test('a release without them and one with them differ by each, one at a time', () => {
    const cluster = clusterOf(web);
    const set = { ...settings, clusterCIDRs: ['10.0.0.0/8'], release: '1.33' } as const;
    const old = behavioursOf('1.33');
    const before = compileNftables(cluster, worker, set, families, undefined, old);
    for (const behaviour of ofMode) {
      expect(old.has(behaviour), behaviour).toBe(false);
      const one = compileNftables(cluster, worker, set, families, undefined, new Set([...old, behaviour]));
      expect(one, behaviour).not.toEqual(before);
    }
  });

  test('an upgrade tells each Service port which of them change it', async () => {
    const at = join(fixturesFolder, 'dumps', 'release-1.33-nftables');
    const inputs = ['-f', join(at, 'cluster.yaml'), '-f', join(at, 'node.yaml'), '--config', join(at, 'config.yaml')];
    const flags = ['--kubernetes-version', '1.33', '--to-kubernetes-version', '1.36', '--output', 'json'];
    const run = await runKpc(['diff', ...flags, ...inputs]);
    expect(run.status, run.stderr).toBe(1);
    const { servicePorts } = resultOf(run.stdout) as {
      servicePorts: readonly { servicePort: string; reasons: readonly { behaviour?: string }[] }[];
    };
    const told = new Map(
      servicePorts.map(({ servicePort: label, reasons }) => [
        label,
        reasons.flatMap(({ behaviour }) => behaviour ?? []),
      ]),
    );
    expect([...told.keys()]).toEqual(['shop/cart', 'shop/near', 'shop/web:http']);
    expect(told.get('shop/web:http')).toEqual(ofMode);
    // With session affinity an endpoint keeps its chain.
    expect(told.get('shop/cart')).toEqual(ofMode.filter((behaviour) => behaviour !== 'direct-dnat'));
  });

  test('are no difference in another mode', async () => {
    const at = join(fixturesFolder, 'dumps', 'release-1.33-nftables');
    const inputs = ['-f', join(at, 'cluster.yaml'), '-f', join(at, 'node.yaml'), '--proxy-mode', 'iptables'];
    const run = await runKpc(['diff', '--kubernetes-version', '1.33', '--to-kubernetes-version', '1.34', ...inputs]);
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: 'release: 1.33 → 1.34\n\nNo difference.\n' });
    expect(run.stderr).toContain('differ in 2 behaviours');
  });
});

describe('a dump of a node in nftables mode', () => {
  const dumps = { '1.33': '1.33', '1.35': '1.35' };

  test.each(Object.entries(dumps))('of %s is found to be of its release without a flag', async (release, found) => {
    const at = join(fixturesFolder, 'dumps', `release-${release}-nftables`);
    const inputs = ['-f', join(at, 'node.yaml'), '--config', join(at, 'config.yaml')];
    for (const sides of [
      [at, join(at, 'cluster.yaml')],
      [join(at, 'cluster.yaml'), at],
    ]) {
      const run = await runKpc(['diff', ...sides, ...inputs]);
      expect(run, run.stderr).toMatchObject({ status: 0, stdout: 'No difference.\n' });
      expect(run.stderr).toContain(`Kubernetes ${found} (the dump fits it best)`);
    }
  });

  test('is the same as the bundle of its release', async () => {
    const at = join(fixturesFolder, 'dumps', 'release-1.33-nftables');
    const inputs = ['-f', join(at, 'cluster.yaml'), '-f', join(at, 'node.yaml'), '--config', join(at, 'config.yaml')];
    const bundle = join(scratch, 'bundle');
    const made = await runKpc(['compile', ...inputs, '--kubernetes-version', '1.33', '-o', bundle]);
    expect(made.status, made.stderr).toBe(0);
    expect(await runKpc(['diff', at, bundle])).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });

  test('differs in what another program changed, by the release that it is of', async () => {
    const at = join(scratch, 'changed');
    mkdirSync(at);
    const from = join(fixturesFolder, 'dumps', 'release-1.33-nftables');
    cpSync(from, at, { recursive: true });
    const file = join(at, 'nft-ruleset');
    writeFileSync(file, readFileSync(file, 'utf8').replace('dnat to 10.244.2.1:8080', 'dnat to 10.244.2.9:8080'));
    const inputs = ['-f', join(at, 'node.yaml'), '--config', join(at, 'config.yaml')];
    const run = await runKpc(['diff', at, join(at, 'cluster.yaml'), ...inputs]);
    expect(run.status, run.stderr).toBe(1);
    expect(run.stderr).toContain('Kubernetes 1.33 (the dump fits it best)');
    expect(run.stdout).toMatch(/^shop\/web:http changed\n/);
    expect(run.stdout).toMatch(/\n1 Service port changed\.\n$/);
  });
});
