import { joinHostPort, parseAddress, type Address } from '../kernel/address.ts';
import { parseAddressRange, singleAddress } from '../kernel/address-range.ts';
import { parseEntry } from '../kernel/ipset/set-entry.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';

/** An address that is asked about, in any form that a tool or a person writes it. */
export interface AskedAddress {
  readonly address: Address;
  readonly port: number | undefined;
  /** In capitals. */
  readonly protocol: string | undefined;
}

/** A bare number: of a node port, or of a Service's own port. */
interface AskedPort {
  readonly port: number;
  /** In capitals. */
  readonly protocol: string | undefined;
  /** Set for ":30080", which can only be a port of the node. */
  readonly isOfNode: boolean;
}

/** A Service that is asked about by its name. */
interface AskedName {
  /** "name" or "namespace/name". */
  readonly name: string;
  /** The name or number of one of its ports. */
  readonly port: string | undefined;
}

/** A text by all that it may mean. */
export interface Asked {
  readonly text: string;
  readonly address: AskedAddress | undefined;
  readonly number: AskedPort | undefined;
  /** The name of a Service, as it is and as kubectl would write it. */
  readonly names: readonly AskedName[];
}

/** Reads an address, a port or a name. Takes any text. */
export function parseAsked(text: string): Asked {
  const names = [text, nameInKubectl(text) ?? text].map(parseAskedName);
  return { text, address: parseAskedAddress(text), number: parseAskedPort(text), names };
}

/**
 * Reads "10.96.0.80", "10.96.0.80:80", "[fd00::10]:80/tcp", "fd00::10", or "10.96.0.80/32" as iptables-save prints it;
 * undefined for anything else.
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

/** Reads "name", "namespace/name", or a name in DNS, each with or without ":port". Takes any text. */
export function parseAskedName(what: string): AskedName {
  const [host = '', port] = what.split(':');
  return { name: nameInDns(host) ?? host, port };
}

/** "web.shop", as pods call it whose own namespace is another, up to "web.shop.svc.cluster.local.". */
const dnsName = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?\.?$/;

/** The "namespace/name" of a name in DNS; undefined for any other text. */
export function nameInDns(what: string): string | undefined {
  const [, name, namespace] = dnsName.exec(what) ?? [];
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/** What follows "svc/", which is kubectl's way of naming a Service; undefined if that is not there. */
export function nameInKubectl(what: string): string | undefined {
  return /^(?:svc|services?)\/(.+)$/i.exec(what)?.[1];
}

/** What follows "pod/"; undefined if that is not there. */
export function nameOfPod(what: string): string | undefined {
  return /^(?:po|pods?)\/(.+)$/i.exec(what)?.[1];
}

/** The name or address that is meant by a line of ipset or nft, or a part of one. Any other text is given back. */
export function bareName(what: string): string {
  return bareNftName(addressOfEntry(what));
}

/**
 * What an entry of a set is about, of a line of ipset save or without its beginning: "10.96.0.80,tcp:80" is the address
 * "10.96.0.80:80/tcp". Any other text is given back.
 */
function addressOfEntry(what: string): string {
  const entry = what.replace(/^add \S+ /i, '').toLowerCase();
  const { address, protocol, port } = parseEntry(entry, 'hash:ip,port,net');
  if (!address || protocol === undefined || port === undefined) return what;
  return `${joinHostPort(address.text, port)}/${protocol}`;
}

const elementKey = /^(?:(\S+) \. )?(?:(\S+) \. )?(tcp|udp|sctp) \. (\d{1,5})$/i;

/** What names a chain, set or map, or a rule that leads to one. What leads to several has braces. */
const naming = /^(?:[^{}]* )?(?:(?:chain|set|map|goto|jump) |@)([^\s{}]+)(?: \{| comment "[^"]*")?$/;

/**
 * What a name, an element or a rule in a listing of nftables means: "chain services {", "goto service-…",
 * "10.96.0.1 . tcp . 80 : goto …", "elements = { tcp . 30080 : drop }", "ip saddr 10.0.0.0/8 goto service-…". Elements become
 * "10.96.0.1:80/tcp" and "30080/tcp", and a rule the chain or map that it leads to. Any other text is given back.
 */
function bareNftName(what: string): string {
  const element = what.replace(/^elements = \{ ?/, '').replace(/(?:,| \})$/, '');
  // The value of a map's element is behind the last colon.
  const at = element.lastIndexOf(' : ');
  const key = (at < 0 || element.includes(',', at) ? element : element.slice(0, at)).replace(/ comment "[^"]*"$/, '');
  const [, address, , protocol = '', port = ''] = elementKey.exec(key) ?? [];
  if (port === '') return parseAddress(key) ? key : (naming.exec(what)?.[1] ?? what);
  if (address === undefined) return `${port}/${protocol}`;
  return parseAddress(address) ? `${joinHostPort(address, Number(port))}/${protocol}` : what;
}
