import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-asked-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const otherService =
  'apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: {clusterIP: 10.96.0.90, ports: [{port: 80}]}\n';
const manifests = `apiVersion: v1
kind: Node
metadata: {name: node-1}
spec: {podCIDRs: [10.244.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.10.11}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: default}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.80
  externalTrafficPolicy: Local
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: nginx-a, namespace: default, labels: {kubernetes.io/service-name: nginx}}
addressType: IPv4
ports: [{port: 8080, name: ''}]
endpoints: [{addresses: [10.244.2.10], nodeName: node-2}]
`;

const modes = ['iptables', 'ipvs', 'nftables'] as const;
const printed = {
  iptables: ['iptables', 'ip6tables'],
  ipvs: ['ipset', 'iptables', 'ip6tables', 'ipvsadm'],
  nftables: ['nftables'],
} as const;

/** What is described: `M` is a mode. */
const inputs = {
  manifests: (mode: string) => ['-f', 'svc.yaml', '--proxy-mode', mode],
  bundle: (mode: string) => [`bundle-${mode}`],
  dump: (mode: string) => [`dump-${mode}`],
} as const;

beforeAll(async () => {
  writeFileSync(join(cwd, 'svc.yaml'), manifests);
  for (const mode of modes) {
    const options = ['compile', '-f', 'svc.yaml', '--proxy-mode', mode, '--cluster-cidr', '10.244.0.0/16', '-q'];
    await runKpc([...options, '-o', `bundle-${mode}`], { cwd });
    mkdirSync(join(cwd, `dump-${mode}`));
    for (const name of printed[mode]) {
      const { stdout } = await runKpc([...options, '--print', name], { cwd });
      const file = mode === 'nftables' ? 'nft-ruleset' : `${name}-save`;
      writeFileSync(join(cwd, `dump-${mode}`, file), stdout);
    }
  }
});

const ask = (what: string, input: keyof typeof inputs, mode: (typeof modes)[number]) =>
  runKpc(['describe', what, ...inputs[input](mode), '-q'], { cwd });

const kinds = Object.keys(inputs) as readonly (keyof typeof inputs)[];
const cases = kinds.flatMap((input) => modes.map((mode) => [input, mode] as const));

describe('a node port at loopback', () => {
  test.for(cases)('%s, %s mode', async ([input, mode]) => {
    for (const what of ['127.0.0.1:30080', 'localhost:30080', '127.0.0.1:30080/tcp', '127.3.2.1:30080']) {
      const { status, stdout, stderr } = await ask(what, input, mode);
      const [said] = (stdout + stderr).split('\n');
      const isOpen = mode === 'iptables';
      expect([status, said]).toEqual([
        isOpen ? 0 : 1,
        expect.stringMatching(
          isOpen
            ? /default\/nginx/
            : /^error: no Service answers at 127\..*: node port 30080.* listens on 192\.168\.10\.11 only \[not-found\]$/,
        ),
      ]);
    }
  });

  test('is closed where --iptables-localhost-nodeports is', async () => {
    const closed = ['--proxy-mode', 'iptables', '--iptables-localhost-nodeports=false', '-q'];
    const run = await runKpc(['describe', '127.0.0.1:30080', '-f', 'svc.yaml', ...closed], { cwd });
    expect(run).toMatchObject({ status: 1, stdout: '' });
    expect(run.stderr).toMatch(/error: .*loopback.*\[not-found\]/);
  });

  test('where its virtual server listens, as those of old releases do', async () => {
    const stdin =
      'IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n' +
      '  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n' +
      'TCP  127.0.0.1:30449 rr\n  -> 10.244.36.197:80             Masq    1      0          0\n';
    const run = await runKpc(['describe', '127.0.0.1:30449', '-', '-q'], { stdin });
    expect(run.stdout).toContain('10.244.36.197:80');
  });
});

describe('an address with a port that its Service does not have', () => {
  test.for(cases)('%s, %s mode', async ([input, mode]) => {
    const nameless = input === 'dump' && mode === 'ipvs';
    const owner = nameless ? ' ' : ' belongs to default/nginx, which ';
    for (const [what, text] of [
      ['10.96.0.80:81', `10.96.0.80${owner}has no port 81 (has 80/TCP)`],
      ['10.96.0.80:80/udp', `10.96.0.80${owner}has no port 80/UDP (has 80/TCP)`],
      ['10.96.0.80,tcp:81', `10.96.0.80${owner}has no port 81/TCP (has 80/TCP)`],
      ['203.0.113.7:8443', `203.0.113.7${owner}has no port 8443 (has 80/TCP)`],
      [
        '10.244.2.10:9',
        nameless
          ? '10.244.2.10 has no port 9 (has 8080/TCP)'
          : '10.244.2.10 is an endpoint of default/nginx, which has no port 9 there (has 8080/TCP)',
      ],
    ] as const) {
      const run = await ask(what, input, mode);
      expect(run).toMatchObject({ status: 1, stdout: '', stderr: `error: ${text} [not-found]\n` });
    }
  });
});

test.for(cases)('a bare number is a node port, or else a port: %s, %s mode', async ([input, mode]) => {
  for (const what of ['30080', ':30080', '80', '80/tcp']) {
    const run = await ask(what, input, mode);
    expect(run.status, run.stderr).toBe(0);
  }
  for (const what of ['81', '80/udp', ':80']) expect((await ask(what, input, mode)).status).toBe(1);
});

describe('a folder that is called as a Service is', () => {
  beforeAll(() => {
    for (const name of ['nginx', 'default/nginx', '30080']) mkdirSync(join(cwd, name), { recursive: true });
    writeFileSync(join(cwd, 'nginx/other.yaml'), otherService);
  });

  test.for(['nginx', 'default/nginx', '30080'])('%s', async (what) => {
    const run = await runKpc(['describe', what, 'svc.yaml'], { cwd });
    expect(run.stdout.split('\n')[0]).toContain('Service default/nginx ');
    expect(run.stderr).toContain(
      `note: "${what}" is taken as the name to describe, not as a file [reading]\n  help: write "./${what}" to read it\n`,
    );
    const quiet = await runKpc(['describe', what, '-f', 'svc.yaml', '-q'], { cwd });
    expect(quiet).toMatchObject({ status: 0, stderr: '', stdout: run.stdout });
  });

  test.each([
    [['others', '-f', 'svc.yaml'], 'default/nginx'],
    [['svc', 'others'], 'default/other'],
    [['others', 'svc'], 'default/nginx'],
  ])('is an input if no Service is called so: %j', async (words, service) => {
    for (const name of ['others', 'svc']) mkdirSync(join(cwd, name), { recursive: true });
    writeFileSync(join(cwd, 'svc/svc.yaml'), manifests);
    writeFileSync(join(cwd, 'others/other.yaml'), otherService);
    const { stdout, status } = await runKpc(['describe', ...words, '-q'], { cwd });
    expect({ status, isListed: stdout.includes(service) && stdout.includes('default/other') }).toEqual({
      status: 0,
      isListed: true,
    });
  });

  test('is read where it is written as a path, or alone', async () => {
    for (const args of [['./nginx', 'svc.yaml'], ['nginx']]) {
      const run = await runKpc(['describe', ...args, '-q'], { cwd });
      expect(run.stdout).toContain('default/other');
    }
  });

  test.for([['svc.yaml'], ['-f', 'svc.yaml']])(
    'a dump beside manifests that name its Services is read: %j',
    async (args) => {
      const run = await runKpc(['describe', 'dump-ipvs', ...args, '-q'], { cwd });
      expect(run.stdout).toMatch(/^default\/nginx +LoadBalancer/m);
    },
  );
});

test.for(modes)('no local endpoint, %s mode', async (mode) => {
  const ofDump = await ask('203.0.113.7', 'dump', mode);
  const ofManifests = await ask('203.0.113.7', 'manifests', mode);
  const [line = 'nothing'] = ofManifests.stdout.match(/^.*no endpoint on this node: .*$/m) ?? [];
  expect(ofDump.stdout.split('\n')).toContain(line);
});

const refused = 'no endpoint can accept connections, so kube-proxy refuses them';

describe('what lines do, whatever they are called', () => {
  const withoutNamespace = `# iptables-save | grep 31218
-A KUBE-SERVICES -p tcp -m comment --comment "bad-srv:management-port has no endpoints" -m addrtype --dst-type LOCAL -m tcp --dport 31218 -j REJECT --reject-with icmp-port-unreachable
-A KUBE-NODEPORTS -p tcp -m comment --comment "bad-srv:management-port" -m tcp --dport 31218 -j KUBE-MARK-MASQ
-A KUBE-NODEPORTS -p tcp -m comment --comment "bad-srv:management-port" -m tcp --dport 31218 -j KUBE-SVC-GQKCP75KCV7PRX6J
`;
  const capitals =
    '-A KUBE-SERVICES -d 10.100.134.208/32 -p tcp -m comment --comment "YYYY/XXX:eai-pcp-port has no endpoints" -m tcp --dport 11930 -j REJECT --reject-with icmp-port-unreachable\n';
  const noComment = `*nat
-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m tcp --dport 443 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -d 198.51.100.7/32 -p tcp -m tcp --dport 443 -j KUBE-FW-AAAAAAAAAAAAAAAA
-A KUBE-NODEPORTS -p tcp -m tcp --dport 31443 -j KUBE-EXT-AAAAAAAAAAAAAAAA
-A KUBE-EXT-AAAAAAAAAAAAAAAA -j KUBE-MARK-MASQ
-A KUBE-EXT-AAAAAAAAAAAAAAAA -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-FW-AAAAAAAAAAAAAAAA -s 192.0.2.0/24 -j KUBE-EXT-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination 10.244.1.7:8443
COMMIT
*filter
-A KUBE-PROXY-FIREWALL -d 198.51.100.7/32 -p tcp -m tcp --dport 443 -j DROP
COMMIT
`;
  const oldLocal = `-A KUBE-NODEPORTS -p tcp -m comment --comment "default/nodeport:" -m tcp --dport 31449 -j KUBE-XLB-XP7QDA4CRQ2QA33W
-A KUBE-XLB-XP7QDA4CRQ2QA33W -m comment --comment "default/nodeport: has no local endpoints" -j KUBE-MARK-DROP
`;
  const chainsAlone = `-A KUBE-SVC-574IYFDEANSYIEBF -m comment --comment default/sample: -j KUBE-SEP-I6V54ZEKLM63UYYR
-A KUBE-SEP-I6V54ZEKLM63UYYR -m comment --comment default/sample: -m tcp -p tcp -j DNAT --to-destination 172.17.41.2:8000
-A KUBE-XLB-574IYFDEANSYIEBF -m comment --comment "default/sample: has no local endpoints" -j KUBE-MARK-DROP
`;
  const numbers = `Name: KUBE-CLUSTER-IP
Type: hash:ip,port
Revision: 5
Header: family inet hashsize 1024 maxelem 65536
Size in memory: 8696
References: 2
Number of entries: 2
Members:
10.108.65.32,6:80
10.96.0.10,17:53
`;
  test.for([
    ['31218', withoutNamespace, ['bad-srv:management-port', 'node port 31218/TCP', refused]],
    ['bad-srv', withoutNamespace, ['node port 31218/TCP']],
    ['KUBE-SVC-GQKCP75KCV7PRX6J', withoutNamespace, ['node port 31218/TCP']],
    ['10.100.134.208', capitals, ['YYYY/XXX:eai-pcp-port', 'port 11930/TCP', refused]],
    ['YYYY/XXX', capitals, [refused]],
    ['11930', capitals, [refused]],
    ['10.108.65.32', numbers, ['10.108.65.32:80/TCP']],
    ['10.96.0.10,17:53', numbers, ['10.96.0.10:53/UDP']],
    ['10.108.65.32:80', numbers, ['cluster IP 10.108.65.32 port 80/TCP']],
    ['10.96.7.7', noComment, ['cluster IP 10.96.7.7 port 443/TCP', '10.244.1.7:8443']],
    ['198.51.100.7', noComment, ['load balancer for 192.0.2.0/24 only', 'node port 31443/TCP']],
    ['31443', noComment, ['load balancer address 198.51.100.7', 'masqueraded: external traffic']],
    ['10.244.1.7', noComment, ['cluster IP 10.96.7.7']],
    [
      '31449',
      oldLocal,
      ['externalTrafficPolicy Local', 'no endpoint on this node: traffic with policy Local is dropped'],
    ],
    ['default/sample', chainsAlone, ['172.17.41.2:8000  for policy Cluster', 'traffic with policy Local is dropped']],
    ['172.17.41.2', chainsAlone, ['default/sample']],
    ['KUBE-XLB-574IYFDEANSYIEBF', chainsAlone, ['default/sample']],
  ] as const)('%s', async ([what, stdin, texts]) => {
    const run = await runKpc(['describe', what, '-', '-q'], { stdin });
    expect(run.status, run.stderr).toBe(0);
    for (const text of texts) expect(run.stdout).toContain(text);
  });

  test('two Services that were given one name stay two', async () => {
    const rules = (
      n: number,
    ) => `-A KUBE-SERVICES -d 10.96.0.${n}/32 -p tcp -m comment --comment "YYYY/XXX:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-${'ABC'[n]?.repeat(16)}
-A KUBE-SVC-${'ABC'[n]?.repeat(16)} -m comment --comment "YYYY/XXX:http -> 10.244.0.${n}:80" -j KUBE-SEP-${'XYZ'[n]?.repeat(16)}
`;
    const stdin = `*nat\n${rules(1)}${rules(2)}COMMIT\n`;
    const run = await runKpc(['describe', '10.96.0.2', '-', '-q'], { stdin });
    expect(run.stdout).toContain('10.244.0.2:80');
    expect(run.stdout).not.toContain('10.244.0.1:80');
  });
});

describe('an address that the node does not serve', () => {
  const elsewhere = manifests
    .replace('[{ip: 203.0.113.7}]', '[{ip: 203.0.113.8, ipMode: Proxy}]')
    .concat(
      '---\napiVersion: v1\nkind: Node\nmetadata: {name: node-2}\nstatus: {addresses: [{type: InternalIP, address: 192.168.10.12}]}\n',
    );
  beforeAll(() => writeFileSync(join(cwd, 'elsewhere.yaml'), elsewhere));

  const proxied =
    '203.0.113.8 is a load balancer address of default/nginx with ipMode Proxy: kube-proxy programs nothing for it, so that packets go through the load balancer';
  const owned = '192.168.10.12 is an address of node node-2, not of node-1';

  test.for([
    ['203.0.113.8', proxied],
    ['203.0.113.8:80', proxied],
    ['192.168.10.12', `${owned}: use --node node-2`],
    ['192.168.10.12:30080', `${owned}; node port 30080 of default/nginx answers there: use --node node-2`],
    ['192.168.10.12:30080/udp', `${owned}: use --node node-2`],
  ] as const)('%s is named as what it is', async ([what, words]) => {
    const flags = ['--node', 'node-1', '--proxy-mode', 'nftables'];
    const run = await runKpc(['describe', what, 'elsewhere.yaml', ...flags], { cwd });
    expect(run).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining(`error: ${words} [not-found]\n`),
    });
  });

  test.for([
    ['203.0.113.8:80', proxied],
    ['192.168.10.12:30080', `${owned}; node port 30080`],
  ] as const)('%s is named in a trace, too', async ([what, words]) => {
    const flags = ['--node', 'node-1', '--proxy-mode', 'nftables', '--from', 'external'];
    const run = await runKpc(['trace', '-f', 'elsewhere.yaml', ...flags, '--to', what], { cwd });
    expect(run.stdout).toContain(`left to routing: no rule of a Service changes the packet\n  ${words}`);
  });
});

describe('a Pod, by its name in kubectl or its address', () => {
  const pod = (name: string, address: string): string => `---
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec: {nodeName: node-1, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: ${address}, podIPs: [{ip: ${address}}]}
`;

  const describeIn = async (what: string) => {
    writeFileSync(join(cwd, 'pods.yaml'), manifests + pod('nginx-0', '10.244.2.10') + pod('idle', '10.244.1.41'));
    return runKpc(['describe', what, '-f', 'pods.yaml', '--proxy-mode', 'iptables'], { cwd });
  };

  test.each(['pod/nginx-0', 'pods/default/nginx-0', '10.244.2.10'])('%s leads to its Services', async (what) => {
    const { status, stdout } = await describeIn(what);
    expect(status).toBe(0);
    expect(stdout).toContain('Service default/nginx');
  });

  test.each(['pod/idle', '10.244.1.41'])('%s is of no Service', async (what) => {
    const { stderr } = await describeIn(what);
    expect(stderr).toMatch(/error: Pod default\/idle \(10\.244\.1\.41\) .*\[not-found\]/);
  });

  test('a Pod that is not there matches nothing', async () => {
    const { stderr } = await describeIn('pod/none');
    expect(stderr).toMatch(/error: .*"pod\/none".*\[not-found\]/);
  });
});

describe('a name with --namespace', () => {
  const [, service = ''] = manifests.split('---\n');
  const named = service.replace('namespace: default', 'namespace: shop').replace('10.96.0.80', '10.96.0.81');
  const both = `${service}---\n${named.replace('30080', '30081').replace('203.0.113.7', '203.0.113.8')}`;

  test.each(['svc/nginx', 'nginx'])('means the Service there: %s', async (what) => {
    const run = await runKpc(['describe', what, '-', '-n', 'shop', '-q'], { cwd, stdin: both });
    expect(run.stdout).toContain('Service shop/nginx');
    expect(run.stdout).not.toContain('default/nginx');
  });

  test.each(['dump-iptables', 'dump-nftables', 'bundle-ipvs', 'svc.yaml'])('means no other in %s', async (input) => {
    const found = await runKpc(['describe', 'svc/nginx', input, '-n', 'default', '-q'], { cwd });
    expect(found).toMatchObject({ status: 0, stdout: expect.stringContaining('default/nginx') as string });
    const other = await runKpc(['describe', 'svc/nginx', input, '-n', 'shop', '-q'], { cwd });
    expect(other).toMatchObject({ status: 1, stdout: '' });
  });

  test('has no effect on an address or a table of a dump, and is refused', async () => {
    for (const what of [['10.96.0.80'], []])
      expect(await runKpc(['describe', ...what, 'dump-iptables', '-n', 'shop'], { cwd })).toMatchObject({ status: 2 });
  });
});
