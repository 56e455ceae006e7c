// What a listing proves depends on the command above it.
import { expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { runKpc } from '../support/run-kpc.ts';

const routes = '10.244.1.0/24 dev cni0 scope link\n192.168.50.0/24 dev eth0 scope link src 192.168.50.11\n';
const rules = '0:\tfrom all lookup local\n32766:\tfrom all lookup main\n';
const raw = '*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d 10.96.7.1/32 -j DROP\nCOMMIT\n';

const read = (text: string) => readDump(new Map([['node.txt', text]]));
const showsAll = (command: string) => read(`$ ${command}\n${routes}`).routes.ipv4?.tables?.has('main');

test.each([
  'ip route',
  'ip r s',
  'ip -4 -d route list',
  'ip -f inet route show',
  'ip route show table main',
  'ip route 2>/dev/null',
  'ip route | sort | tee routes',
  'ip route; ip rule',
  'ip route && ip rule || true',
])('%s shows all routes', (command) => {
  expect(showsAll(command)).toBe(true);
});

test.each([
  'ip route show proto kernel',
  'ip route scope link',
  'ip route list type blackhole',
  'ip route 10.0.0.0/8',
  'ip route show root 10.0.0.0/8',
  'ip route via 192.168.50.1',
  'ip route vrf mgmt',
  'ip r s metric 100',
  'ip route show table main dev eth0',
  'ip route | cut -c1-20',
  'ip route | sort | uniq -d',
])('%s shows a part of the routes', (command) => {
  expect(showsAll(command)).toBe(false);
});

test('a filtered ip rule shows a part of the rules', () => {
  expect(read(`$ ip rule\n${rules}`).routes.ipv4?.rules).toHaveLength(2);
  expect(read(`$ ip rule show from all\n${rules}`).routes.ipv4?.rules).toBeUndefined();
});

test.each([
  'nsenter -t 4242 -n iptables-save',
  'nsenter --net=/run/netns/cni-1 iptables-save',
  'ip netns exec cni-1 iptables-save',
  'kubectl exec web-1 -- iptables-save',
  'crictl exec 0123456789abc iptables-save',
  'docker exec 0123456789ab iptables-save',
  'cat /etc/iptables/rules.v4',
])("%s does not show the node's kernel", (command) => {
  for (const prompt of ['root@worker-1:~# ', '$ ', '']) {
    const { state, faults } = read(`${prompt}${command}\n${raw}`);
    expect(state.iptables).toEqual({});
    expect(faults).toMatchObject([{ code: 'dump-reading', arguments: { problem: 'elsewhere', command }, line: 2 }]);
  }
});

test.each([
  ['ip -n cni-1 route', routes],
  ['cat /etc/sysctl.conf', 'net.ipv4.ip_forward = 0\n'],
  ['cat /etc/sysctl.d/99-node.conf', 'net.ipv4.ip_forward = 0\n'],
  ['cat /etc/nftables.conf', 'table ip filter {\n\tchain input {\n\t\tdrop\n\t}\n}\n'],
])('nor does %s', (command, listing) => {
  const { coverage, routes: known, files } = read(`$ ${command}\n${listing}`);
  expect([files, known, coverage.sysctls]).toEqual([[], {}, false]);
});

test.each([
  'sudo iptables-save',
  'nsenter -t 1 -n iptables-save',
  'nsenter -at1 iptables-save',
  'kubectl -n kube-system exec kube-proxy-x7k2p -- iptables-save',
  'kubectl debug node/worker-1 -it --image=busybox -- chroot /host iptables-save',
  'chroot /host iptables-save',
  'ssh worker-1 iptables-save',
  'docker exec kind-worker iptables-save',
])("%s shows the node's kernel", (command) => {
  expect(Object.keys(read(`$ ${command}\n${raw}`).state.iptables)).toEqual(['ipv4']);
});

test('a note names the command of what is left out', async () => {
  const stdin = `$ iptables-save\n${raw}$ nsenter -t 4242 -n ip route\n${routes}`;
  const { stderr } = await runKpc(['trace', '-', '--from', 'node', '--to', '10.96.7.1:80'], { stdin });
  expect(stderr).toContain('-:7:1: note: left out ip route: "nsenter -t 4242 -n ip route" does not show');
});

test.each(['ip r s t 101', 'ip ro sh tab 101', 'ip route list table 101'])(
  '%s prints a table of its own',
  (command) => {
    const main = 'default via 192.168.50.1 dev eth0\n';
    const { faults, routes: known } = read(`# ip r\n${main}# ${command}\ndefault via 192.168.60.1 dev eth1\n`);
    expect(faults).toEqual([]);
    expect(known.ipv4?.routes.map((route) => route.table)).toEqual(['main', '101']);
    expect(known.ipv4?.tables?.has('main')).toBe(true);
  },
);

test.each(['ip a s', 'ip ad sh'])('%s prints all addresses', (command) => {
  const text = `$ ${command}\n1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n`;
  expect(read(text).coverage.allAddresses).toEqual(['ipv4', 'ipv6']);
});
