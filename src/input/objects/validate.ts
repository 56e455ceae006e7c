import {
  Autoscaler,
  Endpoints,
  EndpointSlice,
  Gateway,
  Ingress,
  KubeProxyConfiguration,
  Namespace,
  NetworkPolicy,
  Node,
  PacketTests,
  Pod,
  ReferenceGrant,
  Route,
  Service,
  ServiceCIDR,
  Workload,
} from '#checks';
import { findFaults, isObject, type Check, type ValueFault } from '../../base/json/check.ts';
import { findNearest } from '../../base/names.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import type { Report } from './report.ts';

/**
 * The kinds that kpc reads (Workload: Deployments and the like) and its packet tests. The checks of the first five kinds include all fields
 * up to Kubernetes 1.37.
 */
const checksByKind = {
  Service,
  EndpointSlice,
  Endpoints,
  Node,
  ServiceCIDR,
  Pod,
  Workload,
  Autoscaler,
  KubeProxyConfiguration,
  PacketTests,
  NetworkPolicy,
  Ingress,
  Route,
  Gateway,
  ReferenceGrant,
  Namespace,
};

export type RawObjects = {
  readonly [Kind in keyof typeof checksByKind]: (typeof checksByKind)[Kind] extends Check<infer T>
    ? NonNullable<T>
    : never;
};

export const checks: { readonly [Kind in keyof RawObjects]: Check } = checksByKind;

/** An object with more faulty fields is not checked further. */
const mostFaults = 220;

/**
 * Checks an object's fields and returns the value as its check types it. Reports unknown fields, which do no harm. Reports faulty fields as
 * errors and removes them, so that later checks can continue. Returns undefined if nothing is left or too much is wrong.
 */
export function validate<Kind extends keyof RawObjects>(
  kind: Kind,
  value: unknown,
  report: Report,
): RawObjects[Kind] | undefined {
  const all = findFaults(checks[kind], value);
  if (all.length === 0) return value as RawObjects[Kind];
  const isUnknown = ({ problem }: ValueFault): boolean => problem === 'unknown';
  const faults = all.filter((fault) => !isUnknown(fault));
  reportUnknown(kind, value, all.filter(isUnknown), report);
  for (const fault of faults) reportFault(fault, report);
  if (faults.length > mostFaults) return undefined;
  return (faults.length === 0 ? value : removeFaults(value, faults, report)) as RawObjects[Kind] | undefined;
}

/** For files that are not API objects: who reads them, and how unknown fields are reported. */
const readers: {
  readonly [Kind in keyof RawObjects]?: Pick<ArgumentsOf<'unknown-field'>, 'owner' | 'reader' | 'isNeeded'>;
} = {
  KubeProxyConfiguration: { owner: 'the configuration', reader: 'kube-proxy' },
  PacketTests: { owner: 'this file', isNeeded: true },
};

/**
 * Reports unknown fields, once per list, like kubectl's strict validation. Names the place where an object of this kind does have the
 * field.
 */
function reportUnknown(kind: keyof RawObjects, object: unknown, faults: readonly ValueFault[], report: Report): void {
  const reported = new Set<string>();
  for (const { path, name, check, value } of faults) {
    const at = [...path, name];
    const fields = fieldChecks(check);
    const isCounted = report.isFull('unknown-field', readers[kind]?.isNeeded ? 'error' : 'warning');
    const near = isCounted ? undefined : findNearest(name, Object.keys(fields));
    const other = readers[kind];
    const parent = isObject(value) ? value : {};
    const isOpen = near !== undefined && !Object.hasOwn(parent, near);
    if (other) {
      const wrong = { ...other, name, meant: near };
      if (isOpen) report.addMisspelled(at, [...path, near], wrong);
      else report.addAtKey(at, 'unknown-field', wrong);
      continue;
    }
    const names = at.filter((step) => typeof step === 'string').join('.');
    if (reported.has(names)) continue;
    reported.add(names);
    // A mapping cannot be a misspelled field for a number or text.
    const isNear =
      near !== undefined &&
      isRecord(parent[name]) &&
      fields[near] !== undefined &&
      Object.keys(fieldChecks(fields[near])).length > 0;
    const elsewhere =
      isNear || near?.toLowerCase() === name.toLowerCase() || isCounted ? undefined : findPath(name, checks[kind]);
    const owner = formatFieldPath(path) || `${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}`;
    const details = { owner, name, reader: 'Kubernetes', meant: elsewhere?.join('.') ?? near } as const;
    const meant = elsewhere?.map((step) => step.replace('[]', ''));
    const isThere = meant ? holdsField(object, meant) : !isOpen;
    if (isThere) report.addAtKey(at, 'unknown-field', details);
    else report.addMisspelled(at, meant ?? [...path, near ?? ''], details);
  }
}

function fieldChecks(check: Check): Readonly<Record<string, Check>> {
  return (check.items ?? check).fields ?? {};
}

function holdsField(value: unknown, [name, ...below]: readonly string[]): boolean {
  if (name === undefined) return true;
  if (Array.isArray(value)) return value.some((item) => holdsField(item, [name, ...below]));
  return isObject(value) && Object.hasOwn(value, name) && holdsField(value[name], below);
}

function formatFieldPath(path: FieldPath): string {
  return path.map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`)).join('');
}

/** Returns the least deep path to a field with this name, such as "spec", "ports[]", "nodePort". */
function findPath(name: string, kind: Check): readonly string[] | undefined {
  let level = [{ check: kind, path: [] as readonly string[] }];
  while (level.length > 0) {
    const below = level.flatMap(({ check, path }) =>
      Object.entries(fieldChecks(check)).map(([field, inner]) => {
        return { field, check: inner, path: [...path, inner.items ? `${field}[]` : field] };
      }),
    );
    const found = below.find(({ field }) => field.toLowerCase() === name.toLowerCase());
    if (found) return [...found.path.slice(0, -1), found.field];
    level = below;
  }
  return undefined;
}

/** Removes faulty fields and drops later errors about them. Copies only the parts above these fields, because the rest may be deep. */
function removeFaults(value: unknown, faults: readonly ValueFault[], report: Report): unknown {
  const root: Record<string | number, unknown> = { value };
  const copies = new Set<unknown>([root]);
  for (const fault of faults) {
    const { path } = fault;
    if (path.length === 0) return undefined;
    report.silence(path);
    let parent = root;
    for (const [i, step] of ['value', ...path].entries()) {
      let child = i === path.length ? neutralValue(fault) : parent[step];
      if (isRecord(child) && !copies.has(child)) {
        child = Array.isArray(child) ? [...child] : { ...child };
        copies.add(child);
      }
      parent[step] = child;
      if (!isRecord(child)) break;
      parent = child;
    }
  }
  return root['value'];
}

/** Null counts as absent, except in lists and maps, whose items must not be null. */
function neutralValue({ check: { types }, isOptional }: ValueFault): unknown {
  if (isOptional || types.includes('null')) return null;
  return types[0] === 'object' ? {} : '';
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null;
}

function reportFault({ path, check, expected, value }: ValueFault, report: Report): void {
  if (Number.isNaN(value)) return;
  const { types, values } = check;
  const wanted = values && typeof value === 'string' ? (nearestWord(value, values) ?? expected) : expected;
  report.addWrong(path, value, { types, expected: wanted });
}

function nearestWord(value: string, values: readonly unknown[]): string | undefined {
  const words = values.filter((word): word is string => typeof word === 'string' && word !== '');
  return findNearest(value.trim(), words);
}
