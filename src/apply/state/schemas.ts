import {
  amount,
  listOf,
  mapOf,
  matching,
  narrowed,
  objectOf,
  oneOf,
  optional,
  text,
  wholeNumber,
  type Schema,
} from '../../base/json/schema.ts';
import { servicePortSchema } from '../../bundle/schemas.ts';
import type { Variants, NftGeneration } from '../node/tools.ts';
import type { NodeReading } from '../node/node-reading.ts';
import { ownedLists, type OwnedNames } from './owned-lists.ts';

export const bundleSchema = objectOf({
  folder: text,
  digest: text,
  serial: optional(wholeNumber(0)),
});

export const stateSchema = objectOf({
  id: wholeNumber(0),
  /** The id of the state before the last change, to which a rollback goes; undefined if unknown. */
  replaced: optional(wholeNumber(0)),
  /** Milliseconds since 1970. Undefined, like `command` and `bundle`, for a state that kpc-apply found. */
  since: optional(amount),
  command: optional(oneOf('apply', 'watch', 'cleanup')),
  bundle: optional(bundleSchema),
});

export const drainingSchema = objectOf({
  /** Keys by virtualServerKey and realServerKey. */
  virtualServer: text,
  realServer: text,
  /** Milliseconds since 1970, for display. */
  since: amount,
  /** Milliseconds since boot, for measuring the drain. */
  sinceBoot: amount,
});

const bindingFields = {
  bootId: text,
  /** Undefined in the record of an older kpc-apply, which may belong to any network. */
  network: optional(objectOf({ inode: text, mark: optional(text) })),
};

export const bindingSchema = objectOf(bindingFields);

const ownedNamesSchema = objectOf<OwnedNames>(
  Object.fromEntries(ownedLists.map((list) => [list, listOf(text)])) as {
    readonly [List in keyof OwnedNames]: Schema<readonly string[]>;
  },
);

export const recordSchema = objectOf({
  ...bindingFields,
  owned: ownedNamesSchema,
  draining: listOf(drainingSchema),
  /** Uptime in milliseconds when the node left IPVS for rules; undefined once no IPVS address remains. */
  leftIpvs: optional(amount),
  state: optional(stateSchema),
  /** UDP Service ports without their endpoints, kept because flows to removed ports may remain. Undefined if no bundle gave them. */
  udpPorts: optional(listOf(servicePortSchema)),
});

/** Accepts only the network's kernel settings, because a rollback writes these files. Test: apply/damaged-state.test.ts. */
function byPath<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return narrowed<Readonly<Record<string, T>>>(
    mapOf(values),
    'an object with paths of network sysctls',
    'hasSettingPaths',
  );
}

/** Marks our child processes, which a later kpc-apply may kill. No other program may use this mark. Test: apply/hanging-tools.test.ts. */
const toolMarkSchema = matching('a mark of kpc-apply', /^KPC_APPLY_RUN=[\da-f-]{36}$/);

const variantSchema = oneOf('nft', 'legacy');
const variantsSchema = objectOf<Variants>({ ipv4: variantSchema, ipv6: variantSchema });

export const snapshotSchema = objectOf({
  /** Milliseconds since 1970. */
  takenAt: amount,
  state: stateSchema,
  reading: objectOf<NodeReading>({
    ipv4: text,
    ipv6: text,
    'other ipv4': text,
    'other ipv6': text,
    'nft ipv4': text,
    'nft ipv6': text,
    ipset: text,
    ipvsadm: text,
    'ipvs timeouts': text,
    addresses: text,
    settings: byPath(text),
    variants: variantsSchema,
    balancer: optional(text),
  }),
  record: recordSchema,
  /** Objects that may have been changed or made since. A rollback restores or removes them. */
  touched: ownedNamesSchema,
  settingsMade: byPath(listOf(text)),
  /** Identifies the tools of the process that made the change. See Host. */
  toolMark: toolMarkSchema,
  /** When this process started (readStartTime). Its tools started later. Missing in files by older versions. */
  started: optional(matching('a number of ticks', /^\d{1,20}$/)),
});

export const balancerRecordSchema = objectOf({
  ...bindingFields,
  /** SHA-256 of each text that kpc-apply wrote or is about to write. */
  written: listOf(text),
  /** SHA-256 of the content that --adopt found. While the file has this content, the file is not kpc-apply's. */
  found: optional(text),
});

export const knownTablesSchema = objectOf({
  bootId: text,
  generation: objectOf<NftGeneration>({ counter: text, count: wholeNumber(0) }),
  'nft ipv4': text,
  'nft ipv6': text,
});

export const lastCommandSchema = objectOf({
  bootId: text,
  command: text,
  /** Milliseconds since 1970. */
  at: amount,
  outcome: oneOf('unchanged', 'put-back', 'refused'),
  reason: optional(text),
});

const processFields = {
  pid: wholeNumber(1),
  /** Clock ticks from boot to the start of the process. */
  started: text,
  bootId: text,
  /** The PID namespace, such as "pid:[4026531836]". Process ids are unique only within it. Undefined if unknown. */
  namespace: optional(text),
  /** The network namespace, such as "net:[4026531840]". Undefined if unknown. */
  network: optional(text),
};

export const processSchema = objectOf(processFields);

export const claimSchema = objectOf({
  ...processFields,
  command: text,
  /** Uptime in milliseconds when the claim was written. */
  since: optional(amount),
});

export const bootSchema = objectOf({ bootId: text });

export const unconfirmedSchema = objectOf({
  ...processFields,
  /** Unique to this apply until the node reboots. */
  id: text,
  /** The question to the operator, once the change is made. Contains everything needed to keep the change if the process has died. */
  question: optional(
    objectOf({
      /** Uptime in milliseconds. */
      deadline: amount,
      record: recordSchema,
    }),
  ),
});

export const doingSchema = objectOf({
  id: text,
  /** Uptime in milliseconds by which the step normally ends. */
  until: amount,
});

export const serialSchema = objectOf({ serial: wholeNumber(0) });

/** The last good bundle, with its folder. The files are checked like any bundle's. A bundle from another folder is not used. */
export const keptSchema = objectOf({ folder: text, files: mapOf(text) });
