import { bundleFaultWords } from '../../src/say/words/bundle.ts';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readFolder, replaceFolder } from '../../src/bundle/folder.ts';
import { makeBundle, type BundleContent } from '../../src/bundle/make-bundle.ts';
import { readBundle } from '../../src/bundle/read-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import type { ProxySettings } from '../../src/cluster/objects.ts';
import { compileIptables } from '../../src/modes/iptables/compile-iptables.ts';
import { compileIpvs } from '../../src/modes/ipvs/compile-ipvs.ts';
import { equalStates } from '../../src/kernel/state.ts';
import { families } from '../../src/kernel/address.ts';
import {
  address,
  clusterOf,
  defaults,
  endpoint,
  goingAway,
  network,
  remote,
  servicePort,
  worker,
} from '../modes/iptables/compile.ts';

const cluster = clusterOf(
  servicePort({
    portName: 'http',
    nodePort: 30080,
    externalIPs: [address('198.51.100.9')],
    loadBalancerIPs: [address('198.51.100.7')],
    sourceRanges: [network('203.0.113.0/24')],
    affinitySeconds: 600,
    externalPolicyLocal: true,
    endpoints: [endpoint('10.244.1.5', { zoneHints: ['zone-a'] }), remote('10.244.2.5', goingAway)],
  }),
  servicePort({ service: 'web6', family: 'ipv6', clusterIP: address('fd00:10::a'), endpoints: [] }),
);

function contentOf(mode: ProxySettings['mode']): BundleContent {
  const settings = { ...defaults, mode };
  const compile = mode === 'ipvs' ? compileIpvs : compileIptables;
  const state = compile(cluster, worker, settings, families);
  return { state, cluster, node: worker, settings, families, assigned: [], kpcVersion: '1.2.3' };
}

function problemsOf(files: ReadonlyMap<string, string>): readonly string[] {
  const reading = readBundle(files, compileState);
  return reading.kind === 'broken' ? reading.problems.map(bundleFaultWords) : [];
}

describe.each(['ipvs', 'iptables'] as const)('a bundle in mode %s', (mode) => {
  const content = contentOf(mode);
  const { files } = makeBundle(content);

  test('reads back as the state and the cluster that it was made of', () => {
    const reading = readBundle(files, compileState);
    if (reading.kind !== 'bundle') throw new Error(JSON.stringify(reading.problems));
    expect(equalStates(reading.bundle.snapshot.state, content.state)).toBe(true);
    expect(reading.bundle.snapshot.cluster).toEqual(cluster);
    expect(reading.bundle.manifest.node.name).toBe('worker-1');
  });

  test('has the files of its mode', () => {
    const ofIpvs = ['ipset.restore', 'ipvsadm.restore', 'ip.batch'];
    expect(ofIpvs.every((name) => files.has(name) === (mode === 'ipvs'))).toBe(true);
  });

  test('is refused when any byte of any file has changed', () => {
    for (const [name, text] of files) {
      if (name === 'manifest.json') continue;
      expect(problemsOf(new Map([...files, [name, `${text} `]]))).toEqual([
        expect.stringMatching(/^\S+ has changed since it was compiled/),
      ]);
    }
  });

  test('is refused when a file is missing', () => {
    const missing = new Map([...files].filter(([name]) => name !== 'sysctl.conf'));
    expect(problemsOf(missing)).toEqual(['sysctl.conf is missing']);
  });
});

test('a bundle in a newer format is refused', () => {
  const { files } = makeBundle(contentOf('ipvs'));
  const manifest = (files.get('manifest.json') ?? '').replace('"formatVersion": 1', '"formatVersion": 2');
  expect(problemsOf(new Map([...files, ['manifest.json', manifest]]))).toEqual([
    'its format version is 2, but this program reads 1: use the same version of kpc and kpc-apply, or write the file again',
  ]);
});

describe('a manifest of another shape', () => {
  const { files } = makeBundle(contentOf('ipvs'));
  const withManifest = (change: (manifest: Record<string, unknown>) => void): readonly string[] => {
    const manifest = JSON.parse(files.get('manifest.json') ?? '') as Record<string, unknown>;
    change(manifest);
    return problemsOf(new Map([...files, ['manifest.json', JSON.stringify(manifest)]]));
  };

  test.each([
    [{ mode: 'ebpf' }, 'mode must be "ipvs" or "iptables" or "nftables" or "userspace"'],
    [{ settings: {} }, 'settings.mode is missing'],
    [
      { settings: { ...defaults, ipvs: { ...defaults.ipvs, excludeCIDRs: [5] } } },
      'settings.ipvs.excludeCIDRs[0] must be a CIDR',
    ],
    [
      { settings: { ...defaults, detectLocal: { mode: 'BridgeInterface' } } },
      'settings.detectLocal.bridgeInterface is missing',
    ],
    [{ tools: null }, 'tools must be an object'],
    [{ tools: { ipset: 6 } }, 'tools.ipset must be a string'],
    [{ node: null }, 'node must be an object'],
    [
      { node: { name: '', zone: '', podCIDRs: [], nodeIPs: { ipv4: '127.0.0.1', ipv6: '::1' }, hostAddresses: 'x' } },
      'node.hostAddresses must be a list',
    ],
    [{ families: ['ipv5'] }, 'families[0] must be "ipv4" or "ipv6"'],
    [{ ipvsTimeouts: { tcp: '900', tcpFin: 120, udp: 300 } }, 'ipvsTimeouts.tcp must be a number from 0 on'],
    [{ ipvsTimeouts: { tcp: -1, tcpFin: 120, udp: 300 } }, 'ipvsTimeouts.tcp must be a number from 0 on'],
    [
      { healthChecks: [{ port: 70_000, service: 'a/b', localEndpoints: {} }] },
      'healthChecks[0].port must be a whole number from 1 to 65535',
    ],
    [
      { healthChecks: [{ port: 30_000, service: 'a/b', localEndpoints: { ipv4: 1.5 } }] },
      'healthChecks[0].localEndpoints.ipv4 must be a whole number from 0 on',
    ],
    [{ assigned: [null] }, 'assigned[0] must be an object'],
    [{ files: { 'ip.batch': 5 } }, 'files.ip.batch must be a SHA-256 in hex'],
  ])('%j is refused', (change, reason) => {
    const problems = withManifest((manifest) => Object.assign(manifest, change));
    expect(problems.filter((problem) => problem.endsWith(`: ${reason}`))).toEqual([
      expect.stringMatching(/^manifest\.json:\d+:\d+: /),
    ]);
  });

  test('is refused without any one of its fields', () => {
    const manifest = JSON.parse(files.get('manifest.json') ?? '') as Record<string, unknown>;
    for (const name of Object.keys(manifest).filter((key) => key !== 'formatVersion')) {
      expect(withManifest((whole) => void delete whole[name])).toEqual([`manifest.json:1:1: ${name} is missing`]);
    }
  });

  test('is refused where it is no object at all', () => {
    for (const text of ['null', '5', '"text"', '[]']) {
      expect(problemsOf(new Map([...files, ['manifest.json', text]]))).toHaveLength(1);
    }
  });

  test('is refused with a field that kpc would not write, or with one twice', () => {
    const text = files.get('manifest.json') ?? '';
    const more = text.replace('"zone"', '"note": 1,\n    "zone"').replace('"families"', '"mode": "ipvs", "families"');
    const lines = more.split('\n');
    const lineOf = (name: string) => lines.findIndex((line) => line.includes(name)) + 1;
    expect(problemsOf(new Map([...files, ['manifest.json', more]]))).toEqual([
      `manifest.json:${lineOf('"note"')}:5: node has an unknown field "note"`,
      `manifest.json:${lineOf('"families"')}:3: this key is in the same object twice`,
    ]);
  });

  test('does not hide what is wrong with services.json', () => {
    const broken = new Map([...files, ['manifest.json', '{'], ['services.json', '{"services": 5}']]);
    expect(problemsOf(broken)).toEqual([
      'manifest.json: it is not JSON',
      'services.json:1:1: servicePorts is missing',
      'services.json:1:1: healthChecks is missing',
      'services.json:1:14: services must be a list',
    ]);
  });
});

describe('replacing a folder', () => {
  let parent: string;
  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'kpc-folder-'));
  });
  afterEach(() => rm(parent, { recursive: true }));

  const files = new Map([
    ['manifest.json', '{}'],
    ['ip.batch', 'one\n'],
  ]);

  test('leaves just the new files, and nothing beside the folder', async () => {
    const folder = join(parent, 'deep', 'bundle');
    expect(await replaceFolder(folder, new Map([['sysctl.conf', 'old\n']]))).toBeUndefined();
    expect(await replaceFolder(folder, files)).toBeUndefined();
    expect(await readFolder(folder)).toEqual(files);
    expect(await readdir(join(parent, 'deep'))).toEqual(['bundle']);
  });

  test('does not touch a folder that holds something else', async () => {
    await writeFile(join(parent, 'thesis.tex'), 'years of work');
    expect(await replaceFolder(parent, files)).toEqual({
      kind: 'not-a-bundle',
      folder: parent,
      strangers: ['thesis.tex'],
    });
    expect(await readdir(parent)).toEqual(['thesis.tex']);
  });

  test('says why where it cannot write', async () => {
    const file = join(parent, 'file');
    await writeFile(file, '');
    expect(await replaceFolder(join(file, 'bundle'), files)).toMatchObject({ kind: 'io' });
  });
});
