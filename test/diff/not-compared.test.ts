import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readStoredSide } from '../../src/snapshot/files/read-side.ts';
import { reportDiff } from '../../src/say/diff-report.ts';
import { diffSides, areSidesSame, type SideDiff } from '../../src/ask/diff/diff-sides.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts';
import { triesAll } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-gaps-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Files = ReadonlyMap<string, string>;

/** A dump, with the sysctls that its bundle asks for. */
function readFiles(name: string): Files {
  const folder = join(projectFolder, 'fixtures/dumps', name);
  const names = readdirSync(folder).filter((file) => /-save$|^ip-addr/.test(file));
  const files = new Map(names.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  return files.set('sysctl', `${sysctls.map((line) => `${line} = 1`).join('\n')}\n`);
}

const sysctls = [
  'net.ipv4.ip_forward',
  'net.ipv4.vs.conntrack',
  'net.ipv4.vs.expire_nodest_conn',
  'net.ipv4.vs.expire_quiescent_template',
  'net.ipv4.conf.all.route_localnet',
];

function sideOf(files: Files): Snapshot {
  const { state, coverage, doubts } = readDump(files);
  return new DumpedSnapshot({ name: 'dump', state: () => state, coverage, doubts });
}

async function compile(name: string): Promise<Snapshot> {
  const at = join('fixtures/dumps', name);
  const inputs = ['cluster.yaml', 'node.yaml'].flatMap((file) => ['-f', join(at, file)]);
  const more = ['--config', join(at, 'config.yaml'), '--host-addresses', join(at, 'ip-addr.json')];
  const folder = join(scratch, name);
  await runKpc(['compile', ...inputs, ...more, '--ip-family', 'dual', '-o', folder]);
  const stored = await readStoredSide(folder);
  if (stored.kind !== 'bundle') throw new Error('no bundle');
  return stored.side;
}

function summaryOf(diff: SideDiff): string {
  return reportDiff(diff, { servicePorts: 20, lines: 20 }).at(-1)?.[0]?.text ?? '';
}

/** A change of one file that makes the node another one than the bundle says. */
const changes: readonly (readonly [file: string, what: string, change: (text: string) => string])[] = [
  ['iptables-save', 'a rule that is gone', (text) => text.replace(/^-A KUBE-POSTROUTING .*RETURN\n/m, '')],
  ['iptables-save', 'one more chain', (text) => text.replace(/^(\*nat\n)/m, '$1:KUBE-SVC-OLDOLDOLDOLDOLD2 - [0:0]\n')],
  ['ip6tables-save', 'a rule that is gone', (text) => text.replace(/^-A KUBE-FORWARD .*\n/m, '')],
  ['ipset-save', 'one more entry', (text) => `${text}add KUBE-CLUSTER-IP 10.96.99.99,tcp:99\n`],
  ['ipvsadm-save', 'a virtual server on an address that is bound', (text) => `${text}-A -t 10.96.7.7:99 -s rr\n`],
  ['ipvsadm-save', 'another scheduler', (text) => text.replace('198.18.0.11:31080 -s rr', '198.18.0.11:31080 -s wrr')],
  ['ipvsadm-save', 'no virtual server', () => 'Prot LocalAddress:Port Scheduler Flags\n'],
  ['ip-addr.json', 'an address that is not bound', (text) => text.replaceAll('"10.96.7.7"', '"10.96.7.8"')],
  ['sysctl', 'a sysctl', (text) => text.replace('ip_forward = 1', 'ip_forward = 0')],
];

const damages: readonly (readonly [what: string, damage: (text: string) => string | undefined])[] = [
  ['missing', () => undefined],
  ['empty', () => ''],
  ['cut in the middle of a line', (text) => text.slice(0, text.lastIndexOf('\n', text.length * 0.6) + 5)],
];

describe('a dump that holds only a part of a node', () => {
  const name = 'kube-proxy-ipvs-dual-stack-nodeport';
  let bundle: Snapshot;
  beforeAll(async () => {
    bundle = await compile(name);
  });

  test('the whole of it is as its bundle says, both ways', () => {
    const whole = sideOf(readFiles(name));
    expect(summaryOf(diffSides(whole, bundle, { foreign: false }))).toBe('No difference.');
    expect(summaryOf(diffSides(bundle, whole, { foreign: false }))).toBe('No difference.');
  });

  /** Sets of files, as bits: in `npm test` each file alone, and a fifth of the pairs, another one at each turn. */
  const subsetsOf = (count: number, turn: number) =>
    Array.from({ length: 2 ** count - 1 }, (_, i) => i + 1).filter(
      (bits) => triesAll || bitsIn(bits) === 1 || (bitsIn(bits) === 2 && (bits + turn) % 5 === 0),
    );
  const bitsIn = (bits: number): number => (bits === 0 ? 0 : 1 + bitsIn(bits & (bits - 1)));

  test.for(damages)('with any of its files %s, nothing is said to be the same that may differ', ([, damage]) => {
    const original = readFiles(name);
    const whole = sideOf(original);
    const names = [...original.keys()];
    const ofDamage = damages.findIndex((each) => each[1] === damage);
    for (const [at, [file, what, change]] of changes.entries()) {
      const changed = new Map(original).set(file, change(original.get(file) ?? ''));
      expect(areSidesSame(diffSides(sideOf(changed), bundle, { foreign: false })), `${file}: ${what}`).toBe(false);
      for (const subset of subsetsOf(names.length, at + ofDamage)) {
        const left = new Map<string, string>();
        for (const [i, each] of names.entries()) {
          const text = changed.get(each) ?? '';
          const kept = (subset & (1 << i)) === 0 ? text : damage(text);
          if (kept !== undefined) left.set(each, kept);
        }
        const side = sideOf(left);
        const isSingle = bitsIn(subset) === 1 && (triesAll || (at + ofDamage) % damages.length === 0);
        for (const [from, to] of [
          [side, bundle] as const,
          ...(isSingle ? [[bundle, side] as const, [side, whole] as const] : []),
        ]) {
          const summary = summaryOf(diffSides(from, to, { foreign: false }));
          expect(summary, `${file}: ${what}, subset ${subset}`).not.toBe('No difference.');
        }
      }
    }
  });

  test('virtual servers are never called the other program’s where nothing tells whose they are', () => {
    const files = new Map(readFiles(name));
    files.delete('ip-addr.json');
    const other = bundle.with({ state: () => ({ ...bundle.state, virtualServers: [], links: [], sets: [] }) });
    const bySets = diffSides(sideOf(files), other, { foreign: true });
    expect(bySets.servicePorts.flatMap(({ kernel }) => kernel).filter(isServer)).toHaveLength(7);
    expect(bySets.foreign.filter(isServer)).toEqual([]);
    files.delete('ipset-save');
    const result = diffSides(sideOf(files), other, { foreign: true });
    expect(result.unaccounted.filter(isServer)).toHaveLength(7);
    expect(result.foreign.filter(isServer)).toEqual([]);
    expect(areSidesSame(result)).toBe(false);
    expect(summaryOf(result)).toContain(
      "7 differences in objects that may be kube-proxy's; not compared: sets, addresses",
    );
  });

  test('with its addresses, what listens elsewhere is another program’s', () => {
    const files = new Map(readFiles(name));
    files.set('ipvsadm-save', `${files.get('ipvsadm-save')}-A -t 172.30.0.1:80 -s rr\n`);
    files.delete('ipset-save');
    const diff = diffSides(sideOf(files), bundle, { foreign: true });
    expect(diff.unaccounted).toEqual([]);
    expect(diff.foreign.filter(isServer)).toMatchObject([{ fields: { address: '172.30.0.1' } }]);
  });
});

function isServer({ kind }: { readonly kind: string }): boolean {
  return kind === 'virtual-server';
}

describe('the rest of a dump', () => {
  test('what another family has that a bundle is not for: Services count, the base is not compared', async () => {
    const name = 'kube-proxy-ipvs-dual-stack-nodeport';
    const at = join('fixtures/dumps', name);
    const more = ['--config', join(at, 'config.yaml'), '--host-addresses', join(at, 'ip-addr.json')];
    const inputs = ['cluster.yaml', 'node.yaml'].flatMap((file) => ['-f', join(at, file)]);
    const folder = join(scratch, 'ipv4');
    await runKpc(['compile', ...inputs, ...more, '--ip-family', 'ipv4', '-o', folder]);
    const run = await runKpc(['diff', join(projectFolder, at), folder]);
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('- virtual server TCP [fd00:10:96::77]:80 with 2 real servers\n');
    expect(run.stdout).toContain('not compared: sysctls, IPv6 rules and sets that belong to no Service.\n');
    expect(run.stdout).not.toContain('chain KUBE-MARK-MASQ (IPv6');
  });

  test('kpc describe reads Services from what is left, and says what is missing', async () => {
    const files = readFiles('kube-proxy-ipvs-dual-stack-nodeport');
    const dump = join(scratch, 'sets-only');
    mkdirSync(dump);
    for (const name of ['ipset-save', 'iptables-save']) writeFileSync(join(dump, name), files.get(name) ?? '');
    const run = await runKpc(['describe', '--from-dump', dump]);
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/^10\.96\.7\.7:80\/TCP +ClusterIP +10\.96\.7\.7 +80\/TCP +\?$/m);
    expect(run.stdout).toMatch(/^node:31080\/TCP +NodePort/m);
    expect(run.stderr).toMatch(/note: .*ipvsadm -Sn\b.*\[reading\]\n/);
    const one = await runKpc(['describe', '10.96.7.7', '--from-dump', dump]);
    expect(one.stdout).toContain('endpoints: unknown, because the dump does not show the virtual servers\n');
  });
});
