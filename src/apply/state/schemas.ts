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
import type { Variants } from '../node/tools.ts';
import type { NftGeneration } from '../node/nft-generation.ts';
import type { NodeReading } from '../node/node-reading.ts';
import { ownedLists, type OwnedNames } from './owned-lists.ts';

export const bundleSchema = objectOf({
  /** The path that it was read from. */
  folder: text,
  /** SHA-256 of its manifest, which has the checksums of all its files. */
  digest: text,
  /** The serial of its signature, where that was checked. */
  serial: optional(wholeNumber(0)),
});

export const stateSchema = objectOf({
  /** Of this state and no other, as long as any state is kept: later ones have higher ids. */
  id: wholeNumber(0),
  /** The state before the last change: the one that a rollback goes to. Undefined if none is known. */
  replaced: optional(wholeNumber(0)),
  /** Milliseconds since 1970, at which it was made. Undefined, as the next two, for what kpc-apply found. */
  since: optional(amount),
  /** The command that made it. */
  command: optional(oneOf('apply', 'watch', 'cleanup')),
  bundle: optional(bundleSchema),
});

export const drainingSchema = objectOf({
  /** virtualServerKey and realServerKey of src/kernel. */
  virtualServer: text,
  realServer: text,
  /** Milliseconds since 1970, for people. */
  since: amount,
  /** In milliseconds since the node booted, the clock that draining is measured by. */
  sinceBoot: amount,
});

/** What a file of the state folder is true of. */
const bindingFields = {
  bootId: text,
  /** The network of that boot. Undefined in a record of a kpc-apply that did not note it: it may be of any network. */
  network: optional(objectOf({ inode: text, mark: optional(text) })),
};

export const bindingSchema = objectOf(bindingFields);

const ownedNamesSchema = objectOf<OwnedNames>(
  Object.fromEntries(ownedLists.map((list) => [list, listOf(text)])) as {
    readonly [List in keyof OwnedNames]: Schema<readonly string[]>;
  },
);

/** On-disk form of a record. */
export const recordSchema = objectOf({
  ...bindingFields,
  owned: ownedNamesSchema,
  /** Real servers at weight 0 that wait for their connections to end. */
  draining: listOf(drainingSchema),
  /** When the node left IPVS for rules, in milliseconds since it booted, while addresses of that are still there. */
  leftIpvs: optional(amount),
  /** The state that the node is in; undefined before the first change. */
  state: optional(stateSchema),
  /** The Service ports of UDP, without endpoints: flows to one that goes may stay. Undefined where no bundle tells them. */
  udpPorts: optional(listOf(servicePortSchema)),
});

/**
 * A way back writes these files: whatever a snapshot says, they are kernel settings of the network.
 * Test: where state-1.json %s, rollback says what to do instead.
 */
function byPath<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return narrowed<Readonly<Record<string, T>>>(
    mapOf(values),
    'an object with paths of network sysctls',
    'hasSettingPaths',
  );
}

/**
 * Marks our own child processes, which a later kpc-apply may kill: it must not collide with another program's variable.
 * Test: ends nothing for a mark that is not one of kpc-apply.
 */
const toolMarkSchema = matching('a mark of kpc-apply', /^KPC_APPLY_RUN=[\da-f-]{36}$/);

const variantSchema = oneOf('nft', 'legacy');
const variantsSchema = objectOf<Variants>({ ipv4: variantSchema, ipv6: variantSchema });

export const snapshotSchema = objectOf({
  /** Milliseconds since 1970. */
  takenAt: amount,
  /** The state that this is of. */
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
  /** What has been changed or made since, at most: it is put back or taken away. */
  touched: ownedNamesSchema,
  /** The settings that have been changed since, and all values that they got. */
  settingsMade: byPath(listOf(text)),
  /** Identifies the tools of the process that made the change: see Host. */
  toolMark: toolMarkSchema,
  /** When that process started, see readStartTime: its tools are younger. An earlier version did not note it. */
  started: optional(matching('a number of ticks', /^\d{1,20}$/)),
});

export const balancerRecordSchema = objectOf({
  ...bindingFields,
  /** SHA-256 of the texts that kpc-apply wrote, or is about to write. */
  written: listOf(text),
  /** SHA-256 of what --adopt found: as long as the file holds that, it is not kpc-apply's. */
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
  /** "apply /root/shop". */
  command: text,
  /** Milliseconds since 1970. */
  at: amount,
  outcome: oneOf('unchanged', 'put-back', 'refused'),
  /** Why it was put back or refused. */
  reason: optional(text),
});

/** The content of each file that represents a process. */
const processFields = {
  pid: wholeNumber(1),
  /** Clock ticks from boot to its start. */
  started: text,
  bootId: text,
  /** Its PID namespace ("pid:[4026531836]"): the same id is of another process in another. Undefined where unknown. */
  namespace: optional(text),
  /** Its network namespace ("net:[4026531840]"). Undefined where unknown. */
  network: optional(text),
};

export const processSchema = objectOf(processFields);

export const claimSchema = objectOf({
  ...processFields,
  command: text,
  /** When it was laid down, in milliseconds since the node booted. */
  since: optional(amount),
});

export const bootSchema = objectOf({ bootId: text });

export const unconfirmedSchema = objectOf({
  ...processFields,
  /** Unique to this apply until the node reboots. */
  id: text,
  /** Its question, once the change is made. It holds all that is needed to keep the change: the process may be gone by then. */
  question: optional(
    objectOf({
      /** Milliseconds since the node booted. */
      deadline: amount,
      /** The record to write if the change is kept. */
      record: recordSchema,
    }),
  ),
});

export const doingSchema = objectOf({
  /** Of the apply. */
  id: text,
  /** When it has ended if all is well, in milliseconds since the node booted. */
  until: amount,
});

export const serialSchema = objectOf({ serial: wholeNumber(0) });

/**
 * The last good bundle as stored in the state folder: its files, which are checked like any other bundle's, and the
 * folder that it was read from. Another folder's last good bundle is not used.
 */
export const keptSchema = objectOf({ folder: text, files: mapOf(text) });
