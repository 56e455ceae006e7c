import { join } from 'node:path';
import type { KernelState } from '../../src/kernel/state.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import { parseAddress, type Address } from '../../src/kernel/address.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { modeHistories, newestRelease, type Release } from '../../src/kube-proxy/releases.ts';
import { prepareEvaluator, type Evaluator } from '../../src/packet/evaluate.ts';
import { knowAll } from './know-all.ts';
import type { Fate, Packet, PacketProtocol } from '../../src/packet/packet.ts';
import { loadInputs } from '../../src/snapshot/files/read-texts.ts';
import { openManifests } from '../../src/snapshot/open/stored-side.ts';

const folder = join(import.meta.dirname, '../kernel-lab/packets');

/** The newest release that has a mode. */
export function lastReleaseWith(mode: ProxyMode): Release {
  return modeHistories[mode].until ?? newestRelease;
}

/** One of each mode: nothing changes a snapshot. */
const sides = new Map<ProxyMode, Promise<Snapshot>>();

/** Node 1 of the kernel tests' network, with its Services: what packets do there is known from kernels. */
export function labSide(mode: ProxyMode): Promise<Snapshot> {
  const side = sides.get(mode) ?? openLab(mode);
  sides.set(mode, side);
  return side;
}

async function openLab(mode: ProxyMode): Promise<Snapshot> {
  const options = {
    file: ['before', 'more', 'node.yaml'].map((name) => join(folder, name)),
    config: join(folder, 'config.yaml'),
    proxyMode: mode,
    kubernetesVersion: lastReleaseWith(mode),
    ipFamily: 'auto',
  } as const;
  const { side } = openManifests('-f', await loadInputs(options), options).at('');
  if (!side) throw new Error('the Services of the kernel tests do not compile');
  return side;
}

export function evaluatorOf(side: Snapshot, state: KernelState = side.state): Evaluator {
  return prepareEvaluator(state, knowAll(side.links));
}

/** Who sends in the kernel tests. Where packets of pods come in matters to no rule there. */
export const senders = {
  node: undefined,
  client: '192.168.0.100',
  stranger: '192.168.0.200',
  'pod-a': '10.1.1.10',
  'pod-b': '10.1.1.11',
  'pod-c': '10.1.2.10',
  'pod-d': '10.1.2.11',
} as const;

export type SenderName = keyof typeof senders;

/** The same hosts in IPv6. */
export const senders6: { readonly [N in SenderName]: string | undefined } = {
  node: undefined,
  client: 'fd00:192::100',
  stranger: 'fd00:192::200',
  'pod-a': 'fd00:1:1::a',
  'pod-b': 'fd00:1:1::b',
  'pod-c': 'fd00:1:2::c',
  'pod-d': 'fd00:1:2::d',
};

export function readAddress(text: string): Address {
  const address = parseAddress(text);
  if (!address) throw new Error(`not an address: ${text}`);
  return address;
}

export function packet(from: SenderName, to: string, port: number, protocol: PacketProtocol = 'tcp'): Packet {
  const destination = readAddress(to);
  const source = (destination.family === 'ipv4' ? senders : senders6)[from];
  return {
    source: source === undefined ? undefined : readAddress(source),
    destination,
    protocol,
    port,
    enters: source === undefined ? undefined : { interface: from.startsWith('pod-') ? 'cni0' : 'eth0' },
  };
}

/** "delivered 10.1.1.10:8080 50% masqueraded, …", or the verdict alone. */
export function inShort({ verdict, endpoints }: Fate): string {
  const all = endpoints.map(({ address, port, probability, source }) => {
    const from = source === 'masqueraded' ? 'masqueraded' : `as ${source.text}`;
    return `${address.text}:${port} ${Math.round(probability * 100)}% ${from}`;
  });
  return [verdict, all.join(', ')].join(' ').trim();
}
