import { aService, anIP, manifests, type Example, web, withFields, withPorts } from './examples.ts';
import { adviseOnOddSpace } from '../base/odd-texts.ts';
import { joinWords } from '../base/join-words.ts';
import { quote } from '../base/printable.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { behaviourChanges, kubeProxyVersions, type Release } from '../kube-proxy/releases.ts';
import { row, type DiagnosticTable, type Texts, type Words, wordsBy, warningIf } from './diagnostic-rows.ts';

/** A value of the input as a diagnostic shows it: strings, numbers and booleans in full, lists and mappings by type. */
export type Found =
  | { readonly type: 'empty' | 'list' | 'mapping' }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean };

/** Classifies a value of YAML or JSON. A missing value counts as empty. */
export function findingOf(value: unknown): Found {
  if (Array.isArray(value)) return { type: 'list' };
  switch (typeof value) {
    case 'string':
      return { type: 'string', value };
    case 'number':
      return { type: 'number', value };
    case 'boolean':
      return { type: 'boolean', value };
    default:
      return { type: value === null || value === undefined ? 'empty' : 'mapping' };
  }
}

/** Describes a value of the input in a few words. */
export function describeFound(found: Found): string {
  switch (found.type) {
    case 'empty':
      return 'empty';
    case 'list':
      return 'a list';
    case 'mapping':
      return 'a mapping';
    case 'string':
      return quote(found.value);
    case 'number':
    case 'boolean':
      return String(found.value);
  }
}

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

/** A field and its value as written. */
type WrittenValue = Texts<'field' | 'value'>;

/** kube-proxy reads some settings in one mode only: in the other modes a wrong value is a warning. */
export interface OfOneMode {
  /** The mode to compile for, if that mode ignores the setting. */
  readonly ignoredIn?: ProxyMode | undefined;
}

/** Ends a sentence about a setting. */
export function endByMode({ ignoredIn }: OfOneMode): string {
  return ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
}

/** `address` is the network of one address that is meant, if an address is written. */
interface NoNetwork extends WrittenValue, OfOneMode {
  readonly address?: string | undefined;
  /** The words that the field takes besides networks. */
  readonly words?: readonly string[] | undefined;
}

/** `isRead`: kpc compiles the word as later releases read it. */
interface WordOfRelease extends WrittenValue {
  readonly release: Release;
  readonly isRead: boolean;
}

/** A field that does not have the type, the range or one of the words that it must have. */
interface WrongField extends OfOneMode, Texts<'field'> {
  readonly found: Found;
  /** The types of JSON that it may have; undefined for one of a few strings. */
  readonly types?: readonly string[] | undefined;
  /** What it should be, if the schema says so in words. */
  readonly expected?: string | undefined;
  /** Whether kube-proxy starts with it, and makes its rules without it. */
  readonly isLeftOut?: boolean;
}

/** The row of a field that may have a wrong value. */
function shapeRow(meaning: string, example: Example) {
  const severity = warningIf(({ isLeftOut, ignoredIn }: WrongField) => isLeftOut === true || ignoredIn !== undefined);
  return row(severity, { meaning, example, words: describeField });
}

function describeField(details: WrongField): Words {
  const { field, found, types = ['string'], expected, isLeftOut } = details;
  const leftOut = isLeftOut ? ': the rules are made without it' : '';
  const wrong = `${field} cannot be ${describeFound(found)}${leftOut}${endByMode(details)}`;
  if (types.includes('string') && (found.type === 'number' || found.type === 'boolean')) {
    // A duration has a unit, which quotes alone do not give it.
    const isAnyString = expected === undefined || expected === 'a string' || found.type === 'boolean';
    return [
      `${field} is ${found.type === 'number' ? 'the number ' : ''}${found.value}, not a string`,
      isAnyString ? `put it in quotes${found.type === 'boolean' ? yesIsTrue : ''}` : `write ${expected}`,
    ];
  }
  if (types.includes('integer')) {
    const isInQuotes = found.type === 'string' && /^\d+$/.test(found.value);
    return [wrong, isInQuotes ? `write ${found.value} without quotes` : (expected ?? 'write a whole number')];
  }
  // Without a space after the colon, YAML reads a key and its value as one string.
  const isPair = types.includes('object') && found.type === 'string' && /^[\w./-]+:[^\s/]/.test(found.value);
  return [wrong, isPair ? 'put a space after the ":"' : `write ${expected ?? types.join(' or ')}`];
}

const yesIsTrue = ' (to YAML, yes and on are true, no and off are false)';

/** Fields that do not fit their schema. */
const shapeDiagnostics = {
  'bad-number': shapeRow('a value is not a number, or is out of range', manifests(web, '--conntrack-min few')),
  'bad-port': shapeRow(
    'a port is not a number from 1 to 65535, nor the name of a container port',
    withPorts('{ port: 70000 }'),
  ),
  'bad-type': shapeRow(
    'a field has a value of the wrong type, or contradicts the type of the Service',
    manifests(aService(`${anIP}, ports: 80`)),
  ),
  'bad-word': shapeRow(
    'a field is not one of the words that it takes, or contradicts another such field',
    withPorts('{ port: 80, protocol: tcp }'),
  ),
} satisfies DiagnosticTable;

/** The codes for a field that does not fit its schema. */
export type ShapeCode = keyof typeof shapeDiagnostics;

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
  ...shapeDiagnostics,
  'bad-cidr': row(
    warningIf(({ isRead, ignoredIn }: { isRead?: boolean } & OfOneMode) => isRead === true || ignoredIn !== undefined),
    {
      meaning: 'a value is not a network, or not one that is allowed there',
      example: withFields('loadBalancerSourceRanges: [10.0.0.0/33]', 'LoadBalancer'),
      words: wordsBy('problem', {
        'no-network': (details: NoNetwork) => {
          const { field, value, address, words } = details;
          const others = words === undefined ? '' : `, or one of the words ${joinWords(words)}`;
          return [
            `${field} ${quote(value)} is not a network${endByMode(details)}`,
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
        'repeated-word': ({ field, value }: WrittenValue) => [
          `${field}: the word ${value} is there twice, and kube-proxy does not start`,
          'write it once',
        ],
        'word-of-release': ({ field, value, release, isRead }: WordOfRelease) => {
          const taken = isRead ? '; compiled as later releases read it' : '';
          return [
            `${field} ${quote(value)}: kube-proxy ${kubeProxyVersions[release]} does not take this, and does not start${taken}`,
            `write networks; Kubernetes ${behaviourChanges['node-port-words'].since} takes the words, too`,
          ];
        },
      }),
    },
  ),
  'missing-field': row('error', {
    meaning: 'an object lacks a field that it needs',
    example: manifests(web.replace(/^spec: .*\n/m, '')),
    // `owner` is "the Service" or "ports[0]".
    words: ({ owner, field, expected }: Texts<'owner' | 'field' | 'expected'>) => [
      `${owner} has no ${field}`,
      `write ${expected}`,
    ],
  }),
  'null-value': row('warning', {
    meaning: 'a label, an annotation or a part of a selector has no value: it is read as the empty string',
    example: withFields('selector: { app: }'),
    words: ({ of, name }: Texts<'of' | 'name'>) => [
      `${of} ${quote(name)} has no value, and Kubernetes reads it as the empty string`,
      'write a value, or "" if that is meant',
    ],
  }),
  'odd-cidr': row('warning', {
    meaning: 'a network is read as another one than is written',
    example: withFields('loadBalancerSourceRanges: [10.0.0.1/8]', 'LoadBalancer'),
    // `network` is how it is read; `address` is the single address that may be meant, if host bits are set.
    words: (details: WrittenValue & Texts<'network'> & { readonly address?: string | undefined }) => {
      const { field, value, network, address } = details;
      if (address === undefined) return [`${field} ${quote(value)} is read as ${network}`, 'write it that way'];
      return [
        `${field} ${quote(value)} has host bits set, and is read as ${network}`,
        `write ${network}, or ${address} for the one address`,
      ];
    },
  }),
  'unknown-field': row(
    warningIf(({ isNeeded }: Misspelled) => !isNeeded),
    {
      meaning: 'an object or the configuration has an unknown field, or one in the wrong place',
      example: manifests(aService(`${anIP}, port: [{ port: 80 }]`)),
      words: ({ name, owner, reader, meant }: Misspelled) => [
        `${owner} has no field ${quote(name)}${reader === undefined ? '' : `, and ${reader} ignores it`}`,
        adviseOnOddSpace(name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`),
      ],
    },
  ),
  'bad-address': row('error', {
    meaning: 'a value is not an IP address, or not one that is allowed there',
    example: manifests(aService('clusterIP: 10.96.31.256, ports: [{ port: 80 }]')),
    words: ({ field, value, expected }: WrittenValue & Texts<'expected'>) => [
      `${field} ${quote(value)} is not ${expected}`,
      'write one such as 10.0.0.1 or fd00::1, without a prefix length',
    ],
  }),
  'odd-address': row('warning', {
    meaning: 'an IP address is written in a form that other programs may read differently',
    example: manifests(aService('clusterIP: 10.96.0.010, ports: [{ port: 80 }]')),
    words: ({ field, value, address }: WrittenValue & Texts<'address'>) => [
      `${field} ${quote(value)} is read as ${address}`,
      'write it that way, because other programs may read it differently',
    ],
  }),
  'special-address': row('warning', {
    meaning: 'an address is one that other networks cannot reach, and kube-proxy uses it anyway',
    example: manifests(aService('clusterIP: 10.96.0.10, externalIPs: [255.255.255.255], ports: [{ port: 80 }]')),
    // `kind` is "a loopback address"; `isRefused`: kpc-apply refuses it.
    words: ({ field, value, kind, isRefused }: WrittenValue & Texts<'kind'> & { readonly isRefused: boolean }) =>
      `${field} ${quote(value)} is ${kind}, which other networks cannot reach: kube-proxy uses it anyway${isRefused ? ', and kpc-apply does not take such a bundle' : ''}`,
  }),
} satisfies DiagnosticTable;
