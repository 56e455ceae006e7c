import type { Host } from '../node/host.ts';

/** Times in milliseconds. */
export interface WatchSettings {
  readonly host: Host;
  readonly syncPeriod: number;
  readonly minSyncPeriod: number;
  /** A value that changes with the bundle. Errors are retried: a brief disk error must not end the watch. */
  readonly readVersion: () => Promise<string>;
  /** Brings the node to the bundle's state; returns whether that succeeded. */
  readonly sync: () => Promise<boolean>;
}

/** How often to look for a new bundle or a wish to stop. */
const pollMilliseconds = 250;

/** Syncs at once, after each period and new bundle; retries. Unhealthy after two periods without success. */
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
    /** Syncs as soon as the minimal period allows. */
    wake(): void {
      asked.sync = true;
    },
    /** Whether the rules are believed to be in place, as in kube-proxy's ProxyHealthServer. */
    isHealthy: (): boolean => lastSuccess !== undefined && isRecent(lastSuccess),
    /** Like isHealthy, but the start of the watch counts as a success. */
    isLive: (): boolean => isRecent(lastSuccess ?? begun),
  };
}
