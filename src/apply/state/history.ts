import { hasCode } from '../../base/system-errors.ts';
import { Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import { joinOwned } from './owned-names.ts';
import {
  readSnapshot,
  writeJson,
  type BundleMark,
  type OwnershipRecord,
  type StoredSnapshot,
  type StateFolder,
  type StateMark,
} from './record.ts';

const mostStates = 5;

export type ChangeOrigin =
  | { readonly kind: 'apply' | 'watch'; readonly bundle: BundleMark }
  | { readonly kind: 'cleanup'; readonly bundle?: undefined }
  | { readonly kind: 'rollback'; readonly to: StateMark; readonly bundle?: undefined };

export interface History {
  readonly present: StateMark | undefined;
  /** The id of the state before the last change, if this state was kept. */
  readonly before: number | undefined;
  /** The latest comes first. */
  readonly states: readonly StoredSnapshot[];
  readonly damaged: ReadonlyMap<number, Failure>;
}

function statePath(folder: StateFolder, id: number): string {
  return `${folder.path}/state-${id}.json`;
}

async function listIds(host: Host, folder: StateFolder): Promise<readonly number[]> {
  const names = await host.list(folder.path);
  return names.flatMap((name) => {
    const id = /^state-([1-9]\d{0,14})\.json$/.exec(name)?.[1];
    return id === undefined ? [] : Number(id);
  });
}

/** No node stores this many states, so a higher number is another program's and must not set the next id. Test: apply/cleanup.test.ts. */
const highestId = 1_000_000_000;

export async function nextId(host: Host, folder: StateFolder, present: StateMark | undefined): Promise<number> {
  const ids = (await listIds(host, folder)).filter((id) => id < highestId);
  return Math.max(0, present?.id ?? 0, ...ids) + 1;
}

export async function readHistory(host: Host, folder: StateFolder, record: OwnershipRecord): Promise<History> {
  const states: StoredSnapshot[] = [];
  const damaged = new Map<number, Failure>();
  for (const id of (await listIds(host, folder)).toSorted((a, b) => b - a)) {
    try {
      const snapshot = await readKeptState(host, folder, id);
      if (snapshot) states.push(snapshot);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      damaged.set(id, error);
    }
  }
  const replaced = record.state?.replaced;
  const isKept = replaced !== undefined && (damaged.has(replaced) || states.some(({ state }) => state.id === replaced));
  return { present: record.state, before: isKept ? replaced : undefined, states, damaged };
}

async function readKeptState(host: Host, folder: StateFolder, id: number): Promise<StoredSnapshot | undefined> {
  const path = statePath(folder, id);
  const snapshot = await readSnapshot(host, folder, path);
  if (!snapshot || snapshot.state.id === id) return snapshot;
  throw new Failure('bad-state-folder', { problem: 'other-state', path });
}

/**
 * Returns a state, together with the objects that later changes touched. Throws a Failure if the state, or the file of a later state, is
 * missing or damaged.
 */
export function findState({ states, damaged, before }: History, id: number): StoredSnapshot {
  const problem = damaged.get(id) ?? (id === before ? undefined : [...damaged.values()][0]);
  if (problem) throw problem;
  const found = states.find(({ state }) => state.id === id);
  if (!found) throw new Failure('bad-usage', { problem: 'no-state', id, states: states.map(({ state }) => state) });
  const since = states.filter(({ state }) => state.id >= id);
  // The oldest state comes last and wins. Settings that it did not record get the values that later states found.
  const settings = Object.assign({}, ...since.map(({ reading }) => reading.settings));
  return {
    ...found,
    touched: since.flatMap(({ record, touched }) => [record.owned, touched]).reduce(joinOwned),
    reading: { ...found.reading, settings },
    settingsMade: joinSettingsMade(since),
  };
}

export function joinSettingsMade(changes: readonly Pick<StoredSnapshot, 'settingsMade'>[]) {
  const all = new Map<string, Set<string>>();
  for (const { settingsMade } of changes) {
    for (const [path, values] of Object.entries(settingsMade)) {
      all.set(path, new Set([...(all.get(path) ?? []), ...values]));
    }
  }
  return Object.fromEntries([...all].map(([path, values]) => [path, [...values]]));
}

/** Reports whether a change only maintains the node's state: `watch` undoes other programs' changes or ends drains. */
export function isRepair(origin: ChangeOrigin, present: StateMark): boolean {
  return origin.kind === 'watch' && origin.bundle.digest === present.bundle?.digest;
}

export function stateAfter(origin: ChangeOrigin, present: StateMark, id: number, now: number): StateMark {
  if (isRepair(origin, present)) return present;
  if (origin.kind === 'rollback') return { ...origin.to, id, replaced: present.id };
  return { id, replaced: present.id, since: now, command: origin.kind, bundle: origin.bundle };
}

async function pruneStates(host: Host, folder: StateFolder, most = mostStates): Promise<void> {
  const ids = await listIds(host, folder);
  for (const id of ids.toSorted((a, b) => b - a).slice(most)) await host.remove(statePath(folder, id));
}

/** Commits a change. Writes the record first; then the journal becomes the replaced state. A repair replaces no state. */
export async function commit(
  host: Host,
  folder: StateFolder,
  record: OwnershipRecord,
  { keepsState = false } = {},
): Promise<void> {
  await writeRecord(host, folder, record);
  const { state } = record;
  if (keepsState || state?.replaced === undefined) return host.remove(folder.journal);
  await host.renameFile(folder.journal, statePath(folder, state.replaced));
  await pruneStates(host, folder).catch(() => undefined);
}

/** If the disk is full, removes files that only save time, then earlier states, and retries. Test: apply/rollback-states.test.ts. */
export async function makingSpace(host: Host, folder: StateFolder, write: () => Promise<void>): Promise<void> {
  for (const free of [() => host.remove(folder.tables), () => pruneStates(host, folder, 1)]) {
    try {
      await write();
      return;
    } catch (error) {
      if (!hasCode(error, 'ENOSPC') && !hasCode(error, 'EDQUOT')) throw error;
      await free();
    }
  }
  await write();
}

export function writeRecord(host: Host, folder: StateFolder, record: OwnershipRecord): Promise<void> {
  return writeJson(host, folder.record, record);
}
