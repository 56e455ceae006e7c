import { expect, test } from 'vitest';
import { coverAll } from '../../src/dumps/coverage.ts';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { nameServers, weighServersOfSides } from '../../src/snapshot/server-owners.ts';
import { defaults, servicePort } from '../modes/iptables/compile.ts';

const serversOf = (text: string) => parseIpvsadm(text).virtualServers;

test('a node port that several Services claim is that of the first', () => {
  const state = { ...emptyState, virtualServers: serversOf('-A -t 192.168.0.1:30080 -s rr\n') };
  const ports = ['shop/a', 'shop/b'].map((label) => servicePort({ label, nodePort: 30_080 }));
  const ownerOf = (claims: typeof ports) => nameServers(state, claims).virtualServers[0]?.origin;
  expect(ownerOf(ports)).toMatchObject({ servicePort: 'shop/a' });
  expect(ownerOf(ports.toReversed())).toMatchObject({ servicePort: 'shop/b' });
});

test.each([
  [[], 'certain'],
  [['10.96.0.98/32'], 'certain'],
  [['10.96.0.99/32'], 'none'],
])('of networks %j that are left alone, whatever a dump shows: %s', (excludeCIDRs, evidence) => {
  const virtualServers = serversOf('-A -t 10.96.0.99:80 -s rr\n');
  const { sets } = parseIpsetSave('create KUBE-CLUSTER-IP hash:ip,port\nadd KUBE-CLUSTER-IP 10.96.0.99,tcp:80\n');
  const coverage = coverAll();
  const node = { kind: 'dump', state: { ...emptyState, virtualServers, sets }, coverage, settings: undefined } as const;
  const settings = { ...defaults, mode: 'ipvs', ipvs: { ...defaults.ipvs, excludeCIDRs } } as const;
  const compiled = { kind: 'manifests', state: emptyState, coverage, settings } as const;
  expect(virtualServers.map(weighServersOfSides(node, compiled))).toEqual([evidence]);
});
