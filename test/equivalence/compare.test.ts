import { isDeepStrictEqual } from 'node:util';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { compareScenes } from '../../src/ask/equivalence/compare.ts';
import { Findings } from '../../src/ask/equivalence/findings.ts';
import type { Divergence } from '../../src/ask/equivalence/effects.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import type { KernelState } from '../../src/kernel/state.ts';
import { programs, proxyModes, type ProxyMode } from '../../src/kube-proxy/modes.ts';
import { sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { labSide, lastReleaseWith } from '../packet/lab.ts';
import { makeRandom, shuffle } from '../support/random.ts';
import { triesAll } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

async function labScene(
  mode: ProxyMode,
  change: (state: KernelState) => KernelState = (state) => state,
): Promise<Scene> {
  const side = await labSide(mode);
  return sceneOf(side.with({ state: () => change(side.state), owners: side.owners }));
}

function find(from: Scene, to: Scene): readonly Divergence[] {
  const findings = new Findings();
  compareScenes(from, to, findings.collector(from, to));
  return findings.list();
}

/** The same state, with all whose order means nothing in another one. */
function shuffled(state: KernelState, seed: number): KernelState {
  const random = makeRandom(seed);
  return {
    ...state,
    virtualServers: shuffle(state.virtualServers, random).map((server) => ({
      ...server,
      realServers: shuffle(server.realServers, random),
    })),
    sets: shuffle(state.sets, random).map((set) => ({ ...set, entries: shuffle(set.entries, random) })),
    nftables: state.nftables.map((table) => ({
      ...table,
      sets: new Map([...table.sets].map(([name, set]) => [name, { ...set, elements: shuffle(set.elements, random) }])),
    })),
  };
}

describe.each(proxyModes)('%s against itself', (mode) => {
  test('all packets end alike, in whatever order its objects are', async () => {
    const from = await labScene(mode);
    expect(find(from, await labScene(mode, (state) => shuffled(state, 7)))).toEqual([]);
  });

  test('one rule, set entry or virtual server less is found', async () => {
    const from = await labScene(mode);
    const to = await labScene(mode, (state) => ({
      ...state,
      virtualServers: state.virtualServers.slice(1),
      nftables: state.nftables.map((table) => ({
        ...table,
        sets: new Map(
          [...table.sets].map(([name, set]) => [
            name,
            name === 'service-ips' ? { ...set, elements: set.elements.slice(1) } : set,
          ]),
        ),
      })),
      iptables: Object.fromEntries(
        Object.entries(state.iptables).map(([family, tables]) => [
          family,
          {
            ...tables,
            nat: new Map(
              [...(tables.nat ?? [])].map(([name, chain]) => [
                name,
                name === 'KUBE-SERVICES' || name === 'KUBE-PORTALS-CONTAINER'
                  ? { ...chain, rules: chain.rules.slice(1) }
                  : chain,
              ]),
            ),
          },
        ]),
      ),
    }));
    expect(find(from, to).map(({ severity }) => severity)).toContain('breaks');
  });
});

/** The state with rules of another program in front of kube-proxy's. */
function withForwardRules(...rules: readonly string[]) {
  const text = `*filter\n:FORWARD ACCEPT [0:0]\n${rules.map((rule) => `-A FORWARD ${rule}\n`).join('')}COMMIT\n`;
  const added = parseIptablesSave(text).tables.filter?.get('FORWARD')?.rules ?? [];
  return (state: KernelState): KernelState => {
    const filter = new Map(state.iptables.ipv4?.filter);
    const chain = filter.get('FORWARD');
    if (chain) filter.set('FORWARD', { ...chain, rules: [...added, ...chain.rules] });
    return { ...state, iptables: { ...state.iptables, ipv4: { ...state.iptables.ipv4, filter } } };
  };
}

test('ports that one side drops in one range, and the other in two with a gap, differ in the gap', async () => {
  const drop = (ports: string): string => `-p tcp -m tcp --dport ${ports} -j DROP`;
  const whole = await labScene('iptables', withForwardRules(drop('1000:1100')));
  const gap = await labScene('iptables', withForwardRules(drop('1000:1050'), drop('1080:1100')));
  const alike = await labScene('iptables', withForwardRules(drop('1000:1050'), drop('1051:1100')));
  expect(find(whole, gap).length).toBeGreaterThan(0);
  expect(find(whole, alike)).toEqual([]);
});

test('the same endpoints with other shares are told from other endpoints', async () => {
  const from = await labScene('iptables');
  const to = await labScene('iptables', (state) => {
    const nat = [...(state.iptables.ipv4?.nat ?? [])].map(([name, chain]) => {
      const rules = chain.rules.map((rule) => ({
        ...rule,
        args: rule.args.map((arg) => (arg.kind === 'statistic' ? { ...arg, probability: '0.1000000000' } : arg)),
      }));
      return [name, { ...chain, rules }] as const;
    });
    return { ...state, iptables: { ...state.iptables, ipv4: { ...state.iptables.ipv4, nat: new Map(nat) } } };
  });
  const found = find(from, to);
  const effects = found.flatMap((each) => each.effects);
  // No policy and no range decides shares.
  expect(found.map(({ cause }) => cause)).toEqual(['endpoints']);
  expect(effects.filter((effect) => isDeepStrictEqual(effect.from, effect.to))).toEqual([]);
});

const folder = mkdtempSync(join(tmpdir(), 'kpc-equivalence-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const lab = join(projectFolder, 'test/kernel-lab/packets');
const inputs = [triesAll ? ['before', 'more'] : ['before'], 'node.yaml']
  .flat()
  .flatMap((name) => ['-f', join(lab, name)]);
const flags = [...inputs, '--config', join(lab, 'config.yaml')];

/** The names that the tools' own output has in a dump. */
const dumpNames: Readonly<Record<string, string>> = {
  'iptables.restore': 'iptables-save',
  'ip6tables.restore': 'ip6tables-save',
  'ipset.restore': 'ipset-save',
  'ipvsadm.restore': 'ipvsadm-save',
  'nftables.nft': 'nft-list-ruleset',
};

/** The chains of the kernel in the tables of iptables, as iptables-save lists them; restore files name none. */
function withPolicies(text: string): string {
  const chains: Readonly<Record<string, readonly string[]>> = {
    nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
    filter: ['INPUT', 'FORWARD', 'OUTPUT'],
    mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  };
  return text.replace(/^\*(\w+)$/gm, (line, table: string) =>
    [line, ...(chains[table] ?? []).map((chain) => `:${chain} ACCEPT [0:0]`)].join('\n'),
  );
}

describe.each(proxyModes)('%s, written and read again', (mode) => {
  const ofMode = [...flags, '--kubernetes-version', lastReleaseWith(mode)];

  test('a bundle is equal to what it was compiled from', async () => {
    const bundle = join(folder, `bundle-${mode}`);
    await runKpc(['compile', ...ofMode, '--proxy-mode', mode, '--out', bundle]);
    const { status, stdout } = await runKpc(['equivalence', bundle, mode, ...ofMode]);
    expect(stdout).toContain('no difference');
    expect(status).toBe(0);
  });

  // No dump shows a balancer.
  test.skipIf(programs(mode, 'proxyPorts'))('a bundle is equal to itself without its manifest, as a dump', async () => {
    const bundle = join(folder, `again-${mode}`);
    await runKpc(['compile', ...ofMode, '--proxy-mode', mode, '--out', bundle]);
    const dump = join(folder, `dump-${mode}`);
    cpSync(bundle, dump, { recursive: true });
    for (const name of readdirSync(dump)) {
      const text = readFileSync(join(dump, name), 'utf8');
      rmSync(join(dump, name));
      const as = dumpNames[name];
      if (as !== undefined) writeFileSync(join(dump, as), withPolicies(text));
    }
    const { stdout } = await runKpc(['equivalence', bundle, dump]);
    expect(stdout).toContain('no difference');
  });
});

describe('between modes', () => {
  test('IPVS and nftables differ as kernels do', async () => {
    const findings = find(await labScene('ipvs'), await labScene('nftables'));
    const causes = findings.map(({ cause, severity }) => `${cause} ${severity}`);
    expect(causes).toEqual(expect.arrayContaining(['external-policy-local breaks', 'unserved-port fails-otherwise']));
    const local = findings.find(({ cause }) => cause === 'external-policy-local');
    expect(local?.services).toContain('default/external-local');
    expect(local?.servicePorts).toContain('default/external-local:main');
    expect(local?.effects).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          from: expect.objectContaining({ verdict: 'delivered', loses: 'all' }),
          to: expect.objectContaining({ verdict: 'dropped' }),
        }),
        expect.objectContaining({
          from: expect.objectContaining({ chosen: { kind: 'endpoints', on: 'this-node' } }),
          to: expect.objectContaining({ chosen: { kind: 'endpoints', on: 'all-nodes' } }),
        }),
      ]),
    );
  });
});
