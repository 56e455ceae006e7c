import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { some } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-trace-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const cwd = join(projectFolder, 'test/kernel-lab/packets');
const input = ['-f', 'before', '-f', 'more', '-f', 'node.yaml', '--config', 'config.yaml'];

/** The file that holds the answer, and the question: what operators ask. */
const questions: readonly (readonly [file: string, args: readonly string[]])[] = [
  ['cluster-ip-iptables.txt', ['--from', 'pod', '--to', 'svc/web', '--proxy-mode', 'iptables']],
  [
    'cluster-ip-nftables.txt',
    ['--from', 'external', '--to', 'web.default.svc.cluster.local:80', '--proxy-mode', 'nftables'],
  ],
  ['cluster-ip-ipvs.json', ['--from', 'node', '--to', '10.96.0.10:80', '--proxy-mode', 'ipvs', '--output', 'json']],
  ['itself-iptables.json', ['--from', '10.1.1.10', '--to', 'web', '--proxy-mode', 'iptables', '--output', 'json']],
  ['ping-ipvs.txt', ['--from', 'pod', '--to', '10.96.0.10', '--proto', 'icmp', '--proxy-mode', 'ipvs']],
  ['source-ranges-iptables.txt', ['--from', '192.168.0.200', '--to', '203.0.113.20', '--proxy-mode', 'iptables']],
  ['localhost-nftables.txt', ['--from', 'node', '--to', '127.0.0.1:30080', '--proxy-mode', 'nftables']],
  ['local-elsewhere-ipvs.txt', ['--from', 'external', '--to', '203.0.113.23:80', '--proxy-mode', 'ipvs']],
  ['ipv6-nftables.txt', ['--from', 'remote-pod', '--to', '[fd00:192::1]:30080', '--proxy-mode', 'nftables']],
  ['affinity-iptables.txt', ['--from', 'pod', '--to', 'svc/sticky', '--proxy-mode', 'iptables']],
  ['health-check-ipvs.txt', ['--from', 'external', '--to', '192.168.0.1:32100', '--proxy-mode', 'ipvs']],
  ['cluster-ip-iptables.svg', ['--from', 'pod', '--to', 'svc/web', '--proxy-mode', 'iptables', '--output', 'svg']],
  [
    'local-elsewhere-ipvs.svg',
    ['--from', 'external', '--to', '203.0.113.23:80', '--proxy-mode', 'ipvs', '--output', 'svg'],
  ],
  ['matrix-ipvs.txt', ['--all', 'balanced-local', '--proxy-mode', 'ipvs']],
  ['matrix-nftables.txt', ['--all', 'balanced-local', '--proxy-mode', 'nftables']],
  ['matrix-own-endpoint-iptables.txt', ['--all', 'web', '--from', '10.1.1.10', '--proxy-mode', 'iptables']],
  ['matrix-iptables.json', ['--all', 'host-network', '--proxy-mode', 'iptables', '--output', 'json']],
];

describe('kpc trace', () => {
  test.for(questions)('%s', async ([name, args]) => {
    const run = await runKpc(['trace', ...input, ...args], { cwd });
    const file = join(projectFolder, 'test/trace/expected', name);
    if (update) writeFileSync(file, run.stdout);
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
  });
});

describe('what kpc trace cannot answer', () => {
  // As kpc describe ends where nothing has the name that is asked for.
  test.for([
    [['--from', 'pod', '--to', 'svc/wbe'], 'no Service wbe here [not-found]\n  help: did you mean default/web?'],
    [['--from', 'pod', '--to', 'web:81'], 'default/web has no port 81 (has 80/TCP)'],
    [['--from', 'missing', '--to', 'web'], 'no Pod missing in the input'],
    [['--all', 'web', '--from', 'missing'], 'no Pod missing in the input'],
    [['--all', '10.9.9.9'], 'no Service 10.9.9.9 here [not-found]'],
    [['--from', 'pod', '--to', 'http://web/'], 'or svc/NAME for a Service'],
  ] as const)('status 1: %s', async ([args, message]) => {
    const run = await runKpc(['trace', ...input, ...args], { cwd });
    expect(run).toMatchObject({ status: 1, stdout: '' });
    expect(run.stderr).toContain(message);
  });

  test.for([
    [['--from', 'fd00::1', '--to', '10.96.0.10:80'], 'fd00::1 cannot reach an address of the other IP family'],
    [
      ['--from', 'pod', '--to', '10.9.9.9'],
      'which port of 10.9.9.9? [bad-packet]\n  help: write 10.9.9.9:80, for example',
    ],
    [['--from', 'pod', '--to', '10.96.0.10:99999'], '10.96.0.10:99999 has no valid port [bad-packet]'],
    [['--from', '300.1.1.1', '--to', '10.96.0.10:80'], '300.1.1.1 is not an address [bad-packet]'],
    [['--all', 'web', '--output', 'svg'], '--output svg: --all prints a table'],
    [[], 'no packet is named [bad-call]\n  help: write --from SOURCE --to DESTINATION, or --all SERVICE'],
    [['--from', 'pod'], 'no destination is named [bad-call]\n  help: add --to, such as --to svc/NAME'],
    [['--to', 'web'], 'no sender is named [bad-call]\n  help: add --from, such as --from pod'],
    [['--from', 'pod', '--to', '10.96.0.10', '--proto', 'udp'], 'which port of 10.96.0.10? It has 80/TCP [bad-packet]'],
    [['--from', 'missing', '--to', '10.96.0.10:99999'], 'has no valid port'],
    [['--all', 'web', '--to', 'web'], '--to: --all prints a table, not the trace of one packet'],
    [['--all', 'web', '--proto', 'tcp'], '--proto: --all traces each port with its own protocol'],
    [['--all', 'web', '--in-interface', 'eth0'], '--in-interface: only with --from'],
  ] as const)('%s', async ([args, message]) => {
    const run = await runKpc(['trace', ...input, ...args], { cwd });
    expect(run.status).toBe(2);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain(message);
  });
});

test('a Service for which kube-proxy programs nothing is not denied', async () => {
  const file = join(scratch, 'headless.yaml');
  writeFileSync(
    file,
    '{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, ports: [{port: 80}]}}\n---\n' +
      '{apiVersion: v1, kind: Service, metadata: {name: cdn}, spec: {type: ExternalName, externalName: cdn.example.com}}\n---\n' +
      '{apiVersion: v1, kind: Service, metadata: {name: mesh, labels: {service.kubernetes.io/service-proxy-name: other}}, spec: {ports: [{port: 80}]}}\n',
  );
  const ask = async (to: string) =>
    (await runKpc(['trace', ...input, '-f', file, '--from', 'pod', '--to', to], { cwd })).stderr;
  expect(await ask('svc/db')).toContain('default/db is headless');
  expect(await ask('cdn')).toContain('default/cdn is of type ExternalName');
  expect(await ask('mesh:80')).toContain('default/mesh has the label service.kubernetes.io/service-proxy-name');
});

test('a node without a name is none of the files', async () => {
  const file = join(scratch, 'no-node.yaml');
  writeFileSync(
    file,
    '{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: 10.96.0.9, ports: [{port: 80}]}}\n',
  );
  const asked = ['--proxy-mode', 'iptables', '--from', 'node', '--to', '10.96.0.9:80'];
  const { stdout } = await runKpc(['trace', file, ...asked], { cwd });
  expect(stdout).toContain('from the node itself, on an unspecified node in iptables mode');
});

test('from outside, a Service is asked at its outer address', async () => {
  const ask = async (to: string) =>
    (await runKpc(['trace', ...input, '--from', 'external', '--to', to, '--proxy-mode', 'iptables'], { cwd })).stdout;
  expect(await ask('svc/balanced')).toContain('tcp to 203.0.113.21:80 (default/balanced:main)');
  expect(await ask('svc/node-port')).toContain('tcp to 192.168.0.1:30080 (default/node-port:main)');
  expect(await ask('svc/web')).toContain('tcp to 10.96.0.10:80 (default/web:main)');
});

test('on each node: where an address of policy Local works', async () => {
  const other = join(scratch, 'node2.yaml');
  writeFileSync(
    other,
    '{apiVersion: v1, kind: Node, metadata: {name: node2}, spec: {podCIDRs: [10.1.2.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}}\n',
  );
  const question = ['--from', 'external', '--to', '203.0.113.23:80', '--all-nodes', '--output', 'json'];
  const { stdout } = await runKpc(['trace', ...input, '-f', other, '--proxy-mode', 'nftables', ...question], { cwd });
  const answers = resultOf(stdout).traces as readonly { readonly node: string; readonly verdict: string }[];
  expect(answers.map(({ node, verdict }) => [node, verdict])).toEqual([
    ['node1', 'dropped'],
    ['node2', 'delivered'],
  ]);
});

test('a Pod by its name, with the node that it is on', async () => {
  const pods = join(scratch, 'pods.yaml');
  const pod = (name: string, node: string, address: string): string =>
    `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, namespace: shop}, spec: {nodeName: ${node}}, status: {podIPs: [{ip: ${address}}]}}\n`;
  writeFileSync(pods, `${pod('here', 'node1', '10.1.1.77')}---\n${pod('there', 'node2', '10.1.2.77')}`);
  const ask = (from: string) => runKpc(['trace', ...input, '-f', pods, '--from', from, '--to', 'default/web'], { cwd });
  const [here, there] = await Promise.all([ask('shop/here'), ask('pod/shop/there')]);
  expect(here.stdout).toContain('from Pod shop/here (10.1.1.77), on node node1');
  expect(there).toMatchObject({ status: 2, stdout: '' });
  expect(there.stderr).toContain(
    'packets from pod/shop/there to default/web do not pass node1: its own node, node2, handles them',
  );
});

describe('kpc trace over what a node has', () => {
  test.for([
    ['kube-proxy-iptables-session-affinity', 'nginx-service', '2 '],
    ['kube-proxy-ipvs-dual-stack-nodeport', '10.96.7.7:80', '2 '],
    ['kube-proxy-nftables-loadbalancer-source-ranges', 'nginx', '3 '],
  ] as const)('a dump: %s', async ([name, service, cell]) => {
    const dump = join(projectFolder, 'fixtures/dumps', name);
    const to = service.includes(':') ? ['--from', 'node', '--to', service] : ['--all', service];
    const run = await runKpc(['trace', dump, ...to], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain(cell);
  });

  test('a dump: a pod beside its endpoints, and Services of IPVS mode by their addresses', async () => {
    const ask = async (name: string, ...args: readonly string[]) =>
      (await runKpc(['trace', '-q', join(projectFolder, 'fixtures/dumps', name), ...args], { cwd })).stdout;
    const pod = await ask('kube-proxy-iptables-session-affinity', '--from', 'pod', '--to', '10.102.128.4:3080');
    expect(pod).toMatch(/from a pod on this node \(such as 10\.244\.1\.250\).*\n {2}delivered to 2 endpoints:/);
    const ipvs = 'kube-proxy-ipvs-dual-stack-nodeport';
    const table = await ask(ipvs, '--all', '10.96.7.7');
    expect(table).toMatch(/^cluster IP 10\.96\.7\.7:80\/tcp +2 /m);
    expect(await ask(ipvs, '--all', '10.96.7.7:80/TCP')).toBe(table);
  });

  test.each([['iptables'], ['nftables']])(
    'a dump that shows no address of the node: an endpoint is not one, %s',
    async (mode) => {
      const from = ['-f', join(projectFolder, 'fixtures/quickstart/svc.yaml'), '--proxy-mode', mode];
      const dump = join(mkdtempSync(join(scratch, 'dump-')), mode);
      writeFileSync(dump, (await runKpc(['compile', '-q', ...from, '--print', mode], { cwd })).stdout);
      const { stdout } = await runKpc(['trace', '-q', dump, '--from', 'pod', '--to', 'svc/nginx'], { cwd });
      expect(stdout).toMatch(/delivered to 2 endpoints/);
      expect(stdout).toMatch(/it is forwarded to \S+, unless the node has that address\n +routing\n$/);
      expect(stdout).not.toContain('is an address of the node');
    },
  );

  test('a dump without the Service that is asked for: the help names what to describe', async () => {
    const dump = join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-session-affinity');
    const { stderr } = await runKpc(['trace', '-q', dump, '--from', 'external', '--to', 'svc/foo'], { cwd });
    expect(stderr).toContain(`help: list the Services with "kpc describe ${dump}"`);
  });

  test('manifests beside a dump name its Pods, and their policies count', async () => {
    const dump = join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-session-affinity');
    const named = [
      { kind: 'Pod', metadata: { name: 'client' }, spec: { nodeName: 'other' }, status: { podIP: '10.9.9.9' } },
      { kind: 'NetworkPolicy', metadata: { name: 'none' }, spec: { podSelector: {}, policyTypes: ['Egress'] } },
    ].map((each) => ({ apiVersion: each.kind === 'Pod' ? 'v1' : 'networking.k8s.io/v1', ...each }));
    const path = join(scratch, 'beside.json');
    writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: named }));
    const { stdout } = await runKpc(['trace', '-q', dump, path, '--from', 'client', '--to', '10.102.128.4:3080'], {
      cwd,
    });
    expect(stdout).toContain('from Pod default/client on another node (10.9.9.9)');
    expect(stdout).toMatch(/policy default\/none \(.*beside\.json:1:\d+\) on egress would refuse it/);
  });

  test('a dump that lacks something: the table says why it is unknown', async () => {
    const file = join(projectFolder, 'fixtures/dumps/kube-proxy-ipvs-dual-stack-nodeport/ipvsadm-save');
    const { stdout } = await runKpc(['trace', '-q', file, '--all', '10.96.7.7'], { cwd });
    expect(stdout).toContain('\nunknown: the dump lacks the output of iptables-save; add it\n');
    expect(stdout).toContain('whether 10.96.7.7 is an address of the node; add the output of ip addr');
  });

  const rules = () =>
    readFileSync(join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-session-affinity/iptables-save'), 'utf8');
  const traceText = async (text: string, to: string) => {
    const file = join(mkdtempSync(join(scratch, 'dump-')), 'node.txt');
    writeFileSync(file, text);
    const { stdout } = await runKpc(['trace', file, '--from', '192.0.2.7', '--to', to], { cwd });
    return stdout.split('\n')[1];
  };

  test.for(['10.244.0.235', '10.244.1.237'])(
    'whichever endpoint a rule drops (%s), the others are named',
    async (gone) => {
      const text = rules().replace('-A FORWARD', `-A FORWARD -d ${gone}/32 -j DROP\n-A FORWARD`);
      expect(await traceText(text, '10.102.128.4:3080')).toBe(
        '  delivered to 1 endpoint, but 50% of connections fail:',
      );
    },
  );

  test('rules that were cut off decide nothing', async () => {
    const text = rules().split('\n').slice(0, 40).join('\n');
    expect(await traceText(text, '10.102.128.4:3080')).toBe(
      '  unknown: the dump lacks a part of the output of iptables-save; add all of it',
    );
  });

  const doubling = (depth: number) =>
    Array.from({ length: depth }, (_, i) => {
      const next = i + 1 < depth ? `C${i + 1}` : 'ACCEPT';
      return `-A C${i} -m statistic --mode random --probability 0.5 -j ${next}\n-A C${i} -j ${next}\n`;
    });

  // What ends the second is in packet/explore.test.ts, too.
  test.for(
    some([
      ['chains that lead to one another', ':C0 - [0:0]\n:C1 - [0:0]\n', '-A C0 -j C1\n-A C1 -j C0\n'],
      [
        'more ways than there are atoms',
        Array.from({ length: 40 }, (_, i) => `:C${i} - [0:0]\n`).join(''),
        doubling(40).join(''),
      ],
    ] as const),
  )('an end: %s', async ([, chains, jumps]) => {
    const text = `*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n${chains}-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SERVICES -j C0\n${jumps}COMMIT\n`;
    expect(await traceText(text, '10.96.0.1:80')).toMatch(/^ {2}unknown: /);
  });

  test('a dump of IPVS mode that lacks something decides nothing', async () => {
    const dump = join(projectFolder, 'fixtures/dumps/kube-proxy-ipvs-dual-stack-nodeport');
    const names = ['iptables-save', 'ip6tables-save', 'ipset-save', 'ipvsadm-save', 'ip-addr.json'];
    for (const missing of ['iptables-save', 'ipset-save', 'ipvsadm-save', 'ip-addr.json']) {
      const folder = mkdtempSync(join(scratch, 'part-'));
      for (const name of names) {
        if (name !== missing) writeFileSync(join(folder, name), readFileSync(join(dump, name)));
      }
      const { stdout } = await runKpc(['trace', folder, '--from', '192.0.2.7', '--to', '10.96.7.7:80'], { cwd });
      expect(stdout.split('\n')[1], missing).toMatch(/^ {2}unknown: .*add (it$|the output of (ipset save|ip addr))/);
    }
  });

  test('a bundle says the same as what it was compiled from', async () => {
    const question = ['--all', 'balanced-local', '--output', 'json'];
    const bundle = join(scratch, 'bundle');
    await runKpc(['compile', ...input, '-o', bundle], { cwd });
    const [fromBundle, fromManifests] = await Promise.all([
      runKpc(['trace', bundle, ...question], { cwd }),
      runKpc(['trace', ...input, ...question], { cwd }),
    ]);
    expect(fromBundle.status, fromBundle.stderr).toBe(0);
    expect(resultOf(fromBundle.stdout)).toEqual(resultOf(fromManifests.stdout));
  });
});

describe('what an operator asks next', () => {
  const file = join(scratch, 'three-nodes.yaml');
  const node = (name: string, i: number) =>
    `{apiVersion: v1, kind: Node, metadata: {name: ${name}}, spec: {podCIDR: 10.244.${i}.0/24}, status: {addresses: [{type: InternalIP, address: 192.168.0.${i}}]}}`;
  writeFileSync(
    file,
    [
      '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, clusterIP: 10.96.0.10, externalIPs: [203.0.113.9], externalTrafficPolicy: Local, internalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}}',
      '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 8080, protocol: TCP}], endpoints: [{addresses: [10.244.1.5], nodeName: a, conditions: {ready: true}}]}',
      node('a', 1),
      node('b', 2),
      node('c', 3),
    ].join('\n---\n'),
  );
  const trace = (...args: readonly string[]) => runKpc(['trace', '-q', file, ...args]);

  test('on which node, if none of several is named', async () => {
    expect(await trace('--from', 'pod', '--to', 'web')).toMatchObject({
      status: 2,
      stderr:
        'error: the input has 3 Nodes, but no node is named [bad-packet]\n  help: name one with --node, or use --all-nodes\n',
    });
  });

  test('a client outside, named or by its address, asks for an address for outside', async () => {
    for (const from of ['external', '203.0.113.200']) {
      const asked = [
        '--from',
        from,
        '--to',
        'web',
        '--node',
        'a',
        '--cluster-cidr',
        '10.244.0.0/16',
        '--output',
        'json',
      ];
      expect(resultOf((await trace(...asked)).stdout).traces[0].to.address).toBe('203.0.113.9');
    }
  });

  test('a named Pod asks on its own node, and on no other', async () => {
    writeFileSync(
      join(scratch, 'pod.yaml'),
      '{apiVersion: v1, kind: Pod, metadata: {name: app-1}, spec: {nodeName: b, containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 10.244.2.7}}',
    );
    const asked = ['-f', join(scratch, 'pod.yaml'), '--from', 'app-1', '--to', 'web', '--output', 'json'];
    const nodeOf = ({ stdout }: { readonly stdout: string }): unknown => resultOf(stdout).traces[0].node;
    expect(nodeOf(await trace(...asked))).toBe('b');
    expect(nodeOf(await trace(...asked, '--all-nodes'))).toBe('b');
    expect((await runKpc(['trace', file, ...asked])).stderr).not.toContain('[no-node]');
    expect((await trace(...asked, '--node', 'c')).stderr).toContain('help: name that node with --node b');
  });

  test.each([
    ['kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset', '10.98.154.163:80', "sees the node's address"],
    ['kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset', '8.8.8.8:53', 'left to routing'],
    ['kube-proxy-iptables-session-affinity/iptables-save', '8.8.8.8:53', 'left to routing'],
  ])('of the node itself, whose addresses a paste does not show: %s, %s', async (dump, to, verdict) => {
    const run = await runKpc([
      'trace',
      '-q',
      join(projectFolder, 'fixtures/dumps', dump),
      '--from',
      'node',
      '--to',
      to,
    ]);
    expect(run.stdout).toContain(verdict);
  });

  test.each([
    [
      ['node', '203.0.113.9:80'],
      'externalTrafficPolicy is Local, but default/web has no endpoint on this node: IPVS mode',
    ],
    [['pod', '10.96.0.10:80'], 'internalTrafficPolicy is Local, but default/web has no endpoint on this node'],
  ] as const)('%s: %s', async ([from, to], note) => {
    const { stdout } = await trace('--node', 'b', '--proxy-mode', 'ipvs', '--from', from, '--to', to);
    expect(stdout).toContain(note);
  });

  test('that pods count as clients outside where kube-proxy does not recognise them', async () => {
    const notesOf = async (from: string, to: string, ...flags: readonly string[]) => {
      const run = await trace('--node', 'b', '--from', from, '--to', to, '--output', 'json', ...flags);
      return ((resultOf(run.stdout).traces[0] as { readonly notes?: readonly string[] }).notes ?? []).join('\n');
    };
    const said = 'kube-proxy cannot recognise pods here';
    for (const mode of ['iptables', 'nftables']) {
      const flags = ['--proxy-mode', mode];
      expect(await notesOf('pod', '203.0.113.9:80', ...flags)).toContain(said);
      expect(await notesOf('external', '203.0.113.9:80', ...flags)).not.toContain(said);
      expect(await notesOf('pod', '10.96.0.10:80', ...flags)).not.toContain(said);
      const detecting = [...flags, '--cluster-cidr', '10.244.0.0/16'];
      expect(await notesOf('pod', '203.0.113.9:80', ...detecting)).not.toContain(said);
    }
    expect(await notesOf('pod', '203.0.113.9:80', '--proxy-mode', 'ipvs')).not.toContain(said);
  });

  test('that the node needs a route, in text and JSON alike', async () => {
    const flags = ['--proxy-mode', 'nftables', '--node', 'a', '--from', 'node', '--to', '10.96.0.10:80'];
    const [text, json] = [await trace(...flags), await trace(...flags, '--output', 'json')];
    for (const { stdout } of [text, json]) expect(stdout).toContain('the node needs a route to 10.96.0.10');
  });

  test('why an address serves no node port, by the addresses in force', async () => {
    const args = [
      '--node',
      'a',
      '--from',
      'external',
      '--to',
      '192.168.0.1:30080',
      '--nodeport-addresses',
      '10.0.0.0/8',
    ];
    for (const mode of ['iptables', 'nftables']) {
      const { stdout } = await trace('--proxy-mode', mode, ...args);
      expect(stdout).toContain('which this node does not serve at 192.168.0.1: nodePortAddresses is 10.0.0.0/8\n');
    }
  });
});
