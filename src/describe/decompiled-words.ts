import { count, formatCount } from '../base/format-count.ts';
import type { Owners } from '../diff/changes/owners.ts';
import { addressWords } from '../diff/port-facts.ts';
import { parseAskedAddress, parseAskedPort } from './asked-address.ts';
import type { DecompiledPort } from './decompiled-port.ts';
import { cutLines, pathLines, type DescriptionLine } from './describe-words.ts';
import { nameInKubectl, parseAskedName } from './asked-name.ts';
import { hasOwnPort, roleOfAddress, roleOfNumber, splitName, type AskedNode } from './find-port.ts';
import { bareName, parseRuleLine } from './find-subject.ts';
import { nameSome } from '../base/join-words.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { LeftChain } from '../kube-proxy/left-chains.ts';
import type { Leftovers } from './decompile.ts';

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
export function isAbout(port: DecompiledPort, what: string, node: AskedNode): boolean {
  if (port.name === what || hasName(port, what)) return true;
  const number = parseAskedPort(what);
  if (number) return roleOfNumber(port, number) !== undefined;
  const address = parseAskedAddress(what);
  if (address) return roleOfAddress(port, address, node) !== undefined;
  return port.addresses.some((each) => each.address === what);
}

/** Whether a bare number is the Service's own port. */
export function hasPort(port: DecompiledPort, what: string): boolean {
  const asked = parseAskedPort(what);
  return asked !== undefined && hasOwnPort(port, asked);
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

/** What another mode left on a node, a line for each kind; nothing where it left nothing. */
export function describeLeftovers(leftovers: Leftovers, owners: Owners): readonly string[] {
  const { chains, virtualServers, sets, addresses } = leftovers;
  const dead = chains.filter(({ reachedFrom }) => reachedFrom.length === 0);
  const live = chains.filter(({ reachedFrom }) => reachedFrom.length > 0);
  const ofIpvs = [
    ...(virtualServers.length > 0
      ? [`${count(virtualServers.length, 'virtual server')} (${nameServers(leftovers)})`]
      : []),
    ...(sets.length > 0 ? [`${count(sets.length, 'set')} (${nameSome(sets)})`] : []),
    ...(addresses.length > 0
      ? [`${count(addresses.length, 'address', 'addresses')} on kube-ipvs0 (${nameSome(addresses)})`]
      : []),
  ];
  return [
    ...(dead.length > 0
      ? [`Left by iptables mode, nothing jumps to them: ${nameChains(dead)}${ofServices(dead, owners)}`]
      : []),
    ...live.map(
      ({ table, chain, reachedFrom }) =>
        `Left by iptables mode, still reached from ${nameSome(reachedFrom)}: chain ${chain.name} (${table}) with ` +
        `${count(chain.rules.length, 'rule')}${doesRefuse(chain.rules) ? (chain.rules.length === 1 ? ' that refuses packets' : ' that refuse packets') : ''}${ofRules(chain.rules, owners)}`,
    ),
    ...(ofIpvs.length > 0 ? [`Left by IPVS mode: ${ofIpvs.join(', ')}`] : []),
  ];
}

function nameServers({ virtualServers }: Leftovers): string {
  return nameSome(
    virtualServers.map(({ address, port, protocol }) => `${joinHostPort(address.text, port)}/${protocol}`),
  );
}

function nameChains(chains: readonly LeftChain[]): string {
  return `${count(chains.length, 'chain')} (${nameSome(chains.map(({ chain }) => chain.name))})`;
}

function ofServices(chains: readonly LeftChain[], owners: Owners): string {
  const names = new Set(chains.flatMap(({ chain }) => owners.ofChain(chain) ?? []));
  return names.size === 0 ? '' : `, of ${nameSome([...names].sort())}`;
}

function doesRefuse(rules: LeftChain['chain']['rules']): boolean {
  return rules.every(({ args }) => args.some((arg) => arg.kind === 'jump' && arg.target.kind === 'reject'));
}

function ofRules(rules: LeftChain['chain']['rules'], owners: Owners): string {
  const names = new Set(rules.flatMap((rule) => owners.ofRule(rule) ?? []));
  return names.size === 0 ? '' : `, for ${nameSome([...names].sort())}`;
}
