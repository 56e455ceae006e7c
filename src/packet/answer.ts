import { addressAt, addressNumber, parseAddress, type Address } from '../kernel/address.ts';
import { explore, type Choices } from './explore.ts';
import { decide, isLocalAddress, newConnection, untouched, wayOf, type Flow, type Turn } from './flow.ts';
import {
  isUnknownOwn,
  sumOutcomes,
  type Arrival,
  type Beyond,
  type Connection,
  type Loss,
  type Outcome,
  type Way,
} from './packet.ts';
import { lacks, type Answer, type Reason } from './reason.ts';
import type { NextHop } from '../kernel/route/route.ts';
import { acceptsMark } from '../kernel/sysctls-and-modules.ts';
import { loopbackInterface, type Routing } from './routing/routing.ts';
import type { World } from './visitors.ts';
import { arrive, cross, leave, sendOn, type End } from './walk.ts';
import { findUnansweredArp, silenceOf } from './way-back.ts';

/**
 * Follows a connection after its first packet: the endpoint's answer, then the client's next packet. Later packets do not meet nat rules,
 * because conntrack has stored the first packet's translation. An answer's destination becomes the client's address before routing, but the
 * answer's source becomes the asked address only when the answer leaves. Rules in between see the endpoint's address.
 */
export function followConnection(world: World, ways: readonly Way<Flow>[]): Connection {
  const reachesEndpoints = ways.some(({ verdict }) => verdict === 'delivered');
  const followed = ways.map((way) => {
    const outcome = outcomeOf(world, way);
    return { way, outcome: reachesEndpoints && outcome.kind === 'works' ? outcomeBeside(way) : outcome };
  });
  return { kind: sumOutcomes(followed.map(({ outcome }) => outcome)), ways: followed };
}

/**
 * Returns the outcome of a working connection while other connections reach endpoints. If rules did not translate this connection, the
 * outcome depends on the host that receives it.
 */
function outcomeBeside({ verdict: end, steps }: Way<Flow>): Outcome {
  const isUntaken = end === 'local' || end === 'forwarded';
  return isUntaken ? { kind: 'depends', loss: { kind: 'untaken', end, steps } } : { kind: 'works' };
}

function outcomeOf(world: World, way: Way<Flow>): Outcome {
  const outcome = outcomeAt(world, way);
  const doubts = (way.doubts ?? []).filter(({ end }) => outcomeAt(world, { ...way, end }).kind !== outcome.kind);
  if (doubts.length === 0) return outcome;
  const reasons = outcome.kind === 'unknown' ? outcome.reasons : [];
  return { kind: 'unknown', reasons: [...reasons, ...doubts.map(({ reason }) => reason)] };
}

function outcomeAt(world: World, way: Way<Flow>): Outcome {
  const { verdict, end, reasons } = way;
  switch (verdict) {
    case 'dropped':
    case 'refused':
      return { kind: 'fails', loss: { kind: 'first-lost', endpoint: end?.endpoint, steps: way.steps } };
    case 'unknown':
      return { kind: 'unknown', reasons };
    default:
      break;
  }
  if (!end) return { kind: 'unknown', reasons: [] };
  const { destination, endpoint } = end;
  const service = world.serviceAt(destination, end.protocol, end.port);
  if (service) {
    const { label, isHeld, isClusterIP } = service;
    const at = { address: destination, service: label };
    // If the node routes the address to another host, that host may accept the packet.
    const isLeft = !isHeld && end.hop?.link !== undefined && !world.routing.places.isHere(end.hop);
    if (endpoint && !isLeft && isClusterIP)
      return { kind: isHeld ? 'depends' : 'fails', loss: { kind: 'service-address', isHeld, ...at } };
    const isHost = !isClusterIP && world.isRemote(destination) !== undefined;
    if ((endpoint && isClusterIP) || (verdict === 'forwarded' && !isHost))
      return { kind: 'depends', loss: { kind: 'left', isClusterIP, ...at } };
  }
  if (verdict === 'local' && world.routing.isLocal(destination) === false)
    return { kind: 'depends', loss: { kind: 'not-held', address: destination } };
  const lost = lostBefore(world, end) ?? (verdict === 'forwarded' ? sentBack(end) : undefined);
  if (lost) return { kind: 'depends', loss: lost };
  const shared = sharedSource(world, end);
  if (shared) return shared;
  const unbound = answersFromOther(world, end);
  const answers = explore((choices) => walkConnection(world, end, choices));
  const losses = answers.flatMap(({ loss }) => loss ?? []);
  const unlisted = world.routing.isListed ? [] : [lacks({ kind: 'routes', family: world.family })];
  const open = [...unlisted, ...end.open, ...answers.flatMap((each) => [...each.reasons, ...(each.end?.open ?? [])])];
  if (answers.some((each) => each.verdict === 'unknown')) return { kind: 'unknown', reasons: open };
  const [first] = losses;
  const isPart = losses.length < answers.length;
  // Two hosts behind the same link can reach each other without the node.
  const isBeside = verdict === 'forwarded' && !end.isNamed && !end.isOwn && end.entered === end.output;
  if (first)
    return beyond.has(first.kind) || isPart || isBeside
      ? { kind: 'depends', loss: first }
      : { kind: 'fails', loss: first };
  if (open.length > 0) return { kind: 'unknown', reasons: open };
  return unbound ? { kind: 'depends', loss: unbound } : { kind: 'works' };
}

/**
 * Reports a UDP answer whose source is not the address that the client asked. A program bound to all addresses sends from the source of the
 * route to the client, and no rule translates its answer.
 */
function answersFromOther({ routing }: World, end: Flow): Beyond | undefined {
  const { protocol, destination: address, source: client } = end;
  if (protocol !== 'udp' || !routing.isListed || routing.isLocal(address) !== true) return undefined;
  const way = routing.find({ to: client, from: undefined, mark: 0, input: loopbackInterface });
  const { address: source, candidates } = routing.sourceBy(client, way);
  return candidates || isUnknownOwn(source) || source.text === address.text
    ? undefined
    : { kind: 'unbound', address, source, client };
}

/**
 * Reports a packet that the node sends to another node from a Service address that every node has. In IPv4, the other node drops a packet
 * from its own address (fib_validate_source). In IPv6, the other node sends the answer to itself.
 */
function sharedSource({ routing, isOfEveryNode, isRemote }: World, end: Flow): Outcome | undefined {
  const { isOwn, source, destination, output, hop } = end;
  if (!isOwn || isLocalAddress(end, source) !== true || !isOfEveryNode(source)) return undefined;
  const isElsewhere = isRemote(destination);
  const isHere =
    routing.isLocal(destination) === true || routing.places.isHere({ link: output, gateway: hop?.gateway });
  if (isElsewhere === false || (isElsewhere === undefined && isHere)) return undefined;
  return { kind: isElsewhere ? 'fails' : 'depends', loss: { kind: 'shared-source', address: source } };
}

/** Finds a reason why the first packet might not reach the node or its destination. */
export function lostBefore(world: World, end: Flow): Beyond | undefined {
  const { routing } = world;
  const { hop, destination, isOwn, isNamed, output } = end;
  const away = sentAway(routing, destination, hop);
  if (away) return away;
  const lost =
    (isOwn || isNamed ? undefined : findUnansweredArp(end)) ??
    findSilent(end, output, hop?.gateway ?? destination) ??
    findLostSolicitation(world, end);
  const closer = hop?.gateway && routing.places.closerHop(destination, hop);
  return lost ?? (closer ? { kind: 'closer-route', destination, taken: hop, closer } : undefined);
}

/** Finds a reason why the next hop's address cannot be resolved on the output link. */
function findSilent({ routing, entered }: Flow, link: string | undefined, address: Address): Beyond | undefined {
  if (link === undefined || !routing.isListed) return undefined;
  // A client behind the bridge proves that the bridge has a port.
  const isEmpty = link !== entered && routing.isPortless(link);
  const why = silenceOf(routing, link, address) ?? (isEmpty ? 'no-port' : undefined);
  return why && { kind: 'no-arp', address, link, why };
}

function sentAway(routing: Routing, destination: Address, hop: NextHop | undefined): Beyond | undefined {
  if (!hop?.gateway) return undefined;
  const inside = routing.places.linkInside(destination);
  if (inside === undefined && routing.isLocal(destination) !== true) return undefined;
  return { kind: 'own-network', destination, inside, gateway: hop.gateway, output: hop.link };
}

/** Reports a packet sent back to the router that it came from, which in turn sends it to this node again. */
function sentBack({ routing, isOwn, entered, output, sender, asked, destination, hop }: Flow): Beyond | undefined {
  if (isOwn || !hop?.gateway || entered !== output || destination.text !== asked.address.text) return undefined;
  const back = routing.hopTo(sender.address);
  const isSame = back?.link === output && back?.gateway?.text === hop.gateway.text;
  return isSame ? { kind: 'sent-back', destination, gateway: hop.gateway, output } : undefined;
}

/** Finds IPv6 neighbour messages that must precede the packet but that the node's rules drop or refuse. */
function findLostSolicitation(world: World, first: Flow): Beyond | undefined {
  const { routing, visitors } = world;
  if (first.family !== 'ipv6' || !routing.isListed) return undefined;
  for (const { address, link, messages } of exchangesBefore(routing, first)) {
    for (const { turn, from, to, run } of messages) {
      const isOwn = run !== arrive && run !== cross;
      const walkIt = (choices: Choices): Way<Flow> => {
        const flow: Flow = {
          ...nextFlow(first, 'answer', choices),
          turn,
          isOwn,
          protocol: 'icmp',
          wasTracked: false,
          connection: undefined,
          source: from,
          destination: to,
          port: undefined,
          sourcePort: undefined,
          input: isOwn ? '' : link,
        };
        return makeWay(flow, run(flow, visitors), undefined);
      };
      const ways = explore(walkIt);
      const [way] = ways;
      if (way && ways.every(({ verdict }) => verdict === 'dropped' || verdict === 'refused'))
        return { kind: 'no-neighbour', address, link, steps: way.steps };
    }
  }
  return undefined;
}

interface Exchange {
  readonly address: Address;
  readonly link: string;
  readonly messages: readonly {
    readonly turn: 'solicitation' | 'advertisement';
    readonly from: Address;
    readonly to: Address;
    readonly run: typeof arrive;
  }[];
}

/**
 * Lists the neighbour exchanges on the input and output links. If a bridge carries the answer, adds the exchange between the endpoint and
 * the client. A forwarding node solicits from its link-local address (ndisc_solicit).
 */
function exchangesBefore(routing: Routing, first: Flow): readonly Exchange[] {
  const { isOwn, isBridged, entered, input, output, sender, source, asked, endpoint, destination, hop } = first;
  const isAcross = !isOwn && input === output && routing.showsBridged(input) === true;
  const meet = (link: string, node: Address, gateway: Address | undefined, host: Address): readonly Exchange[] => {
    const send: typeof arrive = (flow, visitors) => sendOn(link, flow, visitors);
    const has = routing.isLocal(node) === true && routing.isLocalAt(node, link) === true;
    const own = has ? node : routing.ownAddress(link);
    const asker = has ? node : (routing.linkLocal(link) ?? own);
    const other = gateway ?? host;
    const group = solicitedNode(other);
    return [
      exchange(link, { address: gateway ? someLinkLocal : host, run: arrive }, { address: own, run: send }),
      exchange(link, { address: asker, run: send }, { address: other, run: arrive, group }),
    ];
  };
  const exchanges: Exchange[] = [];
  if (!isOwn && isOutside(entered) && (!isBridged || endpoint))
    exchanges.push(...meet(entered, asked.address, routing.hopTo(sender.address)?.gateway, sender.address));
  if (isOutside(output) && hop && !isAcross && !isBridged)
    exchanges.push(...meet(output, source, hop.gateway, destination));
  const asker = { address: endpoint?.address ?? destination, run: cross };
  if (isAcross && isOutside(input)) exchanges.push(exchange(input, asker, { address: sender.address, run: cross }));
  return exchanges;
}

/** One host of an exchange. `run` walks a message from this host. `group`: the multicast address for solicitations of `address`. */
interface Neighbour {
  readonly address: Address;
  readonly run: typeof arrive;
  readonly group?: Address;
}

function exchange(link: string, asker: Neighbour, told: Neighbour): Exchange {
  const { address, group = address } = told;
  return {
    address,
    link,
    messages: [
      { turn: 'solicitation', from: asker.address, to: group, run: asker.run },
      { turn: 'advertisement', from: address, to: asker.address, run: told.run },
    ],
  };
}

function isOutside(link: string | undefined): link is string {
  return link !== undefined && link !== '' && link !== loopbackInterface;
}

const someLinkLocal = parseAddress('fe80::1') as Address;

function solicitedNode(address: Address): Address {
  return addressAt('ipv6', addressNumber(solicitedNodes) | (addressNumber(address) & 0xffffffn));
}

const solicitedNodes = parseAddress('ff02::1:ff00:0') as Address;

const beyond: ReadonlySet<Loss['kind']> = new Set<Loss['kind']>([
  'not-held',
  'own-network',
  'no-arp',
  'other-way',
  'other-hop',
  'own-gateway',
  'foreign-source',
]);

const laterFlags = [['ACK'], ['PSH', 'ACK']] as const;

/** Walks the answer. If rules match TCP flags, also walks packets after the handshake. */
function walkConnection(world: World, first: Flow, choices: Choices): Way<Flow> {
  let way = walkAnswer(world, first, choices);
  for (const flags of laterFlags) {
    if (!choices.asksFlags || way.loss || way.verdict === 'unknown') return way;
    way = walkAnswer(world, { ...first, flags }, choices);
    if (way.loss?.kind === 'stopped') way = { ...way, loss: { ...way.loss, turn: 'data' } };
  }
  return way;
}

function walkAnswer(world: World, first: Flow, choices: Choices): Way<Flow> {
  const passing = passingOf(world, first, choices);
  switch (passing.kind) {
    case 'unseen':
      return makeWay(passing.flow, 'forwarded', passing.loss);
    case 'past': {
      const loss = untranslated(first, 'past', passing.link);
      return loss ? makeWay(first, 'forwarded', loss) : walkLater(world, first, choices, true);
    }
    case 'unlisted': {
      const { destination, source, sender, isOwn } = first;
      const isPast = !isOwn && world.isRemote(destination) === true && world.isPodHere(sender.address) === false;
      const isKept = source.text === sender.address.text;
      return makeWay(first, 'forwarded', isPast && isKept ? untranslated(first, 'past', undefined) : undefined);
    }
    case 'passes': {
      const { flow } = passing;
      const end = passing.run();
      const loss = typeof end === 'object' ? undefined : (lossOf(first, flow, end) ?? passing.beyond);
      return typeof end === 'object' || loss ? makeWay(flow, end, loss) : walkLater(world, first, choices, false, flow);
    }
  }
}

function makeWay(flow: Flow, end: End, loss: Loss | undefined): Way<Flow> {
  return { ...wayOf(flow, end), loss };
}

type Passing =
  | { readonly kind: 'passes'; readonly flow: Flow; readonly run: () => End; readonly beyond?: Beyond | undefined }
  /** A bridge on the node carries the answer without showing it to rules. */
  | { readonly kind: 'unseen'; readonly flow: Flow; readonly loss: Loss | undefined }
  /** The answer bypasses this node: by `link`, if the client and the endpoint are both behind it, or else from the endpoint's node. */
  | { readonly kind: 'past'; readonly link: string | undefined }
  | { readonly kind: 'unlisted' };

/** Finds out whether the endpoint's answer passes the node, and by which link. Answers from the node and its pods always pass it. */
function passingOf({ routing, visitors, hasAllSysctls }: World, first: Flow, choices: Choices): Passing {
  const { places } = routing;
  const { destination: endpoint, source: client, output, hop, input } = first;
  const flow = nextFlow(first, 'answer', choices);
  const enterBy = (link: string | undefined, loss?: Beyond): Passing => {
    flow.input = link;
    return { kind: 'passes', flow, run: () => arrive(flow, visitors), beyond: loss };
  };
  const server = first.server && first.endpoint ? first.endpoint.address : endpoint;
  if (routing.isLocal(server) === true) {
    const shown = routing.sysctl(acceptsMark);
    const missing = { ...lacks({ kind: 'sysctl', name: acceptsMark }, acceptsMark), likely: false };
    const accepts = (): Answer => (shown === undefined && !hasAllSysctls ? missing : shown === '1');
    const keepsMark = first.protocol === 'tcp' && first.mark !== 0 && decide(flow, accepts);
    const own = { isOwn: true, mark: keepsMark ? first.mark : 0 };
    return { ...enterBy(''), run: () => leave(Object.assign(flow, own), visitors) } as Passing;
  }
  const isHere = places.isHere({ link: output, gateway: hop?.gateway });
  const back =
    routing.isLocal(client) === true
      ? undefined
      : routing.find({ to: client, from: undefined, mark: 0, input: output });
  const backHop = back?.kind === 'out' ? back.hops[0] : undefined;
  const isClientHere = places.isHere(backHop);
  const isOnBridge = isHere && isClientHere && backHop?.link === output && output !== undefined;
  if (isOnBridge && client.text !== endpoint.text && places.isBridge(output) !== false) {
    const shows = decide(flow, () => routing.showsBridged(output, 'answer'));
    flow.input = output;
    if (shows) return { kind: 'passes', flow, run: () => cross(flow, visitors) };
    return { kind: 'unseen', flow, loss: untranslated(first, 'bridge', output) };
  }
  if (!routing.isListed) return { kind: 'unlisted' };
  if (isHere) return enterBy(output);
  if (first.connection?.rewritten.has('source') === true && routing.isLocal(client) === false)
    return enterBy(output, { kind: 'foreign-source', address: client });
  // A host that sends to an address uses the link whose network contains that address.
  if (back === undefined || back.kind === 'none' || isClientHere) {
    // Another node may answer a pod through a tunnel between the nodes' networks, even if another link leads to that node.
    const ways = isClientHere ? [output, ...places.joiningTunnels] : [output];
    const distinct = [...new Set(ways)];
    return enterBy(places.linksAround(client)[0] ?? distinct[choices.draw(distinct.map(() => 1 / distinct.length))]);
  }
  const clientLink = input ?? backHop?.link;
  if (clientLink === output && first.isOwn === false) return { kind: 'past', link: output };
  // Another node's answer follows that node's routes. If that node reaches the client by the same link as this node, the answer bypasses
  // the tunnel. If not, a router may send the answer here.
  const isTunnel = output !== undefined && places.isTunnel(output);
  const below = isTunnel ? routing.tunnelAt(output)?.below : undefined;
  if (isTunnel && isRewritten(first) && (below ?? clientLink) === clientLink) return { kind: 'past', link: undefined };
  const isElsewhere = hop?.gateway !== undefined || isTunnel;
  if (isElsewhere && !isRewritten(first) && choices.draw([0.5, 0.5]) === 0) return { kind: 'past', link: undefined };
  return enterBy(output, isRewritten(first) ? { kind: 'own-gateway', endpoint } : undefined);
}

function untranslated(first: Flow, why: 'past' | 'bridge', link: string | undefined): Loss | undefined {
  if (!isRewritten(first)) return undefined;
  return { kind: 'untranslated', source: first.destination, port: first.port, why, link };
}

function isRewritten({ asked, destination, port }: Flow): boolean {
  return asked.address.text !== destination.text || (port !== undefined && asked.port !== port);
}

function nextFlow(first: Flow, turn: Exclude<Turn, 'first'>, choices: Choices): Flow {
  const { connection, sender, asked, destination, port, source } = first;
  const isAnswering = turn === 'answer';
  const ends = isAnswering
    ? { source: destination, candidates: undefined, sourcePort: port, destination: source, port: undefined }
    : {
        source: sender.address,
        candidates: sender.candidates,
        sourcePort: undefined,
        destination: asked.address,
        port: asked.port,
      };
  return {
    ...first,
    ...untouched(),
    ...ends,
    turn,
    isOwn: !isAnswering && first.isOwn,
    isUnanswered: false,
    isInvalid: false,
    wasTracked: connection !== undefined,
    input: first.entered,
    keptHop: isAnswering ? undefined : first.hop,
    connection: connection
      ? { ...connection, decided: new Set(['destination', 'source']), rewritten: new Set(connection.rewritten) }
      : newConnection(),
    choices,
    written: [...first.written],
    facts: new Map(),
  };
}

/** Returns why the client gets no answer, or one from an unexpected address; undefined if the client gets the right answer. */
function lossOf(first: Flow, flow: Flow, end: Exclude<End, object>): Loss | undefined {
  const { asked, sender, routing } = first;
  if (end !== 'local' && end !== 'forwarded') return { kind: 'stopped', turn: 'answer', steps: flow.steps };
  const { source, sourcePort: port } = flow;
  const isForClient = flow.destination.text === sender.address.text;
  if (source.text !== asked.address.text || (port !== undefined && port !== asked.port) || !isForClient) {
    const why = flow.zone !== (first.connection?.zones.reply ?? 0) ? 'zone' : 'untracked';
    return { kind: 'untranslated', source, port, why, link: undefined };
  }
  const { destination: address, hop } = flow;
  if (end === 'local' && !first.isOwn && first.sender.address.text === address.text)
    return { kind: routing.isLocal(address) === false ? 'not-held' : 'kept', address };
  const away = routing.isLocal(address) === true ? sentAway(routing, address, hop) : undefined;
  if (away) return away;
  if (end !== 'forwarded') return undefined;
  return findSilent(first, hop?.link, hop?.gateway ?? address) ?? otherWay(first, flow);
}

/** Reports an answer that leaves through a router by another path than the client's packets took. */
export function otherWay({ routing, entered, isOwn, sender }: Flow, { hop }: Flow): Loss | undefined {
  if (entered === undefined || entered === '' || isOwn || !hop) return undefined;
  const { link: output, gateway } = hop;
  if (output === undefined || gateway === undefined) return undefined;
  // A client that is not on this link is behind a router on it, so its packets and the answer take the same path.
  const isRouted = entered === output && !routing.places.isAround(sender.address, output);
  return isRouted ? undefined : { kind: 'other-way', input: entered, output, gateway };
}

function walkLater(
  { visitors }: World,
  first: Flow,
  choices: Choices,
  isUnanswered: boolean,
  answer?: Flow,
): Way<Flow> {
  const flow = nextFlow(first, 'later', choices);
  // If rules keep an answer out of the connection, conntrack still counts the connection as unanswered.
  flow.isUnanswered = isUnanswered || (answer !== undefined && (!answer.connection || answer.isUnanswered));
  if (answer) flow.written.push(...answer.written.slice(first.written.length));
  if (answer?.connection && flow.connection) flow.connection.mark = answer.connection.mark;
  if (first.protocol === 'icmp' || !first.connection || !first.routing.isListed)
    return makeWay(answer ?? first, 'forwarded', undefined);
  const end = first.isOwn ? leave(flow, visitors) : first.isBridged ? cross(flow, visitors) : arrive(flow, visitors);
  if (typeof end === 'object') return makeWay(flow, end, undefined);
  const isThere = end === 'local' || end === 'forwarded' || end === 'delivered';
  const loss: Loss | undefined = !isThere
    ? { kind: 'stopped', turn: 'later', steps: flow.steps }
    : flow.destination.text === first.destination.text
      ? otherHop(first, flow)
      : { kind: 'elsewhere', destination: flow.destination };
  return makeWay(flow, end, loss);
}

/**
 * Reports a later packet that takes another next hop. nat rules see only a connection's first packet, and may have set a mark on it that
 * later packets lack.
 */
function otherHop({ hop: before }: Flow, { destination, hop: now }: Flow): Beyond | undefined {
  if (!before || !now || (before.link === now.link && before.gateway?.text === now.gateway?.text)) return undefined;
  return { kind: 'other-hop', destination, output: now.link, gateway: now.gateway };
}

/** Returns the links where a packet from another host may come in, the likeliest first. */
export function linksIn(world: World, source: Address, destination: Address): readonly (string | undefined)[] {
  const { routing } = world;
  const { places } = routing;
  if (!routing.isListed) return [routing.interfaceOf(source)];
  const hops = routing.hopsTo(source);
  const [hop] = hops;
  if (hop && places.isHere(hop)) return [hop.link];
  // A pod sends by its own link, even if routing rules send packets for the pod elsewhere.
  const inside = places.linkInside(source);
  if (inside !== undefined) return [inside];
  // Every link in the destination's network answers ARP for the destination, even if another link has the address.
  const around = places.linksAround(destination);
  if (around.length > 0) return around;
  const { outer } = places;
  const back = hop?.link ?? outer[0];
  // Packets from other nodes' pods come in by links that lead to these pods. Packets from other hosts may come from a router on any link.
  if (hop && (places.isPod(source) || places.isTunnel(hop.link ?? '')))
    return [...new Set(hops.map(({ link }) => link))];
  return [back, ...outer.filter((link) => link !== back)];
}

/**
 * Returns the link where a packet is assumed to come in, and the other candidates. Returns undefined if only one link is possible, the
 * question names a link, or the node itself sends.
 */
export function arrivalOf(
  { routing }: World,
  { entered: link, sender, asked, isOwn, isNamed }: Flow,
): Arrival | undefined {
  const { places } = routing;
  if (isOwn || isNamed || !routing.isListed || link === undefined) return undefined;
  const hop = routing.hopTo(sender.address);
  const [around] = places.linksAround(asked.address);
  const isBeside =
    routing.inputOf(hop?.link) === link && hop?.gateway === undefined && routing.inputOf(around) === link;
  if (places.isHere(hop) || places.linkInside(sender.address) !== undefined || isBeside) return undefined;
  const others = places.outer.filter((each) => routing.inputOf(each) !== link && !places.isTunnel(each));
  return others.length === 0 ? undefined : { link, others };
}

export function reasonOfInput(link: string | undefined): Reason {
  return {
    kind: 'missing-flag',
    flag: '--in-interface',
    fact: `input ${link ?? ''}`,
    ...(link === undefined ? {} : { such: link }),
  };
}
