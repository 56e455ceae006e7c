import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeRandom } from '../support/random.ts';
import { isFull, some } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-describe-dump-'));
afterAll(() => rmSync(folder, { recursive: true }));

type Random = () => number;

/** Services with all that a packet's way depends on, each with addresses and node ports of its own. */
function makeObjects(random: Random): readonly object[] {
  const chance = (share: number) => random() < share;
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1' },
    spec: { podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'] },
    status: { addresses: ['192.168.50.11', '2001:db8:50::11'].map((address) => ({ type: 'InternalIP', address })) },
  };
  return [node, ...Array.from({ length: 12 }, (_, i) => makeService(i + 1, chance)).flat()];
}

function makeService(i: number, chance: (share: number) => boolean): readonly object[] {
  const name = `service-${i}`;
  const type = chance(0.5) ? 'LoadBalancer' : chance(0.5) ? 'NodePort' : 'ClusterIP';
  const dual = chance(0.5);
  const protocol = chance(0.3) ? 'UDP' : 'TCP';
  const clusterIPs = [`10.96.0.${i}`, ...(dual ? [`fd00:96::${i}`] : [])];
  const ingress = [`198.51.100.${i}`, ...(dual ? [`2001:db8:1::${i}`] : [])];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: {
      type,
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: dual ? ['IPv4', 'IPv6'] : ['IPv4'],
      ipFamilyPolicy: dual ? 'RequireDualStack' : 'SingleStack',
      ports: [{ name: 'web', port: 80, protocol, ...(type === 'ClusterIP' ? {} : { nodePort: 30_000 + i }) }],
      ...(chance(0.3) ? { internalTrafficPolicy: 'Local' } : {}),
      ...(type !== 'ClusterIP' && chance(0.5) ? { externalTrafficPolicy: 'Local' } : {}),
      ...(chance(0.3) ? { externalIPs: [`203.0.113.${i}`] } : {}),
      ...(type === 'LoadBalancer' && chance(0.5)
        ? { loadBalancerSourceRanges: ['10.1.0.0/16', '192.0.2.7/32', '192.168.50.0/24', '2001:db8:7::/48'] }
        : {}),
      ...(chance(0.3) ? { sessionAffinity: 'ClientIP' } : {}),
    },
    ...(type === 'LoadBalancer' ? { status: { loadBalancer: { ingress: ingress.map((ip) => ({ ip })) } } } : {}),
  };
  const nodes = chance(0.2) ? [] : chance(0.4) ? [2, 3] : [1, 2];
  const slices = (dual ? ['IPv4', 'IPv6'] : ['IPv4']).map((addressType) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${addressType.toLowerCase()}`,
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    ports: [{ name: 'web', port: 8080, protocol }],
    endpoints: nodes.map((n) => ({
      addresses: [addressType === 'IPv4' ? `10.244.${n}.${i}` : `fd00:244:${n}::${i}`],
      nodeName: `node-${n}`,
    })),
  }));
  return [service, ...slices];
}

/** The files that the tools of a mode print. */
const dumpFiles = {
  iptables: ['iptables', 'ip6tables'],
  ipvs: ['ipset', 'iptables', 'ip6tables', 'ipvsadm'],
  nftables: ['nftables'],
} as const;

type Mode = keyof typeof dumpFiles;

/** What describe says of a way that packets take, in JSON. */
interface Said {
  readonly family: string;
  readonly protocol: string;
  readonly port: number;
  readonly nodePort?: number;
  readonly addresses: readonly { readonly kind: string; readonly address: string }[];
  readonly sourceRanges: readonly string[];
  readonly internalTrafficPolicy?: string;
  readonly externalTrafficPolicy?: string;
  readonly fallback?: string;
  readonly masquerade?: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly { readonly endpoint: string; readonly cluster?: string; readonly local?: string }[];
}

interface Dumped extends Omit<Said, 'endpoints'> {
  readonly servicePort: string;
  readonly endpoints: readonly { readonly endpoint: string }[];
}

async function json(args: readonly string[], cwd: string): Promise<unknown> {
  const run = await runKpc(['describe', ...args, '-q', '--output', 'json'], { cwd });
  expect(run.status, run.stderr).toBe(0);
  return resultOf(run.stdout);
}

/** The same cluster, described from its manifests and from what a node prints. */
async function describeBoth(mode: Mode, release: string, seed: number) {
  const cwd = mkdtempSync(join(folder, `${mode}-${release}-${seed}-`));
  const items = makeObjects(makeRandom(seed));
  writeFileSync(join(cwd, 'cluster.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const flags = ['-f', 'cluster.json', '--proxy-mode', mode, '--kubernetes-version', release];
  const options = [...flags, '--node', 'node-1', '--cluster-cidr', '10.244.0.0/16,fd00:244::/48'];
  for (const name of dumpFiles[mode]) {
    const run = await runKpc(['compile', ...options, '--print', name, '-q'], { cwd });
    expect(run.status, run.stderr).toBe(0);
    const file = mode === 'nftables' ? 'nft-ruleset' : `${name}-save`;
    writeFileSync(join(cwd, file), run.stdout);
  }
  const said = new Map<string, Said>();
  for (let i = 1; i <= 12; i++) {
    const { services } = (await json([`shop/service-${i}`, ...options], cwd)) as {
      readonly services: readonly {
        readonly ports: readonly { readonly servicePort: string; readonly families: readonly Said[] }[];
      }[];
    };
    for (const { servicePort, families } of services.flatMap(({ ports }) => ports)) {
      for (const each of families) said.set(`${servicePort} ${each.family}`, each);
    }
  }
  rmSync(join(cwd, 'cluster.json'));
  const { servicePorts: ports } = (await json(['.'], cwd)) as { readonly servicePorts: readonly Dumped[] };
  return { said, ports };
}

const ofFamily = (ranges: readonly string[], family: string) =>
  ranges
    .filter((range) => range.includes(':') === (family === 'ipv6'))
    .map((range) => range.replace(/\/(?:32|128)$/, ''))
    .toSorted();

const refusalOf = ({ fallback }: Said) => (fallback === 'no-endpoints-given' ? 'no-endpoints' : fallback);

describe('a dump is described as the manifests that it was compiled from', () => {
  const releases = ['1.36', '1.30', '1.33', '1.34'];
  const seeds = some(isFull ? [1, 2, 3, 4] : [1, 2]);

  test.for([
    ...some(releases, 2).map((release) => ['iptables', release] as const),
    ...some(releases)
      .filter((release) => release !== '1.30')
      .map((release) => ['nftables', release] as const),
  ])('%s mode, release %s', async ([mode, release]) => {
    for (const seed of seeds) {
      const { said, ports } = await describeBoth(mode, release, seed);
      const dumped = new Map(ports.map((port) => [`${port.servicePort} ${port.family}`, port]));
      expect([...dumped.keys()].toSorted()).toEqual([...said.keys()].toSorted());
      for (const [key, port] of said) {
        const shown = dumped.get(key);
        const isServed = refusalOf(port) !== 'no-endpoints';
        // Where all is rejected, nothing shows whose packets would not be.
        const isGuarded = mode === 'nftables' || isServed;
        const isLocal = (policy: string | undefined) => (policy === 'Local' ? 'Local' : undefined);
        expect({
          key,
          fallback: shown?.fallback,
          nodePort: shown?.nodePort,
          ranges: ofFamily(shown?.sourceRanges ?? [], port.family),
          addresses: shown?.addresses.map(({ address }) => address).toSorted(),
          masquerade: shown?.masquerade,
          internal: isServed ? isLocal(shown?.internalTrafficPolicy) : undefined,
          external: isServed ? isLocal(shown?.externalTrafficPolicy) : undefined,
        }).toEqual({
          key,
          fallback: refusalOf(port),
          nodePort: port.nodePort,
          ranges: isGuarded ? ofFamily(port.sourceRanges, port.family) : [],
          addresses: port.addresses.map(({ address }) => address).toSorted(),
          masquerade: port.masquerade,
          internal: isServed ? isLocal(port.internalTrafficPolicy) : undefined,
          external: isServed ? isLocal(port.externalTrafficPolicy) : undefined,
        });
      }
    }
  });

  test.for(some(releases))('IPVS mode, release %s', async (release) => {
    for (const seed of seeds) {
      const { said, ports } = await describeBoth('ipvs', release, seed);
      for (const port of said.values()) {
        const at = (address: string) =>
          ports.find((each) => {
            return each.port === port.port && each.addresses.some((one) => one.address === address);
          });
        const refusal = refusalOf(port);
        const [clusterIP = '', ...others] = port.addresses.map(({ address }) => address);
        expect(at(clusterIP)?.fallback === 'no-endpoints').toBe(refusal === 'no-endpoints');
        expect(at(clusterIP)?.masquerade?.['clusterIP']).toEqual(port.masquerade?.['clusterIP']);
        const ofOthers = refusal === 'local-to-all' && port.externalTrafficPolicy !== 'Local' ? undefined : refusal;
        for (const address of others) {
          expect(at(address)).toMatchObject({ externalTrafficPolicy: port.externalTrafficPolicy });
          expect([address, at(address)?.fallback]).toEqual([address, ofOthers]);
          expect(at(address)?.masquerade?.['external']).toEqual(port.masquerade?.['external']);
        }
        for (const { address } of port.addresses.filter(({ kind }) => kind === 'load-balancer-ip')) {
          expect(ofFamily(at(address)?.sourceRanges ?? [], port.family)).toEqual(
            ofFamily(port.sourceRanges, port.family),
          );
        }
        if (port.nodePort === undefined) continue;
        const ofNodePort = ports.find((each) => each.nodePort === port.nodePort && each.family === port.family);
        expect(ofNodePort).toMatchObject({ externalTrafficPolicy: port.externalTrafficPolicy });
        expect(ofNodePort?.fallback).toBe(ofOthers);
      }
    }
  });
});
