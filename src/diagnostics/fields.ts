import {
  aNode,
  aService,
  anIP,
  configured,
  container,
  manifests,
  pod,
  slice,
  type Example,
  web,
  withFields,
  withPorts,
} from './examples.ts';
import { adviseOnOddSpace } from '../base/odd-texts.ts';
import { joinWords } from '../base/join-words.ts';
import { quote } from '../base/printable.ts';
import type { ProxyMode, NodePortWord } from '../kube-proxy/modes.ts';
import { behaviourChanges, kubeProxyVersions, type Release } from '../kube-proxy/releases.ts';
import { type DiagnosticTable, type Texts, type Words, wordsBy, warningIf } from './diagnostic-rows.ts';
import { describeFound, type Found } from './value-in-words.ts';

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
type OfRelease = Texts<'field'> & { readonly release: Release };

const wordsSince = behaviourChanges['node-port-words'].since;

/** What a word can be replaced with if it is not known. */
const networksOfWord = { localhost: '127.0.0.0/8 and ::1/128', all: '0.0.0.0/0 and ::/0' } as const;

/** `address` is the network of one address that is meant, if an address is written. */
interface NoNetwork extends WrittenValue {
  readonly address?: string | undefined;
  /** The words that the field takes besides networks. */
  readonly words?: readonly string[] | undefined;
  /** The mode that is compiled for, if only another one reads the field. */
  readonly ignoredIn?: ProxyMode | undefined;
}

/** A field and what is written there. */
export type WrittenValue = Texts<'field' | 'value'>;

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

/** What an address is used for. */
export type AddressUse = keyof typeof consequences;

type SpecialAddress = WrittenAddress & {
  readonly use: AddressUse;
  /** "a loopback address". */
  readonly kind: string;
  /** By kpc-apply. */
  readonly isRefused?: boolean;
};

/** A field that does not have the type, the range or one of the words that it must have. */
type WrongField = {
  readonly field: string;
  readonly found: Found;
  /** The types of JSON that it may have; undefined for one of a few strings. */
  readonly types?: readonly string[] | undefined;
  /** What it should be, if the schema says so in words. */
  readonly expected?: string | undefined;
  /** Whether kube-proxy takes it, and leaves it out. */
  readonly isLeftOut?: boolean;
  /** The mode to compile for, if only another one reads the field. */
  readonly ignoredIn?: ProxyMode | undefined;
};

/** The row of a field that may have another value than it should. */
function shapeRow(meaning: string, example: () => Example) {
  return {
    severity: warningIf(({ isLeftOut, ignoredIn }: WrongField) => isLeftOut === true || ignoredIn !== undefined),
    meaning,
    example,
    words: describeField,
  };
}

/** As shapeRow, for a field that takes one of a few words. */
function wordRow(field: string, example: () => Example) {
  return shapeRow(`${field} is not one of its allowed values`, example);
}

function describeField({ field, found, types = ['string'], expected, isLeftOut, ignoredIn }: WrongField): Words {
  const leftOut = isLeftOut ? ', and kube-proxy leaves it out' : '';
  const wrong = `${field} cannot be ${describeFound(found)}${leftOut}${ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`}`;
  if (types.includes('string') && found.type === 'number') {
    // A duration has a unit, which quotes alone do not give it.
    const isAnyString = expected === undefined || expected === 'a string';
    return [
      `${field} is the number ${found.value}, not a string`,
      isAnyString ? 'put it in quotes' : `write ${expected}`,
    ];
  }
  if (types.includes('string') && found.type === 'boolean') {
    const help = 'put it in quotes (to YAML, yes and on are true, no and off are false)';
    return [`${field} is ${found.value}, not a string`, help];
  }
  if (types.includes('integer')) {
    const isInQuotes = found.type === 'string' && /^\d+$/.test(found.value);
    return [wrong, isInQuotes ? `write ${found.value} without quotes` : (expected ?? 'write a whole number')];
  }
  const isPair = types.includes('object') && found.type === 'string' && pairWithoutSpace.test(found.value);
  return [wrong, isPair ? 'put a space after the ":"' : `write ${expected ?? types.join(' or ')}`];
}

/** A key and its value with no space between them are one text to YAML. */
const pairWithoutSpace = /^[\w./-]+:[^\s/]/;

/** Fields that do not fit their schema. */
const shapeDiagnostics = {
  'bad-address-type': wordRow('addressType of an EndpointSlice', () => manifests(web + slice('addressType: ipv4'))),
  'bad-ip-family': shapeRow(
    'ipFamilies or ipFamilyPolicy has a value that it does not take, or they contradict each other',
    () => withFields('ipFamilies: [IPv4, IPv4]'),
  ),
  'bad-ip-mode': wordRow('ipMode of a load balancer', () =>
    manifests(
      aService(
        `type: LoadBalancer, ${anIP}, ports: [{ port: 80 }]`,
        '{ loadBalancer: { ingress: [{ ip: 192.0.2.1, ipMode: vip }] } }',
      ),
    ),
  ),
  'bad-masquerade-bit': shapeRow('the bit of the packet mark is not a number from 0 to 31', () =>
    configured('iptables: { masqueradeBit: 32 }'),
  ),
  'bad-number': shapeRow('a value is not a number, or is out of range', () => manifests(web, '--conntrack-min', 'few')),
  'bad-phase': wordRow('phase of a Pod', () => manifests(web + pod(container, 'phase: running'))),
  'bad-port': shapeRow('a port is not a number from 1 to 65535, nor the name of a container port', () =>
    withPorts('{ port: 70000 }'),
  ),
  'bad-protocol': wordRow('protocol of a port', () => withPorts('{ port: 80, protocol: tcp }')),
  'bad-session-affinity': wordRow('sessionAffinity', () => withFields('sessionAffinity: clientIP')),
  'bad-timeout': shapeRow('the timeout of session affinity is not a number of seconds up to one day', () =>
    withFields('sessionAffinity: ClientIP, sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } }'),
  ),
  'bad-traffic-policy': wordRow('internalTrafficPolicy or externalTrafficPolicy', () =>
    withFields('internalTrafficPolicy: local'),
  ),
  'bad-type': shapeRow('a field has a value of the wrong type, or contradicts the type of the Service', () =>
    manifests(aService(`${anIP}, ports: 80`)),
  ),
} satisfies DiagnosticTable;

/** The codes for a field that does not fit its schema. */
export type ShapeCode = keyof typeof shapeDiagnostics;

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
  ...shapeDiagnostics,
  'bad-cidr': {
    severity: warningIf((details: Texts<'problem'> & { readonly ignoredIn?: ProxyMode | undefined }) => {
      return details.problem === 'unknown-primary' || details.ignoredIn !== undefined;
    }),
    meaning: 'a value is not a network, or not one that is allowed there',
    example: () => withFields('loadBalancerSourceRanges: [10.0.0.0/33]', 'LoadBalancer'),
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
      'not-canonical': ({ field, value, network }: WrittenValue & Texts<'network'>) => [
        `${field} ${quote(value)} is refused by Kubernetes`,
        `write ${network}`,
      ],
      families: ({ field }: Texts<'field'>) => [
        `${field} holds no network, or several of one family`,
        'write one network, or one of each family',
      ],
      contradiction: ({ podCIDRs, podCIDR }: Texts<'podCIDRs' | 'podCIDR'>) => [
        `podCIDRs begins with ${quote(podCIDRs)}, but podCIDR is ${quote(podCIDR)}`,
        'make them the same',
      ],
      'repeated-word': ({ field, word }: Texts<'field'> & { readonly word: NodePortWord }) => [
        `${field}: the word ${word} is there twice, and kube-proxy does not start`,
        'write it once',
      ],
      'primary-with-others': ({ field, release }: OfRelease) => [
        `${field}: kube-proxy ${kubeProxyVersions[release]} does not start with both the word primary and networks`,
        `write one or the other; Kubernetes ${wordsSince} takes both`,
      ],
      'unknown-primary': ({ field, release }: OfRelease) =>
        `${field}: kube-proxy ${kubeProxyVersions[release]} does not know the word primary, and does not start; compiled as later releases read it`,
      'unknown-word': ({ field, release, word }: OfRelease & { readonly word: Exclude<NodePortWord, 'primary'> }) => [
        `${field} ${quote(word)}: kube-proxy ${kubeProxyVersions[release]} does not know the word ${word}, and does not start`,
        `write ${networksOfWord[word]}; Kubernetes ${wordsSince} knows the word`,
      ],
    }),
  },
  'bad-quantity': {
    severity: 'warning',
    meaning: 'the CPUs of a Node are not a Kubernetes quantity, and count as none',
    example: () => manifests(web + aNode('status: { allocatable: { cpu: many } }')),
    words: ({ field, value }: WrittenValue) => [
      `${field} ${quote(value)} is not a quantity, and counts as none`,
      'write it like 4 or 3920m',
    ],
  },
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
    example: () => withFields('selector: { app: }'),
    words: ({ of, name }: Texts<'name'> & { readonly of: 'label' | 'annotation' | 'selector' }) => [
      `${of} ${quote(name)} has no value, and Kubernetes reads it as the empty string`,
      'write a value, or "" if that is meant',
    ],
  },
  'odd-cidr': {
    severity: 'warning',
    meaning: 'a network is read as another one than is written',
    example: () => withFields('loadBalancerSourceRanges: [10.0.0.1/8]', 'LoadBalancer'),
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
    severity: warningIf(({ isNeeded }: Misspelled) => !isNeeded),
    meaning: 'an object or the configuration has an unknown field, or one in the wrong place',
    example: () => manifests(aService(`${anIP}, port: [{ port: 80 }]`)),
    words: ({ name, owner, reader, meant }: Misspelled) => [
      `${owner} has no field ${quote(name)}${reader === undefined ? '' : `, and ${reader} ignores it`}`,
      adviseOnOddSpace(name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`),
    ],
  },
  'bad-address': {
    severity: warningIf(({ node }: WrittenAddress) => node !== undefined),
    meaning: 'a value is not an IP address, or not one that is allowed there',
    example: () => manifests(aService('clusterIP: 10.96.31.256, ports: [{ port: 80 }]')),
    words: (details: WrittenAddress & Texts<'expected'>) => [
      `${nameField(details)} is not ${details.expected}${details.node === undefined ? '' : '; kube-proxy leaves it out'}`,
      'write one such as 10.0.0.1 or fd00::1, without a prefix length',
    ],
  },
  'odd-address': {
    severity: 'warning',
    meaning: 'an IP address is written in a form that other programs may read differently',
    example: () => manifests(aService('clusterIP: 10.96.0.010, ports: [{ port: 80 }]')),
    words: (details: WrittenValue & Texts<'address'>) => [
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
