import type { ShownPort } from '../../describe/shown-port.ts';
import { addressWords } from '../../diff/port-facts.ts';
import { isLoopback, parseAddress, type Address } from '../../kernel/address.ts';
import { parseSocketAddress } from '../../kernel/socket-address.ts';
import type { Fate, PacketProtocol } from '../packet.ts';
import { healthCheckWords, lackWords } from './trace-words.ts';
import { packetOf, readSender, senderKinds, type NamedSender, type Sender } from './question.ts';
import { serviceOf, type Scene } from './scene.ts';

/** What becomes of packets from all kinds of senders to all addresses of a Service. */
export interface Matrix {
  /** As on the command line. */
  readonly senders: readonly string[];
  readonly rows: readonly MatrixRow[];
  /** What health checks of load balancers are answered, and why a packet's end is unknown, in sentences. */
  readonly notes: readonly string[];
}

interface MatrixRow {
  /** "cluster IP". */
  readonly kind: string;
  readonly address: Address;
  readonly port: number;
  readonly protocol: PacketProtocol;
  /** One for each sender; undefined if there is none, or the address is another one for it. */
  readonly cells: readonly ({ readonly sender: Sender; readonly fate: Fate } | undefined)[];
}

/**
 * Sends a packet from each kind of sender, from an endpoint on the node, and from one that is named, to each address of the
 * Service ports.
 */
export function traceMatrix(ports: readonly ShownPort[], scene: Scene, named?: NamedSender): Matrix {
  const rows = ports.flatMap((port) => {
    const own = port.endpoints?.find(({ endpoint }) => scene.endpoints.get(endpoint)?.isLocal !== false);
    const itself = own && parseSocketAddress(own.endpoint)?.address.text;
    const asked = [...senderKinds, itself].map((from) =>
      from === undefined ? undefined : { from, inInterface: undefined, namespace: undefined },
    );
    const senders = [...(named ? [named] : []), ...asked].map((each) => each && readSender(each, port.family, scene));
    const protocol = port.protocol.toLowerCase() as PacketProtocol;
    return targetsOf(port, scene).map(({ kind, address, number }): MatrixRow => {
      const cells = senders.map((read) => {
        // A loopback address is each host's own.
        if (read?.kind !== 'read' || (isLoopback(address) && read.value.enters)) return undefined;
        const packet = packetOf(read.value, { address, port: number, protocol, label: undefined });
        return { sender: read.value, fate: scene.evaluate(packet) };
      });
      return { kind, address, port: number, protocol, cells };
    });
  });
  const services = new Set(ports.map(({ name }) => serviceOf(name)));
  const checks = scene.side.services?.cluster.healthChecks ?? [];
  const healthChecks = checks
    .filter(({ namespace, service }) => services.has(`${namespace}/${service}`))
    .map((check) => healthCheckWords(check, scene.side));
  const doubtful = rows.filter(({ cells }) => cells.some((cell) => cell?.fate.verdict === 'unknown'));
  const doubts = doubtful.map(
    ({ address }) =>
      lackWords(scene, address.family) ??
      'unknown: it depends on a rule that kpc does not understand, which --from and --to show',
  );
  const notes = [...healthChecks, ...new Set(doubts)];
  return { senders: [...(named ? [named.from] : []), ...senderKinds, 'itself'], rows, notes };
}

function targetsOf({ family, port, addresses, nodePort }: ShownPort, { links }: Scene) {
  const own = links.flatMap((link) => link.addresses).filter((each) => each.family === family && each.scope !== 'link');
  const served = addresses.flatMap(({ kind, address: text }) => {
    const address = parseAddress(text);
    return address && port !== undefined ? [{ kind: addressWords[kind], address, number: port }] : [];
  });
  const ofNode = own.flatMap(({ address }) =>
    nodePort === undefined ? [] : [{ kind: 'node port', address, number: nodePort }],
  );
  return [...served, ...ofNode];
}
