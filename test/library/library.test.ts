import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CompiledBundle, CompileOptions } from '../../src/library/compile.ts';
import {
  compile,
  compileFleet,
  diff,
  equivalence,
  formatDiff,
  lint,
  migrate,
  open,
  trace,
} from '../../src/library/index.ts';
import { fixturesFolder, listFixtures } from '../support/fixtures.ts';
import { allowEmptyFlag, changeFlags, traceFlags, upgradeFlag } from '../../src/library/command-flags.ts';
import { inOptions } from '../../src/library/words.ts';
import { optionsOf } from './fixture-options.ts';

function read(...path: readonly string[]): string {
  return readFileSync(join(fixturesFolder, ...path), 'utf8');
}

function readFolder(folder: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile());
  return new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

function compileWell(options: CompileOptions): CompiledBundle {
  const { bundle, diagnostics } = compile(options);
  if (!bundle) throw new Error(JSON.stringify(diagnostics));
  return bundle;
}

const quickstart = { name: 'svc.yaml', text: read('quickstart', 'svc.yaml') };

test('a flag is an option of the library where it is a word of its own', () => {
  expect(inOptions('--file, --no-assume and --strict of shop/web--node')).toBe(
    'manifests, assume: false and --strict of shop/web--node',
  );
});

test('each flag of a function has its option', () => {
  const rows = [...traceFlags, upgradeFlag, ...Object.values(changeFlags), allowEmptyFlag];
  expect(rows.map(({ name }) => inOptions(name))).toEqual(rows.map(({ key }) => key));
});

describe('compile', () => {
  test('says of every fixture that must not compile what kpc compile says', () => {
    let refused = 0;
    for (const fixture of listFixtures().filter(({ fails }) => fails)) {
      const options = optionsOf(fixture);
      if (!options) continue;
      const { bundle, diagnostics } = compile(options);
      expect(bundle, fixture.name).toBeUndefined();
      const expected = readFileSync(join(fixture.folder, 'expected', 'diagnostics.txt'), 'utf8');
      for (const { severity, code, text } of diagnostics) {
        expect(inOptions(expected), fixture.name).toContain(`${severity}: ${text} [${code}]`);
      }
      expect(expected.match(/^(?:\S.*: )?(?:error|warning|note): .* \[[a-z-]+\]$/gm), fixture.name).toHaveLength(
        diagnostics.length,
      );
      refused++;
    }
    expect(refused).toBeGreaterThan(10);
  });

  test('takes a text with a byte order mark', () => {
    const marked = { ...quickstart, text: `\uFEFF${quickstart.text}` };
    expect(compileWell({ manifests: [marked] }).files).toEqual(compileWell({ manifests: [quickstart] }).files);
  });

  test('refuses a node whose name no node can have', () => {
    const { bundle, diagnostics } = compile({ manifests: [quickstart], node: 'no node!' });
    expect(bundle).toBeUndefined();
    expect(diagnostics).toContainEqual(expect.objectContaining({ severity: 'error', code: 'bad-value' }));
  });

  test.each([
    ['no manifests', {}, /manifests is not a Map/],
    ['a path in the place of a text', { manifests: ['svc.yaml'] }, /one of manifests is not/],
    [
      'a Buffer in the place of a text',
      { manifests: [{ name: 'a', text: Buffer.from('') }] },
      /one of manifests is not/,
    ],
    ['a path in the place of the configuration', { manifests: [], config: 'config.yaml' }, /config is not/],
    ['a family that there is not', { manifests: [], ipFamily: 'ipv5' }, /ipFamily is not one of auto, ipv4/],
  ])('throws for %s', (_, options, message) => {
    expect(() => compile(options as unknown as CompileOptions)).toThrow(message);
  });

  test.each([
    ['conntrackMin', -1, 'bad-value'],
    ['conntrackMaxPerCore', 1.5, 'bad-value'],
    ['conntrackMaxPerCore', Number.NaN, 'bad-value'],
    ['masqueradeAll', {}, 'bad-value'],
    ['ipvsStrictArp', -1, 'bad-value'],
  ])('refuses %s: %s', (name, value, code) => {
    const { bundle, diagnostics } = compile({ manifests: [quickstart], [name]: value });
    expect(bundle).toBeUndefined();
    expect(diagnostics).toContainEqual(expect.objectContaining({ severity: 'error', code }));
  });

  test('takes numbers for numbers and switches, and records them as the command line does', () => {
    const numbers = { conntrackMin: 4096, ipvsStrictArp: 1 } as unknown as Partial<CompileOptions>;
    const texts = { conntrackMin: '4096', ipvsStrictArp: 'true' };
    const [given, written] = [numbers, texts].map((each) => compileWell({ manifests: [quickstart], ...each }));
    expect(given?.files).toEqual(written?.files);
  });

  test('takes null for an option that is left out', () => {
    const nothing = {
      hostnameOverride: null,
      bindAddress: null,
      conntrackMin: null,
      nodeportAddresses: null,
    } as unknown as Partial<CompileOptions>;
    const { files } = compileWell({ manifests: [quickstart], ...nothing });
    expect(files).toEqual(compileWell({ manifests: [quickstart] }).files);
  });

  test('says of no manifests at all that there is nothing to compile', () => {
    const { bundle, diagnostics } = compile({ manifests: [] });
    expect(bundle).toBeUndefined();
    expect(diagnostics.map(({ code }) => code)).toContain('no-input');
  });
});

describe('compileFleet', () => {
  const manifests = ['shop.yaml', 'nodes.yaml'].map((name) => ({ name, text: read('cluster', name) }));

  test('gives for each Node what compile gives for it', () => {
    const { bundles, diagnostics } = compileFleet({ manifests, proxyMode: 'iptables' });
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    const found = [...(bundles ?? [])];
    expect(found.map(({ node }) => node)).toEqual(['worker-1', 'worker-2', 'worker-3']);
    for (const { node, files } of found) {
      expect(files).toEqual(compileWell({ manifests, proxyMode: 'iptables', node }).files);
    }
  });

  test('takes the addresses of each node, and a part of the nodes', () => {
    const hostAddresses = {
      'worker-2': JSON.stringify([
        { ifname: 'eth0', addr_info: [{ family: 'inet', local: '192.0.2.7', prefixlen: 24 }] },
      ]),
    };
    const { bundles } = compileFleet({ manifests, proxyMode: 'ipvs', nodes: ['worker-1', 'worker-2'], hostAddresses });
    const servers = new Map([...(bundles ?? [])].map(({ node, files }) => [node, files.get('ipvsadm.restore')]));
    expect(servers.get('worker-2')).toContain('192.0.2.7:');
    expect(servers.get('worker-1')).not.toContain('192.0.2.7:');
    const shards = [0, 1, 2].flatMap((i) => [...(compileFleet({ manifests, shard: `${i}/3` }).bundles ?? [])]);
    expect(shards.map(({ node }) => node).toSorted()).toEqual(['worker-1', 'worker-2', 'worker-3']);
  });

  test('refuses a node that is not there, and addresses that are none', () => {
    expect(compileFleet({ manifests, nodes: ['worker-9'] }).bundles).toBeUndefined();
    expect(compileFleet({ manifests, hostAddresses: { 'worker-1': 'none' } }).bundles).toBeUndefined();
  });
});

test('an option that kpc does not know is not ignored', () => {
  const wrong = { manifests: [quickstart], proxymode: 'nftables' };
  expect(() => compile(wrong)).toThrow(new TypeError('no option "proxymode": did you mean proxyMode?'));
  expect(() => compileFleet({ ...wrong, proxymode: undefined, node: 'a' } as never)).toThrow(TypeError);
  const { side } = compileWell({ manifests: [quickstart] });
  expect(() => diff(side, side, { limit: 3 } as never)).toThrow('no option "limit"');
});

test.each([
  ['compile', () => compile({ manifests: [quickstart], node: '' })],
  ['lint', () => lint({ manifests: [quickstart], namespace: '' })],
  ['trace', () => trace({ manifests: [quickstart], from: 'pod', to: '' })],
  ['open', () => open([quickstart], { nodeportAddresses: '' })],
  ['equivalence', () => equivalence({ manifests: [quickstart], from: 'ipvs', to: 'nftables', node: '' })],
])('an empty option is refused by %s', (_, call) => {
  expect(call).toThrow(/^\w+ is not set/);
});

test('advice names nothing that a program lacks: no pipe, no flag', () => {
  const chart = {
    'shop/Chart.yaml': 'name: shop',
    'shop/templates/web.yaml': `kind: Service\nspec: {{ .Values.spec }}\n`,
  };
  const kubeconfig = { config: 'apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n' };
  const origin = { folder: 'web', chart: undefined };
  const overlay = [{ name: 'web/kustomization.yaml', text: 'resources: [../base]\n', origin }];
  const said = [chart, kubeconfig, overlay].flatMap((manifests) => [
    ...compile({ manifests }).diagnostics,
    ...lint({ manifests }).findings,
  ]);
  expect(said.filter(({ severity }) => severity === 'error').length).toBeGreaterThan(3);
  const advice = said.map(({ help = '' }) => help).join('\n');
  expect(advice).toContain('give the output of "kubectl kustomize web"');
  expect(advice).not.toMatch(/ \| |--|kpc /);
});

test('a refusal of a comparison has the findings that explain it', () => {
  const headless =
    'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: None, selector: { app: web } }\n';
  const refused = (() => {
    try {
      return migrate({ manifests: { 'web.yaml': headless } });
    } catch (error) {
      return error;
    }
  })();
  expect(refused).toMatchObject({ name: 'Refusal', finding: { code: 'bad-call' } });
  expect((refused as { findings: unknown[] }).findings).not.toEqual([]);
});

describe('diff', () => {
  const before = compileWell({ manifests: [quickstart], proxyMode: 'ipvs' });
  const changed = { ...quickstart, text: quickstart.text.replace('ready: false', 'ready: true') };
  const after = compileWell({ manifests: [changed], proxyMode: 'ipvs' });

  test('a bundle that is read back does not differ', () => {
    for (const mode of ['ipvs', 'iptables'] as const) {
      const { files, side } = compileWell({ manifests: [quickstart], proxyMode: mode });
      const stored = open(files, { name: 'stored' });
      expect(stored).toMatchObject({ kind: 'bundle', diagnostics: [], snapshots: [{ mode }] });
      const [fresh] = stored.snapshots;
      if (!fresh) throw new Error('no side');
      expect(diff(fresh, side)).toMatchObject({ differs: false, servicePorts: [], base: [] });
    }
  });

  test('names what differs, as data and in three formats', () => {
    expect(diff(before.side, after.side)).toMatchObject({
      differs: true,
      servicePorts: [{ servicePort: 'default/nginx', change: 'changed' }],
    });
    expect(formatDiff(before.side, after.side, 'text')).toContain('1 Service port changed.');
    expect(formatDiff(before.side, after.side, 'text')).toContain('Packets on worker-1');
    expect(formatDiff(before.side, after.side, 'text', { rules: true })).toContain('+ 1 real server 10.244.2.11:8080');
    expect(formatDiff(before.side, after.side, 'markdown')).toContain('### Packets on worker-1');
    expect(formatDiff(before.side, after.side, 'markdown')).not.toContain('Commands');
    expect(diff(before.side, after.side, { rules: true })).not.toHaveProperty('packets.0');
    expect(formatDiff(before.side, before.side, 'unified')).toBe('');
    expect(formatDiff(before.side, after.side, 'unified')).toContain('+-a -t 10.96.0.80:80 -r 10.244.2.11:8080');
  });

  test('a bundle that was edited has no side', () => {
    const files = new Map(before.files).set('ipvsadm.restore', '');
    const { snapshots, diagnostics } = open(files, { name: 'edited' });
    expect(snapshots).toEqual([]);
    expect(diagnostics).toContainEqual(expect.objectContaining({ code: 'bad-bundle' }));
  });
});

describe('open', () => {
  test('reads what the tools printed', () => {
    const dump = open(readFolder(join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity')), {
      name: 'node',
    });
    const [side] = dump.snapshots;
    if (!side) throw new Error(JSON.stringify(dump.diagnostics));
    expect(side.kind).toBe('dump');
    expect(side.state.iptables.ipv4?.nat?.has('KUBE-SERVICES')).toBe(true);
    expect(diff(side, side).differs).toBe(false);
  });

  test('keeps the answer where manifests found beside the dump are wrong', () => {
    const folder = join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity');
    const { kind, snapshots, diagnostics } = open({
      'iptables-save': readFileSync(join(folder, 'iptables-save'), 'utf8'),
      'bad.yaml': 'apiVersion: v1\nkind: Service\nmetadata: { name: A_ }\n',
    });
    expect({ kind, snapshots: snapshots.length }).toEqual({ kind: 'dump', snapshots: 1 });
    expect(diagnostics).toContainEqual(
      expect.objectContaining({
        code: 'reading',
        arguments: expect.objectContaining({ problem: 'manifests-left-out' }),
      }),
    );
  });

  test("takes the node's addresses beside them", () => {
    const files = readFolder(join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity'));
    const listed = [{ ifname: 'eth7', addr_info: [{ family: 'inet', local: '192.0.2.7', prefixlen: 24 }] }];
    const openWith = (text: string) => open(files, { hostAddresses: { name: 'addresses', text } });
    const [side] = openWith(JSON.stringify(listed)).snapshots;
    expect(side?.state.links.map(({ name }) => name)).toEqual(['eth7']);
    expect(openWith('none')).toMatchObject({ snapshots: [], diagnostics: [{ code: 'bad-host-addresses' }] });
  });

  test('takes manifests beside what the tools printed for its names, and addresses alone for no dump', () => {
    const folder = join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity');
    const rules = readFileSync(join(folder, 'iptables-save'), 'utf8');
    const services = readFileSync(join(folder, 'cluster.yaml'), 'utf8');
    const [named] = open({ 'iptables-save': rules, 'cluster.yaml': services }).snapshots;
    expect(named).toMatchObject({ kind: 'dump', objects: { services: [expect.anything()] } });
    const addresses = JSON.stringify([{ ifname: 'eth0', addr_info: [] }]);
    expect(open({ 'addresses.json': addresses, 'cluster.yaml': services }).kind).toBe('manifests');
    expect(open({ 'addresses.json': addresses }).kind).toBe('dump');
  });

  test('compiles manifests, a snapshot for each node', () => {
    const nodes = ['a', 'b'].map((name) => ({
      name: `${name}.yaml`,
      text: `kind: Node\napiVersion: v1\nmetadata: { name: ${name} }\n`,
    }));
    const { kind, snapshots } = open([quickstart, ...nodes], { allNodes: true, proxyMode: 'nftables' });
    expect(kind).toBe('manifests');
    expect(snapshots.map(({ nodeName, mode }) => [nodeName, mode])).toEqual([
      ['a', 'nftables'],
      ['b', 'nftables'],
      ['worker-1', 'nftables'],
    ]);
  });

  test('names a snapshot after its files, a folder after its own name, and refuses the folders of several nodes', () => {
    const rules = read('dumps', 'kube-proxy-iptables-session-affinity', 'iptables-save');
    expect(open({ 'node-a.txt': rules }).snapshots.map(({ name }) => name)).toEqual(['node-a.txt']);
    expect(open({ 'node-a.txt': rules }, { name: 'a' }).snapshots.map(({ name }) => name)).toEqual(['a']);
    const files = [...compileWell({ manifests: [quickstart], proxyMode: 'ipvs' }).files];
    const under = (folder: string) => files.map(([file, text]) => ({ name: `${folder}/${file}`, text }));
    expect(open(under('worker-1')).snapshots.map(({ name, kind }) => [name, kind])).toEqual([['worker-1', 'bundle']]);
    expect(open([...under('a'), ...under('b')])).toMatchObject({
      snapshots: [],
      diagnostics: [{ code: 'nodes-folder', arguments: { example: 'a', of: 'bundles' } }],
    });
    expect(open([...under('a'), quickstart])).toMatchObject({
      snapshots: [],
      diagnostics: [{ code: 'no-manifests', arguments: { what: 'bundle', path: 'a', beside: quickstart.name } }],
    });
  });

  test('has no snapshot where nothing is known of a node', () => {
    expect(open({ 'notes.txt': 'nothing' })).toMatchObject({ kind: 'manifests', snapshots: [] });
    expect(() => open({ 'iptables-save': Buffer.from('') as unknown as string })).toThrow(/is not a string/);
  });
});

describe('a program without types', () => {
  const { side } = compileWell({ manifests: [quickstart], proxyMode: 'nftables' });
  const manifests = [quickstart];

  test.each<readonly [string, () => unknown, RegExp]>([
    ['no options', () => compile(...([] as unknown as [CompileOptions])), /options/],
    ['no options of a comparison', () => equivalence(undefined as never), /options/],
    ['one side', () => equivalence({ manifests, from: 'ipvs' } as never), /side/],
    ['a side that could not be opened', () => trace({ side: undefined, from: 'pod', to: 'node:80' } as never), /side/],
    ['a second side that could not be opened', () => diff(side, undefined as never), /to is not a snapshot/],
    ['a format that does not exist', () => formatDiff(side, side, 'html' as never), /text, markdown, unified/],
  ])('learns what is wrong: %s', (_, call, said) => {
    expect(call).toThrow(TypeError);
    expect(call).toThrow(said);
    expect(call).not.toThrow(/undefined/);
  });
});
