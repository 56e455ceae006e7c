// Session affinity takes, for each endpoint, a rule that looks clients up and one that remembers them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeServices, open, trace } from '../../src/library/index.ts';
import { projectFolder } from '../support/run-kpc.ts';

const read = (name: string): string => readFileSync(join(projectFolder, 'fixtures/dumps', name), 'utf8');
const iptables = read('kube-proxy-iptables-session-affinity/iptables-save');
const nftables = read('kube-proxy-nftables-affinity-external-policy-local/nft-ruleset');

const lookup = /^-A KUBE-SVC-6IM33IEVEEV7U3GP .*--rcheck.*-j KUBE-SEP-MT2MSR5ETYEALASG\n/m;
const remembers = /-m recent --set --name KUBE-SEP-MT2MSR5ETYEALASG \S+ \S+ \S+ /;

test.each([
  ['iptables', iptables, 'default/nginx-service:http', 10800],
  ['iptables, no lookup of one endpoint', iptables.replace(lookup, ''), 'default/nginx-service:http', undefined],
  ['iptables, one endpoint not remembered', iptables.replace(remembers, ''), 'default/nginx-service:http', undefined],
  ['nftables', nftables, 'default/web:http', 10800],
  ['nftables, no lookup', nftables.replace(/ip saddr @affinity-4B5.*\n/, ''), 'default/web:http', undefined],
  ['nftables, not remembered', nftables.replace(/update @affinity-4B5.*\n/, ''), 'default/web:http', undefined],
])('%s', (_, text, service, seconds) => {
  const [side] = open({ 'node.txt': text }).snapshots;
  const ports =
    side?.kind === 'dump'
      ? describeServices(side).servicePorts.filter(({ servicePort }) => servicePort === service)
      : [];
  expect(ports.map(({ affinitySeconds }) => affinitySeconds)).toEqual([seconds]);
  const notes = side && trace({ side, from: 'pod', to: service }).trace?.traces[0]?.notes;
  expect(notes?.some((note) => note.startsWith('session affinity')) ?? false).toBe(seconds !== undefined);
});
