import type { Host } from '../node/host.ts';

/** What systemd gives to a service of Type=notify, in its environment. */
export interface NotifyEnvironment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
}

/** Says to systemd how a watch is; nothing if no systemd asked. */
export interface SystemdNotifier {
  /** After each round: that the service is ready, and one line on how it is. */
  report(status: string): Promise<void>;
  /** At the end. */
  stop(): Promise<void>;
}

/** A round takes no longer, as each of its tools has a time limit: if one does, systemd may start the watch anew. */
const longestRound = 30 * 60_000;

/**
 * Node cannot send to systemd's socket, so `systemd-notify` does: the unit needs NotifyAccess=all. The watchdog is fed while the
 * process is alive and rounds come to an end.
 */
export function createNotifier(
  host: Pick<Host, 'run' | 'uptime'>,
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog }: NotifyEnvironment,
): SystemdNotifier {
  if (socket === undefined) return { report: async () => {}, stop: async () => {} };
  const send = async (...states: readonly string[]): Promise<void> => {
    // Whatever keeps systemd from hearing of it, the rules come first.
    await host.run({ tool: 'systemd-notify', args: states }, { limit: 10_000 }).catch(() => undefined);
  };
  let lastRound = host.uptime();
  const feed = (): void => {
    if (host.uptime() - lastRound < longestRound) void send('WATCHDOG=1');
  };
  const half = Math.floor(Number(watchdog) / 2000);
  const timer = half > 0 ? setInterval(feed, half) : undefined;
  return {
    async report(status) {
      lastRound = host.uptime();
      await send('READY=1', `STATUS=${status}`);
    },
    async stop() {
      clearInterval(timer);
      await send('STOPPING=1');
    },
  };
}
