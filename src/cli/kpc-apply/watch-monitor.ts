import { InvalidArgumentError, Option, type Command } from 'commander';
import { answerHealthz, answerLivez } from '../../apply/monitor/answers.ts';
import { createNotifier } from '../../apply/monitor/notify-systemd.ts';
import { createPageServer, type Answer, type ListenAddress } from '../../apply/monitor/serve-pages.ts';
import { createWatchMetrics, type Round } from '../../apply/monitor/watch-metrics.ts';
import type { ChangeEvent } from '../../apply/change/change-event.ts';
import type { Watch } from '../../apply/change/watch.ts';
import { describeError } from '../../bundle/errors.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { version } from '../../base/version.ts';
import { families, type Family } from '../../kernel/family.ts';
import { parseSocketAddress } from '../../kernel/socket-address.ts';
import { reportWarning, type ApplyEnvironment } from './environment.ts';

/** Who hears how a watch is. */
export interface MonitorOptions {
  readonly metrics?: ListenAddress;
  readonly metricsFile?: string;
  readonly healthz?: ListenAddress;
}

export function addMonitorOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--metrics <address>', 'serve metrics for Prometheus here, at /metrics').argParser(parseListenAddress),
    )
    .option('--metrics-file <file>', 'write the metrics to this file, for the textfile collector of node-exporter')
    .addOption(
      new Option(
        '--healthz <address>',
        'serve /healthz and /livez here, as kube-proxy does on 0.0.0.0:10256',
      ).argParser(parseListenAddress),
    );
}

/** "0.0.0.0:10256", "[::]:10256", or a port on this machine alone: "9810". */
function parseListenAddress(text: string): ListenAddress {
  const isPort = /^\d+$/.test(text);
  const parsed = parseSocketAddress(isPort ? `127.0.0.1:${text}` : text);
  if (parsed && parsed.port > 0) return { host: parsed.address.text, port: parsed.port };
  throw new InvalidArgumentError('Write an address and a port, like 0.0.0.0:10256, or only a port of 127.0.0.1.');
}

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
  const metrics = createWatchMetrics(version, host);
  const notifier = createNotifier(host, process.env);
  let lastSuccess: number | undefined;
  let known: readonly Family[] = families;

  const onText = (): Answer => ({
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
    body: metrics.format(health.isHealthy()),
  });
  const ask = () => ({ now: host.now(), lastSuccess, families: known });
  const healthz = () => answerHealthz(ask(), health.isHealthy());
  const livez = () => answerLivez(ask(), health.isLive());
  const servers = [
    ...(options.metrics ? [createPageServer(options.metrics, { '/metrics': onText })] : []),
    ...(options.healthz ? [createPageServer(options.healthz, { '/healthz': healthz, '/livez': livez })] : []),
  ];

  /** Monitoring that fails does not stop the work. */
  async function publish(): Promise<void> {
    for (const server of servers) {
      const problem = await server.open();
      if (problem !== undefined) await reportWarning(problem, terminal);
    }
    if (options.metricsFile === undefined) return;
    try {
      replaceFile(options.metricsFile, metrics.format(health.isHealthy()));
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
      const begun = host.uptime();
      const round = await work();
      metrics.onRound(round, (host.uptime() - begun) / 1000, isGood());
      if (round.bundle) known = round.bundle.manifest.families;
      if (round.result === 'done') lastSuccess = host.now();
      await publish();
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
