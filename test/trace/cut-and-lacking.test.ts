// A listing whose start is cut off, an object that the input lacks, a rule that is gone: no firm answer comes of them, and its cause is named.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { open, trace as traceSide } from '../../src/library/index.ts';
import { runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-cut-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fixtures = new URL('../../fixtures/dumps/', import.meta.url);

/** A copy of a dump in fixtures, with changed texts. */
function dumpOf(name: string, changes: Readonly<Record<string, (text: string) => string>>): string {
  const folder = mkdtempSync(join(scratch, 'dump-'));
  cpSync(new URL(name, fixtures), folder, { recursive: true });
  for (const [file, change] of Object.entries(changes)) {
    writeFileSync(join(folder, file), change(readFileSync(join(folder, file), 'utf8')));
  }
  return folder;
}

function write(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

async function trace(input: string, from: string, to: string, ...flags: string[]): Promise<string> {
  const { stdout } = await runKpc(['trace', '-q', input, '--from', from, '--to', to, ...flags]);
  return stdout;
}

const compared = async (one: string, other: string) =>
  resultOf((await runKpc(['diff', '-q', one, other, '--output', 'json'])).stdout);

/** What a dump's description says of the dump itself. */
async function readingsOf(dump: string) {
  const { stdout } = await runKpc(['describe', dump, '--output', 'json']);
  return findingsOf(stdout, 'reading').map((each) => each.arguments);
}

const nftables = 'kube-proxy-nftables-loadbalancer-source-ranges';
const ipvs = 'kube-proxy-ipvs-loadbalancer-source-ranges';
const iptables = 'kube-proxy-iptables-loadbalancer-local';
const from = (line: number) => (text: string) =>
  text
    .split('\n')
    .slice(line - 1)
    .join('\n');

describe('a listing of nft whose start is cut off', () => {
  test.each([
    ['in a map', from(40)],
    [
      'before the last bracket of its first table',
      (text: string) => `\t}\n}\n${text.slice(text.indexOf('table ip6'))}`,
    ],
  ])('%s: what it lacks is not absent, whatever the file is called', async (_title, cut) => {
    const dump = dumpOf(nftables, { 'nft-ruleset': cut });
    expect(await trace(dump, '198.51.100.9', '12.12.12.12:80')).toMatch(/unknown: .* nft list ruleset;/);
    expect(await compared(dump, dumpOf(nftables, {}))).toMatchObject({
      differs: false,
      notCompared: expect.arrayContaining(['IPv4 nftables rules']),
    });
  });

  test('whole, it decides', async () => {
    expect(await trace(dumpOf(nftables, {}), '198.51.100.9', '12.12.12.12:80')).toContain('dropped: ');
  });
});

describe('a listing of iptables-save with a hole', () => {
  const jump = /^-A PREROUTING .*KUBE-SERVICES$/m;
  const keep = (pattern: RegExp) => (text: string) =>
    text
      .split('\n')
      .filter((line) => pattern.test(line))
      .join('\n');

  const holes: readonly (readonly [string, (text: string) => string])[] = [
    ...['...', '…', '....', '<snip>', '[truncated]', '(output omitted)', '--', '[...snip...]', '--More--'].map(
      (mark) => [mark, (text: string) => text.replace(jump, mark)] as const,
    ),
    ['that grep made', keep(/KUBE|^\*|COMMIT/)],
    ['that grep -v made', keep(/^[^:]/)],
    ['where its first lines were', (text: string) => text.slice(text.search(/^:KUBE-SVL-/m))],
    ['where its first rules were', (text: string) => text.slice(text.search(/^-A POSTROUTING .*KUBE-POSTROUTING/m))],
    ['of all rules of KUBE-SERVICES', (text: string) => text.slice(text.search(/^-A KUBE-SVC-/m))],
  ];

  test.each(holes)('%s decides nothing, and is no difference', async (_title, change) => {
    const dump = dumpOf(iptables, { 'iptables-save': change });
    const answer = await trace(dump, '198.51.100.9', '10.98.154.163:80');
    expect(answer).toMatch(/^ {2}unknown: /m);
    expect(answer).not.toMatch(/^ {2}(?:left|delivered|dropped|refused)|PREROUTING .*KUBE-SERVICES: /m);
    expect((await readingsOf(dump)).map(({ note }) => note)).not.toContain('lost-jump');
    const whole = dumpOf(iptables, {});
    expect(await runKpc(['diff', '-q', dump, whole])).toMatchObject({ status: 0 });
    expect(await compared(dump, whole)).toMatchObject({
      differs: false,
      notCompared: expect.arrayContaining([expect.stringMatching(/^IPv4 rules/)]),
    });
  });

  test('is filled by a whole listing of the node, whichever comes first', async () => {
    const part = (text: string) => text.replace(jump, '...');
    for (const names of [
      ['iptables-save', 'part'],
      ['part', 'iptables-save'],
    ] as const) {
      const whole = dumpOf(iptables, {});
      const text = readFileSync(join(whole, 'iptables-save'), 'utf8');
      writeFileSync(join(whole, 'part'), part(text));
      const answer = await runKpc([
        'trace',
        '-q',
        ...names.map((name) => join(whole, name)),
        join(whole, 'ip-addr.json'),
        '--from=198.51.100.9',
        '--to=10.98.154.163:80',
      ]);
      // The line that was left out is still reported.
      expect(answer.stdout).toContain('delivered to 3 endpoints');
      expect(answer.stdout).not.toMatch(/^ *(?:unknown|if) .*PREROUTING/m);
    }
  });
});

describe('a list of virtual servers with a hole', () => {
  const verdicts = async (file: string, to: readonly string[]): Promise<readonly unknown[]> => {
    const dump = dumpOf(ipvs, {
      'ipvsadm-save': (text) => text.replace(new RegExp(`^-[Aa] -t ${file} .*\n`, 'gm'), ''),
    });
    const answers = await Promise.all(to.map((each) => trace(dump, '203.0.113.9', each, '--output', 'json')));
    return answers.map((text) => (resultOf(text).traces as { readonly verdict: string }[])[0]?.verdict);
  };

  test.each([
    ['a virtual server', '10\\.98\\.154\\.163:80', ['unknown', 'delivered', 'unknown', 'forwarded']],
    ['nothing', 'none', ['delivered', 'delivered', 'delivered', 'forwarded']],
  ])(
    'lacks %s: packets to others are known, except to the last, whose real servers may be cut off',
    async (_title, gone, expected) => {
      const to = ['10.98.154.163:80', '192.168.10.11:30938', '12.12.12.12:80', '10.244.2.4:80'];
      expect(await verdicts(gone, to)).toEqual(expected);
    },
  );
});

describe('sets with a hole', () => {
  const entry = /^add KUBE-CLUSTER-IP .*$/m;

  test('that a mark shows', async () => {
    const dump = dumpOf(ipvs, { 'ipset-save': (text) => text.replace(entry, '...') });
    expect(await trace(dump, '198.51.100.9', '10.98.154.163:80')).toMatch(/unknown: .* set KUBE-\S+;/);
  });

  test('that the rules show, which name sets behind the last one', async () => {
    const cut = (text: string): string => {
      const [ofIPv4 = ''] = text.split('create KUBE-6-');
      const [last = ''] = /^create KUBE-IPVS-IPS .*\n/m.exec(text) ?? [];
      return `${ofIPv4.replaceAll(/^(?:create|add) KUBE-IPVS-IPS .*\n/gm, '')}${last}`;
    };
    const dump = dumpOf(ipvs, { 'ipset-save': cut });
    const answer = await runKpc(['trace', dump, '--from', 'pod', '--to', '10.98.154.163:81']);
    expect(answer.stdout).toMatch(/unknown: .* set KUBE-IPVS-IPS\b/);
    const unlisted = expect.objectContaining({
      note: 'unlisted',
      lacks: 'set',
      entry: expect.stringMatching(/^KUBE-6-/),
    });
    expect(await readingsOf(dump)).toContainEqual(unlisted);
    expect(await trace(dump, 'pod', '10.98.154.163:80')).toContain('delivered to 3 endpoints');
    expect(await trace(dumpOf(ipvs, {}), 'pod', '10.98.154.163:81')).not.toContain('unknown');
    const texts = Object.fromEntries(
      readdirSync(dump, { withFileTypes: true }).flatMap((each) =>
        each.isFile() && /save|addr/.test(each.name) ? [[each.name, readFileSync(join(dump, each.name), 'utf8')]] : [],
      ),
    );
    const opened = open(texts);
    const [side] = opened.snapshots;
    const traced = side && traceSide({ side, from: 'pod', to: '10.98.154.163:81' });
    for (const { diagnostics } of [opened, traced ?? opened])
      expect(diagnostics).toContainEqual(expect.objectContaining({ code: 'reading', arguments: unlisted }));
  });

  test('that the number of entries shows', async () => {
    const dump = dumpOf(ipvs, {
      'ipset-save': (text) => {
        const sets = [...text.matchAll(/^create (\S+) (\S+) (.*)$/gm)].map(([, name = '', type = '', header = '']) => {
          const members = [...text.matchAll(new RegExp(`^add ${name} (.*)$`, 'gm'))].map(([, member]) => member);
          const shown = name === 'KUBE-CLUSTER-IP' ? members.slice(1) : members;
          const count = `Number of entries: ${members.length}`;
          return `Name: ${name}\nType: ${type}\nHeader: ${header}\n${count}\nMembers:\n${shown.join('\n')}\n`;
        });
        return sets.join('\n');
      },
    });
    expect(await trace(dump, '198.51.100.9', '10.98.154.163:80')).toMatch(/unknown: .* set KUBE-\S+;/);
  });
});

test('a list of ipvsadm without its titles is a part, whatever the file is called', async () => {
  const list = 'TCP  12.12.12.12:80 rr\n  -> 10.244.1.2:80  Masq  1  0  0\n';
  const dump = dumpOf(ipvs, { 'ipvsadm-save': () => list });
  expect(await trace(dump, 'pod', '10.98.154.163:80')).toMatch(/unknown: .* ipvsadm -Sn\b/);
});

test('a virtual server of a firewall mark is a line that is not read', async () => {
  const dump = dumpOf(ipvs, { 'ipvsadm-save': (text) => `${text}-A -f 16384 -s rr\n` });
  const answer = await trace(dump, 'pod', '10.98.154.163:80');
  expect(answer).toMatch(/unknown: .* line \d+ of ipvsadm-save;/);
  expect(answer).not.toContain('ipvsadm -Sn');
});

describe('virtual servers that sets name', () => {
  const isOf = (address: string) => new RegExp(`^-[Aa] -t ${address}:.*\n`, 'gm');

  test('and the list lacks: the verdict is unknown, and diff says so beside the difference', async () => {
    const dump = dumpOf(ipvs, { 'ipvsadm-save': (text) => text.replace(isOf('12.12.12.12'), '') });
    const server = /KUBE-LOAD-BALANCER .*12\.12\.12\.12,tcp:80, .*virtual server/;
    const [answer] = resultOf(await trace(dump, '203.0.113.9', '12.12.12.12:80', '--output', 'json')).traces;
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([
        expect.objectContaining({ text: expect.stringMatching(server), command: 'ipvsadm -Sn' }),
      ]),
    });
    const diff = await runKpc(['diff', '-q', dump, dumpOf(ipvs, {})]);
    expect(diff.stdout).toContain('+ virtual server TCP 12.12.12.12:80 with 3 real servers');
    expect(diff.stdout).toMatch(server);
  });

  test('and whose addresses ip addr lacks: they may still be there, as describe says', async () => {
    const dump = dumpOf(ipvs, {
      'ip-addr.json': (text) =>
        JSON.stringify((JSON.parse(text) as { ifname: string }[]).filter(({ ifname }) => ifname !== 'kube-ipvs0')),
    });
    expect(await trace(dump, '203.0.113.9', '12.12.12.12:80')).toMatch(
      /KUBE-LOAD-BALANCER .*12\.12\.12\.12,tcp:80, .*address/,
    );
    expect(await readingsOf(dump)).toContainEqual(expect.objectContaining({ note: 'unlisted', lacks: 'address' }));
  });

  test('and whose real servers all have weight 0: that is why they refuse', async () => {
    const dump = dumpOf(ipvs, { 'ipvsadm-save': (text) => text.replaceAll(/ -w \d+/g, ' -w 0') });
    expect(await trace(dump, 'pod', '10.98.154.163:80')).toMatch(/\bweight 0\b/);
  });

  test('and the list ends before the real servers of the last one', async () => {
    const dump = dumpOf(ipvs, {
      'ipvsadm-save': (text) => {
        const servers = text.split('\n').filter((line) => line.startsWith('-A '));
        return `${servers.join('\n')}\n`;
      },
    });
    expect(await trace(dump, 'pod', '10.98.154.163:80')).toMatch(
      /unknown: KUBE-LOOP-BACK .*10\.244\.\S+, .*real server/,
    );
  });
});

const service = (name: string, address: string, more: string): string => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {clusterIP: ${address}, ${more}ports: [{port: 80}]}
---
`;
const slice = (name: string, addresses: string): string => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{port: 80}]
endpoints: ${addresses}
---
`;

describe('a Service whose EndpointSlices the input lacks', () => {
  const web = service('web', '10.96.0.31', 'selector: {app: web}, ');
  const lacks = /EndpointSlices .*shop\/web/;

  test.each(['iptables', 'ipvs', 'nftables'])('is not known to be refused, in mode %s', async (mode) => {
    const flags = ['--proxy-mode', mode];
    const input = write('lacking.yaml', web);
    const json = resultOf(await trace(input, 'external', 'web.shop', ...flags, '--output', 'json'));
    expect(json.traces[0]).toMatchObject({
      verdict: 'unknown',
      reasons: [{ text: expect.stringMatching(lacks), command: 'kubectl get endpointslices -A -o yaml' }],
    });
    expect(json.traces[0]).not.toHaveProperty('cause');
    const all = await runKpc(['trace', '-q', input, '--all', 'web.shop', ...flags]);
    expect(all.stdout).toMatch(/cluster IP 10\.96\.0\.31:80\/tcp .* unknown/);
  });

  test('is not known to be refused as the endpoint of another one', async () => {
    const input = service('a', '10.96.0.2', '') + slice('a', '[{addresses: [10.96.0.31]}]') + web;
    const flags = ['--proxy-mode', 'iptables', '--output', 'json'];
    const json = resultOf(await trace(write('chained.yaml', input), 'external', 'a.shop', ...flags));
    expect(json.traces[0]).toMatchObject({
      verdict: 'unknown',
      reasons: [{ text: expect.stringMatching(lacks) }],
    });
  });

  test('is known with a slice of its own, even if that is empty', async () => {
    expect(await trace(write('empty.yaml', web + slice('web', '[]')), 'external', 'web.shop')).toContain('refused: ');
  });

  test.each([
    ['[{addresses: [10.244.0.5], nodeName: n1}]', [], /200 .*503/],
    ['[{addresses: [10.244.0.5], nodeName: n1}]', ['--node', 'n1'], /200, .*\b1 /],
    ['[{addresses: [10.244.0.5], nodeName: n1}]', ['--node', 'n2'], /503, .*\b0 /],
    ['[]', [], /503, .*\b0 /],
  ])(
    'has a health check whose answer an unnamed node leaves open: endpoints %s and %j',
    async (endpoints, named, said) => {
      const local = 'type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 32000, ports:';
      const nodes = ['n1', 'n2'].map((name) => `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\n---\n`);
      const input = write(
        'health-of-any.yaml',
        nodes.join('') + web.replace('ports:', local) + slice('web', endpoints),
      );
      const { stdout } = await runKpc(['trace', '-q', input, '--all', 'web.shop', ...named]);
      const line = stdout.split('\n').find((each) => /health check .*shop\/web .*32000/.test(each));
      expect(line).toMatch(said);
    },
  );

  test('has a health check of which neither answer is known', async () => {
    const balanced = web.replace(
      'ports:',
      'type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 32000, ports:',
    );
    const node = `apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: 192.168.50.11}]}\n`;
    const text = await trace(write('health.yaml', balanced + node), 'external', '192.168.50.11:32000');
    expect(text).toMatch(/200 .*503/);
  });
});

test.each([
  ['iptables', 'but the connection fails: nothing answers: 10.96.0.3 is the cluster IP of shop/b'],
  ['ipvs', 'depends on more than the rules: this node itself holds 10.96.0.3, the cluster IP of shop/b'],
])('an endpoint that is a cluster IP does not answer as one, in mode %s', async (mode, becomes) => {
  const input =
    service('a', '10.96.0.2', '') +
    slice('a', '[{addresses: [10.96.0.3]}]') +
    service('b', '10.96.0.3', '') +
    slice('b', '[{addresses: [10.244.1.3]}]');
  const text = await trace(write('behind.yaml', input), 'external', 'a.shop', '--proxy-mode', mode);
  expect(text).toContain(becomes);
  expect(text).not.toContain('another node');
});

describe('rules of Services that nothing jumps to', () => {
  const dump = dumpOf(iptables, { 'iptables-save': (text) => text.replace(/^-A PREROUTING .*\n/gm, '') });
  test.each(['192.168.10.11:30938', '10.98.154.163:80', '12.12.12.12:80'])('%s says so', async (to) => {
    const text = await trace(dump, '198.51.100.9', to);
    expect(text).toMatch(/KUBE-SERVICES .*PREROUTING .*KUBE-SERVICES: /);
    expect(text).not.toContain('nodePortAddresses');
  });

  test('the table of all senders says so, too', async () => {
    const { stdout } = await runKpc(['trace', '-q', dump, '--all', 'default/nginx']);
    expect(stdout).toMatch(/PREROUTING .*KUBE-SERVICES: /);
  });

  test('what the firewall of source ranges then drops is not laid to the ranges', async () => {
    const drop = '-A KUBE-PROXY-FIREWALL -d 12.12.12.12/32 -p tcp -m tcp --dport 80 -j DROP';
    const jump = '-A FORWARD -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL';
    const guarded = dumpOf(iptables, {
      'iptables-save': (text) =>
        text.replace(/^-A PREROUTING .*\n/gm, '').replace('-A KUBE-FIREWALL', `${jump}\n${drop}\n-A KUBE-FIREWALL`),
    });
    const text = await trace(guarded, '198.51.100.9', '12.12.12.12:80');
    expect(text).toContain('dropped');
    expect(text).toMatch(/PREROUTING .*KUBE-SERVICES: /);
    expect(text).not.toContain('loadBalancerSourceRanges');
  });

  test('describe warns', async () => {
    const { stderr } = await runKpc(['describe', dump]);
    expect(stderr).toContain(`note: nothing in PREROUTING jumps to KUBE-SERVICES`);
  });
});

describe('what takes packets to a Service, and is not shown', () => {
  const otherwise = async (input: string, sender: string, to: string): Promise<unknown> => {
    const [answer] = resultOf(await trace(input, sender, to, '--output', 'json')).traces as [
      { readonly verdict: string },
    ];
    expect(answer.verdict).toBe('unknown');
    return 'otherwise' in answer ? answer.otherwise : undefined;
  };

  test.each([
    ['rules that end before its endpoints', iptables, 'iptables-save', '10.98.154.163:80'],
    ['sets that list it, without virtual servers', ipvs, 'ipset-save', '10.98.154.163:80'],
  ])('%s: no answer that no Service takes them', async (_title, name, file, to) => {
    const text = readFileSync(new URL(`${name}/${file}`, fixtures), 'utf8');
    const end = file === 'ipset-save' ? text.length : text.indexOf('-A KUBE-SVC-');
    const part = write(`part-${file}.txt`, text.slice(0, end));
    expect(await otherwise(part, '198.51.100.9', to)).toBeUndefined();
    // Of what no Service there has, it is one.
    expect(await otherwise(part, '198.51.100.9', '10.99.99.99:80')).toMatchObject({ verdict: 'forwarded' });
  });
});

describe("rules show addresses to be the node's own", () => {
  test('those on which node ports listen in nftables mode', async () => {
    const dump = write('own.txt', readFileSync(new URL(`${nftables}/nft-ruleset`, fixtures), 'utf8'));
    expect(await trace(dump, '198.51.100.9', '192.168.10.11:22')).toContain('\n  reaches the node itself');
    expect(await trace(dump, '198.51.100.9', '192.168.10.11:30938')).toContain('\n  delivered to');
  });

  test('those that userspace mode sends the packets of the node to', async () => {
    const rules = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-PORTALS-CONTAINER - [0:0]
:KUBE-PORTALS-HOST - [0:0]
:KUBE-NODEPORT-CONTAINER - [0:0]
:KUBE-NODEPORT-HOST - [0:0]
-A PREROUTING -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-CONTAINER
-A OUTPUT -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-HOST
-A KUBE-PORTALS-CONTAINER -d 10.96.0.80/32 -p tcp -m comment --comment "default/nginx" -m tcp --dport 80 -j REDIRECT --to-ports 62153
-A KUBE-PORTALS-HOST -d 10.96.0.80/32 -p tcp -m comment --comment "default/nginx" -m tcp --dport 80 -j DNAT --to-destination 192.168.50.11:62153
COMMIT
`;
    const text = await trace(write('userspace.txt', rules), 'node', '10.96.0.80:80');
    expect(text).toMatch(/unknown: kube-proxy /);
    expect(text).not.toMatch(/if .*192\.168\.50\.11/);
  });
});

describe('what describe knows of a dump', () => {
  test('a health check node port is told, and makes the Service a LoadBalancer', async () => {
    const dump = dumpOf(iptables, { 'iptables-save': (text) => text.replace(/^.* loadbalancer IP".*\n/gm, '') });
    expect((await runKpc(['describe', dump])).stdout).toMatch(/default\/nginx +LoadBalancer /);
    expect(await trace(dump, '198.51.100.9', '192.168.10.11:32100')).toMatch(
      /32100 .*health check .*default\/nginx.* 200\b/,
    );
  });
});

test('policy Local without an endpoint on the node is told of a dump, too', async () => {
  const drop = `-A KUBE-EXTERNAL-SERVICES -d 12.12.12.12/32 -p tcp -m comment --comment "default/nginx has no local endpoints" -m tcp --dport 80 -j DROP`;
  const dump = dumpOf(iptables, {
    'iptables-save': (text) =>
      text.replace(/^.*KUBE-SVL-.*\n/gm, '').replace('-A KUBE-FIREWALL', `${drop}\n-A KUBE-FIREWALL`),
  });
  expect(await trace(dump, '198.51.100.9', '12.12.12.12:80')).toMatch(
    /externalTrafficPolicy .*Local, .*default\/nginx /,
  );
});

describe('an answer of a dump of two hosts says that it is of the first', () => {
  const folder = join(scratch, 'hosts');
  mkdirSync(folder);
  const rules = readFileSync(new URL(`${iptables}/iptables-save`, fixtures), 'utf8');
  writeFileSync(join(folder, 'a.txt'), `root@n1:~# iptables-save\n${rules}`);
  writeFileSync(join(folder, 'b.txt'), `root@n2:~# iptables-save\n${rules.replaceAll('10.244.1.2', '10.244.9.9')}`);
  const note = 'b.txt holds iptables from another node or time, which kpc skipped: this answer uses the first listing';
  const expected = write(
    'expected.yaml',
    'tests:\n  - { from: 10.244.1.77, to: 10.98.154.163:80, expect: delivered }\n',
  );

  test('kpc trace', async () => {
    expect(await trace(folder, '10.244.1.77', '10.98.154.163:80')).toContain(note);
    const json = resultOf(await trace(folder, '10.244.1.77', '10.98.154.163:80', '--output', 'json'));
    expect(json.traces[0]).toMatchObject({ notes: expect.arrayContaining([note]) as unknown });
  });

  test.each([
    ['describe', '-q', folder],
    ['describe', '-q', folder, '--output', 'json'],
    ['describe', '-q', 'nginx', folder],
    ['describe', '-q', 'nginx', folder, '--output', 'json'],
    ['test', '-q', '-f', folder, expected],
    ['test', '-q', '-f', folder, expected, '--output', 'json'],
    ['test', '-q', '-f', folder, expected, '--output', 'junit'],
  ])('kpc %s', async (...words) => {
    expect((await runKpc(words)).stdout).toContain(note);
  });

  test.each(['text', 'json', 'markdown'])('kpc diff, as %s', async (format) => {
    const { stdout } = await runKpc([
      'diff',
      '-q',
      folder,
      dumpOf(iptables, {}),
      ...(format === 'text' ? [] : ['--output', format]),
    ]);
    expect(stdout).toMatch(/iptables from another node in \S*b\.txt/);
  });
});
