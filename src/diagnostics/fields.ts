import { adviseOnOddSpace } from '../base/odd-texts.ts';
import type { NameRule } from '../base/object-names.ts';
import { quote } from '../base/printable.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { row, type DiagnosticTable, type Texts, type Words, warningIf } from './diagnostic-rows.ts';

/** A value of the input as a diagnostic shows it: strings, numbers and booleans in full, lists and mappings by type. */
export type Found =
  | { readonly type: 'empty' | 'list' | 'mapping' }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean };

/** Classifies a value of YAML or JSON. A missing value counts as empty. */
export function foundOf(value: unknown): Found {
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
  readonly reader?: 'Kubernetes' | 'kube-proxy' | 'kpc' | undefined;
  /** The field that may be meant, if it belongs elsewhere with the way to it. */
  readonly meant?: string | undefined;
  /** The object lacks the field that is meant, and is wrong without it. */
  readonly isNeeded?: true | undefined;
}

/** kube-proxy reads some settings in one mode only: in the other modes a wrong value is a warning. */
interface OfOneMode {
  /** The mode to compile for, if that mode ignores the setting. */
  readonly ignoredIn?: ProxyMode | undefined;
}

interface WrongValue extends OfOneMode, Texts<'field'> {
  readonly found: Found;
  /** The types of JSON that it may have; undefined for one of a few strings. */
  readonly types?: readonly string[] | undefined;
  readonly expected?: string | undefined;
  /** Why it is refused, where its form does not show it, or what follows. */
  readonly because?: string | undefined;
  /** Whether kube-proxy starts with it and makes its rules anyway. */
  readonly isWarning?: boolean | undefined;
}

interface OddAddress extends Texts<'field' | 'value' | 'address'> {
  readonly single?: string;
  readonly isRefused?: true;
}

/** What follows from a wrong value that no rule needs. */
export const leftOut = { because: 'the rules are made without it', isWarning: true } as const;

function describeWrong({ field, found, types = ['string'], expected, because, ignoredIn }: WrongValue): Words {
  const why = because === undefined ? '' : `: ${because}`;
  const ending = ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
  const wrong = `${field} cannot be ${describeFound(found)}${why}${ending}`;
  if (types.includes('string') && (found.type === 'number' || found.type === 'boolean')) {
    // A duration has a unit, which quotes alone do not give it.
    const isAnyString = expected === undefined || expected === 'a string' || found.type === 'boolean';
    return [
      `${field} is ${found.type === 'number' ? 'the number ' : ''}${found.value}, not a string`,
      isAnyString ? `put it in quotes${found.type === 'boolean' ? yesIsTrue : ''}` : `write ${expected}`,
    ];
  }
  // Other selectors have them.
  if (types.includes('string') && /\bmatch(?:Labels|Expressions)$/.test(field)) {
    return [wrong, 'write the labels themselves here: this selector takes no matchLabels and no matchExpressions'];
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

export const anAddress = 'an IP address such as 10.0.0.1 or fd00::1, without a prefix length';
export const aNetwork = 'a network such as 10.0.0.0/8 or fd00::/64';
export const oneOfEachFamily = 'one network, or one of each family';

export const nameForms: Readonly<Record<NameRule | 'label-value', string>> = {
  label: 'lower-case letters, digits and dashes, 63 characters at most, with a letter or digit at both ends',
  subdomain: 'lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends',
  'label-value':
    'letters, digits, dashes, underscores and dots, 63 characters at most, with a letter or digit at both ends',
};

/** What is wrong with single fields, whatever object they belong to. */
export const fieldDiagnostics = {
  'bad-value': row(
    warningIf(({ isWarning, ignoredIn }: WrongValue) => isWarning === true || ignoredIn !== undefined),
    describeWrong,
  ),
  'missing-field': row(
    'error',
    // `owner` is "the Service" or "ports[0]".
    ({ owner, field, expected }: Texts<'owner' | 'field' | 'expected'>) => [
      `${owner} has no ${field}`,
      `write ${expected}`,
    ],
  ),
  'unknown-field': row(
    warningIf(({ isNeeded }: Misspelled) => !isNeeded),
    ({ name, owner, reader, meant }: Misspelled) => [
      `${owner} has no field ${quote(name)}${reader === undefined ? '' : `, and ${reader} ignores it`}`,
      adviseOnOddSpace(name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`),
    ],
  ),
  'odd-address': row(
    'warning',
    // `single` is the one address that may be meant, if a network has host bits set. `isRefused`: by API servers.
    ({ field, value, address, single, isRefused }: OddAddress) => [
      `${field} ${quote(value)} is read as ${address}${isRefused ? '; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on' : ''}`,
      single === undefined
        ? 'write it that way, because other programs may read it differently'
        : `write ${address}, or ${single} for the one address`,
    ],
  ),
} satisfies DiagnosticTable;
