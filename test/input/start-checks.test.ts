import { describe as suite, expect, test } from 'vitest';
import { inOneLine } from '../../src/say/words/words.ts';
import { readConfig, resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import { describe } from './diagnose.ts';

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** What is said of a configuration with these lines, which start at line 3. */
function check(config: string, flags: Parameters<typeof resolveSettings>[1] = {}): string[] {
  const read = readConfig(new TextFile('config.yaml', `${head}${config}\n`));
  return describe([...read.diagnostics, ...resolveSettings(read.config, flags).diagnostics]);
}

suite('the mode that nothing names', () => {
  test.each([
    ['mode: ""', '3:7'],
    ['mode: null', '3:7'],
    ['clusterCIDR: 10.244.0.0/16', '1:1'],
  ])('%s', (config, place) => {
    const { config: read } = readConfig(new TextFile('config.yaml', `${head}${config}\n`));
    const { settings, modeNote, diagnostics } = resolveSettings(read, {});
    expect({ mode: settings.mode, diagnostics }).toEqual({ mode: 'iptables', diagnostics: [] });
    expect(modeNote && describe([modeNote])).toEqual([`${place} note default-mode {"named":"configuration"}`]);
    expect(resolveSettings(read, { proxyMode: 'ipvs' })).toMatchObject({
      settings: { mode: 'ipvs' },
      modeNote: undefined,
    });
  });

  test('one that is named is not spoken of', () => {
    const { config } = readConfig(new TextFile('config.yaml', `${head}mode: nftables\n`));
    expect(resolveSettings(config, {})).toMatchObject({ settings: { mode: 'nftables' }, modeNote: undefined });
  });

  test.each([
    ['1.34', undefined],
    ['1.35', 'ipvs-ends'],
    ['1.37', 'ipvs-ends'],
  ] as const)('that IPVS mode ends is said from its deprecation on: %s', (release, code) => {
    const { config } = readConfig(new TextFile('config.yaml', `${head}mode: ipvs\n`));
    expect(resolveSettings(config, {}, release).modeNote?.code).toBe(code);
    expect(resolveSettings(config, { proxyMode: 'ipvs' }, release).modeNote).toBeUndefined();
  });
});

suite('a configuration with which kube-proxy does not start', () => {
  test.each([
    [
      'bindAddress: localhost',
      '3:14 error bad-value {"field":"bindAddress","found":{"type":"string","value":"localhost"},"form":"address"}',
    ],
    [
      'nodePortAddresses: [""]',
      '3:21 error bad-value {"field":"nodePortAddresses","found":{"type":"string","value":""},"form":"network-or-word"}',
    ],
    [
      'conntrack: {maxPerCore: -1}',
      '3:25 error bad-value {"field":"maxPerCore","found":{"type":"number","value":-1},"types":["integer","null"],"expected":"a whole number from 0 to 2147483647"}',
    ],
    [
      'conntrack: {udpTimeout: -1s}',
      '3:25 error bad-value {"field":"udpTimeout","found":{"type":"string","value":"-1s"},"expected":"a duration such as 15m0s or 30s, from 0 up"}',
    ],
  ])('%s', (config, message) => {
    expect(check(config)).toEqual([message]);
  });
});

suite('a configuration that kube-proxy cannot decode, whatever its mode', () => {
  test.each([
    ['ipvs: {tcpTimeout: 1e3s}', 'tcpTimeout', { type: 'string', value: '1e3s' }, ['string']],
    ['conntrack: {udpTimeout: null}', 'udpTimeout', { type: 'empty' }, ['string']],
    ['clientConnection: 5', 'clientConnection', { type: 'number', value: 5 }, ['object', 'null']],
    ['ipvs: {syncPeriod: 30}', 'syncPeriod', { type: 'number', value: 30 }, ['string']],
    ['nftables: {minSyncPeriod: 31d}', 'minSyncPeriod', { type: 'string', value: '31d' }, ['string']],
    ['clientConnection: {kubeconfig: 5}', 'kubeconfig', { type: 'number', value: 5 }, ['string', 'null']],
    ['logging: {verbosity: -1}', 'verbosity', { type: 'number', value: -1 }, ['integer', 'null']],
    ['enableProfiling: 1', 'enableProfiling', { type: 'number', value: 1 }, ['boolean', 'null']],
    ['portRange: 5', 'portRange', { type: 'number', value: 5 }, ['string', 'null']],
    ['ipvs: {scheduler: [rr]}', 'scheduler', { type: 'list' }, ['string', 'null']],
  ])('%s', (config, field, found, types) => {
    const details = JSON.stringify({ field, found, types }).slice(0, -1);
    for (const mode of ['iptables', 'ipvs', 'nftables']) {
      expect(check(`mode: ${mode}\n${config}`)).toEqual([expect.stringContaining(` error bad-value ${details},`)]);
    }
  });

  test.each([
    'conntrack: {tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null}',
    'iptables: {localhostNodePorts: null}',
    'iptables: null',
    'clusterCIDR: ""',
  ])('and one that it can: %s', (config) => {
    expect(check(`mode: iptables\n${config}`)).toEqual([]);
  });
});

suite('flags that are given empty, or twice', () => {
  const settingsOf = (flags: Parameters<typeof resolveSettings>[1]) =>
    resolveSettings(undefined, { proxyMode: 'ipvs', ...flags });

  test('one empty CIDR is none, but kube-proxy reads it in mode ClusterCIDR only', () => {
    const { diagnostics } = settingsOf({ clusterCidr: '' });
    expect(describe(diagnostics)).toEqual([
      'error bad-value {"field":"--cluster-cidr","found":{"type":"string","value":""},"form":"network"}',
    ]);
    expect(settingsOf({ clusterCidr: '', detectLocalMode: 'NodeCIDR' })).toMatchObject({
      diagnostics: [],
      settings: { clusterCIDRs: [] },
    });
  });

  test.each([
    'nodeportAddresses',
    'ipvsExcludeCidrs',
    'ipvsScheduler',
    'hostnameOverride',
    'bindAddress',
    'detectLocalMode',
    'featureGates',
  ])('no value is no flag: %s', (flag) => {
    const { settings, diagnostics } = settingsOf({ [flag]: '' });
    expect(diagnostics).toEqual([]);
    expect(settings).toEqual(settingsOf({}).settings);
  });

  test.each([
    'masqueradeAll',
    'iptablesMasqueradeBit',
    'ipvsTcpTimeout',
    'conntrackMin',
    'conntrackUdpTimeout',
    'ipvsStrictArp',
  ])('kube-proxy does not parse it: %s', (flag) => {
    expect(settingsOf({ [flag]: '' }).diagnostics).toHaveLength(1);
  });

  test('lists add up, and so do gates', () => {
    const { settings, diagnostics } = settingsOf({
      nodeportAddresses: ['10.0.0.0/8,172.16.0.0/12', '192.168.10.0/24'],
      ipvsExcludeCidrs: ['10.0.0.0/8', '172.16.0.0/12'],
      featureGates: ['AllowServiceExternalIPs=true', 'AllowServiceExternalIPs=false'],
    });
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(settings).toMatchObject({
      nodePortAddresses: ['10.0.0.0/8', '172.16.0.0/12', '192.168.10.0/24'],
      ipvs: { excludeCIDRs: ['10.0.0.0/8', '172.16.0.0/12'] },
    });
  });
});

suite('feature gates', () => {
  const gate = (config: string, release?: Release) => {
    const { config: read } = readConfig(new TextFile('config.yaml', `${head}featureGates: {${config}}\n`));
    return resolveSettings(read, {}, release).diagnostics;
  };

  test.each(['AllAlpha: false', 'AllAlpha: true, AllBeta: true', 'StrictIPCIDRValidation: false', 'NodeSwap: true'])(
    'that a release knows are right, whether they shape rules or not: %s',
    (config) => expect(gate(config, '1.37')).toEqual([]),
  );

  test.each([
    ['NoSuchGate: true', '1.38', { problem: 'unknown', gate: 'NoSuchGate' }, 'v1.38.0-beta.0'],
    [
      'AllowServiceExternalIP: false',
      '1.37',
      { problem: 'unknown', gate: 'AllowServiceExternalIP' },
      'AllowServiceExternalIPs?',
    ],
    [
      'MultiCIDRServiceAllocator: true',
      '1.38',
      { problem: 'unknown', gate: 'MultiCIDRServiceAllocator' },
      '1.30 to 1.37',
    ],
    ['AllowServiceExternalIPs: false', '1.35', { problem: 'unknown', gate: 'AllowServiceExternalIPs' }, 'v1.35.4'],
    [
      'StrictIPCIDRValidation: false',
      '1.38',
      { problem: 'locked', gate: 'StrictIPCIDRValidation', isOn: false },
      'true',
    ],
    ['TopologyAwareHints: false', '1.33', { problem: 'locked', gate: 'TopologyAwareHints', isOn: false }, 'v1.33.13'],
    [
      'AllAlpha: true',
      '1.37',
      {
        problem: 'needs',
        unmet: expect.arrayContaining([{ gate: 'TopologyAwareWorkloadScheduling', needs: ['GenericWorkload'] }]),
      },
      'TopologyAwareWorkloadScheduling',
    ],
  ] as const)('with which kube-proxy does not start are errors: %s in %s', (config, release, details, name) => {
    const faults = gate(config, release);
    expect(faults).toEqual([
      expect.objectContaining({
        severity: 'error',
        code: 'bad-feature-gate',
        arguments: expect.objectContaining({ ...details, release }),
      }),
    ]);
    expect(faults.map((fault) => inOneLine(fault))).toEqual([expect.stringContaining(name)]);
  });

  test('a locked one may be set to what it is', () => {
    expect(gate('TopologyAwareHints: true', '1.33')).toEqual([]);
    expect(gate('StrictIPCIDRValidation: true', '1.38')).toEqual([]);
  });
});

suite('what kube-proxy starts with', () => {
  test.each([
    'healthzBindAddress: 127.0.0.1',
    'healthzBindAddress: "::1"',
    'metricsBindAddress: "[fd00::1]:10249"',
    'metricsBindAddress: ""',
    'showHiddenMetricsForVersion: "1.36"',
    'logging: {format: json, flushFrequency: 5s, verbosity: 2, options: {json: {infoBufferSize: "0"}}}',
    'clientConnection: {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /a, qps: 0}',
  ])('%s', (config) => {
    expect(check(config)).toEqual([]);
  });

  test('what IPVS mode alone looks at is a warning in iptables mode', () => {
    const config = 'ipvs: {scheduler: fastest, excludeCIDRs: [x], tcpTimeout: -1s}';
    const severities = (mode: string) => check(config, { proxyMode: mode }).map((line) => line.split(' ')[1]);
    expect(severities('ipvs')).toEqual(['error', 'error', 'error']);
    expect(severities('iptables')).toEqual(['warning', 'warning', 'warning']);
  });
});

suite('flags', () => {
  test('of kube-proxy win over the configuration', () => {
    const { config } = readConfig(
      new TextFile(
        'config.yaml',
        `${head}mode: ipvs\nbindAddress: 192.0.2.1\nfeatureGates: {AllowServiceExternalIPs: true}\nconntrack: {min: 1, tcpEstablishedTimeout: 1h}\n`,
      ),
    );
    const { settings, diagnostics } = resolveSettings(config, {
      bindAddress: 'fd00::1',
      featureGates: ['AllowServiceExternalIPs=false,AllAlpha=true', ' AllBeta = T '],
      ipvsScheduler: 'twos',
      conntrackMaxPerCore: '0',
      conntrackMin: '7',
      conntrackTcpTimeoutEstablished: '2h',
      conntrackTcpTimeoutCloseWait: '90s',
      conntrackTcpBeLiberal: true,
      conntrackUdpTimeout: '10s',
      conntrackUdpTimeoutStream: '20s',
    });
    expect(diagnostics).toEqual([]);
    expect(settings).toMatchObject({
      bindAddress: 'fd00::1',
      ignoresExternalIPs: true,
      ipvs: { scheduler: 'twos' },
      conntrack: {
        maxPerCore: 0,
        min: 7,
        tcpEstablishedTimeout: 7200,
        tcpCloseWaitTimeout: 90,
        tcpBeLiberal: true,
        udpTimeout: 10,
        udpStreamTimeout: 20,
      },
    });
  });

  test('that are wrong', () => {
    const { diagnostics } = resolveSettings(undefined, {
      bindAddress: 'localhost',
      featureGates: 'AllAlpha,AllBeta=maybe,KubeProxyIPSV=true',
      conntrackMin: '-1',
      conntrackMaxPerCore: '2147483648',
      conntrackUdpTimeout: '10',
    });
    expect(describe(diagnostics)).toEqual([
      'error bad-feature-gate {"problem":"unknown","gate":"KubeProxyIPSV","release":"1.37"}',
      'error bad-value {"field":"--bind-address","found":{"type":"string","value":"localhost"},"form":"address"}',
      'error bad-value {"field":"--conntrack-max-per-core","found":{"type":"string","value":"2147483648"},"expected":"a number from 0 to 2147483647"}',
      'error bad-value {"field":"--conntrack-min","found":{"type":"string","value":"-1"},"expected":"a number from 0 to 2147483647"}',
      'error bad-value {"field":"--conntrack-udp-timeout","found":{"type":"string","value":"10"},"expected":"a duration such as 15m0s or 30s, from 0 up"}',
      'error bad-value {"field":"--feature-gates","found":{"type":"string","value":"AllAlpha"},"form":"gate"}',
      'error bad-value {"field":"--feature-gates","found":{"type":"string","value":"AllBeta=maybe"},"form":"gate"}',
    ]);
  });
});

suite("kube-proxy's ConfigMap", () => {
  const map = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy}\ndata:\n${data}`;
  const entry = (key: string) => `  ${key}: |-\n    ${head.replaceAll('\n', '\n    ')}mode: iptables\n`;
  const kubeconfig = '  kubeconfig.conf: |-\n    apiVersion: v1\n    kind: Config\n    clusters: []\n';

  test.each(['config.conf', 'config', 'kube-proxy-config.conf', 'config.yaml'])('key %s', (key) => {
    const { config, diagnostics } = readConfig(new TextFile('map.yaml', map(`${kubeconfig}${entry(key)}`)));
    expect(diagnostics).toEqual([]);
    expect(config?.object.mode).toBe('iptables');
    expect(config?.source.place(['mode']).locate()).toMatchObject({ line: 12, column: 11 });
  });

  test('in a List', () => {
    const items = map(entry('config'))
      .split('\n')
      .map((line, i) => (line === '' ? '' : `${i === 0 ? '- ' : '  '}${line}`))
      .join('\n');
    const { config, diagnostics } = readConfig(
      new TextFile('map.yaml', `apiVersion: v1\nkind: List\nitems:\n${items}`),
    );
    expect(describe(diagnostics)).toEqual([]);
    expect(config?.object.mode).toBe('iptables');
  });

  test('with two', () => {
    const { diagnostics } = readConfig(new TextFile('map.yaml', map(`${entry('config')}${entry('config.conf')}`)));
    expect(describe(diagnostics)).toEqual(['10:5 error duplicate-configuration {}']);
  });

  test('of another version', () => {
    const text = head.replace('v1alpha1', 'v1alpha2');
    expect(describe(readConfig(new TextFile('config.yaml', text)).diagnostics)).toEqual([
      '1:13 error no-config {}',
      '1:13 warning unknown-kind {"field":"apiVersion","value":"kubeproxy.config.k8s.io/v1alpha2","meant":"KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)"}',
    ]);
  });
});
