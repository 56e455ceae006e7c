import type { ArgumentsOf } from '../../base/findings/codes.ts';
import type { Finding } from '../../base/findings/finding.ts';
import { serviceName, type ServicePort } from '../../cluster/model.ts';
import type { Node } from '../../cluster/objects.ts';
import { announcedEnds, announcedDefault, lastAnnounced, parseMinor, type Minor } from '../../kube-proxy/announced.ts';
import { modeFromWords, type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  isModeOf,
  parseRelease,
  modeHistories,
  lastRelease,
  type FeatureGates,
  type Release,
  type Behaviour,
} from '../../kube-proxy/releases.ts';
import type { PreparationArguments } from '../../base/findings/equivalence.ts';
import { findGateFaults } from '../../kube-proxy/feature-gates.ts';
import { diagnosePreparation } from './preparations.ts';

export interface AskedChange {
  readonly from?: ProxyMode | undefined;
  readonly to?: ProxyMode | undefined;
  readonly toKubernetesVersion?: string | undefined;
  readonly featureGates?: string | readonly string[] | undefined;
  /** The only Node that changes. */
  readonly node?: string | undefined;
}

export interface SetupBefore {
  readonly settings: { readonly mode: ProxyMode };
  readonly gates: FeatureGates;
  readonly cluster: { readonly servicePorts: readonly ServicePort[] };
  /** The chosen mode and why; `default-mode` if neither a flag nor a configuration names a mode. */
  readonly modeNote: Finding | undefined;
  readonly version: string | undefined;
  readonly nodes: ReadonlyMap<string, Pick<Node, 'kubernetesVersion'>>;
}

interface ChangedSide {
  readonly words: string;
  readonly options: {
    readonly proxyMode: ProxyMode;
    readonly kubernetesVersion?: Release;
    readonly featureGates?: readonly string[];
    /** Drops gates that would keep kube-proxy from starting, because the preparations already name them. */
    readonly refusedGates?: 'left-out';
    readonly isModeUnnamed?: boolean;
  };
}

export type Change =
  | {
      readonly kind: 'change';
      readonly from: ChangedSide;
      readonly to: ChangedSide;
      readonly announced: readonly Finding[];
      /** Text after the old mode, if nothing names that mode; otherwise ''. */
      readonly modeFrom: string;
    }
  | { readonly kind: 'refused'; readonly why: ArgumentsOf<'bad-call'> };

/** Returns why a change is impossible for any input; undefined if it may be possible. `version`: the old release, if a flag names one. */
export function findWrongChange(
  { from, to = 'nftables', toKubernetesVersion }: AskedChange,
  version: string | undefined,
): ArgumentsOf<'bad-call'> | undefined {
  if (toKubernetesVersion !== undefined)
    return readUpgrade(toKubernetesVersion) ? undefined : { problem: 'no-release', release: toKubernetesVersion };
  const release = parseRelease(version ?? '');
  if (release && !isModeOf(to, release)) return { problem: 'unknown-mode', mode: to, release, by: 'release' };
  return from === to ? { problem: 'same-mode', mode: from, isNamed: true } : undefined;
}

export function planChange(asked: AskedChange, before: SetupBefore): Change {
  const wrong = findWrongChange(asked, before.version);
  if (wrong) return refusedChange(wrong);
  const upgrade = readUpgrade(asked.toKubernetesVersion);
  if (!upgrade) return planMode(asked, before);
  // Without a configuration kpc compiles for IPVS mode, but kube-proxy runs in iptables mode.
  const { settings, gates, cluster } = before;
  const unnamed = unnamedBy(asked, before);
  const namesMode = unnamed === undefined;
  const mode = asked.from ?? (namesMode ? settings.mode : 'iptables');
  const setup = { mode, namesMode, gates };
  const after = setupAfter(setup, upgrade);
  const modeAfter = asked.to ?? after.mode;
  if (!isModeOf(modeAfter, upgrade.release))
    return refusedChange({ problem: 'unknown-mode', mode: modeAfter, release: `1.${upgrade.minor}`, by: 'mode' });
  const run = releasesBefore(asked, before);
  const from = run.length === 1 ? `${run.join()} ` : '';
  return {
    kind: 'change',
    from: { words: `${from}${mode}`, options: { proxyMode: mode, isModeUnnamed: unnamed === 'nothing' } },
    to: {
      words: `1.${upgrade.minor} ${modeAfter}`,
      options: {
        proxyMode: modeAfter,
        kubernetesVersion: upgrade.release,
        refusedGates: 'left-out',
        ...(after.ended.includes('external-ips')
          ? { featureGates: [asked.featureGates ?? [], `${announcedEnds['external-ips'].gate}=false`].flat() }
          : {}),
      },
    },
    announced: announcementsFor(setup, upgrade, after, cluster.servicePorts),
    modeFrom: namesMode ? '' : " (kube-proxy's default)",
  };
}

/** Returns the releases that a flag or the Nodes name. */
function releasesBefore({ node }: AskedChange, { version = 'auto', nodes }: SetupBefore): readonly string[] {
  if (version !== 'auto') return [version];
  const changed = [...nodes].filter(([name]) => node === undefined || name === node);
  return [...new Set(changed.flatMap(([, { kubernetesVersion }]) => parseRelease(kubernetesVersion) ?? []))];
}

function refusedChange(why: ArgumentsOf<'bad-call'>): Change {
  return { kind: 'refused', why };
}

function unnamedBy({ from }: AskedChange, { modeNote }: SetupBefore) {
  return from === undefined && modeNote?.code === 'default-mode' ? modeNote.arguments.named : undefined;
}

function planMode(change: AskedChange, before: SetupBefore): Change {
  const { from = before.settings.mode, to = 'nftables' } = change;
  if (from === to) return refusedChange({ problem: 'same-mode', mode: from, isNamed: false });
  for (const text of releasesBefore(change, before)) {
    const release = parseRelease(text);
    if (release && !isModeOf(from, release))
      return refusedChange({ problem: 'unknown-mode', mode: from, release, by: 'present-mode' });
    if (release && !isModeOf(to, release))
      return refusedChange({ problem: 'unknown-mode', mode: to, release, by: 'release' });
  }
  const unnamed = unnamedBy(change, before);
  return {
    kind: 'change',
    from: { words: from, options: { proxyMode: from, isModeUnnamed: unnamed === 'nothing' } },
    to: { words: to, options: { proxyMode: to } },
    announced: [],
    modeFrom: modeFromWords(unnamed),
  };
}

export function sortPreparations(preparations: readonly Finding[]): readonly Finding[] {
  return preparations.toSorted((a, b) => Number(isRequired(b)) - Number(isRequired(a)));
}

export function isRequired({ severity }: Finding): boolean {
  return severity !== 'note';
}

interface Upgrade {
  readonly minor: Minor;
  /** The release itself, or the newest that kpc follows. */
  readonly release: Release;
}

function readUpgrade(text: string | undefined): Upgrade | undefined {
  const minor = text === undefined ? undefined : parseMinor(text);
  if (text === undefined || minor === undefined || minor > lastAnnounced) return undefined;
  const release = parseRelease(text) ?? (minor > (parseMinor(lastRelease) ?? 0) ? lastRelease : undefined);
  return release && { minor, release };
}

interface ModeSetup {
  readonly mode: ProxyMode;
  readonly namesMode: boolean;
  readonly gates: FeatureGates;
}

interface UpgradedSetup {
  readonly mode: ProxyMode;
  readonly ended: readonly EndingBehaviour[];
}

type EndingBehaviour = keyof typeof announcedEnds;

/** Applies an upgrade to a setup. The default mode may change, and behaviours end unless their gate keeps them. */
function setupAfter({ mode, namesMode, gates }: ModeSetup, { minor }: Upgrade): UpgradedSetup {
  const ended = endingBehaviours.filter((behaviour) => {
    const { offIn, goneIn, gate } = announcedEnds[behaviour];
    return minor >= goneIn || (minor >= offIn && gates.get(gate) !== true);
  });
  const usual = namesMode || minor < announcedDefault.since ? mode : announcedDefault.mode;
  const needed: Behaviour | undefined = modeHistories[usual].needs;
  const isEnded = ended.some((behaviour) => behaviour === needed);
  return { mode: isEnded ? announcedDefault.mode : usual, ended };
}

const endingBehaviours = Object.keys(announcedEnds) as readonly EndingBehaviour[];

function announcementsFor(
  setup: ModeSetup,
  { minor, release }: Upgrade,
  { ended }: UpgradedSetup,
  servicePorts: readonly ServicePort[],
): readonly Finding[] {
  const rows: PreparationArguments[] = findGateFaults(setup.gates, release).map((fault) => ({ step: 'gate', fault }));
  const { mode, namesMode } = setup;
  if (ended.some((behaviour) => behaviour === modeHistories[mode].needs)) {
    rows.push({ step: 'leave-mode', mode, minor });
  }
  const users = [...new Set(servicePorts.filter(usesExternalIPs).map(serviceName))];
  if (ended.includes('external-ips') && users.length > 0) {
    rows.push({ step: 'replace-external-ips', services: users, minor });
  }
  if (!namesMode && minor >= announcedDefault.since) rows.push({ step: 'set-mode', mode });
  return rows.map(diagnosePreparation);
}

function usesExternalIPs({ externalIPs, hasIgnoredExternalIPs }: ServicePort): boolean {
  return externalIPs.length > 0 || hasIgnoredExternalIPs === true;
}
