import type { Host } from '../node/host.ts';

/** Times in milliseconds. */
export interface WatchSettings {
  readonly host: Host;
  readonly syncPeriod: number;
  readonly minSyncPeriod: number;
  /** Returns a value that changes with the bundle. Errors are retried, because a brief disk error must not end the watch. */
  readonly readVersion: () => Promise<string>;
  readonly sync: () => Promise<boolean>;
}

const pollMilliseconds = 250;

/** Syncs at once, then after each period and for each new bundle. A failed sync is retried after the next period. */
export function createWatch({ host, syncPeriod, minSyncPeriod, readVersion, sync }: WatchSettings) {
  const asked = { stop: false, sync: false };
  const begun = host.uptime();
  let lastSuccess: number | undefined;

  const isRecent = (moment: number): boolean => host.uptime() - moment < 2 * syncPeriod + minSyncPeriod;
  const look = () => readVersion().catch(() => undefined);

  return {
    async run(): Promise<void> {
      while (!asked.stop) {
        asked.sync = false;
        const started = host.uptime();
        const seen = await look();
        if (await sync()) lastSuccess = host.uptime();
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
    stop(): void {
      asked.stop = true;
    },
    wake(): void {
      asked.sync = true;
    },
    /** Reports whether a sync has succeeded within about two periods, as in kube-proxy's ProxyHealthServer. */
    isHealthy: (): boolean => lastSuccess !== undefined && isRecent(lastSuccess),
    /** Like isHealthy, but counts the start of the watch as a success. */
    isLive: (): boolean => isRecent(lastSuccess ?? begun),
  };
}
