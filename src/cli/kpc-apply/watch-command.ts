import { Option, type Command } from 'commander';
import { applyBundle, markBundle } from '../../apply/change/apply-bundle.ts';
import { explainError } from '../../apply/state/failure.ts';
import type { HealthServers, ListenAddresses } from '../../apply/change/serve-health-checks.ts';
import { notingRound } from '../../apply/state/last-command.ts';
import { withLock } from '../../apply/state/lock.ts';
import { readAddresses } from '../../apply/node/node-reading.ts';
import { stateFolder } from '../../apply/state/record.ts';
import { recallSettled } from '../../apply/quick/small-change.ts';
import type { MonitorOptions } from '../../apply/monitor/watch-monitor.ts';
import { createWatch } from '../../apply/change/watch.ts';
import type { Round } from '../../apply/monitor/metrics.ts';
import { nodeOfBundle } from '../../bundle/manifest.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { addressesIn, nodePortNetworks } from '../../cluster/node-port-addresses.ts';
import type { Family } from '../../kernel/family.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import type { Host } from '../../apply/node/host.ts';
import { choicesOf, reportOutcome } from './apply-command.ts';
import { openSession, reportFailure, reportWarning, type ApplyEnvironment, type NodeOptions } from './environment.ts';
import {
  addLogOption,
  addClaimOptions,
  addStateOption,
  addTrustOption,
  drainOption,
  periodOption,
  addMonitorOptions,
  type ClaimOptions,
  type TrustOptions,
} from './options.ts';
import { openSource } from './bundle-source.ts';
import { readBundleVersion, watchBundle, type WatchedBundle } from './watched-bundle.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';

interface WatchOptions extends NodeOptions, ClaimOptions, TrustOptions, MonitorOptions {
  readonly syncPeriod: number;
  readonly minSyncPeriod: number;
  readonly drainTimeout?: number;
  readonly force: boolean;
}

export function addWatchCommand(program: Command, environment: ApplyEnvironment, done: Done): void {
  const command = program
    .command('watch')
    .description('Apply a bundle and keep the node that way: repair drift, apply new bundles, answer health checks.')
    .argument('<bundle>', 'its folder or pack')
    .addOption(periodOption('--sync-period <duration>', 'how often to check the node', '30s'))
    .addOption(periodOption('--min-sync-period <duration>', 'apply at most once in this time', '1s'))
    .addOption(drainOption())
    .addOption(new Option('--force', 'continue even if doctor finds an error').default(false, 'no'));
  addLogOption(addMonitorOptions(addStateOption(addTrustOption(addClaimOptions(command)))));
  command.action(async (folder: string, options: WatchOptions) => done(await runWatch(folder, options, environment)));
}

/** Runs until SIGTERM or SIGINT; SIGHUP asks for a look at once. */
async function runWatch(folder: string, options: WatchOptions, around: ApplyEnvironment): Promise<ExitStatus> {
  const stopping = new AbortController();
  const { signal } = stopping;
  // A tool that hangs must not keep the watch from ending.
  const host: Host = { ...around.host, run: (command, patience) => around.host.run(command, { signal, ...patience }) };
  // No other command needs Node's HTTP.
  const { createWatchMonitor } = await import('../../apply/monitor/watch-monitor.ts');
  const monitor = createWatchMonitor(options, {
    host,
    warn: (problem) => reportWarning(problem, around.terminal),
    isHealthy: () => watch.isHealthy(),
    isLive: () => watch.isLive(),
  });
  const onEvent: ApplyEnvironment['onEvent'] = (event) => {
    around.onEvent?.(event);
    monitor.onEvent(event);
  };
  const environment = { ...around, host, onEvent };
  const source = openSource(folder, options, environment);
  const bundle = watchBundle(folder, { ...environment, source, folder: stateFolder(options.stateDir) });
  const watch = createWatch({
    host,
    syncPeriod: options.syncPeriod,
    minSyncPeriod: options.minSyncPeriod,
    readVersion: () => readBundleVersion(folder),
    sync: async () => {
      const work = () => syncOnce(bundle, folder, options, environment, servers, signal);
      return (await monitor.round(work, () => bundle.problem() === undefined)).result;
    },
    warn: (problem) => reportWarning(problem, environment.terminal),
  });
  const { createHealthServers } = await import('../../apply/change/serve-health-checks.ts');
  const servers = createHealthServers(watch.isHealthy);
  const stop = () => {
    watch.stop();
    stopping.abort();
  };
  const wake = () => watch.wake();
  process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', wake);
  try {
    await watch.run();
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop).off('SIGHUP', wake);
    await Promise.all([servers.close(), monitor.close()]);
  }
  return exitStatus.ok;
}

async function syncOnce(
  watched: WatchedBundle,
  folder: string,
  options: WatchOptions,
  environment: ApplyEnvironment,
  servers: HealthServers,
  signal: AbortSignal,
): Promise<Round> {
  const { host, terminal } = environment;
  try {
    // In nftables mode the kernel says at once that nothing has changed, and to list the tables takes seconds. In other modes each
    // look is at everything.
    const settled = await recallSettled(host, stateFolder(options.stateDir));
    const known = settled?.nftables ? settled : undefined;
    const bundle = await watched.read(known?.bundle);
    if (!bundle) return { result: 'failed', failure: watched.problem() };
    const mark = markBundle(bundle, watched.path);
    const session = openSession(environment, options, signal);
    const outcome = await notingRound(session, mark, () =>
      withLock(host, options.stateDir, `watch ${folder}`, () =>
        applyBundle(session, bundle, {
          ...choicesOf('watch', watched.path, options),
          settling: bundle.files?.has('nftables.nft') ? { known } : undefined,
        }),
      ),
    );
    if (outcome.kind !== 'unchanged') await reportOutcome(outcome, terminal);
    const problems = await servers.update(bundle.manifest, await chooseListenAddresses(host, bundle));
    for (const problem of problems) await reportWarning(problem, terminal);
    const round = { bundle: { mark, manifest: bundle.manifest }, outcome };
    if (outcome.kind !== 'unchanged' && outcome.kind !== 'changed') return { result: 'failed', ...round };
    await watched.keep();
    return { result: 'done', ...round };
  } catch (error) {
    // Whatever it was, it may have passed by the next time.
    const failure = explainError(error);
    await reportFailure(failure, terminal);
    return { result: 'failed', failure };
  }
}

/** All addresses of a family, or those of the node that --nodeport-addresses names, as for node ports themselves. */
async function chooseListenAddresses(host: Host, { manifest }: StoredBundle): Promise<ListenAddresses> {
  const node = nodeOfBundle(manifest);
  const networksOf = (family: Family) => nodePortNetworks(manifest.settings, node, family);
  const networks = { ipv4: networksOf('ipv4'), ipv6: networksOf('ipv6') };
  const everywhere = { ipv4: ['0.0.0.0'], ipv6: ['::'] };
  if (networks.ipv4.matchesAll && networks.ipv6.matchesAll) return everywhere;
  const { links } = parseIpAddrJson(await readAddresses(host));
  const hostAddresses = links.flatMap((link) => link.addresses).map(({ address }) => address);
  const choose = (family: Family) =>
    networks[family].matchesAll
      ? everywhere[family]
      : addressesIn(networks[family], { hostAddresses }).map((address) => address.text);
  return { ipv4: choose('ipv4'), ipv6: choose('ipv6') };
}
