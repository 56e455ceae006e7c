import { describe as suite, expect, test } from 'vitest';
import { describeNode, nodePortNetworks } from '../../src/cluster/node-context.ts';
import type { Node } from '../../src/cluster/objects.ts';
import { readConfig, resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { proxyModes } from '../../src/kube-proxy/modes.ts';
import { isModeOf, newestRelease, releases, modeHistories } from '../../src/kube-proxy/releases.ts';
import { describe } from './diagnose.ts';

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

function resolve(config: string, flags: Parameters<typeof resolveSettings>[1] = {}) {
  const read = readConfig(new TextFile('config.yaml', `${head}${config}\n`));
  const { settings, diagnostics } = resolveSettings(read.config, flags);
  return { settings, diagnostics: describe([...read.diagnostics, ...diagnostics]) };
}

suite('masquerading', () => {
  const both = 'iptables: {masqueradeBit: 3, masqueradeAll: true}\nnftables: {masqueradeBit: 5, masqueradeAll: false}';

  test.each([
    ['nftables', { masqueradeAll: false, masqueradeBit: 5 }],
    ['iptables', { masqueradeAll: true, masqueradeBit: 3 }],
    ['ipvs', { masqueradeAll: true, masqueradeBit: 3 }],
  ])('mode %s goes by its own section', (mode, expected) => {
    expect(resolve(`mode: ${mode}\n${both}`)).toMatchObject({ settings: { mode, ...expected }, diagnostics: [] });
  });

  test('the section iptables says nothing in mode nftables, and nftables says nothing in the others', () => {
    const { settings } = resolve('mode: nftables\niptables: {masqueradeBit: 3, masqueradeAll: true}');
    expect(settings).toMatchObject({ masqueradeAll: false, masqueradeBit: 14 });
    const other = resolve('mode: ipvs\nnftables: {masqueradeBit: 3, masqueradeAll: true}');
    expect(other.settings).toMatchObject({ masqueradeAll: false, masqueradeBit: 14 });
  });

  test('--masquerade-all counts in each mode, --iptables-masquerade-bit not in mode nftables', () => {
    const flags = { masqueradeAll: true, iptablesMasqueradeBit: '7' };
    expect(resolve('mode: nftables', flags).settings).toMatchObject({ masqueradeAll: true, masqueradeBit: 14 });
    expect(resolve('mode: iptables', flags).settings).toMatchObject({ masqueradeAll: true, masqueradeBit: 7 });
    const bit = 'nftables: {masqueradeBit: 0}';
    expect(resolve(bit, { ...flags, proxyMode: 'nftables' }).settings).toMatchObject({ masqueradeBit: 0 });
  });

  const wrong = (value: number): RegExp =>
    new RegExp(`^4:27 error bad-value {"field":"masqueradeBit","found":{"type":"number","value":${value}},[^}]*}$`);

  test.each([
    ['mode: nftables\nnftables: {masqueradeBit: 32}', wrong(32)],
    ['mode: nftables\nnftables: {masqueradeBit: -1}', wrong(-1)],
    // kube-proxy does not look at it in other modes.
    [
      'mode: ipvs\nnftables: {masqueradeBit: 32}',
      /^4:27 warning bad-value \{"field":"masqueradeBit","found":\{"type":"number","value":32\},.*"ignoredIn":"ipvs"\}$/,
    ],
    // The other bit it checks in every mode.
    ['mode: nftables\niptables: {masqueradeBit: 32}', wrong(32)],
  ])('%s', (config, expected) => {
    expect(resolve(config).diagnostics).toEqual([expect.stringMatching(expected)]);
  });

  test('a bit of the flag that is none is an error in each mode', () => {
    const expected = [
      expect.stringMatching(
        /^error bad-value \{"field":"--iptables-masquerade-bit","found":\{"type":"string","value":"32"\},/,
      ),
    ];
    for (const proxyMode of proxyModes.filter((mode) => isModeOf(mode, newestRelease))) {
      expect(resolve('', { proxyMode, iptablesMasqueradeBit: '32' }).diagnostics).toEqual(expected);
    }
  });
});

suite('the addresses of node ports', () => {
  test.each(['mode: nftables', 'mode: nftables\nnodePortAddresses: []', 'mode: nftables\nnodePortAddresses: null'])(
    'without any they are the primary ones: %s',
    (config) => {
      expect(resolve(config)).toMatchObject({ settings: { nodePortAddresses: ['primary'] }, diagnostics: [] });
      expect(resolve(config, { proxyMode: 'iptables' }).settings.nodePortAddresses).toEqual([]);
      expect(resolve(config, { proxyMode: 'ipvs' }).settings.nodePortAddresses).toEqual([]);
    },
  );

  test('an empty flag is none at all', () => {
    expect(resolve('mode: nftables', { nodeportAddresses: '' }).settings.nodePortAddresses).toEqual(['primary']);
  });

  test('those that are named are taken', () => {
    const config = 'mode: nftables\nnodePortAddresses: [10.0.0.0/8]';
    expect(resolve(config).settings.nodePortAddresses).toEqual(['10.0.0.0/8']);
    const flags = { nodeportAddresses: '0.0.0.0/0,::/0' };
    expect(resolve(config, flags).settings.nodePortAddresses).toEqual(['0.0.0.0/0', '::/0']);
  });

  const node = (...addresses: readonly string[]): Node => ({
    metadata: { name: 'n', namespace: 'default', labels: {}, annotations: {} },
    kubernetesVersion: '',
    podCIDRs: [],
    addresses: addresses.map((address) => ({ type: 'InternalIP', address })),
    ready: false,
    nanoCPUs: 0n,
    taints: [],
  });
  const networksOf = (given: Node | undefined, config = '') => {
    const { settings } = resolve(`mode: nftables\n${config}`);
    const context = describeNode('n', given, undefined, settings);
    return (['ipv4', 'ipv6'] as const).map((family) =>
      nodePortNetworks(settings, context, family).networks.map(({ text }) => text),
    );
  };

  test.each([
    ['a node of both families', networksOf(node('192.0.2.1', 'fd00::1')), [['192.0.2.1/32'], ['fd00::1/128']]],
    ['one of one family listens everywhere in the other', networksOf(node('192.0.2.1')), [['192.0.2.1/32'], ['::/0']]],
    [
      'the first address of each family counts',
      networksOf(node('fd00::2', 'fd00::1')),
      [['0.0.0.0/0'], ['fd00::2/128']],
    ],
    ['bindAddress wins', networksOf(node('192.0.2.1'), 'bindAddress: 192.0.2.9'), [['192.0.2.9/32'], ['::/0']]],
    [
      'bindAddress on loopback is none',
      networksOf(node('192.0.2.1'), 'bindAddress: 127.0.0.1'),
      [['0.0.0.0/0'], ['::/0']],
    ],
    ['no node', networksOf(undefined), [['0.0.0.0/0'], ['::/0']]],
    [
      'CIDRs of one family',
      networksOf(node('192.0.2.1', 'fd00::1'), 'nodePortAddresses: [10.0.0.0/8]'),
      [['10.0.0.0/8'], ['::/0']],
    ],
  ])('%s', (_, networks, expected) => {
    expect(networks).toEqual(expected);
  });
});

suite('releases', () => {
  test.each(releases)('Kubernetes %s', (release) => {
    const { diagnostics } = resolveSettings(undefined, { proxyMode: 'nftables' }, release);
    const isKnown = releases.indexOf(release) >= releases.indexOf('1.33');
    expect(describe(diagnostics)).toEqual(
      isKnown
        ? []
        : [
            `error bad-mode {"problem":"not-in-release","name":"--proxy-mode","mode":"nftables","release":"${release}"}`,
          ],
    );
  });

  test('a configuration that names the mode is pointed at', () => {
    const read = readConfig(new TextFile('config.yaml', `${head}mode: nftables\n`));
    const lines = describe(resolveSettings(read.config, {}, '1.31').diagnostics);
    expect(lines).toEqual([
      '3:7 error bad-mode {"problem":"not-in-release","name":"mode","mode":"nftables","release":"1.31"}',
    ]);
  });

  test('the other modes are known by all releases', () => {
    for (const mode of proxyModes) {
      if (modeHistories[mode].since !== undefined) continue;
      for (const release of releases) {
        expect(resolveSettings(undefined, { proxyMode: mode }, release).diagnostics).toEqual([]);
      }
    }
  });
});
