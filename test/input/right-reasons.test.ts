import { describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

async function faultsOf(manifest: string): Promise<string> {
  const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'iptables', '--print', 'iptables'], {
    stdin: manifest,
  });
  return run.stderr;
}

function service(address: string): string {
  return `{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.80, externalIPs: ['${address}'], ports: [{ port: 80 }] } }`;
}

function configuration(fields: string): string {
  return `{ apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, ${fields} }`;
}

const refused = '; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on';

describe('why an address is odd', () => {
  test.for([
    ['192.0.2.010', `is read as 192.0.2.10${refused}`],
    ['::ffff:192.0.2.1', `is read as 192.0.2.1${refused}`],
    ['::FFFF:C000:201', `is read as 192.0.2.1${refused}`],
    ['2001:db8::192.0.2.1', 'is read as 2001:db8::c000:201'],
    ['2001:DB8::1', 'is read as 2001:db8::1'],
  ] as const)('%s', async ([address, reason]) => {
    expect(await faultsOf(service(address))).toContain(`externalIPs[0] "${address}" ${reason} [odd-address]`);
  });
});

describe('a setting that kube-proxy takes and kpc-apply does not', () => {
  test.for([
    ['conntrack: { maxPerCore: 12 }', 'maxPerCore is "12", but kpc-apply rejects a bundle with it'],
    ['conntrack: { min: 99999999 }', 'min is "99999999", but kpc-apply rejects a bundle with it'],
    ['conntrack: { udpTimeout: 300000h }', 'udpTimeout is "300000h", but kpc-apply rejects a bundle with it'],
  ] as const)('%s', async ([fields, words]) => {
    const told = await faultsOf(configuration(fields));
    expect(told).toContain(`warning: ${words}`);
  });

  test.for([
    'conntrack: { maxPerCore: 0, min: 0 }',
    'conntrack: { maxPerCore: 1024, udpTimeout: 1s }',
    'conntrack: { maxPerCore: null }',
  ])('none of %s', async (fields) => {
    expect(await faultsOf(configuration(fields))).not.toContain('not-applicable');
  });
});

describe('what is wrong with a setting', () => {
  test.for([
    ['ipvs: { udpTimeout: 5 }', 'udpTimeout is the number 5, not a string'],
    ['conntrack: { udpTimeout: 0 }', 'udpTimeout is the number 0, not a string'],
    ['showHiddenMetricsForVersion: 1', 'showHiddenMetricsForVersion is the number 1, not a string'],
    ['conntrack: { min: 1.5 }', 'min cannot be 1.5'],
    ['conntrack: { min: 3000000000 }', 'min cannot be 3000000000'],
    ['oomScoreAdj: 0.5', 'oomScoreAdj cannot be 0.5'],
    ['conntrack: { udpTimeout: -2s }', 'udpTimeout cannot be "-2s"'],
    ['conntrack: { udpTimeout: 2d }', 'udpTimeout cannot be "2d"'],
  ] as const)('%s', async ([fields, words]) => {
    expect(await faultsOf(configuration(fields))).toContain(words);
  });
});
