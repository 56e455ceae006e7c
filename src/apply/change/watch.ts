import { describeError } from '../../base/system-errors.ts';
import type { Host } from '../node/host.ts';

/** How one round of a watch ended. */
export type SyncResult = 'done' | 'failed';

/** What a watch needs. All times in milliseconds. */
export interface WatchSettings {
  readonly host: Host;
  readonly syncPeriod: number;
  readonly minSyncPeriod: number;
  /** Something that changes when the bundle does; undefined if there is none. It may throw, and is asked again. */
  readonly readVersion: () => Promise<string | undefined>;
  /** Brings the node to what the bundle says. */
  readonly sync: () => Promise<SyncResult>;
  readonly warn: (problem: string) => Promise<void>;
}

/** A watch that createWatch made. */
export interface Watch {
  /** Until stop is called. */
  run(): Promise<void>;
  stop(): void;
  /** Syncs as soon as the minimal period allows. */
  wake(): void;
  /** Whether the rules are in place, as far as is known: see kube-proxy's ProxyHealthServer. */
  isHealthy(): boolean;
  /** The same, but that a watch that has just begun counts as one that has just succeeded. */
  isLive(): boolean;
}

/** How often to look for a new bundle or a wish to stop. */
const pollMilliseconds = 250;

/**
 * Syncs at once, then whenever the sync period is over or there is another bundle, but never twice within the minimal
 * period. What fails is tried again. Unhealthy is who has been failing for two sync periods, or never yet succeeded.
 */
export function createWatch({ host, syncPeriod, minSyncPeriod, readVersion, sync, warn }: WatchSettings): Watch {
  const asked = { stop: false, sync: false };
  const begun = host.uptime();
  let lastSuccess: number | undefined;
  let hasWarned = false;

  const isRecent = (moment: number): boolean => host.uptime() - moment < 2 * syncPeriod + minSyncPeriod;

  /** '' if there is no bundle. Undefined if it cannot be read just now. That is reported once: a short disk error must not end the watch. */
  async function look(): Promise<string | undefined> {
    try {
      const version = (await readVersion()) ?? '';
      hasWarned = false;
      return version;
    } catch (error) {
      if (!hasWarned) await warn(`cannot tell whether the bundle has changed: ${describeError(error)}`);
      hasWarned = true;
      return undefined;
    }
  }

  return {
    async run() {
      while (!asked.stop) {
        asked.sync = false;
        const started = host.uptime();
        const seen = await look();
        if ((await sync()) === 'done') lastSuccess = host.uptime();
        const isDue = async (): Promise<boolean> => {
          const elapsed = host.uptime() - started;
          if (elapsed < minSyncPeriod) return false;
          if (asked.sync || elapsed >= syncPeriod) return true;
          const present = await look();
          return present !== undefined && present !== seen;
        };
        while (!asked.stop && !(await isDue())) await host.sleep(Math.min(pollMilliseconds, syncPeriod));
      }
    },
    stop() {
      asked.stop = true;
    },
    wake() {
      asked.sync = true;
    },
    isHealthy: () => lastSuccess !== undefined && isRecent(lastSuccess),
    isLive: () => isRecent(lastSuccess ?? begun),
  };
}
