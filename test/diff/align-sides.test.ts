import { expect, test } from 'vitest';
import { alignSides, diffAligned } from '../../src/ask/diff/align-sides.ts';
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
