import { expect, test } from 'vitest';
import { alignSides, diffAligned } from '../../src/ask/diff/align-sides.ts';
import { diffSides } from '../../src/ask/diff/diff-sides.ts';
import { coverAll } from '../../src/dumps/coverage.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { openTexts } from '../../src/library/open.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';

/** A chain with equal rules, one for each comment. */
function commented(comments: readonly string[]): KernelState {
  const rules = comments.map((comment) => `-A KUBE-FORWARD -m comment --comment "${comment}" -j ACCEPT\n`).join('');
  return { ...emptyState, iptables: { ipv4: parseIptablesSave(`*filter\n${rules}COMMIT\n`).tables } };
}

test.each([
  [['a'], ['b'], 1, false],
  [['a', 'b'], ['c', 'b'], 1, false],
  // A rule has one counterpart: of two, one is left over.
  [['a', 'b'], ['c'], 1, true],
  [['c'], ['a', 'b'], 1, true],
  [['shop/web:http'], ['shop/api:http'], 0, true],
  [['shop/web:http'], ['a'], 1, false],
])(
  'from rules for %j to rules for %j: %i differ in their comments alone, more differs: %s',
  (from, to, alone, more) => {
    const { delta, comments } = diffAligned({ from: commented(from), to: commented(to) });
    expect([comments, (delta.iptables.ipv4 ?? []).length > 0]).toEqual([alone, more]);
  },
);

test.each([
  [{}, [['net.ipv4.ip_forward', 'net.ipv4.vs.conntrack'], true]],
  [{ 'net.ipv4.ip_forward': '1' }, [['net.ipv4.vs.conntrack'], false]],
])('beside a node that shows the sysctls %j, the others are named as not compared', (shown, [names, areAll]) => {
  const sideOf = (sysctls: Readonly<Record<string, string>>) =>
    new DumpedSnapshot({
      name: 'node',
      state: () => ({ ...emptyState, sysctls: new Map(Object.entries(sysctls)) }),
      coverage: coverAll(),
      doubts: [],
    });
  const whole = sideOf({ 'net.ipv4.ip_forward': '0', 'net.ipv4.vs.conntrack': '1' });
  expect(alignSides(whole, sideOf(shown)).unshownSysctls).toEqual(names);
  const { gaps } = diffSides(sideOf(shown), whole, { foreign: false });
  expect(gaps.filter(({ part }) => part === 'sysctls')).toMatchObject([{ sysctls: areAll ? undefined : names }]);
});

const service =
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] }\n';

test.each([
  ['', { tcp: 0, tcpFin: 0, udp: 0 }],
  ['ipvs: { tcpTimeout: 15m }\n', { tcp: 900, tcpFin: 0, udp: 0 }],
])('of the timeouts of a node, those are compared that a configuration sets: %j', (fields, compared) => {
  const state = { ...emptyState, ipvsTimeouts: { tcp: 900, tcpFin: 120, udp: 300 } };
  const node = new DumpedSnapshot({ name: 'node', state: () => state, coverage: coverAll(), doubts: [] });
  const config = `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n${fields}`;
  const { side } = openTexts(
    {
      manifests: { 'in.yaml': service },
      config: { name: 'config.yaml', text: config },
      node: 'n',
    },
    false,
  ).at('n');
  if (!side) throw new Error('it does not compile');
  for (const found of [alignSides(node, side).from, alignSides(side, node).to])
    expect(found.state.ipvsTimeouts).toEqual(compared);
});
