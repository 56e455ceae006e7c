import { describe, expect, test } from 'vitest';
import type { Chain, Rule, TableName, Tables } from '../../src/kernel/iptables/iptables.ts';
import { families } from '../../src/kernel/address.ts';
import type { NftTable } from '../../src/kernel/nftables/table.ts';
import { formatNftRule } from '../../src/kernel/nftables/format.ts';
import type { KernelState } from '../../src/kernel/state.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import { portsOf } from './packets-of-side.ts';
import { evaluatorOf, inShort, labSide, packet, senders, type SenderName } from './lab.ts';

/** What becomes of every packet of the kernel tests, in one text. */
function outcomes(side: Snapshot, state: KernelState = side.state): string {
  const evaluate = evaluatorOf(side, state);
  const names = Object.keys(senders) as SenderName[];
  return names
    .flatMap((from) =>
      portsOf(side).map(({ address, port, protocol }) => {
        return `${from} ${protocol} ${address} ${port}: ${inShort(evaluate(packet(from, address, port, protocol)))}`;
      }),
    )
    .join('\n');
}

/** Whether some packet fares otherwise, if need be under another program's policy to drop what no rule admits. */
function comparer(side: Snapshot): (mutant: KernelState) => boolean {
  const open = outcomes(side);
  const shut = outcomes(side, closed(side.state));
  return (mutant) => outcomes(side, mutant) !== open || outcomes(side, closed(mutant)) !== shut;
}

function closed(state: KernelState): KernelState {
  const close = (tables: Tables | undefined): Tables => {
    const filter = new Map(tables?.filter);
    for (const name of ['INPUT', 'FORWARD']) {
      filter.set(name, { name, rules: filter.get(name)?.rules ?? [], policy: 'DROP' });
    }
    return { ...tables, filter };
  };
  return { ...state, iptables: { ipv4: close(state.iptables.ipv4), ipv6: close(state.iptables.ipv6) } };
}

/** Rules that say nothing about the first packet of a client's first connection. */
const laterOnly: ReadonlySet<string> = new Set([
  'filter KUBE-FORWARD conntrack-state → accept',
  'filter KUBE-FORWARD conntrack-state → drop',
  // A comment, which has no target.
  'nat KUBE-FW  → undefined',
  'nat KUBE-SVC recent → KUBE-SEP',
]);

/** What IPVS sends on leaves the node by OUTPUT. */
const pastForward = 'filter KUBE-FORWARD mark → accept';

/** A chain's name without what tells Services apart. */
function generic(chain: string): string {
  return chain
    .replace(/^(KUBE-(?:SVC|SVL|SEP|EXT|FW))-.*/, '$1')
    .replace(/^(service|local|external|firewall|endpoint)-[A-Z2-7]{8}-.*/, '$1');
}

function kindOf(table: string, chain: Chain, rule: Rule): string {
  const jump = rule.args.find((arg) => arg.kind === 'jump');
  const target = jump?.target;
  const to = target?.kind === 'chain' ? generic(target.chain) : target?.kind;
  const matches = rule.args.filter(({ kind }) => kind !== 'comment' && kind !== 'jump');
  return `${table} ${generic(chain.name)} ${matches.map(({ kind }) => kind).join('+')} → ${to}`;
}

/** The state with rules taken out, or with those rules dropping all that they match. */
function mutateTables(state: KernelState, kind: string, change: 'remove' | 'drop'): KernelState {
  const mutate = (tables: Tables | undefined): Tables =>
    Object.fromEntries(
      Object.entries(tables ?? {}).map(([name, chains]) => [
        name,
        new Map([...chains].map(([key, chain]) => [key, mutateChain(name as TableName, chain, kind, change)])),
      ]),
    );
  return { ...state, iptables: { ipv4: mutate(state.iptables.ipv4), ipv6: mutate(state.iptables.ipv6) } };
}

function mutateChain(table: TableName, chain: Chain, kind: string, change: 'remove' | 'drop'): Chain {
  const rules = chain.rules.flatMap((rule): readonly Rule[] => {
    if (kindOf(table, chain, rule) !== kind) return [rule];
    if (change === 'remove') return [];
    const args = rule.args.filter((arg) => arg.kind !== 'jump');
    return [{ args: [...args, { kind: 'jump', target: { kind: 'drop' } }] }];
  });
  return { ...chain, rules };
}

function nftKindOf(table: NftTable, chain: string, text: string): string {
  return `${table.family} ${generic(chain)} ${text.replace(/\b(service|local|external|firewall|endpoint)-[A-Z2-7]{8}-\S+/g, '$1').replace(/\b\d[\d.]*\b|\[?fd00:\S+/g, 'N')}`;
}

function mutateNft(state: KernelState, kind: string): KernelState {
  return {
    ...state,
    nftables: state.nftables.map((table) => ({
      ...table,
      chains: new Map(
        [...table.chains].map(([name, chain]) => [
          name,
          { ...chain, rules: chain.rules.filter((rule) => nftKindOf(table, name, formatNftRule(rule)) !== kind) },
        ]),
      ),
    })),
  };
}

describe.each(['ipvs', 'iptables'] as const)('%s: rules of iptables', (mode) => {
  test('each kind of rule decides about some packet', async () => {
    const side = await labSide(mode);
    const decides = comparer(side);
    const kinds = new Set(
      families.flatMap((family) =>
        Object.entries(side.state.iptables[family] ?? {}).flatMap(([table, chains]) =>
          [...chains.values()].flatMap((chain) => chain.rules.map((rule) => kindOf(table, chain, rule))),
        ),
      ),
    );
    const idle = [...kinds].filter((kind) =>
      (['remove', 'drop'] as const).every((change) => !decides(mutateTables(side.state, kind, change))),
    );
    expect(idle.filter((kind) => !laterOnly.has(kind))).toEqual(mode === 'ipvs' ? [pastForward] : []);
  }, 120_000);
});

describe('nftables', () => {
  test('each kind of rule decides about some packet', async () => {
    const side = await labSide('nftables');
    const before = outcomes(side);
    const kinds = new Set(
      side.state.nftables.flatMap((table) =>
        [...table.chains].flatMap(([name, { rules }]) =>
          rules.map((rule) => nftKindOf(table, name, formatNftRule(rule))),
        ),
      ),
    );
    const idle = [...kinds].filter((kind) => outcomes(side, mutateNft(side.state, kind)) === before);
    expect(idle.filter((kind) => !/@affinity-/.test(kind))).toEqual([]);
  }, 120_000);

  test('each set and map that has elements decides about some packet', async () => {
    const side = await labSide('nftables');
    const before = outcomes(side);
    const names = new Set(
      side.state.nftables.flatMap(({ sets }) =>
        [...sets.values()].flatMap(({ name, elements }) => (elements.length > 0 ? [name] : [])),
      ),
    );
    const idle = [...names].filter((name) => {
      const nftables = side.state.nftables.map((table) => {
        const set = table.sets.get(name);
        return set ? { ...table, sets: new Map([...table.sets, [name, { ...set, elements: [] }]]) } : table;
      });
      return outcomes(side, { ...side.state, nftables }) === before;
    });
    expect(idle).toEqual([]);
  });
});

describe('IPVS', () => {
  test('sets, virtual servers and the addresses of kube-ipvs0 decide about some packet', async () => {
    const side = await labSide('ipvs');
    const { state } = side;
    const decides = comparer(side);
    const filled = state.sets.filter(({ entries }) => entries.length > 0);
    const mutants = new Map<string, KernelState>([
      ...filled.map(
        ({ name }) =>
          [
            name,
            { ...state, sets: state.sets.map((set) => (set.name === name ? { ...set, entries: [] } : set)) },
          ] as const,
      ),
      ['virtual servers', { ...state, virtualServers: [] }],
      ['links', { ...state, links: [] }],
      [
        'weights',
        {
          ...state,
          virtualServers: state.virtualServers.map((server) => ({
            ...server,
            realServers: server.realServers.map((each) => ({ ...each, weight: 0 })),
          })),
        },
      ],
    ]);
    const idle = [...mutants].filter(([, mutant]) => !decides(mutant)).map(([name]) => name);
    expect(idle).toEqual([]);
  });
});
