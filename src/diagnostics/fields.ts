import { anIP, container, manifests, aNode, pod, aService, slice, web, type Example } from './examples.ts';
import { adviseOnOddSpace } from '../base/odd-space.ts';
import { joinWords } from '../base/join-words.ts';
import { escapeText, quote } from '../base/wording.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { NodePortWord } from '../kube-proxy/node-port-words.ts';
import { behaviourChanges, kubeProxyVersions, type Release } from '../kube-proxy/releases.ts';
import { addressSeverity, addressWords, type WrittenValue } from './addresses.ts';
import { shapeWords } from './shape.ts';
import { severityBy, wordsBy, type DiagnosticTable, type Severity } from './table.ts';

const portHelp = 'a port is a number from 1 to 65535';

interface Indexed {
  readonly index: number;
}

interface Misspelled {
  readonly name: string;
  readonly meant?: string | undefined;
  /** The object lacks the field that is meant, and is wrong without it. */
  readonly isNeeded?: true | undefined;
}

function adviseOnField({ name, meant }: Misspelled): string | undefined {
  return adviseOnOddSpace(name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`);
}

type OddAddress = WrittenValue & {
  /** As it is to be written. */
  readonly address: string;
};

/** Words in nodePortAddresses that kube-proxy of a release does not take. */
interface OfRelease {
  readonly field: string;
  readonly release: Release;
  /** Set if that is not the release that the input was read for. */
  readonly asRelease?: Release | undefined;
}

function seenAs({ asRelease }: OfRelease): string {
  return asRelease === undefined ? '' : `Kubernetes ${asRelease}: `;
}

function kubeProxyOf({ release }: OfRelease): string {
  return `kube-proxy ${kubeProxyVersions[release]}`;
}

const wordsSince = behaviourChanges['node-port-words'].since;

/** What a word can be replaced with where it is not known. */
const networksOfWord = { localhost: '127.0.0.0/8 and ::1/128', all: '0.0.0.0/0 and ::/0' } as const;

/** `address` is the network of one address that is meant, where an address is written. */
interface NoNetwork extends WrittenValue {
  readonly address?: string | undefined;
  /** The words that the field takes besides networks. */
  readonly words?: readonly string[] | undefined;
  /** The mode that is compiled for, if only another one reads the field. */
  readonly ignoredIn?: ProxyMode | undefined;
}

function weighCidr(details: { readonly problem: string; readonly ignoredIn?: ProxyMode | undefined }): Severity {
  const { problem, ignoredIn } = details;
  return problem === 'unknown-primary' || (problem === 'no-network' && ignoredIn !== undefined) ? 'warning' : 'error';
}

/** The row of a field that takes one of a few words. */
function wordRow(field: string, example: () => Example) {
  return {
    severity: 'error',
    meaning: `${field} is not one of its allowed values`,
    example,
    words: wordsBy('problem', shapeWords),
  } as const;
}

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
  'bad-address': {
    severity: addressSeverity,
    meaning: 'a value is not an IP address, or not one that is allowed there',
    example: () => manifests(aService('clusterIP: 10.96.31.256, ports: [{ port: 80 }]')),
    words: wordsBy('problem', addressWords),
  },
  'bad-address-type': wordRow('addressType of an EndpointSlice', () => manifests(web + slice('addressType: ipv4'))),
  'bad-cidr': {
    severity: { among: ['error', 'warning'], weigh: weighCidr },
    meaning: 'a value is not a network, or not one that is allowed there',
    example: () =>
      manifests(
        aService(`type: LoadBalancer, ${anIP}, loadBalancerSourceRanges: [10.0.0.0/33], ports: [{ port: 80 }]`),
      ),
    words: wordsBy('problem', {
      'no-network': ({ field, value, address, words, ignoredIn }: NoNetwork) => {
        const others = words === undefined ? '' : `, or one of the words ${joinWords(words)}`;
        return [
          `${field} ${quote(value)} is not a network${ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`}`,
          address === undefined
            ? `write it like 10.0.0.0/8 or fd00::/64${others}`
            : `write ${address} for this one address`,
        ];
      },
      'not-canonical': ({ field, value, network }: WrittenValue & { readonly network: string }) => [
        `${field} ${quote(value)} is refused by Kubernetes`,
        `write ${network}`,
      ],
      'too-many': ({ field }: { readonly field: string }) => [
        `${field} holds too many networks`,
        'write one network, or one of each family',
      ],
      none: ({ kind }: { readonly kind: 'ServiceCIDR' }) => [
        `a ${kind} needs a network in spec.cidrs`,
        'write one, or one of each family',
      ],
      contradiction: ({ podCIDRs, podCIDR }: { readonly podCIDRs: string; readonly podCIDR: string }) => [
        `podCIDRs begins with ${quote(podCIDRs)}, but podCIDR is ${quote(podCIDR)}`,
        'make them the same',
      ],
      'same-family': ({ field, value }: WrittenValue) => [
        `${field} ${quote(value)} holds several networks of one family`,
        'write one network, or one of each family',
      ],
      'repeated-word': ({ field, word }: { readonly field: string; readonly word: NodePortWord }) => [
        `${field}: the word ${word} is there twice, and kube-proxy does not start`,
        'write it once',
      ],
      'primary-with-others': (details: OfRelease) => [
        `${seenAs(details)}${details.field}: ${kubeProxyOf(details)} does not start with both the word primary and networks`,
        `write one or the other; Kubernetes ${wordsSince} takes both`,
      ],
      'unknown-primary': (details: OfRelease) =>
        `${seenAs(details)}${details.field}: ${kubeProxyOf(details)} does not know the word primary, and does not start; compiled as later releases read it`,
      'unknown-word': (details: OfRelease & { readonly word: Exclude<NodePortWord, 'primary'> }) => [
        `${seenAs(details)}${details.field} ${quote(details.word)}: ${kubeProxyOf(details)} does not know the word ${details.word}, and does not start`,
        `write ${networksOfWord[details.word]}; Kubernetes ${wordsSince} knows the word`,
      ],
    }),
  },
  'bad-ip-mode': wordRow('ipMode of a load balancer', () =>
    manifests(
      aService(
        `type: LoadBalancer, ${anIP}, ports: [{ port: 80 }]`,
        '{ loadBalancer: { ingress: [{ ip: 192.0.2.1, ipMode: vip }] } }',
      ),
    ),
  ),
  'bad-number': {
    severity: 'error',
    meaning: 'a value is not a number, or is out of range',
    example: () => manifests(web, '--conntrack-min', 'few'),
    words: wordsBy('problem', {
      ...shapeWords,
      flag: ({ flag, value, limit }: { readonly flag: string; readonly value: string; readonly limit: number }) => [
        `${flag} cannot be ${quote(value)}`,
        `write a number from 0 to ${limit}`,
      ],
    }),
  },
  'bad-phase': wordRow('phase of a Pod', () => manifests(web + pod(container, 'phase: running'))),
  'bad-port': {
    severity: severityBy('problem', 'error', { 'slice-port-zero': 'warning' }),
    meaning: 'a port is not a number from 1 to 65535, nor the name of a container port',
    example: () => manifests(aService(`${anIP}, ports: [{ port: 70000 }]`)),
    words: wordsBy('problem', {
      ...shapeWords,
      'target-port-number': ({ value }: { readonly value: number }) => [`targetPort cannot be ${value}`, portHelp],
      'slice-port-zero': ({ index }: Indexed) => [
        `ports[${index}] of the slice has port 0, and kube-proxy leaves it out`,
        portHelp,
      ],
      'target-port-in-quotes': ({ value }: { readonly value: string }) => [
        `targetPort is the string ${quote(value)}`,
        `write ${value} without quotes`,
      ],
      'target-port-name': ({ value }: { readonly value: string }) => [
        `targetPort ${quote(value)} is not the name of a container port`,
        'write lower-case letters, digits and single dashes, with a letter among them, 15 at most',
      ],
    }),
  },
  'bad-protocol': wordRow('protocol of a port', () =>
    manifests(aService(`${anIP}, ports: [{ port: 80, protocol: tcp }]`)),
  ),
  'bad-quantity': {
    severity: 'warning',
    meaning: 'the CPUs of a Node are not a Kubernetes quantity, and count as none',
    example: () => manifests(web + aNode('status: { allocatable: { cpu: many } }')),
    words: ({ field, value }: WrittenValue) => [
      `${field} ${quote(value)} is not a quantity, and counts as none`,
      'write it like 4 or 3920m',
    ],
  },
  'bad-session-affinity': wordRow('sessionAffinity', () =>
    manifests(aService(`${anIP}, sessionAffinity: clientIP, ports: [{ port: 80 }]`)),
  ),
  'bad-timeout': {
    severity: 'error',
    meaning: 'the timeout of session affinity is not a number of seconds up to one day',
    example: () =>
      manifests(
        aService(
          `${anIP}, sessionAffinity: ClientIP, sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } }, ports: [{ port: 80 }]`,
        ),
      ),
    words: wordsBy('problem', shapeWords),
  },
  'bad-traffic-policy': wordRow('internalTrafficPolicy or externalTrafficPolicy', () =>
    manifests(aService(`${anIP}, internalTrafficPolicy: local, ports: [{ port: 80 }]`)),
  ),
  'bad-type': {
    severity: 'error',
    meaning: 'a field has a value of the wrong type, or contradicts the type of the Service',
    example: () => manifests(aService(`${anIP}, ports: 80`)),
    words: wordsBy('problem', {
      ...shapeWords,
      'node-port': ['a nodePort in a Service of type ClusterIP', 'write type: NodePort, or leave nodePort out'],
    }),
  },
  'missing-field': {
    severity: 'error',
    meaning: 'an object lacks a field that it needs',
    example: () => manifests(web.replace(/^spec: .*\n/m, '')),
    words: wordsBy('field', {
      addresses: ({ index }: Indexed) => [
        `endpoints[${index}] has no addresses`,
        'write one, or leave the endpoint out',
      ],
      addressType: ['the EndpointSlice has no addressType', 'write IPv4, IPv6 or FQDN'],
      endpointsPort: ({ index }: Indexed) => [`ports[${index}] of Endpoints has no port`, portHelp],
      externalName: ['a Service of type ExternalName has no externalName', 'write the DNS name that it stands for'],
      port: ({ index }: Indexed) => [`ports[${index}] has no port`, portHelp],
      spec: ['the Service has no spec', 'write one with ports'],
    }),
  },
  'null-value': {
    severity: 'warning',
    meaning: 'a label, an annotation or a part of a selector has no value: it is read as the empty string',
    example: () => manifests(aService(`${anIP}, selector: { app: }, ports: [{ port: 80 }]`)),
    words: ({ of, name }: { readonly of: 'label' | 'annotation' | 'selector'; readonly name: string }) => [
      `${of} ${quote(name)} has no value, and Kubernetes reads it as the empty string`,
      'write a value, or "" if that is meant',
    ],
  },
  'odd-address': {
    severity: 'warning',
    meaning: 'an IP address is written in a form that other programs may read differently',
    example: () => manifests(aService('clusterIP: 10.96.0.010, ports: [{ port: 80 }]')),
    words: wordsBy('problem', {
      'leading-zeros': ({ field, value, address }: OddAddress) => [
        `${field} ${quote(value)} is read as ${address}`,
        'write it that way, because other programs may read leading zeros as octal',
      ],
      'ipv4-mapped': ({ field, value, address }: OddAddress) => [
        `${field} ${quote(value)} is an IPv4-mapped IPv6 address, which kube-proxy reads as ${address}`,
        'write it that way',
      ],
      'not-rfc-5952': ({ field, value, address }: OddAddress) => [
        `${field} ${quote(value)} is not in the form of RFC 5952`,
        `write ${address}`,
      ],
    }),
  },
  'odd-cidr': {
    severity: 'warning',
    meaning: 'a network is read as another one than is written',
    example: () =>
      manifests(aService(`type: LoadBalancer, ${anIP}, loadBalancerSourceRanges: [10.0.0.1/8], ports: [{ port: 80 }]`)),
    words: (details: WrittenValue & { readonly network: string; readonly address?: string | undefined }) => {
      const { field, value, network, address } = details;
      // `network` is how it is read; `address` the one address that may be meant, if host bits are set.
      if (address === undefined) return [`${field} ${quote(value)} is read as ${network}`, 'write it that way'];
      return [
        `${field} ${quote(value)} has host bits set, and is read as ${network}`,
        `write ${network}, or ${address} for the one address`,
      ];
    },
  },
  'unknown-field': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ isNeeded }: Misspelled) => (isNeeded ? 'error' : 'warning'),
    },
    meaning: 'an object or the configuration has an unknown field, or one in the wrong place: it is ignored',
    example: () => manifests(aService(`${anIP}, port: [{ port: 80 }]`)),
    words: wordsBy('problem', {
      configuration: (details: Misspelled) => [
        `kube-proxy ignores ${quote(details.name)}, because its configuration has no such field`,
        adviseOnField(details),
      ],
      'packet-test': (details: Misspelled) => [
        `kpc test knows no field ${quote(details.name)} here`,
        adviseOnField(details),
      ],
      object: (details: Misspelled & { /** "spec.ports[0]", "a Service". */ readonly parent: string }) => [
        `${details.parent} has no field ${quote(details.name)}, and Kubernetes ignores it`,
        adviseOnField(details),
      ],
      // The object has such a field elsewhere; `position` is "beside spec" or "in spec.ports[0]".
      misplaced: (details: Misspelled & { readonly position: string }) => [
        `${escapeText(details.name)} ${details.position}, where Kubernetes ignores it`,
        adviseOnField(details),
      ],
    }),
  },
} satisfies DiagnosticTable;

/** The codes for a field that does not fit its schema. */
export type ShapeCode =
  | 'bad-address-type'
  | 'bad-ip-family'
  | 'bad-ip-mode'
  | 'bad-masquerade-bit'
  | 'bad-number'
  | 'bad-phase'
  | 'bad-port'
  | 'bad-protocol'
  | 'bad-session-affinity'
  | 'bad-timeout'
  | 'bad-traffic-policy'
  | 'bad-type';
