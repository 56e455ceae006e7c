import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-equivalence-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const cluster = join(projectFolder, 'fixtures/cluster');
const files = ['shop.yaml', 'nodes.yaml'].flatMap((name) => ['-f', join(cluster, name)]);
const config = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${text}\n`);
  return path;
};

/** A Service that is known to have no endpoints. */
const emptyService = `apiVersion: v1
kind: Service
metadata: { name: empty }
spec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: empty-1, labels: { kubernetes.io/service-name: empty } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: []
`;

interface Printed {
  readonly causes: readonly {
    readonly cause: string;
    readonly severity: string;
    readonly reasons: readonly string[];
    readonly services: readonly string[];
    readonly nodes: readonly string[];
  }[];
  readonly nodes: number;
  readonly standIns: number;
  readonly represented: readonly { readonly node: string; readonly by: readonly string[] }[];
}

describe('kpc equivalence', () => {
  test.each([
    ['1.25', '1.38', [], 'release'],
    ['userspace', 'nftables', ['--kubernetes-version', '1.36'], 'mode'],
    ['1.36', 'iptables', ['--proxy-mode', 'userspace'], 'release'],
  ] as const)(
    'says what of a side to change where kpc does not follow it: %s and %s',
    async (from, to, flags, side) => {
      const asked = ['equivalence', from, to, ...files, '--node', 'worker-1', ...flags, '--output', 'json'];
      const [first] = findingsOf((await runKpc(asked)).stdout, 'bad-mode');
      expect(first?.arguments).toMatchObject({ problem: 'not-in-release', side });
      // No flag changes what a side says.
      const flag = side === 'release' ? '--kubernetes-version' : '--proxy-mode';
      expect(`${first?.text} ${first?.help}`).not.toContain(flag === '--proxy-mode' ? flag : `with ${flag}`);
    },
  );
  test('tells what neither side knows from what one side knows', async () => {
    const service = join(folder, 'service.yaml');
    const bundle = join(folder, 'of-service');
    const spec = '{ clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80 }] }';
    writeFileSync(
      service,
      `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: ${spec}\n---\n${emptyService}`,
    );
    expect((await runKpc(['compile', service, '--out', bundle])).status).toBe(0);
    const compare = async (other: string) =>
      resultOf((await runKpc(['equivalence', bundle, other, '--output', 'json'])).stdout);
    // The rules of the bundle refuse; the manifests lack the endpoints.
    const alone = await compare(bundle);
    const beside = await compare(service);
    expect(alone).toMatchObject({ causes: [], unknownOnOne: 0 });
    expect(beside).toMatchObject({ causes: [], unknown: alone.unknown });
    expect(beside.unknownOnOne).toBeGreaterThan(0);
    expect(beside.reasons).toEqual([...alone.reasons, expect.stringContaining('EndpointSlices of default/web')]);
  });

  test('says which rules a dump does not show', async () => {
    const dump = join(folder, 'nat.txt');
    const services = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
    const chains = ':PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]';
    writeFileSync(dump, `$ iptables-save -t nat\n*nat\n${chains}\n${services}\nCOMMIT\n`);
    const { stderr } = await runKpc(['equivalence', dump, 'iptables', ...files, '--node', 'worker-1']);
    expect(stderr).toContain('does not show table filter of IPv4');
    expect(stderr).toContain('rules of IPv6');
  });

  describe('two dumps of a node', () => {
    const whole = join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-loadbalancer-local/iptables-save');
    const rules = readFileSync(whole, 'utf8');

    test('whatever a lost jump changes has this one cause', async () => {
      const lost = join(folder, 'lost.txt');
      writeFileSync(lost, rules.replace(/^-A PREROUTING .*KUBE-SERVICES\n/gm, ''));
      const { stdout } = await runKpc(['equivalence', '-q', whole, lost, '--output', 'json']);
      const { causes } = resultOf(stdout) as Printed;
      const known = causes.filter(({ severity }) => severity !== 'unknown');
      expect(known).toMatchObject([
        { cause: 'lost-jump', severity: 'breaks', reasons: [`${lost}: nothing in PREROUTING leads to KUBE-SERVICES.`] },
      ]);
    });

    test('what is not known does not count as different', async () => {
      const cut = join(folder, 'cut.txt');
      writeFileSync(cut, rules.slice(0, rules.indexOf('-A KUBE-MARK-MASQ')));
      const { stdout } = await runKpc(['equivalence', '-q', whole, cut]);
      expect(stdout).toMatch(
        /: \d+ things? (?:is|are) not known; nothing that works is known to change \(\d+ classes of packets\); \d+ not known on either side\n/,
      );
    });
  });

  test('the summary says a mode that nothing names, and no note does', async () => {
    const web = join(folder, 'mode.yaml');
    writeFileSync(web, emptyService);
    const unnamed = await runKpc(['equivalence', '1.30', '1.37', '-f', web]);
    expect(unnamed.stderr).not.toContain('default-mode');
    expect(unnamed.stdout).toMatch(/^1\.30 → 1\.37 in IPVS mode \(nothing names a mode\): /);
    const named = await runKpc(['equivalence', '1.30', '1.37', '-f', web, '--proxy-mode', 'iptables']);
    expect(named.stdout).toMatch(/^1\.30 → 1\.37 in iptables mode: /);
    const modes = await runKpc(['equivalence', 'ipvs', 'iptables', '-f', web]);
    expect(modes.stdout).toMatch(/^ipvs → iptables: /);
  });

  describe('the command of a finding shows the side that explains it', () => {
    const web = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ port: 80, nodePort: 30080 }] }
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] }
---
`;
    const slice = (address: string) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [${address}], nodeName: n1 }]
`;
    const write = (name: string, text: string): string => {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    };
    const manifests = write('web.yaml', web + slice('10.244.1.5'));
    const effectsOf = async (from: string, to: string, stdin = '') => {
      const { stdout } = await runKpc(['equivalence', from, to, '-q', '--output', 'json'], { stdin });
      const { causes } = resultOf(stdout) as {
        readonly causes: readonly { readonly effects: readonly Effect[] }[];
      };
      return causes.flatMap(({ effects }) => effects);
    };
    interface Effect {
      readonly from: string;
      readonly to: string;
      readonly shownBy: 'old' | 'new';
      readonly lacks?: string;
      readonly trace: string;
    }
    const traced = async (command: string): Promise<string> =>
      (await runKpc([...command.replace(/^kpc /, '').split(' '), '-q'])).stdout;

    test('a dump with a gap, on either side', async () => {
      const made = await runKpc(['compile', '-q', '-f', manifests, '--proxy-mode', 'iptables', '--print', 'iptables']);
      const declared = ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'].map((name) => `:${name} ACCEPT [0:0]\n`);
      const nat = made.stdout.slice(0, made.stdout.indexOf('*filter')).replace('*nat\n', `*nat\n${declared.join('')}`);
      const dump = write('part.txt', `$ iptables-save -t nat\n${nat.replace(/^-I (\w+) 1/gm, '-A $1')}`);
      for (const sides of [
        [dump, manifests],
        [manifests, dump],
      ] as const) {
        const effects = await effectsOf(...sides);
        const unknown = effects.filter((effect) => effect.lacks !== undefined);
        expect(unknown.length).toBeGreaterThan(0);
        for (const { shownBy, lacks = '', trace, ...ends } of unknown) {
          expect(ends[shownBy === 'old' ? 'from' : 'to']).toBe('not known');
          expect(sides[shownBy === 'old' ? 0 : 1]).toBe(dump);
          expect(lacks).toMatch(new RegExp(`^${dump}: the dump lacks .*; add the output of iptables-save`));
          const [reason = ''] = lacks.slice(dump.length + 2).split('; ');
          expect(await traced(trace)).toContain(`unknown: ${reason}`);
        }
      }
      const { stdout } = await runKpc(['equivalence', dump, manifests, '-q']);
      expect(stdout).toContain(`${dump}: the dump lacks`);
      const piped = await effectsOf(manifests, '-', readFileSync(dump, 'utf8'));
      expect(piped.map(({ trace }) => trace)).toContainEqual(
        expect.stringMatching(/^kpc trace - .* < THE-SAME-INPUT$/),
      );
      expect(piped.map(({ lacks }) => lacks)).toContainEqual(expect.stringMatching(/^stdin: the dump lacks/));
    });

    test('manifests beside a bundle, whose settings they follow', async () => {
      const bundle = join(folder, 'bundle');
      const flags = ['--proxy-mode', 'nftables', '--cluster-cidr', '10.244.0.0/16', '--masquerade-all', 'true'];
      await runKpc(['compile', '-q', '-f', manifests, ...flags, '-o', bundle]);
      const changed = write('changed.yaml', web + slice('10.244.1.6'));
      const [effect] = await effectsOf(bundle, changed);
      expect(effect?.trace).toContain(`kpc trace ${changed} ${flags.join(' ')} --node n1`);
      expect(await traced(effect?.trace ?? '')).toMatch(
        /in nftables mode\n {2}delivered to 1 endpoint:\n.*the node's address/,
      );
    });
  });

  test('names the addresses on which a mode serves no node ports, and what to set', async () => {
    const { status, stdout } = await runKpc(['equivalence', 'ipvs', 'nftables', ...files, '--node', 'worker-1']);
    expect(status).toBe(1);
    expect(stdout).toContain('Here only the old side serves node ports on 203.0.113.11.');
    expect(stdout).toContain('To do: set nodePortAddresses');
    const set = await runKpc([
      'equivalence',
      'ipvs',
      'nftables',
      ...files,
      '--node',
      'worker-1',
      '--nodeport-addresses',
      '0.0.0.0/0',
    ]);
    expect(set.stdout).not.toContain('Node ports');
  });

  test('compares configurations of kube-proxy', async () => {
    const plain = config('plain.yaml', 'mode: nftables\nclusterCIDR: 10.244.0.0/16');
    const all = config('all.yaml', 'mode: nftables\nclusterCIDR: 10.244.0.0/16\nnftables: { masqueradeAll: true }');
    const { status, stdout } = await runKpc([
      'equivalence',
      plain,
      all,
      ...files,
      '--node',
      'worker-1',
      '--output',
      'json',
    ]);
    expect(status).toBe(1);
    const { causes } = resultOf(stdout) as Printed;
    expect(causes.map(({ cause, severity }) => `${cause} ${severity}`)).toContain('masquerade changes');
    expect((await runKpc(['equivalence', plain, plain, ...files, '--node', 'worker-1'])).status).toBe(0);
  });

  test('prints Markdown, and JUnit with a case for each cause', async () => {
    const args = ['equivalence', 'ipvs', 'nftables', ...files, '--node', 'worker-1'];
    const markdown = await runKpc([...args, '--output', 'markdown']);
    expect(markdown.stdout).toMatch(/^\*\*ipvs → nftables: /);
    expect(markdown.stdout).toContain('### Node ports do not answer');
    const junit = await runKpc([...args, '--output', 'junit']);
    expect(junit.stdout).toContain('<failure message="Node ports do not answer on the same addresses of the node">');
    // What other formats print as a note is no failure.
    const { causes } = resultOf((await runKpc([...args, '--output', 'json'])).stdout) as Printed;
    const severe = causes.filter(({ severity }) => severity !== 'opens' && severity !== 'fails-otherwise');
    expect(severe.length).toBeLessThan(causes.length);
    expect(junit.stdout.match(/<failure /g)).toHaveLength(severe.length);
  });

  test('refuses what it cannot compare, and says what to do', async () => {
    const nothing = await runKpc(['equivalence', 'ipvs', 'nftables']);
    expect(nothing).toMatchObject({ status: 2, stdout: '' });
    expect(nothing.stderr).toContain('add the manifests that both sides are compiled from, with -f');
    const noNodes = await runKpc(['equivalence', 'ipvs', 'nftables', ...files.slice(0, 2), '--all-nodes']);
    expect(noNodes).toMatchObject({ status: 2, stdout: '' });
  });
});

describe('kpc migrate', () => {
  test('asks every node, and names those that a cause concerns', async () => {
    const args = ['migrate', ...files, '--output', 'json'];
    const { status, stdout } = await runKpc(args);
    expect(status).toBe(1);
    const { causes, nodes, standIns, represented } = resultOf(stdout) as Printed;
    const nodePorts = causes.find(({ cause }) => cause === 'node-port-addresses');
    const concerned = { services: ['shop/storefront'], servicePorts: ['shop/storefront:https'], nodes: ['worker-1'] };
    expect(nodePorts).toMatchObject({ severity: 'breaks', ...concerned });
    expect({ nodes, standIns, represented }).toMatchObject({ nodes: represented.length });
    // worker-3 is like worker-2, so a cause on worker-1 alone says nothing of it.
    expect((await runKpc(['migrate', ...files])).stdout).toMatch(/^ +nodes: worker-1$/m);
    const ofAll = (await runKpc(['migrate', ...files, '--from', 'iptables'])).stdout;
    expect(ofAll).toMatch(/^ +nodes: worker-1, worker-2, and 1 more like these$/m);
    expect(new Set(represented.flatMap(({ by }) => by)).size).toBe(standIns);
    expect(causes.flatMap((each) => each.nodes).every((node) => represented.some(({ by }) => by.includes(node)))).toBe(
      true,
    );
    expect(findingsOf(stdout, 'preparation').map((each) => each.arguments)).toContainEqual(
      expect.objectContaining({ step: 'forwarding', sysctl: 'net.ipv4.ip_forward', isSetBefore: true }),
    );
    const iptables = (await runKpc([...args, '--from', 'iptables'])).stdout;
    expect(findingsOf(iptables, 'preparation').map((each) => each.arguments['step'])).toEqual([
      'kernel',
      'nft-version',
      'kube-proxy-version',
      'accept-forwarded',
      'invalid-packets',
      'node-port-addresses',
    ]);
    expect((resultOf(iptables) as Printed).causes.map(({ cause }) => cause)).toContain('node-port-loopback');
  });

  test('names each setting that has no successor', async () => {
    const ipvs = 'scheduler: sh, strictARP: true, udpTimeout: 30s, excludeCIDRs: [10.97.0.0/24]';
    const path = config(
      'ipvs.yaml',
      `mode: ipvs\niptables: { masqueradeAll: true, masqueradeBit: 11 }\nipvs: { ${ipvs} }`,
    );
    const { stdout } = await runKpc(['migrate', ...files, '--config', path, '--output', 'json']);
    const asked = findingsOf(stdout, 'preparation').map((each) => each.arguments);
    for (const step of [
      { step: 'masquerade-setting', name: 'masqueradeAll' },
      { step: 'masquerade-setting', name: 'masqueradeBit', value: '11' },
      { step: 'scheduler', schedulers: ['sh'] },
      { step: 'timeouts', seconds: [0, 0, 30] },
      { step: 'strict-arp' },
      { step: 'excluded-networks', networks: ['10.97.0.0/24'] },
    ]) {
      expect(asked).toContainEqual(expect.objectContaining(step));
    }
  });
});
