import { quote } from '../base/printable.ts';
import { aNode, aService, manifests, web } from './examples.ts';
import type { DiagnosticTable } from './diagnostic-rows.ts';

/** A field and what is written there. */
export interface WrittenValue {
  readonly field: string;
  readonly value: string;
}

/** An address of an object, or of the status of a Node, which no API server checks. */
type WrittenAddress = WrittenValue & { readonly node?: string };

function nameField({ node, field, value }: WrittenAddress): string {
  return `${node === undefined ? '' : `node ${node}: `}${field} ${quote(value)}`;
}

/** What follows from the use of an address that no host on a network has. kube-proxy uses it anyway. */
const consequences = {
  'cluster-ip': 'kube-proxy writes rules for it, but no cluster should give it to a Service',
  'load-balancer': 'kube-proxy writes rules for it, but no load balancer can be reached there from another network',
  'external-ip': 'kube-proxy writes rules for it, but no Service can be reached there from another network',
  endpoint: 'kube-proxy sends connections there, but no Pod can answer them',
  node: 'kube-proxy uses it anyway, but other networks cannot reach the node there',
} as const;

export type AddressUse = keyof typeof consequences;

type SpecialAddress = WrittenAddress & {
  readonly use: AddressUse;
  /** "a loopback address". */
  readonly kind: string;
  /** By kpc-apply. */
  readonly isRefused?: boolean;
};

/** What is wrong with addresses, whatever object they belong to. */
export const addressDiagnostics = {
  'bad-address': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ node }: WrittenAddress) => (node === undefined ? 'error' : 'warning'),
    },
    meaning: 'a value is not an IP address, or not one that is allowed there',
    example: () => manifests(aService('clusterIP: 10.96.31.256, ports: [{ port: 80 }]')),
    words: (details: WrittenAddress & { readonly expected: string }) => [
      `${nameField(details)} is not ${details.expected}${details.node === undefined ? '' : '; kube-proxy leaves it out'}`,
      'write one such as 10.0.0.1 or fd00::1, without a prefix length',
    ],
  },
  'odd-address': {
    severity: 'warning',
    meaning: 'an IP address is written in a form that other programs may read differently',
    example: () => manifests(aService('clusterIP: 10.96.0.010, ports: [{ port: 80 }]')),
    words: (details: WrittenValue & { readonly address: string }) => [
      `${nameField(details)} is read as ${details.address}`,
      'write it that way, because other programs may read it differently',
    ],
  },
  'special-address': {
    severity: 'warning',
    meaning: 'an address is one that no host on a network has, and kube-proxy uses it anyway',
    example: () => manifests(web + aNode('status: { addresses: [{ type: InternalIP, address: 127.0.0.1 }] }')),
    words: (details: SpecialAddress) =>
      `${nameField(details)} is ${details.kind}: ${consequences[details.use]}${details.isRefused ? '; kpc-apply does not take such a bundle' : ''}`,
  },
} satisfies DiagnosticTable;
