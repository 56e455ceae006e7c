// The files of the state folder.
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
  /** The path that it was read from. */
  folder: text,
  /** SHA-256 of its manifest, which has the checksums of all its files. */
  digest: text,
  /** The serial of its signature, if checked. */
  serial: optional(wholeNumber(0)),
});

export const stateSchema = objectOf({
  /** Later states have higher ids. */
  id: wholeNumber(0),
  /** The state a rollback goes to, before the last change. Undefined if unknown. */
  replaced: optional(wholeNumber(0)),
  /** Milliseconds since 1970. Undefined, like the next two, for a state that kpc-apply found. */
  since: optional(amount),
  command: optional(oneOf('apply', 'watch', 'cleanup')),
  bundle: optional(bundleSchema),
});

export const drainingSchema = objectOf({
  /** Key by virtualServerKey and realServerKey. */
  virtualServer: text,
  realServer: text,
  /** Milliseconds since 1970, for people. */
  since: amount,
  /** Milliseconds since boot, the clock of draining. */
  sinceBoot: amount,
});

const bindingFields = {
  bootId: text,
  /** Undefined in the record of an older kpc-apply, which may be of any network. */
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
  /** Uptime in ms when the node left IPVS for rules, while addresses of that remain. */
  leftIpvs: optional(amount),
  /** The state that the node is in; undefined before the first change. */
  state: optional(stateSchema),
  /** UDP Service ports, without endpoints: flows to removed ones may remain. Undefined if no bundle says. */
  udpPorts: optional(listOf(servicePortSchema)),
});

/** A rollback writes these files, so only the network's kernel settings are accepted. Test: apply/damaged-state.test.ts. */
function byPath<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return narrowed<Readonly<Record<string, T>>>(
    mapOf(values),
    'an object with paths of network sysctls',
    'hasSettingPaths',
  );
}

/** Marks our own child processes, which a later kpc-apply may kill; no other program may use it. Test: apply/hanging-tools.test.ts. */
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
  /** Everything that may have been changed or made since: a rollback restores or removes it. */
  touched: ownedNamesSchema,
  /** Settings changed since, with all values they got. */
  settingsMade: byPath(listOf(text)),
  /** Identifies the tools of the process that made the change: see Host. */
  toolMark: toolMarkSchema,
  /** When that process started, see readStartTime: its tools are younger. Older versions did not note it. */
  started: optional(matching('a number of ticks', /^\d{1,20}$/)),
});

export const balancerRecordSchema = objectOf({
  ...bindingFields,
  /** Texts that kpc-apply wrote, or is about to write. */
  written: listOf(text),
  /** SHA-256 of the content that --adopt found: as long as the file has it, the file is not kpc-apply's. */
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
  /** Why it was put back or refused. */
  reason: optional(text),
});

const processFields = {
  pid: wholeNumber(1),
  /** Clock ticks from boot to its start. */
  started: text,
  bootId: text,
  /** Its PID namespace ("pid:[4026531836]"): ids are unique in it only. Undefined if unknown. */
  namespace: optional(text),
  /** Its network namespace ("net:[4026531840]"). Undefined if unknown. */
  network: optional(text),
};

export const processSchema = objectOf(processFields);

export const claimSchema = objectOf({
  ...processFields,
  command: text,
  /** Uptime in ms when it was written. */
  since: optional(amount),
});

export const bootSchema = objectOf({ bootId: text });

export const unconfirmedSchema = objectOf({
  ...processFields,
  /** Unique to this apply until the node reboots. */
  id: text,
  /** Its question, once the change is made. Holds all that is needed to keep the change if the process is gone. */
  question: optional(
    objectOf({
      /** Uptime in ms. */
      deadline: amount,
      /** The record to write if the change is kept. */
      record: recordSchema,
    }),
  ),
});

export const doingSchema = objectOf({
  id: text,
  /** Uptime in ms by which it ends if all is well. */
  until: amount,
});

export const serialSchema = objectOf({ serial: wholeNumber(0) });

/** The last good bundle: its files, checked like any bundle's, and its folder. Another folder's is not used. */
export const keptSchema = objectOf({ folder: text, files: mapOf(text) });
