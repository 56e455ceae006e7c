import { formatCount } from '../base/format-count.ts';
import type { Owners } from '../diff/changes/owners.ts';
import { isLoopback } from '../kernel/address.ts';
import { addressWords } from '../diff/port-facts.ts';
import { parseAskedAddress, parseAskedPort } from './asked-address.ts';
import type { DecompiledPort } from './decompiled-port.ts';
import { cutLines, pathLines, type DescriptionLine } from './describe-words.ts';
import { listensOn } from '../kube-proxy/node-port-listeners.ts';
import { nameInKubectl, parseAskedName } from './asked-name.ts';
import { bareName, parseRuleLine, type ClosedPort, type DeafNodePort } from './find-subject.ts';
import type { OwnAddresses } from './node-addresses.ts';

/**
 * The name of the Service port that a chain, or a line of iptables-save, belongs to, or the address of a set's entry; else
 * the text itself.
 */
export function resolveName(what: string, owners: Owners): string {
  const parsed = parseRuleLine(what);
  const chain = parsed?.chain ?? { name: what, rules: [] };
  const bare = bareName(what);
  return (parsed && owners.ofRule(parsed.rule)) ?? owners.ofChain(chain) ?? owners.ofNftChain({ name: bare }) ?? bare;
}

/**
 * Whether a text names the port: its name or a part of it, an address, its node port, on an address of the node's too, or
 * an endpoint.
 */
export function isAbout(port: DecompiledPort, what: string, node: OwnAddresses): boolean {
  return (
    port.name === what ||
    hasName(port, what) ||
    hasNodePort(port, what) ||
    hasAddress(port, what) ||
    listensAt(port, what, node) === 'yes'
  );
}

function hasName(port: DecompiledPort, what: string): boolean {
  // In IPVS mode a port that nothing names is called by its address.
  const [service, portName] = splitName(port.name);
  if (service === undefined) return false;
  const asked = [what, nameInKubectl(what) ?? what].map(parseAskedName);
  return asked.some(
    ({ name, port: askedPort }) =>
      (name === service || name === service.replace(/^.*\//, '')) &&
      (askedPort === undefined || askedPort === portName || askedPort === String(port.port)),
  );
}

/** The Service and the port in "namespace/name:port", or in one without its namespace; nothing in an address. */
function splitName(name: string): readonly [service?: string, port?: string] {
  const [, service, port] = /^((?:[^/: ]+\/)?[^/: ]+)(?::([^/: ]+))?$/.exec(name) ?? [];
  return service === undefined ? [] : port === undefined ? [service] : [service, port];
}

/** The Services of an address that was asked for with another port than theirs. */
export function findClosedPort(ports: readonly DecompiledPort[], what: string): ClosedPort | undefined {
  const asked = parseAskedAddress(what);
  if (asked?.port === undefined) return undefined;
  const { text: address } = asked.address;
  const owners = new Map<string, ClosedPort['owners'][number]>();
  for (const port of ports.filter((each) => hasAddress(each, address))) {
    const [service] = splitName(port.name);
    const isEndpoint = port.addresses.every((each) => each.address !== address);
    const own = isEndpoint
      ? (port.endpoints ?? []).flatMap(({ endpoint }) => {
          const known = parseAskedAddress(endpoint);
          return known?.address.text === address && known.port !== undefined ? [known.port] : [];
        })
      : port.port === undefined
        ? []
        : [port.port];
    const key = service === undefined ? '' : `${service} ${isEndpoint}`;
    const known = owners.get(key)?.ports ?? [];
    const shown = own.map((number) => `${number}/${port.protocol}`);
    owners.set(key, { service, isEndpoint, ports: [...new Set([...known, ...shown])] });
  }
  if (owners.size === 0) return undefined;
  const number = asked.protocol === undefined ? String(asked.port) : `${asked.port}/${asked.protocol}`;
  return { address, port: number, owners: [...owners.values()] };
}

function hasNodePort({ nodePort, healthCheckNodePort, protocol }: DecompiledPort, what: string): boolean {
  const asked = parseAskedPort(what);
  if (!asked) return false;
  if (asked.port === healthCheckNodePort && (asked.protocol ?? 'TCP') === 'TCP') return true;
  return asked.port === nodePort && (asked.protocol === undefined || asked.protocol === protocol);
}

/** Whether a bare number is a Service's own port; of a node port with that number it is more likely. */
export function hasPort({ port, protocol }: DecompiledPort, what: string): boolean {
  const asked = parseAskedPort(what);
  if (!asked || asked.isOfNode || asked.port !== port) return false;
  return asked.protocol === undefined || asked.protocol === protocol;
}

/**
 * Whether a node port is reached at the address that a text names: `deaf` where that is the node's, but not one that node ports
 * listen on. Where a dump does not tell the node's addresses, any may be one.
 */
function listensAt(
  { nodePort, family, protocol }: DecompiledPort,
  what: string,
  node: OwnAddresses,
): 'yes' | 'deaf' | 'no' {
  const asked = parseAskedAddress(what);
  if (asked?.port === undefined || asked.port !== nodePort || asked.address.family !== family) return 'no';
  if (asked.protocol !== undefined && asked.protocol !== protocol) return 'no';
  const own = node.addresses.get(family);
  const isOther = own !== undefined && own.size > 0 && !own.has(asked.address.text);
  if (isOther && !isLoopback(asked.address)) return 'no';
  const listens = listensOn(node.listeners({ family, protocol, port: nodePort }), asked.address);
  return listens === false ? 'deaf' : 'yes';
}

/** The port of a dump whose node port a text names, at an address of the node on which it does not listen. */
export function findDeafPort(
  ports: readonly DecompiledPort[],
  what: string,
  node: OwnAddresses,
): DeafNodePort | undefined {
  const asked = parseAskedAddress(what);
  const found = ports.find((port) => listensAt(port, what, node) === 'deaf');
  if (!asked || found?.nodePort === undefined) return undefined;
  const { name, family, protocol, nodePort } = found;
  const listeners = node.listeners({ family, protocol, port: nodePort });
  // In IPVS mode a port that nothing names is called by its node port.
  const label = name.startsWith('node port ') ? undefined : name;
  return { port: nodePort, label, address: asked.address.text, listeners };
}

function hasAddress({ addresses, endpoints = [], ...port }: DecompiledPort, what: string): boolean {
  const asked = parseAskedAddress(what);
  if (!asked) return addresses.some(({ address }) => address === what);
  if (asked.protocol !== undefined && asked.protocol !== port.protocol) return false;
  const { text } = asked.address;
  const isPort = (number: number | undefined) => asked.port === undefined || asked.port === number;
  if (isPort(port.port) && addresses.some(({ address }) => address === text)) return true;
  return endpoints.some(({ endpoint }) => {
    const known = parseAskedAddress(endpoint);
    return known?.address.text === text && isPort(known.port);
  });
}

/** A Service port of a dump, as far as the state tells. */
export function describeDecompiled(port: DecompiledPort, limit: number): readonly DescriptionLine[] {
  const line = (depth: number, text: string): DescriptionLine => ({
    role: depth === 0 ? 'heading' : 'plain',
    depth,
    text,
  });
  const endpoints = (port.endpoints ?? []).map(({ endpoint, takes, draining }) => {
    const use = draining
      ? '  weight 0: no new connections'
      : takes.length > 0
        ? `  for policy ${takes.join(' and ')}`
        : '';
    return line(2, endpoint + use);
  });
  return [
    line(0, port.name),
    ...port.addresses.map(({ kind, address }) => line(1, `${addressWords[kind]} ${address} ${describePort(port)}`)),
    ...(port.nodePort === undefined ? [] : [line(1, `node port ${port.nodePort}/${port.protocol}`)]),
    ...pathLines(port),
    line(1, headEndpoints(port)),
    ...cutLines(endpoints, limit, 2),
  ];
}

/** A rule for several ports, or for all but one, names no port of a Service. */
function describePort({ port, protocol }: DecompiledPort): string {
  return port === undefined ? `${protocol}, port unknown` : `port ${port}/${protocol}`;
}

function headEndpoints(port: DecompiledPort): string {
  const { endpoints } = port;
  if (endpoints === undefined) return `endpoints: unknown, because the dump does not show ${nameLacking(port)}`;
  return endpoints.length === 0 ? 'no endpoints' : `endpoints (${formatCount(endpoints.length)})`;
}

/** What leads to endpoints, and is not in the dump. */
function nameLacking({ name, internalTrafficPolicy, scheduler }: DecompiledPort): string {
  if (internalTrafficPolicy !== undefined) return 'all the chains that lead to them';
  if (scheduler !== undefined) return 'the real servers';
  return splitName(name).length === 0 ? 'the virtual servers' : 'what leads to them';
}
