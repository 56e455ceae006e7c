import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { callApply, type ApplyRun } from '../apply/call-apply.ts';
import { createFakeNode, type FakeNode } from '../apply/fake-node.ts';
import { fixtureBundle, forgeWhole, type Files } from './forge.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-consistent-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Editable = Record<string, any>; // oxlint-disable-line

/** A bundle whose files all result from compiling the forged meaning: nothing but the meaning gives it away. */
function forgeMeaning(
  fixture: string,
  edit: (services: Editable, manifest: Editable) => void,
  folder = mkdtempSync(join(scratch, 'b-')),
): string {
  const files = forgeWhole(fixtureBundle(fixture), (changed: Files) => {
    const services = JSON.parse(changed.get('services.json') ?? '');
    const manifest = JSON.parse(changed.get('manifest.json') ?? '');
    edit(services, manifest);
    changed.set('services.json', JSON.stringify(services));
    changed.set('manifest.json', JSON.stringify(manifest));
  });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  return folder;
}

async function apply(node: FakeNode, folder: string): Promise<ApplyRun> {
  return callApply(node.host, 'apply', folder);
}

describe('what a forged meaning says that no cluster does', () => {
  test.each<[name: string, edit: (services: Editable, manifest: Editable) => void, reason: RegExp]>([
    [
      'more connections per core than a node has memory for, of a kube-proxy without a bound',
      (_, manifest) => {
        manifest['kubeProxyVersion'] = 'v1.35.0';
        manifest['settings'].conntrack.maxPerCore = 500_000_000;
      },
      /settings\.conntrack\.maxPerCore must be 0, or from 1024 to 1048576/,
    ],
    [
      'no network where the pods are',
      (_, manifest) => (manifest['settings'].clusterCIDRs = ['10.0.0.0/33']),
      /settings\.clusterCIDRs must be CIDRs/,
    ],
    [
      'direct forwarding to another port',
      (services) => {
        services['servicePorts'][0].forwarding = 'direct';
        delete services['servicePorts'][0].nodePort;
      },
      /default\/nginx is not what kpc writes/,
    ],
    [
      'tunnelling from a node port',
      (services) => {
        const [port] = services['servicePorts'];
        port.forwarding = 'tunnel';
        for (const endpoint of port.endpoints) endpoint.port = port.number;
      },
      /default\/nginx is not what kpc writes/,
    ],
    [
      'ports of a Service that is not in the list',
      (services) => (services['services'] = []),
      /"default\/nginx" has ports or health checks, but is not in the list of Services/,
    ],
    [
      'a health check of a Service that is not in the list',
      (services) =>
        services['healthChecks'].push({
          namespace: 'default',
          service: 'ghost',
          family: 'ipv4',
          port: 30999,
          readyEndpoints: [],
        }),
      /"default\/ghost" has ports or health checks/,
    ],
  ])('%s is refused', async (_, edit, reason) => {
    const node = createFakeNode();
    const before = node.dump();
    const { status, err } = await apply(node, forgeMeaning('quickstart/expected-ipvs', edit));
    expect(err).toMatch(reason);
    expect(status).toBe(2);
    expect(node.commands).toEqual([]);
    expect(node.dump()).toBe(before);
  });
});

describe("a cluster IP that is the node's own address, of which the bundle says nothing", () => {
  const take = (services: Editable, manifest: Editable): void => {
    services['services'][0].clusterIPs = ['192.168.50.11'];
    services['servicePorts'][0].clusterIP = '192.168.50.11';
    manifest['node'].nodeIPs.ipv4 = '10.9.9.9';
    manifest['node'].hostAddresses = ['10.9.9.9'];
  };

  test.each(['ipvs', 'iptables'])('is in the way in mode %s, with --adopt and --force too', async (mode) => {
    const bundle = forgeMeaning('quickstart/expected-ipvs', (services, manifest) => {
      take(services, manifest);
      manifest['mode'] = mode;
      manifest['settings'].mode = mode;
    });
    for (const flags of [[], ['--adopt'], ['--force']]) {
      const node = createFakeNode();
      const before = node.dump();
      const { status, err } = await callApply(node.host, 'apply', bundle, ...flags);
      expect(err).toMatch(/these exist already, but kpc-apply did not make them: address 192\.168\.50\.11 of eth0/);
      expect(status).toBe(3);
      expect(node.dump()).toBe(before);
    }
  });

  test('is told by plan, and nothing else is once it is applied', async () => {
    const node = createFakeNode();
    const { out } = await callApply(node.host, 'plan', forgeMeaning('quickstart/expected-ipvs', take));
    expect(out).toMatch(/address 192\.168\.50\.11 of eth0/);
    // kube-ipvs0 has the cluster IPs from the first apply on, and is in no one's way.
    const honest = forgeMeaning('quickstart/expected-ipvs', () => {});
    for (let i = 0; i < 2; i++) expect(await apply(node, honest)).toMatchObject({ status: 0 });
  });
});
