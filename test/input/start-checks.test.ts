import { describe as suite, expect, test } from 'vitest';
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
  const note =
    "mode iptables, kube-proxy's default before Kubernetes 1.40, because neither the configuration nor --proxy-mode names one";

  test.each([
    ['mode: ""', '3:7'],
    ['mode: null', '3:7'],
    ['clusterCIDR: 10.244.0.0/16', '1:1'],
  ])('%s', (config, place) => {
    const { config: read } = readConfig(new TextFile('config.yaml', `${head}${config}\n`));
    const { settings, modeNote, diagnostics } = resolveSettings(read, {});
    expect({ mode: settings.mode, diagnostics }).toEqual({ mode: 'iptables', diagnostics: [] });
    expect(modeNote && describe([modeNote])).toEqual([`${place} note: ${note} [default-mode]`]);
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
      '3:14 error: bindAddress cannot be "localhost": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
    ],
    [
      'nodePortAddresses: [""]',
      '3:21 error: nodePortAddresses cannot be "": write a network such as 10.0.0.0/8 or fd00::/64, or one of the words primary, localhost and all [bad-value]',
    ],
    [
      'conntrack: {maxPerCore: -1}',
      '3:25 error: maxPerCore cannot be -1: a whole number from 0 to 2147483647 [bad-value]',
    ],
    [
      'conntrack: {udpTimeout: -1s}',
      '3:25 error: udpTimeout cannot be "-1s": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
  ])('%s', (config, message) => {
    expect(check(config)).toEqual([message]);
  });
});

suite('a configuration that kube-proxy cannot decode, whatever its mode', () => {
  test.each([
    [
      'ipvs: {tcpTimeout: 1e3s}',
      'tcpTimeout cannot be "1e3s": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    [
      'conntrack: {udpTimeout: null}',
      'udpTimeout cannot be empty: write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    ['clientConnection: 5', 'clientConnection cannot be 5: write a mapping of fields [bad-value]'],
    [
      'ipvs: {syncPeriod: 30}',
      'syncPeriod is the number 30, not a string: write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    ['nftables: {minSyncPeriod: 31d}', 'minSyncPeriod cannot be "31d": write a duration such as 15m0s or 30s'],
    ['clientConnection: {kubeconfig: 5}', 'kubeconfig is the number 5, not a string: put it in quotes [bad-value]'],
    ['logging: {verbosity: -1}', 'verbosity cannot be -1: a whole number from 0'],
    ['enableProfiling: 1', 'enableProfiling cannot be 1: write true or false [bad-value]'],
    ['portRange: 5', 'portRange is the number 5, not a string: put it in quotes [bad-value]'],
    ['ipvs: {scheduler: [rr]}', 'scheduler cannot be a list: write a string [bad-value]'],
  ])('%s', (config, said) => {
    for (const mode of ['iptables', 'ipvs', 'nftables']) {
      expect(check(`mode: ${mode}\n${config}`)).toEqual([expect.stringContaining(` error: ${said}`)]);
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
    expect(describe(diagnostics)).toEqual([expect.stringContaining('error: --cluster-cidr cannot be ""')]);
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
    return describe(resolveSettings(read, {}, release).diagnostics);
  };

  test.each(['AllAlpha: false', 'AllAlpha: true, AllBeta: true', 'StrictIPCIDRValidation: false', 'NodeSwap: true'])(
    'that a release knows are right, whether they shape rules or not: %s',
    (config) => expect(gate(config, '1.37')).toEqual([]),
  );

  test.each([
    [
      'NoSuchGate: true',
      '1.38',
      'kube-proxy v1.38.0-beta.0 does not start with the unknown feature gate "NoSuchGate": leave it out',
    ],
    [
      'AllowServiceExternalIP: false',
      '1.37',
      'feature gate "AllowServiceExternalIP": did you mean AllowServiceExternalIPs?',
    ],
    ['MultiCIDRServiceAllocator: true', '1.38', 'leave it out (Kubernetes 1.30 to 1.37 know it)'],
    ['AllowServiceExternalIPs: false', '1.35', 'kube-proxy v1.35.4 does not start with the unknown feature gate'],
    ['StrictIPCIDRValidation: false', '1.38', 'the feature gate StrictIPCIDRValidation=false: it is locked to true'],
    ['TopologyAwareHints: false', '1.33', 'kube-proxy v1.33.13 does not start with the feature gate'],
    ['AllAlpha: true', '1.37', 'TopologyAwareWorkloadScheduling (needs '],
  ] as const)('with which kube-proxy does not start are errors: %s in %s', (config, release, words) => {
    const said = gate(config, release);
    expect(said).toEqual([expect.stringMatching(/ error: .*\[bad-feature-gate\]$/)]);
    expect(said[0]).toContain(words);
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
    expect(severities('ipvs')).toEqual(['error:', 'error:', 'error:']);
    expect(severities('iptables')).toEqual(['warning:', 'warning:', 'warning:']);
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
      'error: kube-proxy v1.37.2 does not start with the unknown feature gate "KubeProxyIPSV": did you mean KubeProxyIPVS? [bad-feature-gate]',
      'error: --bind-address cannot be "localhost": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
      'error: --conntrack-max-per-core cannot be "2147483648": write a number from 0 to 2147483647 [bad-value]',
      'error: --conntrack-min cannot be "-1": write a number from 0 to 2147483647 [bad-value]',
      'error: --conntrack-udp-timeout cannot be "10": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
      'error: --feature-gates cannot be "AllAlpha": write NAME=true or NAME=false [bad-value]',
      'error: --feature-gates cannot be "AllBeta=maybe": write NAME=true or NAME=false [bad-value]',
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
    expect(describe(diagnostics)).toEqual([
      '10:5 error: there is another KubeProxyConfiguration before this one: keep one of them, or name one with --config [duplicate-configuration]',
    ]);
  });

  test('of another version', () => {
    const text = head.replace('v1alpha1', 'v1alpha2');
    expect(describe(readConfig(new TextFile('config.yaml', text)).diagnostics)).toEqual([
      '1:13 error: the file holds no configuration of kube-proxy: name one with a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), a ConfigMap that contains one, a systemd unit that starts kube-proxy with flags, or a configuration of kubeadm, kind or k3s [no-config]',
      '1:13 warning: apiVersion is "kubeproxy.config.k8s.io/v1alpha2", so kpc ignores this object: did you mean KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)? [unknown-kind]',
    ]);
  });
});
