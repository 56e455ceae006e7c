import { describe as suite, expect, test } from 'vitest';
import { readConfig, resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { describe } from './diagnose.ts';

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

function resolve(
  config: string,
  flags: Parameters<typeof resolveSettings>[1] = {},
): ReturnType<typeof resolveSettings> {
  const read = readConfig(new TextFile('config.yaml', `${head}${config}`));
  const { diagnostics, ...resolved } = resolveSettings(read.config, flags);
  return { ...resolved, diagnostics: [...read.diagnostics, ...diagnostics] };
}

test('without a config and flags: the defaults of kube-proxy, but for the mode', () => {
  expect(resolveSettings(undefined, {})).toEqual({
    settings: {
      release: '1.37',
      mode: 'ipvs',
      hostnameOverride: '',
      bindAddress: '',
      clusterCIDRs: [],
      detectLocal: { mode: 'ClusterCIDR' },
      nodePortAddresses: [],
      masqueradeAll: false,
      masqueradeBit: 14,
      localhostNodePorts: true,
      ipvs: { scheduler: 'rr', strictARP: false, excludeCIDRs: [], tcpTimeout: 0, tcpFinTimeout: 0, udpTimeout: 0 },
      conntrack: {
        maxPerCore: 32768,
        min: 131072,
        tcpEstablishedTimeout: 86400,
        tcpCloseWaitTimeout: 3600,
        tcpBeLiberal: false,
        udpTimeout: 0,
        udpStreamTimeout: 0,
      },
    },
    gates: new Map(),
    diagnostics: [],
    modeNote: {
      severity: 'note',
      code: 'default-mode',
      arguments: { named: 'nothing' },
      place: undefined,
    },
  });
});

test('a flag wins over the config', () => {
  const config = [
    'mode: iptables',
    'clusterCIDR: 10.244.0.0/16,fd00::/56',
    'hostnameOverride: Node-1',
    'iptables: {masqueradeBit: 0, masqueradeAll: true}',
    'ipvs: {scheduler: wrr, tcpTimeout: 15m0s, udpTimeout: 1h1.5s, excludeCIDRs: [192.0.2.0/24]}',
    'nodePortAddresses: [192.168.0.0/16]',
    'detectLocalMode: BridgeInterface',
    'detectLocal: {bridgeInterface: cni0}',
    'bindAddress: "::"',
  ].join('\n');
  expect(resolve(config)).toMatchObject({
    settings: {
      mode: 'iptables',
      clusterCIDRs: ['10.244.0.0/16', 'fd00::/56'],
      hostnameOverride: 'node-1',
      masqueradeBit: 0,
      masqueradeAll: true,
      ipvs: { scheduler: 'wrr', tcpTimeout: 900, udpTimeout: 3601, excludeCIDRs: ['192.0.2.0/24'] },
      nodePortAddresses: ['192.168.0.0/16'],
      detectLocal: { mode: 'BridgeInterface', bridgeInterface: 'cni0' },
      bindAddress: '',
    },
    diagnostics: [],
  });
  const flags = {
    proxyMode: 'ipvs',
    clusterCidr: '10.0.0.0/8',
    hostnameOverride: ' NODE-2 ',
    iptablesMasqueradeBit: '31',
    masqueradeAll: 'false',
    ipvsScheduler: 'mh',
    ipvsStrictArp: true,
    ipvsTcpTimeout: '0',
    nodeportAddresses: 'primary',
    ipvsExcludeCidrs: ['192.0.2.0/25,fd00::/8', '203.0.113.0/24'],
    podBridgeInterface: 'br0',
  };
  expect(resolve(config, flags)).toMatchObject({
    settings: {
      mode: 'ipvs',
      clusterCIDRs: ['10.0.0.0/8'],
      hostnameOverride: 'node-2',
      masqueradeBit: 31,
      masqueradeAll: false,
      ipvs: {
        scheduler: 'mh',
        strictARP: true,
        tcpTimeout: 0,
        excludeCIDRs: ['192.0.2.0/25', 'fd00::/8', '203.0.113.0/24'],
      },
      nodePortAddresses: ['primary'],
      detectLocal: { mode: 'BridgeInterface', bridgeInterface: 'br0' },
    },
    diagnostics: [],
  });
});

suite('what is wrong with a config', () => {
  const networkHint = 'write a network such as 10.0.0.0/8 or fd00::/64 [bad-value]';
  test.each([
    [
      'mode: userspace',
      '3:7 error: mode is userspace: kpc follows userspace mode of Kubernetes 1.25, not of 1.37: choose one of these releases with --kubernetes-version, or another mode with --proxy-mode [bad-mode]',
    ],
    ...['kernelspace', 'winuserspace'].map((mode): [string, string] => [
      `mode: ${mode}`,
      `3:7 error: mode cannot be "${mode}": a bundle is for a Linux host: write ipvs, iptables, nftables or userspace [bad-value]`,
    ]),
    ['mode: IPVS', '3:7 error: mode cannot be "IPVS": write ipvs, iptables, nftables or userspace [bad-value]'],
    ['clusterCIDR: 10.0.0.0/33', `3:14 error: clusterCIDR cannot be "10.0.0.0/33": ${networkHint}`],
    [
      'clusterCIDR: 10.0.0.0/8,10.1.0.0/16',
      '3:14 error: clusterCIDR cannot be "10.0.0.0/8,10.1.0.0/16": write one network, or one of each family [bad-value]',
    ],
    [
      'nodePortAddresses: [10.0.0.1]',
      '3:21 error: nodePortAddresses cannot be "10.0.0.1": write a network such as 10.0.0.0/8 or fd00::/64, or one of the words primary, localhost and all [bad-value]',
    ],
    [
      'nodePortAddresses: [all, primary, all]',
      '3:35 error: nodePortAddresses cannot be "all": it is listed twice, so kube-proxy does not start: write it once [bad-value]',
    ],
    ['ipvs: {excludeCIDRs: [x]}', `3:23 error: excludeCIDRs cannot be "x": ${networkHint}`],
    [
      'ipvs: {tcpTimeout: 15}',
      '3:20 error: tcpTimeout is the number 15, not a string: write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    [
      'ipvs: {tcpTimeout: 15x}',
      '3:20 error: tcpTimeout cannot be "15x": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    [
      'ipvs: {udpTimeout: -5s}',
      '3:20 error: udpTimeout cannot be "-5s": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
    ],
    [
      'ipvs: {scheduler: fastest}',
      '3:19 error: scheduler cannot be "fastest": write one of rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh, fo, ovf, twos [bad-value]',
    ],
    [
      'iptables: {masqueradeBit: 32}',
      '3:27 error: masqueradeBit cannot be 32: the bit of the packet mark is a number from 0 to 31 [bad-value]',
    ],
    [
      'detectLocalMode: clusterCIDR',
      '3:18 error: detectLocalMode cannot be "clusterCIDR": write ClusterCIDR [bad-value]',
    ],
    [
      'detectLocalMode: BridgeInterface',
      '3:18 error: --pod-bridge-interface cannot be "": detectLocalMode BridgeInterface needs an interface: write at most 15 bytes without blanks, quotes, slashes and * [bad-value]',
    ],
    [
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: "a b"}',
      '4:36 error: detectLocal.interfaceNamePrefix cannot be "a b": kube-proxy accepts it, but its rules fail or match other interfaces: write at most 14 bytes without blanks, quotes, slashes and * [bad-value]',
    ],
    [
      'bindAddress: here',
      '3:14 error: bindAddress cannot be "here": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
    ],
    [
      'ipvs:\n  stritARP: true',
      '4:3 warning: the configuration has no field "stritARP": kube-proxy ignores it: did you mean strictARP? [unknown-field]',
    ],
  ])('%s', (config, message) => {
    const flags = config.startsWith('mode') ? {} : { proxyMode: 'ipvs' };
    expect(describe(resolve(config, flags).diagnostics)).toEqual([message]);
  });

  test('cluster CIDRs that are not used are not checked, as kube-proxy does not', () => {
    expect(resolve('detectLocalMode: NodeCIDR\nclusterCIDR: nonsense').diagnostics).toEqual([]);
  });

  test('flags', () => {
    const { diagnostics } = resolve('', {
      proxyMode: 'ebpf',
      iptablesMasqueradeBit: '1e1',
      masqueradeAll: 'maybe',
      hostnameOverride: ' ',
      ipvsUdpTimeout: '5',
    });
    expect(describe(diagnostics).toSorted()).toEqual(
      [
        'error: --ipvs-udp-timeout cannot be "5": write a duration such as 15m0s or 30s, from 0 up [bad-value]',
        'error: --iptables-masquerade-bit cannot be "1e1": write a number from 0 to 31 [bad-value]',
        'error: --masquerade-all cannot be "maybe": write true or false [bad-value]',
        'error: --hostname-override cannot be " ": write lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends [bad-value]',
        'error: --proxy-mode cannot be "ebpf": write ipvs, iptables, nftables or userspace [bad-value]',
      ].sort(),
    );
  });
});

suite("kube-proxy's ConfigMap", () => {
  const configMap = (style: string, ...lines: string[]): string =>
    `apiVersion: v1\ndata:\n  config.conf: ${style}\n${lines.map((line) => `    ${line}\n`).join('')}  kubeconfig.conf: ""\nkind: ConfigMap\nmetadata: {name: kube-proxy}\n`;
  const read = (text: string): ReturnType<typeof readConfig> => readConfig(new TextFile('cm.yaml', text));

  test('its configuration is read, and errors point into the file', () => {
    const { config, diagnostics } = read(
      configMap('|-', ...head.trim().split('\n'), 'ipvs:', '  scheduler: sh', '  stritARP: yes'),
    );
    expect(resolveSettings(config, {}).settings.ipvs.scheduler).toBe('sh');
    expect(describe(diagnostics)).toEqual([
      '8:7 warning: the configuration has no field "stritARP": kube-proxy ignores it: did you mean strictARP? [unknown-field]',
    ]);
    expect(config?.source.place(['ipvs', 'scheduler']).locate()).toEqual({ file: 'cm.yaml', line: 7, column: 18 });
  });

  test('bad YAML inside it', () => {
    expect(describe(read(configMap('|', 'mode: ipvs', '\tx: 1')).diagnostics)).toEqual([
      '5:5 error: a tab is used for indentation: indent with spaces: YAML does not allow tabs [yaml-tab]',
    ]);
  });

  test('as JSON, errors point at the key that holds it', () => {
    const text = JSON.stringify(
      { apiVersion: 'v1', kind: 'ConfigMap', data: { 'config.conf': `${head}nope: 1\n` } },
      null,
      2,
    );
    expect(describe(read(text).diagnostics)).toEqual([
      '5:20 warning: the configuration has no field "nope": kube-proxy ignores it [unknown-field]',
    ]);
  });

  test('a file that holds none, and one that holds two', () => {
    expect(describe(read('apiVersion: v1\nkind: ConfigMap\n').diagnostics)).toEqual([
      '1:1 error: the file holds no configuration of kube-proxy: name one with a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), a ConfigMap that contains one, a systemd unit that starts kube-proxy with flags, or a configuration of kubeadm, kind or k3s [no-config]',
    ]);
    expect(describe(read(`${head}---\n${head}`).diagnostics)).toEqual([
      '4:1 error: there is another KubeProxyConfiguration before this one: keep one of them, or name one with --config [duplicate-configuration]',
    ]);
  });
});
