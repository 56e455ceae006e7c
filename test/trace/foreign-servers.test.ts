import { expect, test } from 'vitest';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { weighEvidence } from '../../src/kube-proxy/evidence.ts';
import { runKpc } from '../support/run-kpc.ts';
import { natTable } from '../dumps/pasted.ts';

const server = (forwarding: string): string =>
  `-A -t 192.168.50.11:6443 -s rr\n-a -t 192.168.50.11:6443 -r 192.168.50.10:6443 ${forwarding} -w 1\n`;
const node =
  natTable.replace('# Completed', '*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\nCOMMIT\n# Completed') +
  '1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <UP>\n    inet 192.168.50.11/24 scope global eth0\n';

test.each([
  ['-m', 'possible'],
  ['-g', 'none'],
  ['-i', 'none'],
])('a virtual server with a real server of %s, if sets are not shown: %s', (forwarding, evidence) => {
  const { virtualServers } = parseIpvsadm(server(forwarding));
  const { virtualServer } = weighEvidence({ ...emptyState, virtualServers }, { shows: { sets: false, links: false } });
  expect(virtualServers.map(virtualServer)).toEqual([evidence]);
});

test.each([
  ['another way of forwarding', '-g', ''],
  ['no set of kube-proxy', '-m', '$ ipset save\ncreate f hash:ip family inet hashsize 1024 maxelem 65536\n'],
])("describe and trace say alike that a virtual server is another program's: %s", async (_why, forwarding, sets) => {
  const stdin = `${node}$ ipvsadm -Sn\n${server(forwarding)}${sets}`;
  const { stdout } = await runKpc(['describe', '-'], { stdin });
  expect(stdout).toContain('1 Service port in iptables mode');
  const trace = await runKpc(['trace', '-', '--from', 'external', '--to', '192.168.50.11:6443'], { stdin });
  expect(trace.stdout).toContain(
    "192.168.50.11:6443, which iptables mode does not make, takes the packet: it is another program's",
  );
  expect(trace.stdout).not.toContain('node port');
});

test.each([
  ['10.244.1.5,tcp:8080,10.244.1.5', 'certain'],
  ['10.244.1.5,tcp:8081,10.244.1.5', 'none'],
])('a node port forwards to an endpoint that only KUBE-LOOP-BACK lists: %s', (local, evidence) => {
  const at = '-t 192.168.50.11:30080';
  const { virtualServers } = parseIpvsadm(
    `-A -t 10.96.0.10:53 -s rr\n-A ${at} -s rr\n-a ${at} -r 10.244.1.5:8080 -m -w 1\n`,
  );
  const sets = parseIpsetSave(
    [
      'create KUBE-CLUSTER-IP hash:ip,port family inet',
      'add KUBE-CLUSTER-IP 10.96.0.10,tcp:53',
      'create KUBE-NODE-PORT-TCP bitmap:port range 0-65535',
      'add KUBE-NODE-PORT-TCP 30080',
      'create KUBE-LOOP-BACK hash:ip,port,ip family inet',
      `add KUBE-LOOP-BACK ${local}\n`,
    ].join('\n'),
  ).sets;
  const { virtualServer } = weighEvidence({ ...emptyState, virtualServers, sets });
  expect(virtualServers.map(virtualServer)).toEqual(['certain', evidence]);
});

test('a virtual server that kube-proxy may have left is deleted only if it did', async () => {
  const stdin = `${node}$ ipvsadm -Sn\n${server('-m')}`;
  const { stdout } = await runKpc(['trace', '-', '--from', 'external', '--to', '192.168.50.11:6443'], { stdin });
  expect(stdout).toContain("delete what IPVS mode left on the node, unless it is another program's");
});
