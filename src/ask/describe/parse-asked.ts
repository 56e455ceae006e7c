import type { ServiceInfo } from '../../cluster/model.ts';
import { joinHostPort, parseAddress, type Address } from '../../kernel/address.ts';
import { parseAddressRange, singleAddress } from '../../kernel/address-range.ts';
import { parseEntry } from '../../kernel/ipset/set-entry.ts';
import { parseSocketAddress } from '../../kernel/ports-and-marks.ts';

/** An address in a question, as a tool or person may write it. */
export interface AskedAddress {
  readonly address: Address;
  readonly port: number | undefined;
  /** In upper case. */
  readonly protocol: string | undefined;
}

/** A bare number: a node port, or a Service's own port. */
interface AskedPort {
  readonly port: number;
  /** In upper case. */
  readonly protocol: string | undefined;
  /** Set for ":30080", which can only be a port of the node. */
  readonly isOfNode: boolean;
}

/** A Service named in a question. */
interface AskedName {
  /** "name" or "namespace/name". */
  readonly name: string;
  /** The name or number of one of its ports. */
  readonly port: string | undefined;
}

/** All possible meanings of a text. */
export interface Asked {
  readonly text: string;
  readonly address: AskedAddress | undefined;
  readonly number: AskedPort | undefined;
  /** A Service name, as written and as kubectl would write it. */
  readonly names: readonly AskedName[];
}

/** Reads an address, a port or a name. Takes any text. */
export function parseAsked(text: string): Asked {
  const names = [text, nameInKubectl(text) ?? text].map(parseAskedName);
  return { text, address: parseAskedAddress(text), number: parseAskedPort(text), names };
}

/**
 * Reads "10.96.0.80", "10.96.0.80:80", "[fd00::10]:80/tcp", "fd00::10", or "10.96.0.80/32" as iptables-save prints it; undefined
 * for anything else.
 */
export function parseAskedAddress(what: string): AskedAddress | undefined {
  const [, given = what, protocol] = /^(.*)\/(tcp|udp|sctp)$/i.exec(what) ?? [];
  const at = given.replace(/^localhost(?=:\d)/i, '127.0.0.1');
  const socket = parseSocketAddress(at);
  const range = at.includes('/') ? parseAddressRange(at) : undefined;
  const address =
    socket?.address ?? parseAddress(at.replace(/^\[(.*)\]$/, '$1')) ?? (range ? singleAddress(range) : undefined);
  return address && { address, port: socket?.port, protocol: protocol?.toUpperCase() };
}

/** Reads "30080", ":30080" or "30080/tcp"; undefined for anything else. */
function parseAskedPort(what: string): AskedPort | undefined {
  const [, colon, number = '', protocol] = /^(:?)(\d{1,5})(?:\/(tcp|udp|sctp))?$/i.exec(what) ?? [];
  const port = Number(number);
  if (port === 0) return undefined;
  return { port, protocol: protocol?.toUpperCase(), isOfNode: colon === ':' };
}

/** Reads "name", "namespace/name", or a DNS name, each with or without ":port". Takes any text. */
export function parseAskedName(what: string): AskedName {
  const [host = '', port] = what.split(':');
  return { name: nameInDns(host) ?? host, port };
}

/** "web.shop", as used by pods of other namespaces, up to "web.shop.svc.cluster.local.". */
const dnsName = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?\.?$/;

/** "namespace/name" from a DNS name; undefined for any other text. */
export function nameInDns(what: string): string | undefined {
  const [, name, namespace] = dnsName.exec(what) ?? [];
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/** "web-0.db", as used by pods of its namespace, up to "web-0.db.shop.svc.cluster.local.". */
const dnsHost = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?\.?$/;

/** An endpoint of a headless Service, as DNS names it, and a port; undefined for any other text. */
export function hostInDns(what: string) {
  const [name = '', port] = what.split(':');
  const [, host, service, namespace] = dnsHost.exec(name) ?? [];
  return host === undefined || service === undefined ? undefined : { host, service, namespace, port };
}

/** The headless Services that may be the one in an endpoint's DNS name. */
export function headlessServices(
  { service, namespace }: Pick<NonNullable<ReturnType<typeof hostInDns>>, 'service' | 'namespace'>,
  services: readonly ServiceInfo[],
): readonly ServiceInfo[] {
  return services.filter(
    (each) => each.skipped === 'headless' && each.name === service && (namespace ?? each.namespace) === each.namespace,
  );
}

/** The first label of an endpoint's DNS name: its hostname, or else its address with dashes. */
export function hostOf({
  hostname,
  address,
}: {
  readonly hostname?: string | undefined;
  readonly address: string;
}): string {
  return hostname || address.replace(/[.:]/g, '-');
}

/** The text after "svc/", kubectl's prefix for Services; undefined without that prefix. */
export function nameInKubectl(what: string): string | undefined {
  return /^(?:svc|services?)\/(.+)$/i.exec(what)?.[1];
}

/** The text after "pod/"; undefined without that prefix. */
export function readPodName(what: string): string | undefined {
  return /^(?:po|pods?)\/(.+)$/i.exec(what)?.[1];
}

/** The name or address meant by a line of ipset or nft, or by part of one. Returns any other text unchanged. */
export function bareName(what: string): string {
  return bareNftName(addressOfEntry(what));
}

/**
 * The address meant by a set entry, in a line of ipset save or by itself: "10.96.0.80,tcp:80" means "10.96.0.80:80/tcp". Returns
 * any other text unchanged.
 */
function addressOfEntry(what: string): string {
  const entry = what.replace(/^add \S+ /i, '').toLowerCase();
  const { address, protocol, port } = parseEntry(entry, 'hash:ip,port,net');
  if (!address || protocol === undefined || port === undefined) return what;
  return `${joinHostPort(address.text, port)}/${protocol}`;
}

const elementKey = /^(?:(\S+) \. )?(?:(\S+) \. )?(tcp|udp|sctp) \. (\d{1,5})$/i;

/** A line that names a chain, set or map, or a rule that leads to one. A rule that leads to several has braces. */
const naming = /^(?:[^{}]* )?(?:(?:chain|set|map|goto|jump) |@)([^\s{}]+)(?: \{| comment "[^"]*")?$/;

/**
 * What a name, element or rule in an nftables listing refers to: "chain services {", "goto service-…", "10.96.0.1 . tcp . 80 :
 * goto …", "elements = { tcp . 30080 : drop }", "ip saddr 10.0.0.0/8 goto service-…". Elements become "10.96.0.1:80/tcp" and
 * "30080/tcp", and a rule becomes the chain or map that it leads to. Returns any other text unchanged.
 */
function bareNftName(what: string): string {
  const element = what.replace(/^elements = \{ ?/, '').replace(/(?:,| \})$/, '');
  // The value of a map element follows the last colon.
  const at = element.lastIndexOf(' : ');
  const key = (at < 0 || element.includes(',', at) ? element : element.slice(0, at)).replace(/ comment "[^"]*"$/, '');
  const [, address, , protocol = '', port = ''] = elementKey.exec(key) ?? [];
  if (port === '') return parseAddress(key) ? key : (naming.exec(what)?.[1] ?? what);
  if (address === undefined) return `${port}/${protocol}`;
  return parseAddress(address) ? `${joinHostPort(address, Number(port))}/${protocol}` : what;
}
