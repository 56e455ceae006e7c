import { quote } from '../base/wording.ts';
import { severityBy, type Wordings } from './table.ts';

/** A field and what is written there. */
export interface WrittenValue {
  readonly field: string;
  readonly value: string;
}

/** The use of an address that no host on a network has. kube-proxy uses it anyway. */
export type AddressUse = 'cluster-ip' | 'load-balancer' | 'external-ip' | 'endpoint';

const consequences: { readonly [Use in AddressUse]: string } = {
  'cluster-ip': 'kube-proxy writes rules for it, but no cluster should give it to a Service',
  'load-balancer': 'kube-proxy writes rules for it, but no load balancer can be reached there from another network',
  'external-ip': 'kube-proxy writes rules for it, but no Service can be reached there from another network',
  endpoint: 'kube-proxy sends connections there, but no Pod can answer them',
};

/**
 * Where node ports listen because of an address of the Node: on all addresses, on that one, on that one unless
 * --host-addresses names others, on none unless it does, or as if the address were not there.
 */
export type ListeningPlace = 'everywhere' | 'there' | 'assumed' | 'unknown' | 'as-without';

const listening: { readonly [Place in ListeningPlace]: string } = {
  everywhere: ", and NodePorts listen on all addresses, because the node's own are unknown",
  there: ', and NodePorts listen on no other address',
  assumed: ', and without --host-addresses NodePorts listen there',
  unknown: ', and without --host-addresses NodePorts have no address to listen on',
  'as-without': '',
};

export interface OfNode {
  readonly node: string;
  readonly listens: ListeningPlace;
}

/** `kind` is "a loopback address". */
type OfKind = WrittenValue & { readonly kind: string };

/** The words for a wrong address, by `problem`. */
export const addressWords = {
  'no-address': ({ field, value, hasPrefixLength }: WrittenValue & { readonly hasPrefixLength?: boolean }) => [
    `${field} ${quote(value)} is not an IP address`,
    hasPrefixLength ? 'write it without the prefix length' : 'write one such as 10.0.0.1 or fd00::1',
  ],
  unusable: ({ field, value, kind }: OfKind) =>
    `${field} ${quote(value)} is ${kind}, which Kubernetes does not take here`,
  'other-family': ({ field, value, family }: WrittenValue & { readonly family: 'IPv4' | 'IPv6' }) =>
    `${field} ${quote(value)} is not an ${family} address, which addressType requires`,
  'no-cluster-ip': ({ value }: { readonly value: string }) =>
    `clusterIP ${quote(value)} is not an address that a Service can have`,
  special: (details: OfKind & { readonly use: AddressUse; /** By kpc-apply. */ readonly isRefused: boolean }) => {
    const { field, value, use, kind, isRefused } = details;
    const refused = isRefused ? '; kpc-apply does not take such a bundle' : '';
    return `${field} ${quote(value)} is ${kind}: ${consequences[use]}${refused}`;
  },
  'no-node-address': (details: WrittenValue & OfNode & { readonly hasPrefixLength: boolean }) => {
    const { node, field, value, listens, hasPrefixLength } = details;
    const what = value === '' ? 'is empty' : `${quote(value)} is not an IP address`;
    return [
      `node ${node}: ${field} ${what}; kube-proxy leaves it out${listening[listens]}`,
      hasPrefixLength ? 'write it without the prefix length' : undefined,
    ];
  },
  'special-node-address': ({ node, field, value, kind, listens }: OfKind & OfNode) =>
    `node ${node}: ${field} ${quote(value)} is ${kind}, at which other networks cannot reach the node; kube-proxy uses it anyway${listening[listens]}`,
  'node-type': (
    details: OfNode & { readonly index: number; readonly type: string; readonly meant?: string | undefined },
  ) => {
    const { node, index, type, meant, listens } = details;
    const what = type === '' ? 'has no type' : `is of type ${quote(type)}`;
    return [
      `node ${node}: addresses[${index}] ${what}; kube-proxy leaves it out${listening[listens]}`,
      meant === undefined ? 'write InternalIP or ExternalIP' : `did you mean ${meant}?`,
    ];
  },
} as const satisfies Wordings;

/** What Kubernetes takes is a warning, whatever the consequences. */
export const addressSeverity = severityBy('problem', 'error', {
  special: 'warning',
  'no-node-address': 'warning',
  'special-node-address': 'warning',
  'node-type': 'warning',
});
