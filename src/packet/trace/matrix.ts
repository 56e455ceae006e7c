import { isLoopback, joinHostPort, type Address } from '../../kernel/address.ts';
import type { Fate, PacketProtocol } from '../packet.ts';
import { healthCheckWords } from './explain.ts';
import { packetOf, readSender, senderKinds, type Sender } from './question.ts';
import type { KnownPort, Scene } from './scene.ts';
import { formatSocketAddress } from '../../kernel/socket-address.ts';

/** What becomes of packets from all kinds of senders to all addresses of a Service. */
export interface Matrix {
  readonly senders: readonly string[];
  readonly rows: readonly MatrixRow[];
  /** What health checks of load balancers are answered, in sentences. */
  readonly healthChecks: readonly string[];
}

/** As on the command line. */
type NamedSender = Parameters<typeof readSender>[0];

interface MatrixRow {
  /** "cluster IP 10.96.0.10:80/tcp". */
  readonly target: string;
  readonly address: Address;
  readonly port: number;
  readonly protocol: PacketProtocol;
  readonly senders: readonly (Sender | undefined)[];
  /** One for each sender; undefined for one that there is none of. */
  readonly fates: readonly (Fate | undefined)[];
}

/**
 * Sends a packet from each kind of sender, from an endpoint on the node, and from one that is named, to each address of the
 * Service ports.
 */
export function traceMatrix(ports: readonly KnownPort[], scene: Scene, named?: NamedSender): Matrix {
  const rows = ports.flatMap((port) => {
    const senders = [...(named ? [senderTo(port, named, scene)] : []), ...sendersTo(port, scene)];
    return targetsOf(port, scene).map(({ target, address, number }): MatrixRow => {
      const protocol = port.protocol.toLowerCase() as PacketProtocol;
      const fates = senders.map((sender) => {
        // A loopback address is each host's own.
        if (!sender || (isLoopback(address) && sender.enters)) return undefined;
        return scene.evaluate(packetOf(sender, { address, port: number, protocol, label: undefined }));
      });
      return {
        target: `${target} ${joinHostPort(address.text, number)}/${protocol}`,
        address,
        port: number,
        protocol,
        senders,
        fates,
      };
    });
  });
  const checked = new Set(ports.map(({ healthCheckNodePort }) => healthCheckNodePort));
  const healthChecks = scene.healthChecks
    .filter(({ port }) => checked.has(port))
    .map((check) => healthCheckWords(check, scene.side));
  const senders = [...(named ? [named.from] : []), ...senderKinds, 'itself'];
  return { senders, rows, healthChecks };
}

function sendersTo(port: KnownPort, scene: Scene): readonly (Sender | undefined)[] {
  const ask = (from: string): Sender | undefined =>
    senderTo(port, { from, inInterface: undefined, namespace: undefined }, scene);
  const itself = port.endpoints.find(({ isLocal }) => isLocal !== false)?.address;
  return [...senderKinds.map(ask), itself && ask(itself.text)];
}

function senderTo(port: KnownPort, named: NamedSender, scene: Scene): Sender | undefined {
  const sender = readSender(named, port.family, scene);
  return sender.kind === 'read' ? sender.value : undefined;
}

const addressWords = {
  'cluster-ip': 'cluster IP',
  'external-ip': 'external IP',
  'load-balancer-ip': 'load balancer',
  unknown: 'address',
} as const;

interface MatrixTarget {
  readonly target: string;
  readonly address: Address;
  readonly number: number;
}

function targetsOf(port: KnownPort, { links }: Scene): readonly MatrixTarget[] {
  const number = port.port;
  const own = number === undefined ? [] : port.addresses.map((each) => ({ ...each, number }));
  const nodePort = port.nodePort;
  const listened = nodePort === undefined ? [] : links.flatMap(({ addresses }) => addresses);
  return [
    ...own.map((each) => ({ target: addressWords[each.kind], address: each.address, number: each.number })),
    ...listened
      .filter(({ family, scope }) => family === port.family && scope !== 'link')
      .map(({ address }) => ({ target: 'node port', address, number: nodePort ?? 0 })),
  ];
}

/** A cell: where packets come to, and whether endpoints see the client. */
export function fateInShort(fate: Fate | undefined): string {
  if (!fate) return '-';
  if (fate.verdict !== 'delivered') return fate.verdict;
  const count = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const isMasqueraded = new Set(fate.endpoints.map(({ source }) => source === 'masqueraded'));
  const source = isMasqueraded.size > 1 ? 'mixed' : isMasqueraded.has(true) ? 'masq' : 'kept';
  return `${count} ${source}`;
}
