import { adviseOnOddSpace } from '../base/odd-space.ts';
import { joinWords } from '../base/join-words.ts';
import { escapeText, quote } from '../base/wording.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { NodePortWord } from '../kube-proxy/node-port-words.ts';
import { behaviourChanges, kubeProxyVersions } from '../kube-proxy/releases.ts';
import type { Release } from '../kube-proxy/releases.ts';
import { describeAddress, weighAddress } from './addresses.ts';
import type { WrittenValue } from './addresses.ts';
import { describeShape } from './shape.ts';
import type { ShapeProblem } from './shape.ts';
import type { DiagnosticTable, Severity } from './table.ts';

type PortProblem =
  | ShapeProblem
  | { readonly problem: 'target-port-number'; readonly value: number }
  | { readonly problem: 'slice-port-zero'; readonly index: number }
  | { readonly problem: 'target-port-in-quotes' | 'target-port-name'; readonly value: string };

function describePort(details: PortProblem): string {
  switch (details.problem) {
    case 'target-port-number':
      return `targetPort ${details.value}: a port is a number from 1 to 65535`;
    case 'slice-port-zero':
      return `ports[${details.index}] of the slice has port 0, and kube-proxy leaves it out: a port is a number from 1 to 65535`;
    case 'target-port-in-quotes':
      return `targetPort is the string ${quote(details.value)}: write ${details.value} without quotes`;
    case 'target-port-name': {
      const shape = 'lower-case letters, digits and single dashes, with a letter among them, 15 at most';
      return `targetPort ${quote(details.value)}: the name of a container port is ${shape}`;
    }
    default:
      return describeShape(details);
  }
}

type NumberProblem =
  ShapeProblem | { readonly problem: 'flag'; readonly flag: string; readonly value: string; readonly limit: number };

function describeNumber(details: NumberProblem): string {
  switch (details.problem) {
    case 'flag':
      return `${details.flag} ${quote(details.value)}: write a number from 0 to ${details.limit}`;
    default:
      return describeShape(details);
  }
}

type MissingField =
  | { readonly field: 'addresses' | 'port' | 'endpointsPort'; readonly index: number }
  | { readonly field: 'addressType' | 'externalName' | 'spec' };

function describeMissing(details: MissingField): string {
  switch (details.field) {
    case 'addresses':
      return `endpoints[${details.index}] has no addresses`;
    case 'addressType':
      return 'the EndpointSlice has no addressType: write IPv4, IPv6 or FQDN';
    case 'endpointsPort':
      return `ports[${details.index}] of Endpoints has no port: a port is a number from 1 to 65535`;
    case 'externalName':
      return 'a Service of type ExternalName has no externalName: write the DNS name that it stands for';
    case 'port':
      return `ports[${details.index}] has no port: a port is a number from 1 to 65535`;
    case 'spec':
      return 'the Service has no spec';
  }
}

type UnknownField =
  | {
      readonly problem: 'configuration' | 'packet-test';
      readonly name: string;
      readonly meant?: string | undefined;
    }
  | {
      readonly problem: 'object';
      readonly name: string;
      /** "spec.ports[0]", "a Service". */
      readonly parent: string;
      readonly meant?: string | undefined;
    }
  /** The object has such a field elsewhere; `position` is "beside spec" or "in spec.ports[0]". */
  | { readonly problem: 'misplaced'; readonly name: string; readonly position: string; readonly meant: string };

/** `isNeeded`: the object lacks the field that is meant, and is wrong without it. */
type MisspelledField = UnknownField & { readonly isNeeded?: true | undefined };

function describeUnknown(details: UnknownField): string {
  const { name, meant } = details;
  const odd = adviseOnOddSpace(name);
  const hint = odd === undefined ? (meant === undefined ? '' : `: did you mean ${meant}?`) : `: ${odd}`;
  switch (details.problem) {
    case 'configuration':
      return `kube-proxy ignores ${quote(name)}, because its configuration has no such field${hint}`;
    case 'packet-test':
      return `kpc test knows no field ${quote(name)} here${hint}`;
    case 'object':
      return `${details.parent} has no field ${quote(name)}, and Kubernetes ignores it${hint}`;
    case 'misplaced':
      return `${escapeText(name)} ${details.position}, where Kubernetes ignores it${hint}`;
  }
}

type OddAddress = WrittenValue & {
  readonly problem: 'leading-zeros' | 'ipv4-mapped' | 'not-rfc-5952';
  /** As it is to be written. */
  readonly address: string;
};

function describeOddAddress({ problem, field, value, address }: OddAddress): string {
  switch (problem) {
    case 'leading-zeros':
      return `${field} ${quote(value)} is read as ${address}: write it that way, because other programs may read leading zeros as octal`;
    case 'ipv4-mapped':
      return `${field} ${quote(value)} is an IPv4-mapped IPv6 address, which kube-proxy reads as ${address}: write it that way`;
    case 'not-rfc-5952':
      return `${field} ${quote(value)} is not in the form of RFC 5952: write ${address}`;
  }
}

type CidrProblem =
  /** `address` is the network of one address that is meant, where an address is written. */
  | (WrittenValue & {
      readonly problem: 'no-network';
      readonly address?: string | undefined;
      /** The words that the field takes besides networks. */
      readonly words?: readonly string[] | undefined;
      /** The mode that is compiled for, where only another one looks at the field. */
      readonly ignoredIn?: ProxyMode | undefined;
    })
  | (WrittenValue & { readonly problem: 'not-canonical'; readonly network: string })
  | { readonly problem: 'too-many'; readonly field: string }
  | { readonly problem: 'none'; readonly kind: 'ServiceCIDR' }
  | { readonly problem: 'contradiction'; readonly podCIDRs: string; readonly podCIDR: string }
  | (WrittenValue & { readonly problem: 'same-family' })
  | { readonly problem: 'repeated-word'; readonly field: string; readonly word: NodePortWord }
  | WordProblem;

/** Words in nodePortAddresses that kube-proxy of a release does not take. */
type WordProblem = {
  readonly field: string;
  readonly release: Release;
  /** Set where that is not the release that the input was read for. */
  readonly asRelease?: Release | undefined;
} & (
  | { readonly problem: 'primary-with-others' | 'unknown-primary' }
  | { readonly problem: 'unknown-word'; readonly word: Exclude<NodePortWord, 'primary'> }
);

/** What a word can be replaced with where it is not known. */
const networksOfWord = { localhost: '127.0.0.0/8 and ::1/128', all: '0.0.0.0/0 and ::/0' } as const;

function describeWord(details: WordProblem): string {
  const { field, release, asRelease } = details;
  const seen = asRelease === undefined ? '' : `Kubernetes ${asRelease}: `;
  const kubeProxy = `kube-proxy ${kubeProxyVersions[release]}`;
  const { since } = behaviourChanges['node-port-words'];
  switch (details.problem) {
    case 'primary-with-others':
      return `${seen}${field}: write either the one word primary, or networks: ${kubeProxy} does not start with both; Kubernetes ${since} takes both`;
    case 'unknown-primary':
      return `${seen}${field}: ${kubeProxy} does not know the word primary, and does not start; compiled as later releases read it`;
    case 'unknown-word': {
      const { word } = details;
      return `${seen}${field} ${quote(word)}: ${kubeProxy} does not know the word ${word}, and does not start: write ${networksOfWord[word]}; Kubernetes ${since} knows the word`;
    }
  }
}

function describeCidr(details: CidrProblem): string {
  switch (details.problem) {
    case 'no-network': {
      const { address, words } = details;
      const others = words === undefined ? '' : `, or one of the words ${joinWords(words)}`;
      const hint =
        address === undefined
          ? `write it like 10.0.0.0/8 or fd00::/64${others}`
          : `write ${address} for this one address`;
      const end = details.ignoredIn === undefined ? '' : `; mode ${details.ignoredIn} ignores it`;
      return `${details.field} ${quote(details.value)} is not a network: ${hint}${end}`;
    }
    case 'not-canonical':
      return `${details.field} ${quote(details.value)} is refused by Kubernetes: write ${details.network}`;
    case 'too-many':
      return `${details.field} holds one network, or one of each family`;
    case 'none':
      return `a ${details.kind} needs a network in spec.cidrs: write one, or one of each family`;
    case 'contradiction':
      return `podCIDRs begins with ${quote(details.podCIDRs)}, but podCIDR is ${quote(details.podCIDR)}: make them the same`;
    case 'same-family':
      return `${details.field} ${quote(details.value)}: write one network, or one of each family`;
    case 'repeated-word':
      return `${details.field}: the word ${details.word} is there twice, and kube-proxy does not start: write it once`;
    case 'primary-with-others':
    case 'unknown-primary':
    case 'unknown-word':
      return describeWord(details);
  }
}

function weighCidr(details: CidrProblem): Severity {
  switch (details.problem) {
    case 'no-network':
      return details.ignoredIn === undefined ? 'error' : 'warning';
    case 'unknown-primary':
      return 'warning';
    default:
      return 'error';
  }
}

type OddCidr = WrittenValue & {
  /** As it is read. */
  readonly network: string;
  /** The one address that may be meant, with its prefix length, where bits are set beyond that of the network. */
  readonly address?: string | undefined;
};

function describeOddCidr({ field, value, network, address }: OddCidr): string {
  const what = `${field} ${quote(value)}`;
  if (address === undefined) return `${what} is read as ${network}: write it that way`;
  return `${what} has bits set beyond its prefix length: write ${network}, which is how it is read, or ${address} for the one address`;
}

/** The row of a field that takes one of a few words. */
function wordEntry(field: string) {
  return {
    severity: 'error',
    meaning: `${field} is not one of its allowed values`,
    words: (details: ShapeProblem) => describeShape(details),
  } as const;
}

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
  'bad-address': {
    severity: {
      among: ['error', 'warning'],
      weigh: weighAddress,
    },
    meaning: 'a value is not an IP address, or not one that is allowed there',
    words: describeAddress,
  },
  'bad-address-type': wordEntry('addressType of an EndpointSlice'),
  'bad-cidr': {
    severity: {
      among: ['error', 'warning'],
      weigh: weighCidr,
    },
    meaning: 'a value is not a network, or not one that is allowed there',
    words: describeCidr,
  },
  'bad-ip-mode': wordEntry('ipMode of a load balancer'),
  'bad-number': {
    severity: 'error',
    meaning: 'a value is not a number, or is out of range',
    words: describeNumber,
  },
  'bad-phase': wordEntry('phase of a Pod'),
  'bad-port': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: PortProblem) => (problem === 'slice-port-zero' ? 'warning' : 'error'),
    },
    meaning: 'a port is not a number from 1 to 65535, nor the name of a container port',
    words: describePort,
  },
  'bad-protocol': wordEntry('protocol of a port'),
  'bad-quantity': {
    severity: 'warning',
    meaning: 'the CPUs of a Node are not a Kubernetes quantity, and count as none',
    words: ({ field, value }: WrittenValue) =>
      `${field} ${quote(value)} is not a quantity, and counts as none: write it like 4 or 3920m`,
  },
  'bad-session-affinity': wordEntry('sessionAffinity'),
  'bad-timeout': {
    severity: 'error',
    meaning: 'the timeout of session affinity is not a number of seconds up to one day',
    words: describeShape,
  },
  'bad-traffic-policy': wordEntry('internalTrafficPolicy or externalTrafficPolicy'),
  'bad-type': {
    severity: 'error',
    meaning: 'a field has a value of the wrong type, or contradicts the type of the Service',
    words: (details: ShapeProblem | { readonly problem: 'node-port' }) =>
      details.problem === 'node-port'
        ? 'a nodePort in a Service of type ClusterIP: write type: NodePort, or leave nodePort out'
        : describeShape(details),
  },
  'missing-field': {
    severity: 'error',
    meaning: 'an object lacks a field that it needs',
    words: describeMissing,
  },
  'null-value': {
    severity: 'warning',
    meaning: 'a label, an annotation or a part of a selector has no value: it is read as the empty string',
    words: ({ of, name }: { readonly of: 'label' | 'annotation' | 'selector'; readonly name: string }) =>
      `${of} ${quote(name)} has no value, and Kubernetes reads it as the empty string: write a value, or "" if that is meant`,
  },
  'odd-address': {
    severity: 'warning',
    meaning: 'an IP address is written in a form that other programs may read differently',
    words: describeOddAddress,
  },
  'odd-cidr': {
    severity: 'warning',
    meaning: 'a network is read as another one than is written',
    words: describeOddCidr,
  },
  'unknown-field': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ isNeeded }: MisspelledField) => (isNeeded ? 'error' : 'warning'),
    },
    meaning: 'an object or the configuration has an unknown field, or one in the wrong place: it is ignored',
    words: (details: MisspelledField) => describeUnknown(details),
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
