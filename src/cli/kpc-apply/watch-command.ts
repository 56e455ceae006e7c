import { applyBundle, markBundle } from '../../apply/change/apply-bundle.ts';
import { isDone, type Session } from '../../apply/change/observe-node.ts';
import { explainError, Failure } from '../../apply/state/failure.ts';
import { joinHostPort } from '../../kernel/address.ts';
import { notingRound } from '../../apply/state/last-command.ts';
import { withLock } from '../../apply/state/lock.ts';
import { assertTrustedState } from '../../apply/state/trusted-files.ts';
import { createWatch } from '../../apply/change/watch.ts';
import type { Round } from '../../apply/monitor/metrics.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, reportFailure, reportWarning, type ApplyTerminal } from './environment.ts';
import { applyFlags, defineApplyCommand, type Options } from './options.ts';
import { bundleSource, readBundleVersion, watchBundle } from '../../apply/open/load-bundle.ts';
import { describeRound } from '../../say/apply-outcomes.ts';
import { exitStatus } from '../shared/terminal.ts';

export const watch = defineApplyCommand({
  name: 'watch',
  description: 'Apply a bundle and keep the node that way: repair drift, apply new bundles, answer health checks.',
  bundle: '<bundle>',
  flags: ['syncPeriod', 'minSyncPeriod', ...applyFlags, 'metrics', 'metricsFile', 'healthz', 'logFormat'],
  /** Runs until SIGTERM or SIGINT. SIGHUP asks for a sync as soon as minSyncPeriod allows. */
  async run(options, environment, path) {
    const { host, terminal } = environment;
    assertTwoAddresses(options);
    const said = new Set<string>();
    const stopping = new AbortController();
    const session = await openSession(environment, { ...options, mayChange: true, signal: stopping.signal });
    const bundle = watchBundle(path, session, bundleSource(path, options, environment), {
      refused: (failure) => reportFailure(failure, terminal),
      warn: (problem) => reportWarning(problem, terminal),
      note: terminal.note,
    });
    // This module is loaded only here, because no other command needs Node's module for sockets.
    const { createWatchMonitor } = await import('../../apply/monitor/watch-monitor.ts');
    const monitor = createWatchMonitor(options, {
      host,
      // A port that is in use gives only one warning, although every round tries it again.
      warn: async (problem) => {
        if (said.size !== said.add(JSON.stringify(problem)).size) await reportWarning(problem, terminal);
      },
      isHealthy: () => rounds.isHealthy(),
      isLive: () => rounds.isLive(),
      describe: describeRound,
    });
    const rounds = createWatch({
      ...options,
      host,
      readVersion: () => readBundleVersion(path),
      sync: () => monitor.round(() => syncOnce(bundle, session, options, terminal)),
    });
    const stop = () => {
      rounds.stop();
      stopping.abort();
    };
    // The watch stops, which rolls the current round back. A new process may not meet the error again.
    environment.fault?.addEventListener(
      'abort',
      () => {
        rounds.stop();
        stopping.abort(environment.fault?.reason);
      },
      { once: true },
    );
    process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', rounds.wake);
    try {
      await rounds.run();
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop).off('SIGHUP', rounds.wake);
      await monitor.close();
    }
    return exitStatus.ok;
  },
});

function assertTwoAddresses({ metrics, healthz }: Options<'metrics' | 'healthz'>): void {
  if (!metrics || metrics.port !== healthz?.port || metrics.host !== healthz.host) return;
  throw new Failure('bad-usage', { problem: 'one-port', socket: joinHostPort(metrics.host, metrics.port) });
}

async function syncOnce(
  watched: ReturnType<typeof watchBundle>,
  session: Session,
  options: Options<'adopt' | 'assumeAlone' | 'drainTimeout' | 'force' | 'ipvsExcludeCidrs'>,
  terminal: ApplyTerminal,
): Promise<Round> {
  const { host, folder } = session;
  try {
    // Check in each round, because a watch runs for months and the folder's permissions may change. Test: apply/trust.test.ts.
    await assertTrustedState(host, folder.base);
    const bundle = await watched.read();
    const problem = watched.problem();
    if (!bundle) return { isGood: false, failure: problem };
    const origin = { kind: 'watch', folder: watched.path, serial: watched.serial() } as const;
    const mark = markBundle(bundle, origin);
    const outcome = await notingRound(session, mark, () =>
      withLock(host, folder.base, `watch ${watched.path}`, () => applyBundle(session, bundle, { ...options, origin })),
    );
    if (outcome.kind !== 'unchanged') await reportOutcome(outcome, terminal);
    const { manifest } = bundle;
    const { chooseListenAddresses } = await import('../../apply/monitor/serve-ports.ts');
    const listenOn = await chooseListenAddresses(host, manifest);
    if (isDone(outcome)) await watched.keep();
    return { isGood: !problem, bundle: { mark, manifest, listenOn }, outcome };
  } catch (error) {
    // The watch goes on after any error, because the next round may succeed.
    const failure = explainError(error);
    await reportFailure(failure, terminal);
    return { isGood: watched.problem() === undefined, failure };
  }
}
