import type { ServiceInfo } from '../../cluster/model.ts';
import { joinHostPort, parseAddress, type Address } from '../../kernel/address.ts';
import { parseAddressRange, singleAddress } from '../../kernel/address-range.ts';
import { parseEntry } from '../../kernel/ipset/set-entry.ts';
import { parseSocketAddress } from '../../kernel/ports-and-marks.ts';

export interface AskedAddress {
  readonly address: Address;
  readonly port: number | undefined;
  readonly protocol: string | undefined;
}

interface AskedPort {
  readonly port: number;
  readonly protocol: string | undefined;
  /** True for ":30080", which can only be a port of the node. */
  readonly isOfNode: boolean;
}

interface AskedName {
  /** "name" or "namespace/name". */
  readonly name: string;
  readonly port: string | undefined;
}

export interface Asked {
  readonly text: string;
  readonly address: AskedAddress | undefined;
  readonly number: AskedPort | undefined;
  /** The text read as a Service name, once as written and once without kubectl's prefix. */
  readonly names: readonly AskedName[];
}

export function parseAsked(text: string): Asked {
  const names = [text, nameInKubectl(text) ?? text].map(parseAskedName);
  return { text, address: parseAskedAddress(text), number: parseAskedPort(text), names };
}

/** Reads "10.96.0.80", "10.96.0.80:80", "[fd00::10]:80/tcp", "fd00::10", or iptables-save's "10.96.0.80/32". Undefined for other text. */
export function parseAskedAddress(what: string): AskedAddress | undefined {
  const [, given = what, protocol] = /^(.*)\/(tcp|udp|sctp)$/i.exec(what) ?? [];
  const at = given.replace(/^localhost(?=:\d)/i, '127.0.0.1');
  const socket = parseSocketAddress(at);
  const range = at.includes('/') ? parseAddressRange(at) : undefined;
  const address =
    socket?.address ?? parseAddress(at.replace(/^\[(.*)\]$/, '$1')) ?? (range ? singleAddress(range) : undefined);
  return address && { address, port: socket?.port, protocol: protocol?.toUpperCase() };
}

/** Reads "30080", ":30080" or "30080/tcp"; undefined for any other text. */
function parseAskedPort(what: string): AskedPort | undefined {
  const [, colon, number = '', protocol] = /^(:?)(\d{1,5})(?:\/(tcp|udp|sctp))?$/i.exec(what) ?? [];
  const port = Number(number);
  if (port === 0) return undefined;
  return { port, protocol: protocol?.toUpperCase(), isOfNode: colon === ':' };
}

/** Reads "name", "namespace/name", or a DNS name, each with or without ":port". Accepts any text as a name. */
export function parseAskedName(what: string): AskedName {
  const [host = '', port] = what.split(':');
  return { name: nameInDns(host) ?? host, port };
}

/** Matches DNS names of Services, from "web.shop" (for pods in other namespaces) to "web.shop.svc.cluster.local.". */
const dnsName = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?\.?$/;

/** Returns "namespace/name" from a DNS name; undefined for any other text. */
export function nameInDns(what: string): string | undefined {
  const [, name, namespace] = dnsName.exec(what) ?? [];
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/** Matches DNS names of endpoints, from "web-0.db" (for pods in the same namespace) to "web-0.db.shop.svc.cluster.local.". */
const dnsHost = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?\.?$/;

/** Reads the DNS name of a headless Service's endpoint, with or without a port. Undefined for any other text. */
export function hostInDns(what: string) {
  const [name = '', port] = what.split(':');
  const [, host, service, namespace] = dnsHost.exec(name) ?? [];
  return host === undefined || service === undefined ? undefined : { host, service, namespace, port };
}

export function headlessServices(
  { service, namespace }: Pick<NonNullable<ReturnType<typeof hostInDns>>, 'service' | 'namespace'>,
  services: readonly ServiceInfo[],
): readonly ServiceInfo[] {
  return services.filter(
    (each) => each.skipped === 'headless' && each.name === service && (namespace ?? each.namespace) === each.namespace,
  );
}

/** Returns the first label of an endpoint's DNS name: its hostname, or else its address with dashes. */
export function hostOf({
  hostname,
  address,
}: {
  readonly hostname?: string | undefined;
  readonly address: string;
}): string {
  return hostname || address.replace(/[.:]/g, '-');
}

/** Returns the text after "svc/", kubectl's prefix for Services; undefined without that prefix. */
export function nameInKubectl(what: string): string | undefined {
  return /^(?:svc|services?)\/(.+)$/i.exec(what)?.[1];
}

/** Returns the name in a text that may name a Service without its namespace: "web", "web:http" or "svc/web". */
export function nameToQualify(what: string): string | undefined {
  return /^(?:(?:svc|services?)\/)?([a-z][a-z0-9-]*(?::[\w-]+)?)$/i.exec(what.trim())?.[1];
}

export function readPodName(what: string): string | undefined {
  return /^(?:po|pods?)\/(.+)$/i.exec(what)?.[1];
}

/** Returns the name or address in a line, or part of a line, that ipset or nft printed. Returns any other text unchanged. */
export function bareName(what: string): string {
  return bareNftName(addressOfEntry(what));
}

/**
 * Returns the address in a set entry, alone or in a line from ipset save: "10.96.0.80,tcp:80" becomes "10.96.0.80:80/tcp". Returns any
 * other text unchanged.
 */
function addressOfEntry(what: string): string {
  const entry = what.replace(/^add \S+ /i, '').toLowerCase();
  const { address, protocol, port } = parseEntry(entry, 'hash:ip,port,net');
  if (!address || protocol === undefined || port === undefined) return what;
  return `${joinHostPort(address.text, port)}/${protocol}`;
}

const elementKey = /^(?:(\S+) \. )?(?:(\S+) \. )?(tcp|udp|sctp) \. (\d{1,5})$/i;

/** Matches a line that names a chain, set or map, and a rule without braces that leads to only one of these. */
const naming = /^(?:[^{}]* )?(?:(?:chain|set|map|goto|jump) |@)([^\s{}]+)(?: \{| comment "[^"]*")?$/;

/**
 * Returns what a name, element or rule in an nftables listing refers to. Reads texts such as "chain services {", "goto service-…",
 * "10.96.0.1 . tcp . 80 : goto …", "elements = { tcp . 30080 : drop }" and "ip saddr 10.0.0.0/8 goto service-…". Elements become
 * "10.96.0.1:80/tcp" and "30080/tcp". A rule becomes the chain or map that it leads to. Returns any other text unchanged.
 */
function bareNftName(what: string): string {
  const element = what.replace(/^elements = \{ ?/, '').replace(/(?:,| \})$/, '');
  const at = element.lastIndexOf(' : ');
  const key = (at < 0 || element.includes(',', at) ? element : element.slice(0, at)).replace(/ comment "[^"]*"$/, '');
  const [, address, , protocol = '', port = ''] = elementKey.exec(key) ?? [];
  if (port === '') return parseAddress(key) ? key : (naming.exec(what)?.[1] ?? what);
  if (address === undefined) return `${port}/${protocol}`;
  return parseAddress(address) ? `${joinHostPort(address, Number(port))}/${protocol}` : what;
}
