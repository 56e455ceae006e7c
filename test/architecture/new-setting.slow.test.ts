// Adds two settings of kube-proxy's to a copy of the sources: one that shapes rules, and one that kpc-apply uses. Each is
// a row of the table and its use. All else has to follow: this lists the files that each touches, and tries what follows.
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Ajv } from 'ajv';
import { readChecked } from '../../src/base/json/check.ts';
import { publishedSchema } from '../../src/base/json/published-schema.ts';
import type * as NodeDecisions from '../../src/apply/plan/node-decisions.ts';
import type * as Checks from '#checks';
import type * as KpcYaml from '../../src/library/node/kpc-yaml-schema.ts';
import type * as AlignSides from '../../src/ask/diff/align-sides.ts';
import type * as Options from '../../src/library/options.ts';
import type * as Library from '../../src/library/compile.ts';
import type * as Values from '../../src/settings/table.ts';
import { complaintsOf, copySources, showFiles, sourcesFolder, type Edit } from '../support/changed-sources.ts';

/** How many files outside src/settings a setting may need: its use, and one more. */
const most = 2;

const folder = sourcesFolder();

const ofRules: readonly Edit[] = [
  [
    'src/settings/masquerade.ts',
    'const bitFlag',
    `export const neverMasquerade = switchSetting(
  '--iptables-never-masquerade [bool]',
  'masquerade nothing to cluster IPs',
  'iptables.neverMasquerade',
  false,
);

const bitFlag`,
  ],
  [
    'src/settings/masquerade.ts',
    'import { readNumber, readSwitchOf }',
    'import { readNumber, readSwitchOf, switchSetting }',
  ],
  ['src/settings/table.ts', 'import { masqueradeAll,', 'import { neverMasquerade, masqueradeAll,'],
  ['src/settings/table.ts', '  masqueradeAll,\n', '  masqueradeAll,\n  neverMasquerade,\n'],
  [
    'src/cluster/plan-masquerade.ts',
    "'masqueradeAll' | 'masqueradeBit'>",
    "'masqueradeAll' | 'neverMasquerade' | 'masqueradeBit'>",
  ],
  [
    'src/cluster/plan-masquerade.ts',
    'toClusterIPs: planMasqueradedClients(',
    "toClusterIPs: settings.neverMasquerade ? { kind: 'none-known' } : planMasqueradedClients(",
  ],
];

const ofNode: readonly Edit[] = [
  [
    'src/settings/conntrack.ts',
    '  tcpBeLiberal: switchSetting(',
    `  tcpFinTimeout: conntrackTimeoutSetting('tcp-timeout-fin', 'tcpFinTimeout', 'timeout of TCP connections after FIN', 120),
  tcpBeLiberal: switchSetting(`,
  ],
  [
    'src/apply/plan/node-decisions.ts',
    "    ['nf_conntrack_udp_timeout', conntrack.udpTimeout],",
    "    ['nf_conntrack_tcp_timeout_fin_wait', conntrack.tcpFinTimeout],\n    ['nf_conntrack_udp_timeout', conntrack.udpTimeout],",
  ],
];

const ofNoKind: readonly Edit[] = [
  [
    'src/settings/node.ts',
    'export const localhostNodePorts',
    `export const nodePortInterfaces = plainSetting({
  flag: proxyFlag('list', '--nodeport-interfaces <names>', 'the interfaces that NodePorts listen on'),
  field: proxyField('nodePortInterfaces', texts),
  defaultIn: (): readonly string[] => [],
  read: ({ value }) => value,
  stored: listOf(storedText),
});

export const localhostNodePorts`,
  ],
  ['src/settings/table.ts', "} from './node.ts';", "  nodePortInterfaces,\n} from './node.ts';"],
  [
    'src/settings/table.ts',
    '  nodePortAddresses,\n  ignores',
    '  nodePortAddresses,\n  nodePortInterfaces,\n  ignores',
  ],
];

/** Compiles with the copy alone where the types of both settings follow from their rows. */
const typeCheck = `
import type { Manifest } from './bundle/manifest.ts';
import type { ProxySettings } from './cluster/objects.ts';
import type { CompileOptions } from './library/compile.ts';

export const options: Partial<CompileOptions> = { iptablesNeverMasquerade: true, conntrackTcpTimeoutFin: '30s' };
export function read(settings: ProxySettings, stored: Manifest['settings']): readonly [boolean, number] {
  return [settings.neverMasquerade, stored.conntrack.tcpFinTimeout];
}
// @ts-expect-error: the flag is a text.
export const wrongFlag: Partial<CompileOptions> = { conntrackTcpTimeoutFin: 30 };
`;

beforeAll(() =>
  copySources(folder, [...ofRules, ...ofNode, ...ofNoKind], {
    'src/type-check.ts': typeCheck,
    'src/manifest-check.ts': "export { manifest } from '#checks';\n",
  }),
);

/** A module of the copy. */
function load<T>(file: string): Promise<T> {
  return import(join(folder, 'src', file)) as Promise<T>;
}

test.each([
  ['that shapes rules', ofRules],
  ['that kpc-apply goes by', ofNode],
  ['of a kind of its own', ofNoKind],
])('a setting %s touches few files outside src/settings', (what, edits) => {
  const files = [...new Set(edits.map(([file]) => file))].toSorted();
  showFiles(`a setting ${what}`, files);
  expect(files.filter((file) => !file.startsWith('src/settings/')).length).toBeLessThanOrEqual(most);
});

test('no other file lacks anything, and the types follow', () => {
  expect(complaintsOf(folder)).toBe('');
});

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n';

const service = `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: "", port: 8080 }]
endpoints: [{ addresses: [10.244.0.5] }]
`;

/** What the copy compiles of a Service, with these fields of the configuration and these flags. */
async function compile(config: string, flags: object = {}) {
  const { compile: compileTexts } = await load<typeof Library>('library/compile.ts');
  return compileTexts({
    manifests: [{ name: 'web.yaml', text: service }],
    config: { name: 'config.yaml', text: head + config },
    clusterCidr: '10.244.0.0/16',
    ...flags,
  });
}

describe('what follows from the rows', () => {
  test('help, and with it kpc.yaml and the pages, has the flags', async () => {
    const { openFlags } = await load<typeof Options>('library/options.ts');
    const flags = new Map(openFlags('programs').map(({ usage, help }) => [usage, help]));
    expect(flags.get('--iptables-never-masquerade [bool]')).toBe('masquerade nothing to cluster IPs');
    expect(flags.get('--conntrack-tcp-timeout-fin <duration>')).toBe('timeout of TCP connections after FIN');
  });

  test('a list is one in kpc.yaml, in a configuration and as a flag', async () => {
    const { openFlags } = await load<typeof Options>('library/options.ts');
    const { kpcYamlSchema } = await load<typeof KpcYaml>('library/node/kpc-yaml-schema.ts');
    const accepts = new Ajv({ allowUnionTypes: true }).compile(
      publishedSchema(kpcYamlSchema([{ name: 'compile', flags: openFlags('programs') }])),
    );
    expect(accepts({ 'nodeport-interfaces': ['eth0', 'eth1'] })).toBe(true);
    expect(accepts({ 'iptables-never-masquerade': ['eth0', 'eth1'] })).toBe(false);
    const field = await compile('nodePortInterfaces: [eth0, eth1]\n');
    expect(field.bundle?.manifest.settings).toMatchObject({ nodePortInterfaces: ['eth0', 'eth1'] });
    const flag = await compile('nodePortInterfaces: [eth0]\n', { nodeportInterfaces: 'eth2,eth3' });
    expect(flag.bundle?.manifest.settings).toMatchObject({ nodePortInterfaces: ['eth2', 'eth3'] });
  });

  test('the configuration has the fields, and a flag wins', async () => {
    const fields = 'iptables: { neverMasquerade: true }\nconntrack: { tcpFinTimeout: 30s }\n';
    const { bundle, diagnostics } = await compile(fields);
    expect(diagnostics.map(({ code }) => code)).not.toContain('unknown-field');
    expect(bundle?.manifest.settings).toMatchObject({ neverMasquerade: true, conntrack: { tcpFinTimeout: 30 } });
    const flagged = await compile(fields, { iptablesNeverMasquerade: 'false', conntrackTcpTimeoutFin: '1m' });
    expect(flagged.bundle?.manifest.settings).toMatchObject({
      neverMasquerade: false,
      conntrack: { tcpFinTimeout: 60 },
    });
    const usual = await compile('');
    expect(usual.bundle?.manifest.settings).toMatchObject({
      neverMasquerade: false,
      conntrack: { tcpFinTimeout: 120 },
    });
  });

  test('the rules go by it', async () => {
    const rules = async (config: string) => (await compile(config)).bundle?.files.get('iptables.restore');
    expect(await rules('')).toContain('! -s 10.244.0.0/16 -j KUBE-MARK-MASQ');
    expect(await rules('iptables: { neverMasquerade: true }\n')).not.toContain('! -s 10.244');
  });

  test('values that are wrong are told as those of other settings are', async () => {
    const flags = { iptablesNeverMasquerade: 'perhaps', conntrackTcpTimeoutFin: 'x' };
    const told = (await compile('', flags)).diagnostics.map(({ code, text, help }) => `${text}: ${help} [${code}]`);
    expect(told).toContain('iptablesNeverMasquerade cannot be "perhaps": write true or false [bad-value]');
    expect(told).toContain(
      'conntrackTcpTimeoutFin cannot be "x": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    );
    const fields = await compile('iptables: { neverMasquerade: 5 }\nconntrack: { tcpFinTimeuot: 1s }\n');
    expect(fields.diagnostics.map(({ text, help }) => `${text}: ${help}`)).toEqual(
      expect.arrayContaining([
        'neverMasquerade cannot be 5: write true or false',
        expect.stringContaining('did you mean tcpFinTimeout?'),
      ]),
    );
  });

  test('a manifest must have it, and of a right value', async () => {
    const { manifest } = await load<typeof Checks>('manifest-check.ts');
    const { findWrongSettings } = await load<typeof Values>('settings/table.ts');
    const { bundle } = await compile('');
    if (!bundle) throw new Error('nothing was compiled');
    const { settings } = bundle.manifest;
    expect(readChecked(manifest, { ...bundle.manifest })).toHaveProperty('value');
    const without = { ...bundle.manifest, settings: { ...settings, neverMasquerade: undefined } };
    expect(readChecked(manifest, without)).toEqual({ wrong: { problem: 'missing', at: 'settings.neverMasquerade' } });
    const long = { ...settings, conntrack: { ...settings.conntrack, tcpFinTimeout: 1e9 } };
    expect(findWrongSettings(long).map(({ name }) => name)).toEqual(['conntrack.tcpFinTimeout']);
  });

  test('a comparison and kpc-apply go by it', async () => {
    const { nodeSettings } = await load<typeof AlignSides>('ask/diff/align-sides.ts');
    const { decideOnNode } = await load<typeof NodeDecisions>('apply/plan/node-decisions.ts');
    const { bundle } = await compile('conntrack: { tcpFinTimeout: 30s }\n');
    if (!bundle) throw new Error('nothing was compiled');
    const settings = { ...bundle.manifest.settings, release: '1.36' as const };
    expect(nodeSettings(settings).get('conntrack.tcpFinTimeout')).toBe('30');
    const decided = decideOnNode(settings, { kernel: [6, 1], cores: 1, conntrackBuckets: undefined });
    expect(decided).toContainEqual(
      expect.objectContaining({ name: 'net.netfilter.nf_conntrack_tcp_timeout_fin_wait', value: '30' }),
    );
  });
});
