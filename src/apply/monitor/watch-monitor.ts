import { answerHealthz, answerLivez, PageServer, type Answer, type ListenAddress } from './serve-pages.ts';
import { WatchMetrics, type Round } from './metrics.ts';
import type { ChangeEvent } from '../change/observe-node.ts';
import type { Watch } from '../change/watch.ts';
import { describeError } from '../../base/system-errors.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { version } from '../../base/version.ts';
import type { Family } from '../../kernel/family.ts';
import type { Host } from '../node/host.ts';

/** Who hears how a watch is. */
export interface MonitorOptions {
  readonly metrics?: ListenAddress;
  readonly metricsFile?: string;
  readonly healthz?: ListenAddress;
}

/** What is monitored; `warn` reports what goes wrong with that. */
interface Monitored extends Pick<Watch, 'isHealthy' | 'isLive'> {
  readonly host: Host;
  readonly warn: (problem: string) => Promise<void>;
}

/** Measures a watch, and lets others see how it is. */
export function createWatchMonitor(options: MonitorOptions, { host, warn, isHealthy, isLive }: Monitored) {
  const metrics = new WatchMetrics(version, host);
  const notifier = createNotifier(host, process.env);
  let lastSuccess: number | undefined;
  let known: readonly Family[] = [];

  const onText = (): Answer => ({
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
    body: metrics.format(isHealthy()),
  });
  const ask = () => ({ now: host.now(), lastSuccess, families: known });
  const healthz = () => answerHealthz(ask(), isHealthy());
  const livez = () => answerLivez(ask(), isLive());
  const servers = [
    ...(options.metrics ? [new PageServer(options.metrics, { '/metrics': onText })] : []),
    ...(options.healthz ? [new PageServer(options.healthz, { '/healthz': healthz, '/livez': livez })] : []),
  ];

  /** Monitoring that fails does not stop the work. */
  async function openPorts(): Promise<void> {
    for (const server of servers) {
      const problem = await server.open();
      if (problem !== undefined) await warn(problem);
    }
  }

  async function writeFile(isGood: boolean): Promise<void> {
    if (options.metricsFile === undefined) return;
    try {
      replaceFile(options.metricsFile, metrics.format(isGood));
    } catch (error) {
      await warn(`cannot write the metrics: ${describeError(error)}`);
    }
  }

  return {
    onEvent: (event: ChangeEvent): void => metrics.onEvent(event),
    /** Runs a round, and gives what it came to. */
    async round(work: () => Promise<Round>, isGood: () => boolean): Promise<Round> {
      await openPorts();
      const begun = host.uptime();
      const round = await work();
      metrics.onRound(round, (host.uptime() - begun) / 1000, isGood());
      if (round.bundle) known = round.bundle.manifest.families;
      const isDone = round.result === 'done';
      if (isDone) lastSuccess = host.now();
      await writeFile(isDone || isHealthy());
      await notifier.report(describeRound(round, isGood()));
      return round;
    },
    async close(): Promise<void> {
      await notifier.stop();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

/** One line for "systemctl status". */
function describeRound({ result, failure }: Round, isGood: boolean): string {
  if (result === 'done') return isGood ? 'the node matches the bundle' : 'the node matches the last good bundle';
  return failure ? `the last round failed: ${failure.code}` : 'the last round failed';
}

/** What systemd gives to a service of Type=notify, in its environment. */
export interface NotifyEnvironment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
}

/** A round takes no longer, as each of its tools has a time limit: if one does, systemd may start the watch anew. */
const longestRound = 30 * 60_000;

/**
 * Says to systemd how a watch is; nothing if no systemd asked. `report`: after each round, that the service is ready, and one line
 * on how it is. Node cannot send to systemd's socket, so `systemd-notify` does: the unit needs NotifyAccess=all. The watchdog is fed while the
 * process is alive and rounds end.
 */
export function createNotifier(
  host: Pick<Host, 'run' | 'uptime'>,
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog }: NotifyEnvironment,
) {
  const send = async (...states: readonly string[]): Promise<void> => {
    if (socket === undefined) return;
    // Whatever keeps systemd from hearing of it, the rules come first.
    await host.run({ tool: 'systemd-notify', args: states }, { limit: 10_000 }).catch(() => undefined);
  };
  let lastRound = host.uptime();
  const feed = (): void => {
    if (host.uptime() - lastRound < longestRound) void send('WATCHDOG=1');
  };
  const half = Math.floor(Number(watchdog) / 2000);
  const timer = socket !== undefined && half > 0 ? setInterval(feed, half) : undefined;
  return {
    async report(status: string): Promise<void> {
      lastRound = host.uptime();
      await send('READY=1', `STATUS=${status}`);
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await send('STOPPING=1');
    },
  };
}
