import { remarkOf, type Remark } from '../../base/findings/node-checks.ts';
import { causeOf, Failure } from '../state/failure.ts';
import { createPorts, healthCheckPorts, type HttpAnswer, type ServedPort } from './serve-ports.ts';
import { WatchMetrics, type Round } from './metrics.ts';
import { isDone } from '../change/observe-node.ts';
import type { createWatch } from '../change/watch.ts';
import { replaceFile } from '../../base/open-folder.ts';
import { version } from '../../base/version.ts';
import { type Family, familyNames } from '../../kernel/address.ts';
import type { Host } from '../node/host.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

interface MonitorOptions {
  readonly metrics: ListenAddress | undefined;
  readonly metricsFile: string | undefined;
  readonly healthz: ListenAddress | undefined;
}

interface Monitored extends Pick<ReturnType<typeof createWatch>, 'isHealthy' | 'isLive'> {
  readonly host: Host;
  readonly warn: (remark: Remark) => Promise<void>;
  /** The status that systemd shows after a round. */
  readonly describe: (round: Round) => string;
}

export function createWatchMonitor(options: MonitorOptions, { host, warn, describe, isHealthy, isLive }: Monitored) {
  const metrics = new WatchMetrics(version);
  const notifier = createNotifier(host, process.env);
  const ports = createPorts();
  let lastSuccess: number | undefined;
  let families: readonly Family[] = [];

  const own: ServedPort[] = [];
  let wanted: readonly ServedPort[] = own;
  const serve = (use: 'metrics' | 'health', at: ListenAddress | undefined, answer: ServedPort['answer']): void => {
    if (at) own.push({ use: { use, port: at.port, of: at.host }, addresses: [at.host], answer });
  };
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };
  serve('metrics', options.metrics, (path) =>
    path === '/metrics' ? { status: 200, headers, body: metrics.format(isHealthy()) } : undefined,
  );
  serve('health', options.healthz, (path) => {
    const health = { now: host.now(), lastSuccess, families };
    // Report the node as eligible, because a bundle does not record whether its node is being deleted.
    if (path === '/healthz') return answerHealth(health, isHealthy(), { nodeEligible: true });
    return path === '/livez' ? answerHealth(health, isLive()) : undefined;
  });

  async function openPorts(): Promise<void> {
    for (const remark of await ports.update(wanted)) await warn(remark);
  }

  return {
    async round(work: () => Promise<Round>): Promise<boolean> {
      await openPorts();
      const begun = host.uptime();
      const round = await work();
      const { bundle, outcome } = round;
      metrics.onRound(round, host.now(), (host.uptime() - begun) / 1000);
      if (bundle) {
        ({ families } = bundle.manifest);
        wanted = [...own, ...healthCheckPorts(bundle.manifest, bundle.listenOn, isHealthy)];
        await openPorts();
      }
      const done = outcome !== undefined && isDone(outcome);
      if (done) lastSuccess = host.now();
      if (options.metricsFile !== undefined) {
        try {
          const text = metrics.format(done || isHealthy());
          await writeMetrics(host, options.metricsFile, text);
        } catch (error) {
          await warn(remarkOf('metrics-not-written', { cause: causeOf(error) }));
        }
      }
      await notifier.report(describe(round));
      return done;
    },
    async close(): Promise<void> {
      await notifier.stop();
      await ports.close();
    },
  };
}

async function writeMetrics(host: Host, path: string, text: string): Promise<void> {
  const there = (await host.readFile(path)) ?? '';
  if (there !== '' && !there.startsWith('# HELP kpc_apply_')) {
    throw new Failure('write-failed', { problem: 'metrics', path });
  }
  await replaceFile(path, text, { mode: 0o644, isDurable: false });
}

/** Times in milliseconds since 1970. */
export interface Health {
  readonly now: number;
  readonly lastSuccess: number | undefined;
  readonly families: readonly Family[];
}

const goZeroTime = '0001-01-01T00:00:00Z';

/** Answers like kube-proxy (pkg/proxy/healthcheck/proxy_health.go): 200 or 503, and JSON with the same fields. */
export function answerHealth({ now, lastSuccess, families }: Health, healthy: boolean, more?: object): HttpAnswer {
  const currentTime = new Date(now);
  const last = lastSuccess === undefined ? goZeroTime : new Date(lastSuccess);
  const status = Object.fromEntries(families.map((family) => [familyNames[family], { lastUpdated: last, healthy }]));
  // A healthy kube-proxy reports the current time, even if it had nothing to update.
  const body = { lastUpdated: healthy ? currentTime : last, currentTime, ...more, healthy, status };
  return {
    status: healthy ? 200 : 503,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  };
}

/** Milliseconds. Tools have time limits, so only a hanging round takes longer. systemd may then restart the watch. */
const longestRound = 30 * 60_000;

/**
 * Reports readiness and each round's status to systemd, and feeds the watchdog. Runs `systemd-notify`, because Node cannot send to
 * systemd's socket, so the unit needs NotifyAccess=all.
 */
export function createNotifier(
  host: Pick<Host, 'run' | 'uptime'>,
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog }: NodeJS.ProcessEnv,
) {
  const send = async (...states: readonly string[]): Promise<void> => {
    if (socket === undefined) return;
    // Ignore errors, because rules matter more than notifications.
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
