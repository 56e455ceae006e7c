import { createNotifier } from '../../apply/monitor/notify-systemd.ts';
import { answerHealthz, answerLivez, PageServer, type Answer } from '../../apply/monitor/serve-pages.ts';
import { WatchMetrics, type Round } from '../../apply/monitor/metrics.ts';
import type { ChangeEvent } from '../../apply/change/change-event.ts';
import type { Watch } from '../../apply/change/watch.ts';
import { describeError } from '../../bundle/errors.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { version } from '../../base/version.ts';
import type { Family } from '../../kernel/family.ts';
import type { MonitorOptions } from './options.ts';
import { reportWarning, type ApplyEnvironment } from './environment.ts';

/** Measures a watch, and lets others see how it is. */
export interface WatchMonitor {
  readonly onEvent: (event: ChangeEvent) => void;
  /** Runs a round, and gives what it came to. */
  round(work: () => Promise<Round>, isGood: () => boolean): Promise<Round>;
  close(): Promise<void>;
}

export function createWatchMonitor(
  options: MonitorOptions,
  around: ApplyEnvironment,
  health: Pick<Watch, 'isHealthy' | 'isLive'>,
): WatchMonitor {
  const { host, terminal } = around;
  const metrics = new WatchMetrics(version, host);
  const notifier = createNotifier(host, process.env);
  let lastSuccess: number | undefined;
  let known: readonly Family[] = [];

  const onText = (): Answer => ({
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
    body: metrics.format(health.isHealthy()),
  });
  const ask = () => ({ now: host.now(), lastSuccess, families: known });
  const healthz = () => answerHealthz(ask(), health.isHealthy());
  const livez = () => answerLivez(ask(), health.isLive());
  const servers = [
    ...(options.metrics ? [new PageServer(options.metrics, { '/metrics': onText })] : []),
    ...(options.healthz ? [new PageServer(options.healthz, { '/healthz': healthz, '/livez': livez })] : []),
  ];

  /** Monitoring that fails does not stop the work. */
  async function openPorts(): Promise<void> {
    for (const server of servers) {
      const problem = await server.open();
      if (problem !== undefined) await reportWarning(problem, terminal);
    }
  }

  async function writeFile(isHealthy: boolean): Promise<void> {
    if (options.metricsFile === undefined) return;
    try {
      replaceFile(options.metricsFile, metrics.format(isHealthy));
    } catch (error) {
      await reportWarning(`cannot write the metrics: ${describeError(error)}`, terminal);
    }
  }

  return {
    onEvent(event) {
      around.onEvent?.(event);
      metrics.onEvent(event);
    },
    async round(work, isGood) {
      await openPorts();
      const begun = host.uptime();
      const round = await work();
      metrics.onRound(round, (host.uptime() - begun) / 1000, isGood());
      if (round.bundle) known = round.bundle.manifest.families;
      const isDone = round.result === 'done';
      if (isDone) lastSuccess = host.now();
      await writeFile(isDone || health.isHealthy());
      await notifier.report(describeRound(round, isGood()));
      return round;
    },
    async close() {
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
