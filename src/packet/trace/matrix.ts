import type { ShownPort } from '../../describe/shown-port.ts';
import { addressWords } from '../../diff/port-facts.ts';
import { isLoopback, parseAddress, type Address } from '../../kernel/address.ts';
import { parseSocketAddress } from '../../kernel/socket-address.ts';
import type { PacketProtocol } from '../packet.ts';
import { healthCheckWords, lackWords } from './trace-words.ts';
import { packetOf, readSender, senderKinds, type NamedSender, type Trace } from './question.ts';
import { serviceOf, type Scene } from './scene.ts';

/** What becomes of packets from all kinds of senders to all addresses of a Service. */
export interface Matrix {
  /** As on the command line. */
  readonly senders: readonly string[];
  /** By address, then by sender; none if there is no such sender, or the address is another one for it. */
  readonly cells: readonly MatrixCell[];
  /** What health checks of load balancers are answered, and why a packet's end is unknown, in sentences. */
  readonly notes: readonly string[];
}

interface MatrixCell extends Trace {
  /** One of the senders, and its place among them: the one that is named may be one of the others, too. */
  readonly from: string;
  readonly column: number;
  /** "cluster IP". */
  readonly kind: string;
}

/**
 * Sends a packet from each kind of sender, from an endpoint on the node, and from one that is named, to each address of the
 * Service ports.
 */
export function traceMatrix(ports: readonly ShownPort[], scene: Scene, named?: NamedSender): Matrix {
  const names = [...(named ? [named.from] : []), ...senderKinds, 'itself'];
  const cells = ports.flatMap((port) => {
    const own = port.endpoints?.find(({ endpoint }) => scene.endpoints.get(endpoint)?.isLocal !== false);
    const itself = own && parseSocketAddress(own.endpoint)?.address.text;
    const others = [...senderKinds, ...(itself === undefined ? [] : [itself])];
    const asked = others.map((from) => ({ from, inInterface: undefined, namespace: undefined }));
    const senders = [...(named ? [named] : []), ...asked].flatMap((each, column) => {
      const read = readSender(each, port.family, scene);
      return read.kind === 'read' ? [{ from: names[column] ?? '', column, sender: read.value }] : [];
    });
    return targetsOf(port, scene).flatMap(({ kind, ...target }) =>
      senders.flatMap(({ sender, ...name }): readonly MatrixCell[] => {
        // A loopback address is each host's own.
        if (isLoopback(target.address) && sender.enters) return [];
        return [{ ...name, kind, sender, target, fate: scene.evaluate(packetOf(sender, target)) }];
      }),
    );
  });
  const services = new Set(ports.map(({ name }) => serviceOf(name)));
  const healthChecks = (scene.side.services?.cluster.healthChecks ?? [])
    .filter(({ namespace, service }) => services.has(`${namespace}/${service}`))
    .map((check) => healthCheckWords(check, scene.side));
  const doubts = cells
    .filter(({ fate }) => fate.verdict === 'unknown')
    .map(
      ({ target }) =>
        lackWords(scene, target.address.family) ??
        'unknown: it depends on a rule that kpc does not understand, which --from and --to show',
    );
  return { senders: names, cells, notes: [...healthChecks, ...new Set(doubts)] };
}

function targetsOf({ family, port, addresses, nodePort, protocol: name }: ShownPort, { links }: Scene) {
  const protocol = name.toLowerCase() as PacketProtocol;
  const target = (kind: string, address: Address | undefined, number: number | undefined) =>
    address && number !== undefined ? [{ kind, address, port: number, protocol, label: undefined }] : [];
  const own = links.flatMap((link) => link.addresses).filter((each) => each.family === family && each.scope !== 'link');
  return [
    ...addresses.flatMap(({ kind, address }) => target(addressWords[kind], parseAddress(address), port)),
    ...own.flatMap(({ address }) => target('node port', address, nodePort)),
  ];
}
