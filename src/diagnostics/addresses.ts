import { quote } from '../base/wording.ts';
import type { Severity } from './table.ts';

/** A field and what is written there. */
export interface WrittenValue {
  readonly field: string;
  readonly value: string;
}

/** What is wrong with an address. */
export type AddressProblem =
  | (WrittenValue & { readonly problem: 'no-address'; readonly hasPrefixLength?: boolean })
  /** `kind` is why: "a loopback address". */
  | (WrittenValue & { readonly problem: 'unusable'; readonly kind: string })
  | (WrittenValue & { readonly problem: 'other-family'; readonly family: 'IPv4' | 'IPv6' })
  | { readonly problem: 'no-cluster-ip'; readonly value: string }
  | SpecialAddress
  | NodeAddress;

/** Where an address stands that no host on a network has. kube-proxy uses it all the same. */
export type AddressUse = 'cluster-ip' | 'load-balancer' | 'external-ip' | 'endpoint';

interface SpecialAddress extends WrittenValue {
  readonly problem: 'special';
  readonly use: AddressUse;
  /** "a multicast address". */
  readonly kind: string;
  /** Whether kpc-apply refuses a bundle with it. */
  readonly isRefused: boolean;
}

function describeSpecialAddress({ field, value, use, kind, isRefused }: SpecialAddress): string {
  const refused = isRefused ? '; kpc-apply does not take such a bundle' : '';
  return `${field} ${quote(value)} is ${kind}: ${consequences[use]}${refused}`;
}

const consequences: { readonly [Use in AddressUse]: string } = {
  'cluster-ip': 'kube-proxy writes rules for it, but no cluster should give it to a Service',
  'load-balancer': 'kube-proxy writes rules for it, but no load balancer can be reached there from another network',
  'external-ip': 'kube-proxy writes rules for it, but no Service can be reached there from another network',
  endpoint: 'kube-proxy sends connections there, but no Pod can answer them',
};

/**
 * Where node ports listen because of an address of the Node: on all addresses, on that one, on that one for want of
 * --host-addresses, on none for want of it, or as if the address were not there.
 */
export type ListeningPlace = 'everywhere' | 'there' | 'assumed' | 'unknown' | 'as-without';

/** An address of a Node: one that is none, one that no node should have, and one of a type that Kubernetes does not know. */
type NodeAddress =
  | (NodeAddressValue & { readonly problem: 'no-node-address'; readonly hasPrefixLength: boolean })
  | (NodeAddressValue & { readonly problem: 'special-node-address'; readonly kind: string })
  | {
      readonly problem: 'node-type';
      readonly node: string;
      readonly index: number;
      readonly type: string;
      readonly meant: string | undefined;
      readonly listens: ListeningPlace;
    };

interface NodeAddressValue extends WrittenValue {
  readonly node: string;
  readonly listens: ListeningPlace;
}

function describeNodeAddress(details: NodeAddress): string {
  const { node } = details;
  switch (details.problem) {
    case 'no-node-address': {
      const hint = details.hasPrefixLength ? ': write it without the prefix length' : '';
      const end = `kube-proxy leaves it out${listening[details.listens]}`;
      const what = details.value === '' ? 'is empty' : `${quote(details.value)} is not an IP address${hint}`;
      return `node ${node}: ${details.field} ${what}; ${end}`;
    }
    case 'special-node-address': {
      const what = `node ${node}: ${details.field} ${quote(details.value)} is ${details.kind}`;
      return `${what}, at which other networks cannot reach the node; kube-proxy takes it all the same${listening[details.listens]}`;
    }
    case 'node-type': {
      const { index, type, meant, listens } = details;
      const what = type === '' ? 'has no type' : `is of type ${quote(type)}`;
      const hint = meant === undefined ? 'write InternalIP or ExternalIP;' : `did you mean ${meant}?`;
      return `node ${node}: addresses[${index}] ${what}: ${hint} kube-proxy leaves it out${listening[listens]}`;
    }
  }
}

const listening: { readonly [Place in ListeningPlace]: string } = {
  everywhere: ", and NodePorts listen on all addresses, because the node's own are unknown",
  there: ', and NodePorts listen on no other address',
  assumed: ', and without --host-addresses NodePorts listen there',
  unknown: ', and without --host-addresses NodePorts have no address to listen on',
  'as-without': '',
};

/** Says what is wrong with it, and what comes of it. */
export function describeAddress(details: AddressProblem): string {
  switch (details.problem) {
    case 'no-address': {
      const hint = details.hasPrefixLength ? ': write it without the prefix length' : '';
      return `${details.field} ${quote(details.value)} is not an IP address${hint}`;
    }
    case 'unusable':
      return `${details.field} ${quote(details.value)} is ${details.kind}: Kubernetes does not take it here`;
    case 'other-family':
      return `${details.field} ${quote(details.value)} is not an ${details.family} address, which addressType requires`;
    case 'no-cluster-ip':
      return `clusterIP ${quote(details.value)} is not an address that a Service can have`;
    case 'special':
      return describeSpecialAddress(details);
    case 'no-node-address':
    case 'special-node-address':
    case 'node-type':
      return describeNodeAddress(details);
  }
}

/** What Kubernetes takes is a warning, whatever comes of it. */
export function weighAddress({ problem }: AddressProblem): Severity {
  switch (problem) {
    case 'no-address':
    case 'unusable':
    case 'other-family':
    case 'no-cluster-ip':
      return 'error';
    case 'special':
    case 'no-node-address':
    case 'special-node-address':
    case 'node-type':
      return 'warning';
  }
}
