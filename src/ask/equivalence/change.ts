import type { ArgumentsOf } from '../../base/findings/codes.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { announcedEnds } from '../../kube-proxy/announced.ts';
import { modeFacts, modeFromWords, type ProxyMode } from '../../kube-proxy/modes.ts';
import { isModeOf, parseRelease, type FeatureGates, type Release } from '../../kube-proxy/releases.ts';
import { announcementsFor, readUpgrade, setupAfter } from './upgrade.ts';

/** The change that a user asks about. */
export interface AskedChange {
  readonly from?: ProxyMode | undefined;
  readonly to?: ProxyMode | undefined;
  readonly toKubernetesVersion?: string | undefined;
  readonly featureGates?: string | readonly string[] | undefined;
}

/** kube-proxy's setup before the change, according to the input. */
export interface SetupBefore {
  readonly settings: { readonly mode: ProxyMode };
  readonly gates: FeatureGates;
  readonly cluster: { readonly servicePorts: readonly ServicePort[] };
  /** Which mode was chosen, and why: `default-mode` if neither a flag nor a configuration names it. */
  readonly modeNote: Finding | undefined;
  /** The release to compile the old side for, if one is named. */
  readonly version: string | undefined;
}

/** One side of a change: its name in the summary, and the options that produce it. */
interface ChangedSide {
  readonly words: string;
  readonly options: {
    readonly proxyMode: ProxyMode;
    readonly kubernetesVersion?: Release;
    /** The user's gates, and those that the change turns off. */
    readonly featureGates?: readonly string[];
    /** Drops gates that would keep kube-proxy from starting: the preparations name them. */
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
      /** Follows the old mode if nothing names it; otherwise ''. */
      readonly modeFrom: string;
    }
  | { readonly kind: 'refused'; readonly why: ArgumentsOf<'bad-call'> };

/** Chooses the sides: two modes, or a setup before and after an upgrade. */
export function planChange(asked: AskedChange, before: SetupBefore): Change {
  if (asked.toKubernetesVersion === undefined) return planMode(asked, before);
  const upgrade = readUpgrade(asked.toKubernetesVersion);
  if (!upgrade) return refused({ problem: 'no-release', release: asked.toKubernetesVersion });
  // Without a configuration kpc compiles for IPVS mode, but kube-proxy runs in iptables mode.
  const { settings, gates, cluster } = before;
  const unnamed = unnamedBy(asked, before);
  const namesMode = unnamed === undefined;
  const mode = asked.from ?? (namesMode ? settings.mode : 'iptables');
  const setup = { mode, namesMode, gates };
  const after = setupAfter(setup, upgrade);
  const modeAfter = asked.to ?? after.mode;
  if (!isModeOf(modeAfter, upgrade.release))
    return refused({
      problem: 'unknown-mode',
      mode: modeFacts[modeAfter].title,
      release: `1.${upgrade.minor}`,
      by: 'mode',
    });
  const from = before.version === undefined || before.version === 'auto' ? '' : `${before.version} `;
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

function refused(why: ArgumentsOf<'bad-call'>): Change {
  return { kind: 'refused', why };
}

/** What there was to name the mode before a change, if nothing did. */
function unnamedBy({ from }: AskedChange, { modeNote }: SetupBefore) {
  return from === undefined && modeNote?.code === 'default-mode' ? modeNote.arguments.named : undefined;
}

function planMode(change: AskedChange, before: SetupBefore): Change {
  const { from: asked, to = 'nftables' } = change;
  const { settings, version = '' } = before;
  const from = asked ?? settings.mode;
  const release = parseRelease(version);
  if (release && !isModeOf(to, release))
    return refused({ problem: 'unknown-mode', mode: modeFacts[to].title, release, by: 'release' });
  if (from === to) return refused({ problem: 'same-mode', mode: from, isNamed: asked !== undefined });
  const unnamed = unnamedBy(change, before);
  return {
    kind: 'change',
    from: { words: from, options: { proxyMode: from, isModeUnnamed: unnamed === 'nothing' } },
    to: { words: to, options: { proxyMode: to } },
    announced: [],
    modeFrom: modeFromWords(unnamed),
  };
}

/** What to do before a change, required steps first: from announcements, and for the nodes. */
export function sortPreparations(preparations: readonly Finding[]): readonly Finding[] {
  return preparations.toSorted((a, b) => Number(isRequired(b)) - Number(isRequired(a)));
}

export function isRequired({ severity }: Finding): boolean {
  return severity !== 'note';
}
