import { expect, test } from 'vitest';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { separate } from '../../src/ask/diff/foreign-items.ts';
import { coverAll } from '../../src/dumps/coverage.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { readStoredSide } from '../../src/snapshot/files/read-side.ts';
import { equalStates, type KernelState } from '../../src/kernel/state.ts';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { neighbours, readBundleFiles } from '../apply/neighbours.ts';

// A kubelet's KUBE-FIREWALL is the same as kube-proxy's, and not beside it.
const { oldKubelet: _, kubelet: __, ...others } = neighbours;

/** The tables of `text` after those of `first`: each in one piece, as iptables-save prints them. */
function joinTables(first: string, text: string): string {
  const tables = new Map<string, { readonly chains: string[]; readonly rules: string[] }>();
  let table = '';
  for (const line of `${first}\n${text}`.split('\n')) {
    if (line.startsWith('*')) table = line;
    const parts = tables.get(table) ?? { chains: [], rules: [] };
    tables.set(table, parts);
    if (line.startsWith(':') && !parts.chains.includes(line)) parts.chains.push(line);
    if (line.startsWith('-') && !parts.rules.includes(line)) parts.rules.push(line.replace(/^-I (\S+) \d+/, '-A $1'));
  }
  return [...tables].map(([name, { chains, rules }]) => [name, ...chains, ...rules, 'COMMIT', ''].join('\n')).join('');
}

test.each(['ipvs', 'iptables'])('mode %s: diff takes what other programs keep on a node for theirs', async (mode) => {
  const folder = `fixtures/dual-stack/expected-${mode}`;
  const { state } = (await loadBundle(folder)).snapshot;
  const files = readBundleFiles(folder);
  const all = (part: 'iptables' | 'ipset' | 'ipvsadm') => Object.values(others).flatMap((other) => other[part] ?? []);
  let tables = files.iptables ?? '';
  for (const text of all('iptables')) tables = joinTables(tables, text);
  const dumped: KernelState = {
    ...state,
    iptables: { ...state.iptables, ipv4: parseIptablesSave(tables).tables },
    sets: parseIpsetSave([files.ipset ?? '', ...all('ipset')].join('\n')).sets,
    virtualServers: parseIpvsadm([files.ipvsadm ?? '', ...all('ipvsadm')].join('\n')).virtualServers,
  };
  const { side: from } = await readStoredSide(folder);
  const to = new DumpedSnapshot({ name: 'dump', state: () => dumped, coverage: coverAll(), doubts: [] });
  if (!from) throw new Error('no bundle');
  const { own, foreign } = separate(from, to);
  expect(equalStates(own.from, own.to)).toBe(true);
  expect(foreign().to.sets.map(({ name }) => name)).toContain('kube-router-local-pods');
  expect([...(foreign().to.iptables.ipv4?.filter?.keys() ?? [])]).toContain('KUBE-ROUTER-FORWARD');
  expect(foreign().to.virtualServers.map(({ address }) => address.text)).toEqual(
    expect.arrayContaining(['100.64.9.1']),
  );
});
