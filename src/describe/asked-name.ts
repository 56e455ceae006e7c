/** A Service that is asked about by its name. */
interface AskedName {
  /** "name" or "namespace/name". */
  readonly name: string;
  /** The name or number of one of its ports. */
  readonly port: string | undefined;
}

/** "web.shop", as pods call it whose own namespace is another, up to "web.shop.svc.cluster.local.". */
const dnsName = /^([a-z0-9-]+)\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?\.?$/;

/** Reads "name", "namespace/name", or a name in DNS, each with or without ":port". Takes any text. */
export function parseAskedName(what: string): AskedName {
  const [host = '', port] = what.split(':');
  return { name: nameInDns(host) ?? host, port };
}

/** The "namespace/name" of a name in DNS; undefined for any other text. */
export function nameInDns(what: string): string | undefined {
  const [, name, namespace] = dnsName.exec(what) ?? [];
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/** What stands behind "svc/", which is kubectl's way of naming a Service; undefined where that does not. */
export function nameInKubectl(what: string): string | undefined {
  return /^(?:svc|services?)\/(.+)$/i.exec(what)?.[1];
}
