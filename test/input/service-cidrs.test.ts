import { describe as suite, expect, test } from 'vitest';
import { buildCluster } from '../../src/cluster/build-cluster.ts';
import { assignableNetworks, serviceRanges } from '../../src/cluster/service-ranges.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { parseNetwork } from '../../src/kernel/address.ts';
import { behavioursOf } from '../../src/kube-proxy/releases.ts';
import { runKpc } from '../support/run-kpc.ts';
import { diagnose } from './diagnose.ts';

/** A ServiceCIDR, whose networks start at line 4. */
function serviceCidr(name: string, cidrs: string, version = 'v1'): string {
  return `apiVersion: networking.k8s.io/${version}\nkind: ServiceCIDR\nmetadata: {name: ${name}}\nspec: {cidrs: ${cidrs}}\n`;
}

function collect(...texts: readonly string[]) {
  return collectFiles([new TextFile('in.yaml', texts.join('---\n'))]);
}

const networks = (...texts: readonly string[]) => texts.flatMap((text) => parseNetwork(text) ?? []);

suite('a ServiceCIDR', () => {
  test.each(['v1', 'v1beta1'])('of %s is read', (version) => {
    const { serviceCidrs, skipped, diagnostics } = collect(
      serviceCidr('kubernetes', '[10.96.0.0/12, "fd00:10:96::/112"]', version),
    );
    expect(serviceCidrs.map(({ object }) => object.cidrs.map(({ text }) => text))).toEqual([
      ['10.96.0.0/12', 'fd00:10:96::/112'],
    ]);
    expect({ skipped: [...skipped], diagnostics }).toEqual({ skipped: [], diagnostics: [] });
  });

  test('of a list is read', () => {
    const list =
      'apiVersion: networking.k8s.io/v1\nkind: ServiceCIDRList\nitems:\n- {metadata: {name: a}, spec: {cidrs: [10.0.0.0/24]}}\n';
    expect(collect(list).serviceCidrs).toHaveLength(1);
  });

  test('of another version is not', () => {
    const { serviceCidrs, skipped } = collect(serviceCidr('kubernetes', '[10.96.0.0/12]', 'v1alpha1'));
    expect(serviceCidrs).toEqual([]);
    expect([...skipped]).toEqual([['ServiceCIDR of networking.k8s.io/v1alpha1', 1]]);
  });

  const wrong = (cidrs: string) =>
    `4:15 error bad-value {"field":"cidrs","found":{"type":"string","value":"${cidrs}"},"form":"networks"}`;

  test.each([
    ['[]', [wrong('')]],
    ['null', [wrong('')]],
    ['[10.96.0.0/12, 10.112.0.0/12]', [wrong('10.96.0.0/12,10.112.0.0/12')]],
    ['["fd00::/112", "fd01::/112"]', [wrong('fd00::/112,fd01::/112')]],
    ['[10.96.0.0/12, "fd00::/112", 10.112.0.0/12]', [wrong('10.96.0.0/12,fd00::/112,10.112.0.0/12')]],
    [
      '[10.96.0.1/12]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"string","value":"10.96.0.1/12"},"form":"exact-network","expected":"10.96.0.0/12"}',
      ],
    ],
    [
      '[10.096.0.0/12]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"string","value":"10.096.0.0/12"},"form":"exact-network","expected":"10.96.0.0/12"}',
      ],
    ],
    [
      '[10.96.0.0/12, "FD00::/112"]',
      [
        '4:30 error bad-value {"field":"cidrs[1]","found":{"type":"string","value":"FD00::/112"},"form":"exact-network","expected":"fd00::/112"}',
      ],
    ],
    [
      '["::ffff:10.0.0.0/104"]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"string","value":"::ffff:10.0.0.0/104"},"form":"exact-network","expected":"10.0.0.0/8"}',
      ],
    ],
    [
      '[10.96.0.0]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"string","value":"10.96.0.0"},"form":"single-network","expected":"10.96.0.0/32"}',
      ],
    ],
    [
      '["10.96.0.0/12 }; flush ruleset"]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"string","value":"10.96.0.0/12 }; flush ruleset"},"form":"network"}',
      ],
    ],
    [
      '10.96.0.0/12',
      [
        '4:15 error bad-value {"field":"cidrs","found":{"type":"string","value":"10.96.0.0/12"},"types":["array","null"],"expected":"a list, each item after \\"- \\""}',
      ],
    ],
    [
      '[10]',
      [
        '4:16 error bad-value {"field":"cidrs[0]","found":{"type":"number","value":10},"types":["string"],"expected":"a string"}',
      ],
    ],
  ])('with cidrs %s is refused', (cidrs, expected) => {
    expect(diagnose(serviceCidr('kubernetes', cidrs))).toEqual(expected);
  });

  test('needs a name, and one that is one', () => {
    const spec = 'spec: {cidrs: [10.96.0.0/12]}\n';
    expect(diagnose(`apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\n${spec}`)).toEqual([
      '1:1 error missing-field {"owner":"metadata","field":"name","isGenerated":false}',
    ]);
    expect(diagnose(serviceCidr('Kubernetes', '[10.96.0.0/12]'))).toHaveLength(1);
  });

  // A network of an object cannot be changed: two files that say otherwise are of two clusters, or one is out of date.
  test('is there once', () => {
    const twice = [serviceCidr('a', '[10.0.0.0/24]'), serviceCidr('a', '[10.0.1.0/24]')].join('---\n');
    expect(diagnose(twice)).toEqual([
      '8:18 error duplicate-object {"kind":"ServiceCIDR","name":"a","first":{"file":"in.yaml","line":3}}',
    ]);
  });
});

suite('the networks of cluster IPs', () => {
  const texts = [
    serviceCidr('more', '[10.97.0.0/16, "fd00::/112"]'),
    serviceCidr('kubernetes', '["fd00:10:96::/112", 10.96.0.0/12]'),
    serviceCidr('again', '[10.96.0.0/12]'),
    serviceCidr('few', '[9.0.0.0/24]'),
  ];
  const flag = networks('172.16.0.0/16');

  test('are those of all objects, sorted, each once, in whatever order they come', () => {
    const tell = (given: readonly string[]) =>
      serviceRanges(collect(...given).serviceCidrs, flag).map(({ network, from }) => `${network.text} ${from}`);
    const expected = ['9.0.0.0/24', '10.96.0.0/12', '10.97.0.0/16', 'fd00::/112', 'fd00:10:96::/112'];
    expect(tell(texts)).toEqual(expected.map((text) => `${text} ServiceCIDR`));
    expect(tell(texts.toReversed())).toEqual(tell(texts));
  });

  test('point at the field that tells them', () => {
    const [range] = serviceRanges(collect(serviceCidr('a', '["fd00::/112"]')).serviceCidrs, []);
    expect(range?.place?.locate()).toEqual({ file: 'in.yaml', line: 4, column: 16 });
  });

  test('are those of the flag where no object tells them', () => {
    expect(serviceRanges([], flag)).toEqual([{ network: flag[0], from: '--service-cluster-ip-range' }]);
    expect(serviceRanges([], [])).toEqual([]);
  });

  test('are known to a kube-proxy that looks at them', () => {
    const { serviceCidrs } = collect(...texts);
    const ranges = serviceRanges(serviceCidrs, []);
    const off = new Map([['MultiCIDRServiceAllocator', false]]);
    expect(buildCluster([], behavioursOf('1.36'), ranges).serviceCidrs).toHaveLength(5);
    expect(buildCluster([], behavioursOf('1.33'), ranges).serviceCidrs).toHaveLength(5);
    expect(buildCluster([], behavioursOf('1.33', off), ranges).serviceCidrs).toEqual([]);
    // The gate is true for good since 1.34.
    expect(buildCluster([], behavioursOf('1.34', off), ranges).serviceCidrs).toHaveLength(5);
  });

  test('addresses are chosen from: those of the object of the API server first, one of each family', () => {
    const { serviceCidrs } = collect(...texts);
    expect(assignableNetworks(serviceCidrs).map(({ text }) => text)).toEqual(['fd00:10:96::/112', '10.96.0.0/12']);
    expect(assignableNetworks(serviceCidrs.toReversed())).toEqual(assignableNetworks(serviceCidrs));
  });
});

suite('kpc compile with a ServiceCIDR', () => {
  const web =
    'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  ports: [{port: 80}]\n';
  const compile = async (stdin: string, ...args: readonly string[]) => {
    const { stdout, stderr } = await runKpc(
      ['compile', '-f', '-', '--proxy-mode', 'iptables', '--print', 'manifest', ...args],
      { stdin },
    );
    return { stderr, manifest: stdout === '' ? undefined : (JSON.parse(stdout) as Readonly<Record<string, unknown>>) };
  };
  const addressOf = ({ manifest }: Awaited<ReturnType<typeof compile>>) =>
    (manifest?.['assigned'] as readonly { readonly clusterIPs: readonly string[] }[] | undefined)?.[0]?.clusterIPs;

  test('chooses cluster IPs from it', async () => {
    const run = await compile([web, serviceCidr('kubernetes', '[10.50.0.0/24]')].join('---\n'));
    expect(addressOf(run)).toEqual([expect.stringMatching(/^10\.50\.0\.\d+$/)]);
    expect(run.stderr).not.toMatch(/ignored|not-assigned/);
  });

  test('takes the flag where there is one', async () => {
    const both = [web, serviceCidr('kubernetes', '[10.50.0.0/24]')].join('---\n');
    const run = await compile(both, '--service-cluster-ip-range', '10.60.0.0/24');
    expect(addressOf(run)).toEqual([expect.stringMatching(/^10\.60\.0\.\d+$/)]);
  });

  test('says what lacks a family', async () => {
    const dual = web.replace('spec:\n', 'spec:\n  ipFamilies: [IPv6]\n');
    const run = await compile([dual, serviceCidr('kubernetes', '[10.50.0.0/24]')].join('---\n'));
    expect(run.stderr).toMatch(/error: default\/web: .*IPv6.* ServiceCIDRs.* \[range-is-full\]/);
  });

  test('does not speak of networks in a mode that does not look at them', async () => {
    const { manifest } = await compile([web, serviceCidr('kubernetes', '[10.50.0.0/24]')].join('---\n'));
    expect(manifest).not.toHaveProperty('serviceCidrs');
  });
});

suite('the Services of a cluster without its ServiceCIDRs', () => {
  const kubernetes = `apiVersion: v1\nkind: Service\nmetadata: { name: kubernetes }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 443 }] }\n`;
  const cidr = `---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: { name: kubernetes }\nspec: { cidrs: [10.96.0.0/16] }\n`;
  const isNoted = async (text: string, ...flags: readonly string[]): Promise<boolean> => {
    const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'nftables', '--print', 'nftables', ...flags], {
      stdin: text,
    });
    expect(run.status, run.stderr).toBe(0);
    return run.stderr.includes('[no-service-cidrs]');
  };

  test('are noted in the mode and the releases whose rules depend on them', async () => {
    expect(await isNoted(kubernetes)).toBe(true);
    expect(await isNoted(kubernetes + cidr)).toBe(false);
    expect(await isNoted(kubernetes, '--service-cluster-ip-range', '10.96.0.0/16')).toBe(false);
    expect(await isNoted(kubernetes.replace('kubernetes', 'web'))).toBe(false);
    const iptables = ['compile', '-f', '-', '--proxy-mode', 'iptables', '--print', 'iptables'];
    expect((await runKpc(iptables, { stdin: kubernetes })).stderr).not.toContain('no-service-cidrs');
  });
});
