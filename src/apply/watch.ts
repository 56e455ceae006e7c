import type { Host } from './host.ts';

export type SyncResult = 'done' | 'failed';

/** What a watch goes by. All times in milliseconds. */
export interface WatchSettings {
  readonly host: Host;
  readonly syncPeriod: number;
  readonly minSyncPeriod: number;
  /** Something that changes when the bundle does; undefined where there is none. */
  readonly readVersion: () => Promise<string | undefined>;
  /** Brings the node to what the bundle says. */
  readonly sync: () => Promise<SyncResult>;
}

export interface Watch {
  /** Until stop is called. */
  run(): Promise<void>;
  stop(): void;
  /** Syncs as soon as the minimal period allows. */
  wake(): void;
  /** Whether the rules are in place, as far as is known: see kube-proxy's ProxyHealthServer. */
  isHealthy(): boolean;
}

/** How often to look for a new bundle or a wish to stop. */
const pollMilliseconds = 250;

/**
 * Syncs at once, then whenever the sync period is over or there is another bundle, but never twice within the minimal
 * period. What fails is tried again. Unhealthy is who has been failing for two sync periods, or never yet succeeded.
 */
export function createWatch({ host, syncPeriod, minSyncPeriod, readVersion, sync }: WatchSettings): Watch {
  const asked = { stop: false, sync: false };
  let lastSuccess: number | undefined;

  return {
    async run() {
      while (!asked.stop) {
        asked.sync = false;
        const started = host.now();
        const version = await readVersion();
        const result = await sync();
        if (result === 'done') lastSuccess = host.now();
        const isDue = async (): Promise<boolean> => {
          const elapsed = host.now() - started;
          if (elapsed < minSyncPeriod) return false;
          return asked.sync || elapsed >= syncPeriod || (await readVersion()) !== version;
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
    isHealthy: () => lastSuccess !== undefined && host.now() - lastSuccess < 2 * syncPeriod + minSyncPeriod,
  };
}
