import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/kernel/address.ts';
import { diffStates, restrictState, emptyState, type KernelState } from '../../src/kernel/state.ts';
import type { Tables } from '../../src/kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { formatIpAddrJson, parseIpAddrJson, parseIpBatch } from '../../src/kernel/link/link.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import type { UnreadLine } from '../../src/kernel/lines.ts';

const dumps = join(import.meta.dirname, '../../fixtures/dumps');

function readText(folder: string, name: string): string {
  const path = join(dumps, folder, name);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** kube-proxy's part of a node. Its canary chains only tell it when the tables are flushed. */
const kubeProxy = {
  chain: (name: string) => name.startsWith('KUBE-') && name !== 'KUBE-PROXY-CANARY',
  set: (name: string) => name.startsWith('KUBE-'),
  virtualServer: () => true,
  link: (name: string) => name === 'kube-ipvs0',
  address: () => true,
  sysctl: () => true,
};

interface Reading {
  readonly state: KernelState;
  readonly unread: readonly UnreadLine[];
}

function readState(names: { v4: string; v6: string; sets: string; servers: string }, links: Reading['state']['links']) {
  return (folder: string): Reading => {
    const v4 = parseIptablesSave(readText(folder, names.v4));
    const v6 = parseIptablesSave(readText(folder, names.v6));
    const sets = parseIpsetSave(readText(folder, names.sets));
    const servers = parseIpvsadm(readText(folder, names.servers));
    return {
      state: {
        ...emptyState,
        iptables: { ipv4: v4.tables, ipv6: v6.tables },
        sets: sets.sets,
        virtualServers: servers.virtualServers,
        links,
      },
      unread: [...v4.unread, ...v6.unread, ...sets.unread, ...servers.unread],
    };
  };
}

function readDump(folder: string): Reading {
  const json = readText(folder, 'ip-addr.json');
  const links = json === '' ? { links: [], unread: [] } : parseIpAddrJson(json);
  const names = { v4: 'iptables-save', v6: 'ip6tables-save', sets: 'ipset-save', servers: 'ipvsadm-save' };
  const { state, unread } = readState(names, links.links)(folder);
  return { state, unread: [...unread, ...links.unread] };
}

function readLoaded(folder: string): Reading {
  const links = parseIpBatch(readText(folder, 'loaded/ip.batch'));
  const names = {
    v4: 'loaded/iptables.restore',
    v6: 'loaded/ip6tables.restore',
    sets: 'loaded/ipset.restore',
    servers: 'loaded/ipvsadm.restore',
  };
  const { state, unread } = readState(names, links.links)(folder);
  return { state, unread: [...unread, ...links.unread] };
}

function countRules(tables: Tables | undefined): number {
  return Object.values(tables ?? {}).reduce(
    (sum, chains) => sum + [...chains.values()].reduce((rules, chain) => rules + chain.rules.length, 0),
    0,
  );
}

describe('a dump of a node that kube-proxy programmed', () => {
  const folders = readdirSync(dumps).filter((name) => existsSync(join(dumps, name, 'loaded')));

  test.each(folders)('%s reads without a remainder, and is what was loaded', (folder) => {
    const dump = readDump(folder);
    const loaded = readLoaded(folder);
    expect([...dump.unread, ...loaded.unread]).toEqual([]);
    expect(countRules(loaded.state.iptables.ipv4)).toBeGreaterThan(10);
    const node = restrictState(dump.state, kubeProxy);
    expect(diffStates(node, loaded.state)).toEqual(diffStates(emptyState, emptyState));
    expect(diffStates(loaded.state, node)).toEqual(diffStates(emptyState, emptyState));
  });

  test('says which options the scheduler has', () => {
    const { state } = readDump('kube-proxy-ipvs-scheduler-mh');
    expect(state.virtualServers.map(({ scheduler, schedulerFlags }) => [scheduler, schedulerFlags])).toEqual([
      ['mh', ['flag-2']],
    ]);
  });

  test('holds the addresses of all links, kube-ipvs0 without its kind', () => {
    const { state } = readDump('kube-proxy-ipvs-dual-stack-nodeport');
    expect(state.links.find(({ name }) => name === 'kube-ipvs0')).toEqual({
      name: 'kube-ipvs0',
      traits: { BROADCAST: true, NOARP: true, 'NO-CARRIER': false },
      addresses: [
        { family: 'ipv4', address: parseAddress('10.96.7.7'), prefixLength: 32 },
        { family: 'ipv6', address: parseAddress('fd00:10:96::77'), prefixLength: 128 },
      ],
    });
    expect(state.links.map(({ name }) => name)).toContain('lo');
  });
});

describe('what other programs have on a node', () => {
  test('is kept: that a link has a program of XDP', () => {
    const printed =
      '[{"ifname":"eth0","xdp":{"mode":2,"prog":{"id":7}},"addr_info":[]},{"ifname":"eth1","addr_info":[]}]';
    const { links } = parseIpAddrJson(formatIpAddrJson(parseIpAddrJson(printed).links));
    expect(links.map(({ traits }) => traits?.xdp)).toEqual([true, undefined]);
  });

  test('is kept: rules with the words that kpc does not know', () => {
    const { state, unread } = readDump('foreign-nft');
    expect(unread).toEqual([]);
    const rules = state.iptables.ipv4?.filter?.get('CHAIN2')?.rules ?? [];
    const kept = rules.flatMap(({ args }) =>
      args.flatMap((arg) => (arg.kind === 'other' ? [arg.words.join(' ')] : [])),
    );
    expect(kept).toEqual([
      '-m icmp --icmp-type 8',
      '--tcp-flags FIN,SYN,RST,ACK SYN',
      '-m state --state NEW',
      '-m addrtype --src-type LOCAL --dst-type LOCAL',
      '-f',
      '-m multiport --dports 80,443',
      '-m limit --limit 5/min',
      '--tcp-flags SYN,RST SYN',
      '-m tcpmss --mss 1400:1500',
      '-m iprange ! --src-range 10.0.0.1-10.0.0.9',
    ]);
    expect(
      rules.flatMap(({ args }) => args.filter((arg) => arg.kind === 'jump' && arg.target.kind === 'other')),
    ).toEqual([
      { kind: 'jump', target: { kind: 'other', words: ['LOG', '--log-prefix', 'cni "drop": '] } },
      { kind: 'jump', target: { kind: 'other', words: ['LOG'] } },
    ]);
    expect(state.iptables.ipv4?.filter?.get('FORWARD')).toEqual({ name: 'FORWARD', policy: 'DROP', rules: [] });
  });

  test('means the same in both variants of iptables', () => {
    const nft = readDump('foreign-nft').state;
    const legacy = readDump('foreign-legacy').state;
    const [changed, ...more] = diffStates(nft, legacy).iptables.ipv4 ?? [];
    expect(more).toEqual([]);
    // iptables-nft refuses a rule that can match nothing, which the legacy variant takes.
    expect(changed?.changes).toMatchObject([{ kind: 'chain', from: {}, to: {} }]);
    expect(countRules(legacy.iptables.ipv4)).toBe(countRules(nft.iptables.ipv4) + 1);
    expect(diffStates(nft, legacy).iptables.ipv6).toBeUndefined();
  });

  test('is kept: sets with options of their own', () => {
    const { state } = readDump('foreign-nft');
    const find = (name: string) => state.sets.find((set) => set.name === name);
    expect(find('T')).toEqual({
      name: 'T',
      type: 'hash:ip',
      family: 'inet',
      hashSize: 1024,
      maxElements: 10,
      options: ['timeout', '300', 'counters', 'comment', 'skbinfo'],
      entries: [
        {
          address: parseAddress('10.0.0.8'),
          options: ['timeout', '299', 'packets', '0', 'bytes', '0', 'comment', '"a b # c"'],
        },
      ],
    });
    expect(find('L')).toEqual({ name: 'L', type: 'list:set', options: ['size', '8'], entries: [{ other: 'T' }] });
    expect(find('ND')?.entries).toEqual([
      { other: '10.0.0.0/8,eth0' },
      { other: '10.1.0.0/16,eth0', options: ['nomatch'] },
    ]);
  });

  test('is kept or reported: IPVS services with options, and by firewall mark', () => {
    const { state, unread } = readDump('foreign-legacy');
    expect(unread.map(({ text, reason }) => `${text}: ${reason}`)).toEqual([
      '-A -f 5 -s rr: mark-server',
      '-a -f 5 -r 10.0.0.7:0 -i -w 3 --tun-type ipip: mark-server',
      '-A -f 6 -6 -s rr: mark-server',
    ]);
    expect(state.virtualServers.map(({ port, options }) => [port, ...(options ?? [])].join(' '))).toEqual(
      '80,80,80,81,81 -M 255.255.255.0 -o,82,83,84,85 --pe sip,80,81 -M 64'.split(','),
    );
    expect(state.virtualServers[0]?.realServers.map(({ forwarding, options }) => [forwarding, options])).toEqual([
      ['masquerade', undefined],
      ['tunnel', ['--tun-type', 'gue', '--tun-port', '6080', '--tun-nocsum']],
      ['masquerade', undefined],
    ]);
  });

  test('is kept or reported: a real server whose line and the next one have become one', () => {
    const start = '-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.0.0.1:80 -m -w 1';
    const glued = parseIpvsadm(`${start}-a -t 10.96.0.1:80 -r 10.0.0.2:80 -m -w 1\n`);
    expect(glued.virtualServers[0]?.realServers).toEqual([]);
    expect(glued.unread.map(({ line, reason }) => [line, reason])).toEqual([[2, 'short-server']]);
    const [server] = parseIpvsadm(`${start} -a -t 10.96.0.1:80 -r 10.0.0.2:80 -w 3\n`).virtualServers;
    expect(server?.realServers[0]).toMatchObject({ address: { text: '10.0.0.1' }, weight: 1 });
    expect(server?.realServers[0]?.options).toEqual('-a -t 10.96.0.1:80 -r 10.0.0.2:80 -w 3'.split(' '));
  });

  test('is reported: a priority that is named as what every object has', () => {
    const chain = (priority: string) =>
      `table ip kube-proxy {\n\tchain a {\n\t\ttype nat hook input priority ${priority};\n\t}\n}\n`;
    expect(parseNftText(chain('srcnat')).tables[0]?.chains.get('a')?.base).toMatchObject({ priority: 100 });
    const { tables, unread } = parseNftText(chain('constructor'));
    expect(tables[0]?.chains.get('a')?.base).toBeUndefined();
    expect(unread.map(({ line, reason }) => [line, reason])).toEqual([[3, 'other-hook']]);
  });
});
