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
  test.each([
    [
      'mode: userspace',
      '3:7 error bad-mode {"problem":"not-in-release","name":"mode","mode":"userspace","release":"1.37"}',
    ],
    ...['kernelspace', 'winuserspace'].map((mode): [string, string] => [
      `mode: ${mode}`,
      `3:7 error bad-value {"field":"mode","found":{"type":"string","value":"${mode}"},"form":"linux-mode"}`,
    ]),
    ['mode: IPVS', '3:7 error bad-value {"field":"mode","found":{"type":"string","value":"IPVS"},"form":"mode"}'],
    [
      'clusterCIDR: 10.0.0.0/33',
      '3:14 error bad-value {"field":"clusterCIDR","found":{"type":"string","value":"10.0.0.0/33"},"form":"network"}',
    ],
    [
      'clusterCIDR: 10.0.0.0/8,10.1.0.0/16',
      '3:14 error bad-value {"field":"clusterCIDR","found":{"type":"string","value":"10.0.0.0/8,10.1.0.0/16"},"form":"networks"}',
    ],
    [
      'nodePortAddresses: [10.0.0.1]',
      '3:21 error bad-value {"field":"nodePortAddresses","found":{"type":"string","value":"10.0.0.1"},"form":"network-or-word"}',
    ],
    [
      'nodePortAddresses: [all, primary, all]',
      '3:35 error bad-value {"field":"nodePortAddresses","found":{"type":"string","value":"all"},"expected":"it once","because":"it is listed twice, so kube-proxy does not start"}',
    ],
    [
      'ipvs: {excludeCIDRs: [x]}',
      '3:23 error bad-value {"field":"excludeCIDRs","found":{"type":"string","value":"x"},"form":"network"}',
    ],
    [
      'ipvs: {tcpTimeout: 15}',
      '3:20 error bad-value {"field":"tcpTimeout","found":{"type":"number","value":15},"types":["string"],"expected":"a duration such as 15m0s or 30s, from 0 up"}',
    ],
    [
      'ipvs: {tcpTimeout: 15x}',
      '3:20 error bad-value {"field":"tcpTimeout","found":{"type":"string","value":"15x"},"types":["string"],"expected":"a duration such as 15m0s or 30s, from 0 up"}',
    ],
    [
      'ipvs: {udpTimeout: -5s}',
      '3:20 error bad-value {"field":"udpTimeout","found":{"type":"string","value":"-5s"},"expected":"a duration such as 15m0s or 30s, from 0 up"}',
    ],
    [
      'ipvs: {scheduler: fastest}',
      '3:19 error bad-value {"field":"scheduler","found":{"type":"string","value":"fastest"},"expected":"one of rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh, fo, ovf, twos"}',
    ],
    [
      'iptables: {masqueradeBit: 32}',
      '3:27 error bad-value {"field":"masqueradeBit","found":{"type":"number","value":32},"types":["integer","null"],"expected":"the bit of the packet mark is a number from 0 to 31"}',
    ],
    [
      'detectLocalMode: clusterCIDR',
      '3:18 error bad-value {"field":"detectLocalMode","found":{"type":"string","value":"clusterCIDR"},"expected":"ClusterCIDR"}',
    ],
    [
      'detectLocalMode: BridgeInterface',
      '3:18 error bad-value {"field":"--pod-bridge-interface","found":{"type":"string","value":""},"expected":"at most 15 bytes without blanks, quotes, slashes and *","because":"detectLocalMode BridgeInterface needs an interface"}',
    ],
    [
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: "a b"}',
      '4:36 error bad-value {"field":"detectLocal.interfaceNamePrefix","found":{"type":"string","value":"a b"},"expected":"at most 14 bytes without blanks, quotes, slashes and *","because":"kube-proxy accepts it, but its rules fail or match other interfaces"}',
    ],
    [
      'bindAddress: here',
      '3:14 error bad-value {"field":"bindAddress","found":{"type":"string","value":"here"},"form":"address"}',
    ],
    [
      'ipvs:\n  stritARP: true',
      '4:3 warning unknown-field {"owner":"the configuration","reader":"kube-proxy","name":"stritARP","meant":"strictARP"}',
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
        'error bad-value {"field":"--ipvs-udp-timeout","found":{"type":"string","value":"5"},"expected":"a duration such as 15m0s or 30s, from 0 up"}',
        'error bad-value {"field":"--iptables-masquerade-bit","found":{"type":"string","value":"1e1"},"expected":"a number from 0 to 31"}',
        'error bad-value {"field":"--masquerade-all","found":{"type":"string","value":"maybe"},"expected":"true or false"}',
        'error bad-value {"field":"--hostname-override","found":{"type":"string","value":" "},"form":"subdomain"}',
        'error bad-value {"field":"--proxy-mode","found":{"type":"string","value":"ebpf"},"form":"mode"}',
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
      '8:7 warning unknown-field {"owner":"the configuration","reader":"kube-proxy","name":"stritARP","meant":"strictARP"}',
    ]);
    expect(config?.source.place(['ipvs', 'scheduler']).locate()).toEqual({ file: 'cm.yaml', line: 7, column: 18 });
  });

  test('bad YAML inside it', () => {
    expect(describe(read(configMap('|', 'mode: ipvs', '\tx: 1')).diagnostics)).toEqual(['5:5 error yaml-tab {}']);
  });

  test('as JSON, errors point at the key that holds it', () => {
    const text = JSON.stringify(
      { apiVersion: 'v1', kind: 'ConfigMap', data: { 'config.conf': `${head}nope: 1\n` } },
      null,
      2,
    );
    expect(describe(read(text).diagnostics)).toEqual([
      '5:20 warning unknown-field {"owner":"the configuration","reader":"kube-proxy","name":"nope"}',
    ]);
  });

  test('a file that holds none, and one that holds two', () => {
    expect(describe(read('apiVersion: v1\nkind: ConfigMap\n').diagnostics)).toEqual(['1:1 error no-config {}']);
    expect(describe(read(`${head}---\n${head}`).diagnostics)).toEqual(['4:1 error duplicate-configuration {}']);
  });
});
