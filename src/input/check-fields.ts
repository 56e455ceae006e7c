import { findNearest } from '../base/find-nearest.ts';
import { isObject } from '../base/shape.ts';
import type { FieldPath } from '../cluster/objects.ts';
import type { Report } from './report.ts';

/** The fields below one, with theirs. Those of a list are the fields of its items. */
export type Fields = ReadonlyMap<string, Fields>;

/** Of a field below which any may be. */
export const anything: Fields = new Map();

function fields(names: string, below: Readonly<Record<string, Fields>> = {}): Fields {
  return new Map([
    ...names
      .split(' ')
      .filter((name) => name !== '')
      .map((name) => [name, anything] as const),
    ...Object.entries(below),
  ]);
}

const metadata = fields(
  'name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp ' +
    'deletionGracePeriodSeconds labels annotations finalizers managedFields clusterName initializers',
  { ownerReferences: fields('apiVersion kind name uid controller blockOwnerDeletion') },
);

const conditions = fields('type status observedGeneration lastTransitionTime reason message');

const targetRef = fields('kind namespace name uid apiVersion resourceVersion fieldPath');

/** The fields of the kinds that kpc reads, as the API of 1.36 and those before it have them. */
const known = {
  Service: fields('apiVersion kind', {
    metadata,
    spec: fields(
      'selector clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP loadBalancerSourceRanges ' +
        'externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses ipFamilies ipFamilyPolicy ' +
        'ipFamily topologyKeys allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution',
      {
        ports: fields('name protocol appProtocol port targetPort nodePort'),
        sessionAffinityConfig: fields('', { clientIP: fields('timeoutSeconds') }),
      },
    ),
    status: fields('', {
      conditions,
      loadBalancer: fields('', {
        ingress: fields('ip hostname ipMode', { ports: fields('port protocol error') }),
      }),
    }),
  }),
  EndpointSlice: fields('apiVersion kind addressType', {
    metadata,
    ports: fields('name protocol port appProtocol'),
    endpoints: fields('addresses hostname deprecatedTopology topology nodeName zone', {
      targetRef,
      conditions: fields('ready serving terminating'),
      hints: fields('', { forZones: fields('name'), forNodes: fields('name') }),
    }),
  }),
  Endpoints: fields('apiVersion kind', {
    metadata,
    subsets: fields('', {
      addresses: fields('ip hostname nodeName', { targetRef }),
      notReadyAddresses: fields('ip hostname nodeName', { targetRef }),
      ports: fields('name port protocol appProtocol'),
    }),
  }),
  Node: fields('apiVersion kind', {
    metadata,
    spec: fields('podCIDR podCIDRs providerID unschedulable configSource externalID', {
      taints: fields('key value effect timeAdded'),
    }),
    status: fields(
      'capacity allocatable phase conditions daemonEndpoints nodeInfo images volumesInUse volumesAttached config ' +
        'runtimeHandlers features declaredFeatures',
      { addresses: fields('type address') },
    ),
  }),
  ServiceCIDR: fields('apiVersion kind', {
    metadata,
    spec: fields('cidrs'),
    status: fields('', { conditions }),
  }),
} as const;

/** A kind whose fields are known. */
export type CheckedKind = keyof typeof known;

/** The fields of a kind. */
export function knownFields(kind: CheckedKind): Fields {
  return known[kind];
}

export function isCheckedKind(kind: string): kind is CheckedKind {
  return Object.hasOwn(known, kind);
}

/**
 * Warns of fields that Kubernetes does not know where they stand, as kubectl's strict validation does: the cluster ignores
 * them. Says where the field belongs, where it is known elsewhere in the object.
 */
export function checkFields(kind: CheckedKind, value: object, report: Report): void {
  visit(value, known[kind], [], { kind, object: value, report, told: new Set() });
}

interface Visit {
  readonly kind: CheckedKind;
  readonly object: object;
  readonly report: Report;
  /** Fields of list items that were told of one item: of the others there is no need. */
  readonly told: Set<string>;
}

function visit(value: object, here: Fields, path: FieldPath, context: Visit): void {
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    const below = here.get(key);
    if (!below) warn(key, value, here, path, context);
    else if (below !== anything)
      visitBelow((value as Readonly<Record<string, unknown>>)[key], below, path, key, context);
  }
}

function visitBelow(value: unknown, here: Fields, path: FieldPath, key: string, context: Visit): void {
  if (isObject(value)) return visit(value, here, [...path, key], context);
  if (!Array.isArray(value)) return;
  for (const [i, item] of value.entries()) if (isObject(item)) visit(item, here, [...path, key, i], context);
}

function warn(key: string, value: object, here: Fields, path: FieldPath, { kind, object, report, told }: Visit): void {
  const name = [...path.filter((step) => typeof step === 'string'), key].join('.');
  if (told.has(name)) return;
  told.add(name);
  const where = nameOf(path) || `${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}`;
  const near = findNearest(key, [...here.keys()]);
  const right = findPath(key, known[kind], '');
  const at = [...path, key];
  const written = (value as Readonly<Record<string, unknown>>)[key];
  // What holds fields of its own is not meant to be one of a number or a text.
  const isNear = near !== undefined && here.get(near) !== anything && typeof written === 'object' && written !== null;
  if (right !== undefined && !isNear && near?.toLowerCase() !== key.toLowerCase()) {
    const position = here === known[kind] ? `beside ${right.split(/[.[]/, 1)[0] ?? ''}` : `in ${where}`;
    const details = { problem: 'misplaced', name: key, position, meant: right } as const;
    const meant = right.split(/(?:\[\])?\./);
    if (holds(object, meant)) report.addAtKey(at, 'unknown-field', details);
    else report.addMisspelled(at, meant, details);
    return;
  }
  const details = { problem: 'object', name: key, parent: where, meant: near } as const;
  if (near === undefined || Object.hasOwn(value, near)) report.addAtKey(at, 'unknown-field', details);
  else report.addMisspelled(at, [...path, near], details);
}

/** Whether there is a field of these names, in one item of a list at least. */
function holds(value: unknown, [name, ...below]: readonly string[]): boolean {
  if (name === undefined) return true;
  if (Array.isArray(value)) return value.some((item) => holds(item, [name, ...below]));
  return isObject(value) && Object.hasOwn(value, name) && holds(value[name], below);
}

/** "spec.ports[0]". */
function nameOf(path: FieldPath): string {
  return path.map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`)).join('');
}

/** The least deep place where a field of that name belongs. */
function findPath(key: string, here: Fields, path: string): string | undefined {
  const lower = key.toLowerCase();
  let level: (readonly [fields: Fields, path: string])[] = [[here, path]];
  while (level.length > 0) {
    for (const [each, at] of level) {
      const found = [...each.keys()].find((name) => name.toLowerCase() === lower);
      if (found !== undefined) return `${at}${found}`;
    }
    level = level.flatMap(([each, at]) =>
      [...each].flatMap(([name, below]) =>
        below !== anything ? [[below, `${at}${name}${lists.has(name) ? '[]' : ''}.`] as const] : [],
      ),
    );
  }
  return undefined;
}

/** The fields that hold lists. */
const lists: ReadonlySet<string> = new Set([
  'ports',
  'ingress',
  'endpoints',
  'forZones',
  'forNodes',
  'subsets',
  'addresses',
  'notReadyAddresses',
  'ownerReferences',
  'taints',
]);
