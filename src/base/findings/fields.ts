import type { NameRule } from '../names.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { row, warningIf, type Strings } from './rows.ts';

/**
 * A value as a diagnostic shows it: strings, numbers and booleans in full, lists and mappings by type. `written`: a number as the file has
 * it, if JavaScript would print it differently.
 */
export type FoundValue =
  | { readonly type: 'empty' | 'list' | 'mapping' }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number; readonly written?: string }
  | { readonly type: 'boolean'; readonly value: boolean };

export function foundOf(value: unknown): FoundValue {
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

export interface Misspelled {
  /** "spec.ports[0]", "a Service", "the configuration". */
  readonly owner: string;
  readonly name: string;
  /** The program that reads the object and ignores the field, if any. */
  readonly reader?: 'Kubernetes' | 'kube-proxy' | 'kpc' | undefined;
  /** The field that may be meant, with its path if it belongs elsewhere. */
  readonly meant?: string | undefined;
  /** The misspelled field is required. */
  readonly isNeeded?: true | undefined;
}

/** kube-proxy reads some settings in one mode only: in others a wrong value is a warning. */
interface OfOneMode {
  /** The mode compiled for, if it ignores the setting. */
  readonly ignoredIn?: ProxyMode | undefined;
}

export interface WrongValue extends OfOneMode, Strings<'field'> {
  readonly found: FoundValue;
  /** The JSON types it may have; undefined for one of a few strings. */
  readonly types?: readonly string[] | undefined;
  readonly expected?: string | undefined;
  /** Why the value is refused, if not for its form, or what follows from it. */
  readonly because?: string | undefined;
  /** Whether kube-proxy starts with it and makes its rules anyway. */
  readonly isWarning?: boolean | undefined;
}

export interface OddAddress extends Strings<'field' | 'value' | 'address'> {
  readonly single?: string;
  readonly isRefused?: true;
}

/** The consequence of a wrong value that no rule needs. */
export const leftOut = { because: 'the rules are made without it', isWarning: true } as const;

export const anAddress = 'an IP address such as 10.0.0.1 or fd00::1, without a prefix length';
export const aNetwork = 'a network such as 10.0.0.0/8 or fd00::/64';
export const oneOfEachFamily = 'one network, or one of each family';

export const nameForms: Readonly<Record<NameRule | 'label-value', string>> = {
  label: 'lower-case letters, digits and dashes, 63 characters at most, with a letter or digit at both ends',
  subdomain: 'lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends',
  'label-value':
    'letters, digits, dashes, underscores and dots, 63 characters at most, with a letter or digit at both ends',
};

export const fieldFindings = {
  'bad-value': row<WrongValue>(warningIf(({ isWarning, ignoredIn }) => isWarning === true || ignoredIn !== undefined)),
  // `owner` is "the Service" or "ports[0]".
  'missing-field': row<Strings<'owner' | 'field' | 'expected'>>('error'),
  'unknown-field': row<Misspelled>(warningIf(({ isNeeded }) => !isNeeded)),
  // `single`: the one address that may be meant if a network has host bits set. `isRefused`: by API servers.
  'odd-address': row<OddAddress>('warning'),
};
