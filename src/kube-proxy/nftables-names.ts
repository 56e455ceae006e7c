import { joinHostPort } from '../kernel/address.ts';
import type { Protocol } from '../kernel/family.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { isKubeProxyTable, nftChains, nftPrefixes, nftSets, nftTableComment } from './nftables.ts';

/** What the name of a Service port's own chain or set says. */
export interface NftName {
  readonly kind: keyof typeof nftPrefixes;
  /** "namespace/name:port". */
  readonly label: string;
  readonly protocol: Protocol;
  /** "ip:port" of an endpoint's chain or set; undefined for others, and where the name was too long to hold it. */
  readonly endpoint: string | undefined;
}

const kinds: ReadonlyMap<string, NftName['kind']> = new Map(
  (Object.keys(nftPrefixes) as readonly NftName['kind'][]).map((kind) => [nftPrefixes[kind], kind]),
);

const namePattern =
  /^([a-z]+-)[A-Z2-7]{8}-([a-z0-9][-a-z0-9]*)\/([a-z0-9][-a-z0-9.]*)\/(tcp|udp|sctp)\/([-a-z0-9]*)(?:__(.*))?$/;

/** Reads a name that kube-proxy gave in nftables mode (servicePortChainNameBase); undefined for any other. */
export function parseNftName(name: string): NftName | undefined {
  const [, prefix = '', namespace, service, protocol = '', port, endpoint] = namePattern.exec(name) ?? [];
  const kind = kinds.get(prefix);
  if (kind === undefined || (endpoint !== undefined) !== (kind === 'endpoint' || kind === 'affinity')) return undefined;
  return {
    kind,
    label: port === '' ? `${namespace}/${service}` : `${namespace}/${service}:${port}`,
    protocol: protocol.toUpperCase() as Protocol,
    endpoint: endpoint === undefined ? undefined : parseEndpoint(endpoint),
  };
}

/** "10.244.1.9/8080", or "fd00.244.1..9/8080": a name may have no colon. */
function parseEndpoint(text: string): string | undefined {
  const [, address, port] = /^([\da-f.]+)\/(\d+)$/.exec(text) ?? [];
  if (address === undefined) return undefined;
  const isIPv4 = /^\d+\.\d+\.\d+\.\d+$/.test(address);
  return joinHostPort(isIPv4 ? address : address.replaceAll('.', ':'), Number(port));
}

/** Whether a kube-proxy made the table, by its name and by what is in it: another program may have one of that name. */
export function isMadeByKubeProxy({ name, comment, chains, sets }: NftTable): boolean {
  if (!isKubeProxyTable(name)) return false;
  const names = [...chains.keys(), ...sets.keys()];
  return comment === nftTableComment || names.some((each) => fixedNames.has(each) || isNftServiceName(each));
}

const fixedNames: ReadonlySet<string> = new Set([...Object.values(nftChains), ...Object.values(nftSets)]);

/** Whether a chain or set has the name of one that belongs to a Service port in nftables mode. */
export function isNftServiceName(name: string): boolean {
  return parseNftName(name) !== undefined;
}
