import { anIP, container, manifests, aNode, pod, aService, slice, web } from './examples.ts';
import { adviseOnOddSpace } from '../base/odd-texts.ts';
import { joinWords } from '../base/join-words.ts';
import { quote } from '../base/printable.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { NodePortWord } from '../kube-proxy/node-port-words.ts';
import { behaviourChanges, kubeProxyVersions, type Release } from '../kube-proxy/releases.ts';
import type { WrittenValue } from './addresses.ts';
import { shapeRow, wordRow } from './shape-rows.ts';
import { wordsBy, type DiagnosticTable, type Severity } from './diagnostic-rows.ts';

interface Misspelled {
  /** "spec.ports[0]", "a Service", "the configuration". */
  readonly owner: string;
  readonly name: string;
  /** What reads the object and ignores the field; undefined if nothing does. */
  readonly reader?: 'Kubernetes' | 'kube-proxy' | undefined;
  /** The field that may be meant, if it belongs elsewhere with the way to it. */
  readonly meant?: string | undefined;
  /** The object lacks the field that is meant, and is wrong without it. */
  readonly isNeeded?: true | undefined;
}

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

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
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
      families: ({ field }: { readonly field: string }) => [
        `${field} holds no network, or several of one family`,
        'write one network, or one of each family',
      ],
      contradiction: ({ podCIDRs, podCIDR }: { readonly podCIDRs: string; readonly podCIDR: string }) => [
        `podCIDRs begins with ${quote(podCIDRs)}, but podCIDR is ${quote(podCIDR)}`,
        'make them the same',
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
  'bad-number': shapeRow('a value is not a number, or is out of range', () => manifests(web, '--conntrack-min', 'few')),
  'bad-phase': wordRow('phase of a Pod', () => manifests(web + pod(container, 'phase: running'))),
  'bad-port': shapeRow('a port is not a number from 1 to 65535, nor the name of a container port', () =>
    manifests(aService(`${anIP}, ports: [{ port: 70000 }]`)),
  ),
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
  'bad-timeout': shapeRow('the timeout of session affinity is not a number of seconds up to one day', () =>
    manifests(
      aService(
        `${anIP}, sessionAffinity: ClientIP, sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } }, ports: [{ port: 80 }]`,
      ),
    ),
  ),
  'bad-traffic-policy': wordRow('internalTrafficPolicy or externalTrafficPolicy', () =>
    manifests(aService(`${anIP}, internalTrafficPolicy: local, ports: [{ port: 80 }]`)),
  ),
  'bad-type': shapeRow('a field has a value of the wrong type, or contradicts the type of the Service', () =>
    manifests(aService(`${anIP}, ports: 80`)),
  ),
  'missing-field': {
    severity: 'error',
    meaning: 'an object lacks a field that it needs',
    example: () => manifests(web.replace(/^spec: .*\n/m, '')),
    // `owner` is "the Service" or "ports[0]".
    words: ({ owner, field, expected }: Readonly<Record<'owner' | 'field' | 'expected', string>>) => [
      `${owner} has no ${field}`,
      `write ${expected}`,
    ],
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
    meaning: 'an object or the configuration has an unknown field, or one in the wrong place',
    example: () => manifests(aService(`${anIP}, port: [{ port: 80 }]`)),
    words: ({ name, owner, reader, meant }: Misspelled) => [
      `${owner} has no field ${quote(name)}${reader === undefined ? '' : `, and ${reader} ignores it`}`,
      adviseOnOddSpace(name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`),
    ],
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
