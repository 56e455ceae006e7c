import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { applyBundle, markBundle } from '../../apply/change/apply-bundle.ts';
import { isDone, type Session } from '../../apply/change/observe-node.ts';
import { explainError, Failure } from '../../apply/state/failure.ts';
import { joinHostPort } from '../../kernel/address.ts';
import { notingRound } from '../../apply/state/last-command.ts';
import { withLock } from '../../apply/state/lock.ts';
import { readAddresses } from '../../apply/node/node-reading.ts';
import { readJson, writeJson } from '../../apply/state/record.ts';
import { assertTrustedState } from '../../apply/state/trusted-files.ts';
import { createWatch } from '../../apply/change/watch.ts';
import type { Round } from '../../apply/monitor/metrics.ts';
import type { ListenAddresses } from '../../apply/monitor/serve-ports.ts';
import { mapOf, objectOf, text } from '../../base/json-shape.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { knownNames } from '../../bundle/folder.ts';
import { nodeOfBundle } from '../../bundle/manifest.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { addressesIn, nodePortNetworks } from '../../cluster/node-port-addresses.ts';
import type { Family } from '../../kernel/family.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import type { Host } from '../../apply/node/host.ts';
import { loadBundleToApply } from '../../apply/open/load-bundle.ts';
import { reportOutcome } from './apply-command.ts';
import { openSession, reportFailure, reportWarning } from './environment.ts';
import { applyFlags, defineCommand, type Options } from './options.ts';
import { BundleSource } from '../../apply/open/bundle-source.ts';
import { type Terminal, exitStatus } from '../shared/terminal.ts';

export const watch = defineCommand({
  name: 'watch',
  description: 'Apply a bundle and keep the node that way: repair drift, apply new bundles, answer health checks.',
  bundle: '<bundle>',
  flags: ['syncPeriod', 'minSyncPeriod', ...applyFlags, 'metrics', 'metricsFile', 'healthz', 'logFormat'],
  /** Runs until SIGTERM or SIGINT; SIGHUP asks for a sync as soon as minSyncPeriod allows. */
  async run(options, environment, path) {
    const { host, terminal } = environment;
    assertTwoAddresses(options);
    const said = new Set<string>();
    const stopping = new AbortController();
    const session = await openSession(environment, { ...options, mayChange: true, signal: stopping.signal });
    const bundle = watchBundle(path, session, new BundleSource(path, options, environment), terminal);
    // Only this command needs Node's module for sockets.
    const { createWatchMonitor } = await import('../../apply/monitor/watch-monitor.ts');
    const monitor = createWatchMonitor(options, {
      host,
      // Each once: a port that is taken is tried again in each round.
      warn: async (problem) => {
        if (said.size !== said.add(problem).size) await reportWarning(problem, terminal);
      },
      isHealthy: () => rounds.isHealthy(),
      isLive: () => rounds.isLive(),
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
    // The round under way is put back. What has caused the error may be gone with this process.
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

/** Throws a Failure if one address is to serve both. */
function assertTwoAddresses({ metrics, healthz }: Options<'metrics' | 'healthz'>): void {
  if (!metrics || metrics.port !== healthz?.port || metrics.host !== healthz.host) return;
  const both = `--metrics and --healthz are both ${joinHostPort(metrics.host, metrics.port)}`;
  throw new Failure('bad-usage', both, 'give each a port of its own');
}

async function syncOnce(
  watched: WatchedBundle,
  session: Session,
  options: Options<'adopt' | 'assumeAlone' | 'drainTimeout' | 'force' | 'ipvsExcludeCidrs'>,
  terminal: Terminal,
): Promise<Round> {
  const { host, folder } = session;
  try {
    // A watch runs for months: who may change its folder does not stay as it was at the start.
    // Test: watch looks in each round who may change its state folder.
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
    const listenOn = await chooseListenAddresses(host, bundle);
    if (isDone(outcome)) await watched.keep();
    return { isGood: !problem, bundle: { mark, manifest, listenOn }, outcome };
  } catch (error) {
    // Whatever it was, it may have passed by the next time.
    const failure = explainError(error);
    await reportFailure(failure, terminal);
    return { isGood: watched.problem() === undefined, failure };
  }
}

/** All addresses of a family, or those of the node that --nodeport-addresses names, as for node ports themselves. */
async function chooseListenAddresses(host: Host, { manifest }: StoredBundle): Promise<ListenAddresses> {
  const node = nodeOfBundle(manifest);
  const choose = async (family: Family, everywhere: string): Promise<readonly string[]> => {
    const networks = nodePortNetworks(manifest.settings, node, family);
    if (networks.matchesAll) return [everywhere];
    const { links } = parseIpAddrJson(await readAddresses(host));
    const hostAddresses = links.flatMap((link) => link.addresses).map(({ address }) => address);
    return addressesIn(networks, { hostAddresses }).map((address) => address.text);
  };
  return { ipv4: await choose('ipv4', '0.0.0.0'), ipv6: await choose('ipv6', '::') };
}

/**
 * The last good bundle as stored in the state folder: its files, which are checked like any other bundle's, and the
 * folder that it was read from. Another folder's last good bundle is not used.
 */
const keptShape = objectOf({ folder: text, files: mapOf(text) });

/** A bundle that may be replaced or damaged at any time. */
type WatchedBundle = ReturnType<typeof watchBundle>;

/** Follows the bundle in a folder. Reports a problem once, and once that the bundle is good again. */
function watchBundle(path: string, { host, folder }: Session, source: BundleSource, terminal: Terminal) {
  const kept = `${folder.path}/last-good-bundle.json`;
  const whole = resolve(path);
  let good: StoredBundle | undefined;
  let keptManifest: string | undefined;
  let wrong: Failure | undefined;

  async function recall(): Promise<StoredBundle | undefined> {
    const stored = await readJson(host, kept, keptShape, 'remove it');
    if (stored?.folder !== whole) return undefined;
    return loadBundleToApply(kept, () => source.check(new Map(Object.entries(stored.files))));
  }

  async function complain(failure: Failure): Promise<void> {
    if (wrong?.message === failure.message) return;
    wrong = failure;
    await reportFailure(failure, terminal);
    const what = good
      ? 'the node stays on the last good bundle until there is a new good one'
      : 'no good bundle is known: the node is left as it is until there is one';
    await reportWarning(what, terminal);
  }

  return {
    /** The bundle's absolute path. */
    path: whole,
    /** Returns the bundle, or the last good one if it is damaged or missing; undefined if none was ever good. */
    async read(): Promise<StoredBundle | undefined> {
      try {
        good = await loadBundleToApply(path, () => source.read(), good);
        if (wrong) await terminal.err(`${path} is a good bundle again\n`);
        wrong = undefined;
      } catch (error) {
        // If the stored bundle is bad too, still report the problem of the bundle itself.
        good ??= await recall().catch(() => undefined);
        await complain(explainError(error));
      }
      return good;
    },
    /** Why the last good bundle is used instead; undefined if the bundle is good. */
    problem: (): Failure | undefined => wrong,
    serial: () => source.serial(),
    /** Stores the bundle that was read last, for later watches: it has been applied. */
    async keep(): Promise<void> {
      await source.remember();
      const files = good?.files;
      // The manifest has the checksums of all other files.
      const manifest = files?.get('manifest.json');
      if (!files || manifest === keptManifest) return;
      keptManifest = manifest;
      await writeJson(host, kept, { folder: whole, files: Object.fromEntries(files) }).catch((error: unknown) =>
        reportWarning(`the bundle cannot be kept for the next watch: ${describeError(error)}`, terminal),
      );
    },
  };
}

async function statOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}

/** Returns a value that changes with any file of a bundle; '' if there is none. Does not read the files. */
async function readBundleVersion(path: string): Promise<string> {
  try {
    // The names of a bundle, not those of the folder: another user may have put one of any size in the place of a pack.
    const names = (await stat(path)).isFile() ? [''] : [...knownNames].toSorted();
    const found = await Promise.all(names.map((name) => statOf(join(path, name))));
    return found.map((each, i) => `${names[i]} ${each}`).join('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return '';
    throw error;
  }
}
