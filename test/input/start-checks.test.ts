import { describe as suite, expect, test } from 'vitest';
import { readConfig } from '../../src/input/configuration/read-config.ts';
import { resolveSettings } from '../../src/input/configuration/resolve-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { describe } from './diagnose.ts';

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
const stays = 'kube-proxy does not start';

/** What is said of a configuration with these lines, which start at line 3. */
function check(config: string, flags: Parameters<typeof resolveSettings>[1] = {}): string[] {
  const read = readConfig(new TextFile('config.yaml', `${head}${config}\n`));
  return describe([...read.diagnostics, ...resolveSettings(read.config, flags).diagnostics]);
}

suite('the mode that nothing names', () => {
  const note =
    "mode iptables, kube-proxy's default before Kubernetes 1.40: the configuration names none (--proxy-mode does)";

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
    const { config } = readConfig(new TextFile('config.yaml', `${head}mode: ipvs\n`));
    expect(resolveSettings(config, {})).toMatchObject({ settings: { mode: 'ipvs' }, modeNote: undefined });
  });
});

suite('a configuration with which kube-proxy does not start', () => {
  test.each([
    [
      'featureGates: {SupportIPVSProxyMode: true}',
      '3:38 error: kube-proxy v1.37.2 knows no feature gate "SupportIPVSProxyMode", and does not start: leave it out [bad-feature-gate]',
    ],
    [
      'featureGates: {AllowServiceExternalIP: false}',
      '3:40 error: kube-proxy v1.37.2 knows no feature gate "AllowServiceExternalIP", and does not start: did you mean AllowServiceExternalIPs? [bad-feature-gate]',
    ],
    [
      'featureGates: {NFTablesProxyMode: false}',
      '3:35 error: the feature gate NFTablesProxyMode is true for good, and kube-proxy v1.37.2 does not start with false: leave it out [bad-feature-gate]',
    ],
    [
      'featureGates: {WorkloadWithJob: true}',
      `3:33 error: ${stays}: the feature gate WorkloadWithJob is on, and needs GenericWorkload, too: turn all of them on, or none [bad-feature-gate]`,
    ],
    [
      'configSyncPeriod: soon',
      '3:19 error: configSyncPeriod cannot be "soon": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'bindAddress: localhost',
      '3:14 error: bindAddress "localhost" is not an IP address: write one such as 10.0.0.1 or fd00::1, without a prefix length [bad-address]',
    ],
    [
      'nodePortAddresses: [""]',
      '3:21 error: nodePortAddresses "" is not a network: write it like 10.0.0.0/8 or fd00::/64, or one of the words primary, localhost and all [bad-cidr]',
    ],
    [
      'conntrack: {maxPerCore: -1}',
      '3:25 error: maxPerCore cannot be -1: a whole number from 0 to 2147483647 [bad-number]',
    ],
    [
      'conntrack: {udpTimeout: -1s}',
      '3:25 error: udpTimeout cannot be "-1s": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'clientConnection: {burst: -1}',
      '3:27 error: burst cannot be -1: a whole number from 0 to 2147483647 [bad-number]',
    ],
  ])('%s', (config, message) => {
    expect(check(config)).toEqual([message]);
  });

  test('of several feature gates each that is wrong is named', () => {
    expect(check('featureGates: {APIServerIdentity: false, StorageVersionAPI: true}')).toEqual([
      `3:35 error: ${stays}: the feature gate UnknownVersionInteroperabilityProxy is on, and needs APIServerIdentity, too: turn all of them on, or none [bad-feature-gate]`,
      `3:61 error: ${stays}: the feature gate StorageVersionAPI is on, and needs APIServerIdentity, too: turn all of them on, or none [bad-feature-gate]`,
    ]);
    expect(check('featureGates:\n  NoSuchGate: true\n  NFTablesProxyMode: false')).toHaveLength(2);
  });
});

suite('a configuration that kube-proxy cannot decode, whatever its mode', () => {
  test.each([
    [
      'nftables: {minSyncPeriod: 31d}',
      'minSyncPeriod cannot be "31d": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'ipvs: {syncPeriod: "30"}',
      'syncPeriod cannot be "30": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'iptables: {syncPeriod: ""}',
      'syncPeriod cannot be "": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'ipvs: {tcpTimeout: 1e3s}',
      'tcpTimeout cannot be "1e3s": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
    ],
    [
      'conntrack: {udpTimeout: null}',
      'udpTimeout cannot be empty: write a duration such as "15m0s" or "30s" [bad-type]',
    ],
    [
      'configSyncPeriod: null',
      'configSyncPeriod cannot be empty: write a duration such as "15m0s" or "30s" [bad-type]',
    ],
    ['clientConnection: {kubeconfig: 5}', 'kubeconfig is the number 5, not a string: put it in quotes [bad-type]'],
    ['clientConnection: {qps: "5"}', 'qps cannot be "5": write a number [bad-type]'],
    ['logging: {verbosity: -1}', 'verbosity cannot be -1: a whole number from 0 to 4294967295 [bad-number]'],
    ['logging: {options: {json: {splitStream: "yes"}}}', 'splitStream cannot be "yes": write true or false [bad-type]'],
    ['winkernel: {enableDSR: 1}', 'enableDSR cannot be 1: write true or false [bad-type]'],
    ['portRange: 5', 'portRange is the number 5, not a string: put it in quotes [bad-type]'],
    ['ipvs: {scheduler: [rr]}', 'scheduler cannot be a list: write a string [bad-type]'],
  ])('%s', (config, said) => {
    for (const mode of ['iptables', 'ipvs', 'nftables']) {
      expect(check(`mode: ${mode}\n${config}`)).toEqual([expect.stringContaining(` error: ${said}`)]);
    }
  });

  test.each([
    'conntrack: {tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null}',
    'ipvs: {syncPeriod: 1µs, minSyncPeriod: +0.5us}',
    'iptables: {localhostNodePorts: null}',
    'iptables: null',
    'clusterCIDR: ""',
    'logging: {flushFrequency: 5000, verbosity: null}',
  ])('and one that it can: %s', (config) => {
    expect(check(`mode: iptables\n${config}`)).toEqual([]);
  });
});

suite('flags that are given empty, or twice', () => {
  const settingsOf = (flags: Parameters<typeof resolveSettings>[1]) =>
    resolveSettings(undefined, { proxyMode: 'ipvs', ...flags });

  test('one empty CIDR is none, but kube-proxy reads it in mode ClusterCIDR only', () => {
    const { diagnostics } = settingsOf({ clusterCidr: '' });
    expect(describe(diagnostics)).toEqual([expect.stringContaining('error: --cluster-cidr "" is not a network')]);
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

suite('what kube-proxy starts with', () => {
  test.each([
    'featureGates: {AllAlpha: true, GenericWorkload: true}',
    'featureGates: {AllBeta: false}',
    'featureGates: {NFTablesProxyMode: true, GenericWorkload: true, WorkloadWithJob: true}',
    'featureGates: {WorkloadWithJob: true, AllAlpha: true, AllBeta: true}',
    'featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: true, infoBufferSize: 4Ki}}}',
    'iptables: {syncPeriod: 0s, minSyncPeriod: 0s}',
    'iptables: {syncPeriod: 1s, minSyncPeriod: 1s}',
    // Only the mode that is used counts.
    'ipvs: {syncPeriod: -1s, minSyncPeriod: 1h}',
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
      featureGates: 'AllAlpha,NoSuchGate=true,AllBeta=maybe',
      conntrackMin: '-1',
      conntrackMaxPerCore: '2147483648',
      conntrackUdpTimeout: '10',
    });
    expect(describe(diagnostics)).toEqual([
      'error: --bind-address "localhost" is not an IP address: write one such as 10.0.0.1 or fd00::1, without a prefix length [bad-address]',
      'error: kube-proxy v1.37.2 knows no feature gate "NoSuchGate", and does not start: leave it out [bad-feature-gate]',
      'error: --conntrack-max-per-core cannot be "2147483648": write a number from 0 to 2147483647 [bad-setting]',
      'error: --conntrack-min cannot be "-1": write a number from 0 to 2147483647 [bad-setting]',
      'error: --conntrack-udp-timeout cannot be "10": write a duration such as 15m0s or 30s, from 0 up [bad-setting]',
      'error: --feature-gates cannot be "AllAlpha": write the name of a gate, = and true or false [bad-setting]',
      'error: --feature-gates cannot be "AllBeta=maybe": write the name of a gate, = and true or false [bad-setting]',
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
      '1:13 error: the file holds no configuration of kube-proxy: name one with a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), a ConfigMap with one among its data, or a configuration of kubeadm, kind or k3s [no-config]',
      '1:13 warning: apiVersion is "kubeproxy.config.k8s.io/v1alpha2", and kpc ignores this object: did you mean KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)? [unknown-kind]',
    ]);
  });
});
