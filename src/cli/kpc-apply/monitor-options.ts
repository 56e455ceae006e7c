import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ListenAddress } from '../../apply/monitor/serve-pages.ts';
import { parseSocketAddress } from '../../kernel/socket-address.ts';

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
