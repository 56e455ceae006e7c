import type { SpecialUse } from '../../kernel/address.ts';
import type { NameRule } from '../names.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { row, warningIf, type Strings } from './rows.ts';

/**
 * A value as a diagnostic shows it: strings, numbers and booleans in full, lists and mappings by type. `written` is a number as in the
 * file, if JavaScript would print it differently.
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
  /** "spec.ports[0]", "a Service" or "the configuration". */
  readonly owner: string;
  readonly name: string;
  /** The program that reads the object and ignores the field, if any. */
  readonly reader?: 'Kubernetes' | 'kube-proxy' | 'kpc' | undefined;
  /** The field that may be meant, with its path if it belongs elsewhere. */
  readonly meant?: string | undefined;
  readonly isNeeded?: true | undefined;
}

/** A fault in a setting that kube-proxy reads in one mode only. In other modes, a wrong value gets a warning. */
interface OfOneMode {
  /** The mode to compile for, if this mode ignores the setting. */
  readonly ignoredIn?: ProxyMode | undefined;
}

export interface WrongValue extends OfOneMode, Strings<'field'> {
  readonly found: FoundValue;
  readonly types?: readonly string[] | undefined;
  /** What the schema expects, or the expected value itself. */
  readonly expected?: string | undefined;
  readonly form?: ValueForm | undefined;
  readonly use?: SpecialUse | undefined;
  /** Why the value is refused, if its form is right, or what the value would cause. */
  readonly because?: string | undefined;
  /** Whether kube-proxy starts and makes its rules in spite of the value. */
  readonly isWarning?: boolean | undefined;
}

export type ValueForm =
  | NameRule
  | 'one-of'
  | 'label-value'
  | 'zone'
  | 'port-name'
  | 'port'
  | 'slice-port'
  | 'node-port'
  | 'address'
  | 'address-of-family'
  | 'cluster-ips'
  | 'same-cluster-ip'
  | 'none-or-address'
  | 'of-cluster-ip-type'
  | 'of-other-type'
  | 'external-name'
  | 'traffic-distribution'
  | 'families'
  | 'family-policy'
  | 'network'
  | 'single-network'
  | 'exact-network'
  | 'networks'
  | 'network-or-word'
  | 'quantity'
  | 'mode'
  | 'linux-mode'
  | 'gate'
  | 'release'
  | 'release-or-auto'
  | RangeFlag
  | '--shard';

export type RangeFlag =
  '--assume-endpoints' | '--load-balancer-ip-range' | '--service-cluster-ip-range' | '--service-node-port-range';

export type RequiredField = 'spec' | 'name' | 'port' | 'addressType' | 'addresses' | 'externalName' | 'parentRef';

export interface OddAddress extends Strings<'field' | 'value' | 'address'> {
  readonly single?: string | undefined;
  readonly isRefused: boolean;
}

export const fieldFindings = {
  'bad-value': row<WrongValue>(warningIf(({ isWarning, ignoredIn }) => isWarning === true || ignoredIn !== undefined)),
  // `owner` is like "the Service" or "ports[0]". `isGenerated` means that the cluster makes the name of a new object.
  'missing-field': row<
    Strings<'owner'> & { readonly field: RequiredField; readonly isGenerated?: boolean | undefined }
  >('error'),
  'unknown-field': row<Misspelled>(warningIf(({ isNeeded }) => !isNeeded)),
  // `single` is the address that may be meant if a network has host bits set. `isRefused` means that API servers refuse the address.
  'odd-address': row<OddAddress>('warning'),
};
