import type { ServicePort } from '../cluster/model.ts';
import { quote } from '../base/printable.ts';
import { announcedEnds, lastAnnounced } from '../kube-proxy/announced.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  isModeOf,
  parseRelease,
  releaseRange,
  releases,
  type FeatureGates,
  type Release,
} from '../kube-proxy/releases.ts';
import type { Preparation } from './preparations.ts';
import { announcementsFor, readUpgrade, setupAfter } from './upgrade.ts';

/** What a user asks of a change. */
export interface AskedChange {
  readonly from?: ProxyMode | undefined;
  readonly to?: ProxyMode | undefined;
  readonly toKubernetesVersion?: string | undefined;
}

/** What the input says of kube-proxy before the change. */
export interface SetupBefore {
  readonly mode: ProxyMode;
  /** Whether a flag or a configuration names the mode. */
  readonly isModeNamed: boolean;
  readonly gates: FeatureGates;
  /** The release by which the side before is compiled, if one is named. */
  readonly version: string | undefined;
  readonly servicePorts: readonly ServicePort[];
}

/** One side of a change: its name in the summary, and the flags that produce it. `gates` come after those of the user. */
export interface ChangedSide {
  readonly words: string;
  readonly proxyMode: ProxyMode;
  readonly kubernetesVersion?: Release;
  readonly gates?: readonly string[];
}

export type Change =
  | {
      readonly kind: 'change';
      readonly from: ChangedSide;
      readonly to: ChangedSide;
      readonly announced: readonly Preparation[];
    }
  | { readonly kind: 'refused'; readonly what: string; readonly help: string };

/** Chooses the sides: two modes, or a setup before and after an upgrade. */
export function planChange(asked: AskedChange, before: SetupBefore): Change {
  if (asked.toKubernetesVersion === undefined) return planMode(asked, before);
  const upgrade = readUpgrade(asked.toKubernetesVersion);
  if (!upgrade) {
    const what = `--to-kubernetes-version ${quote(asked.toKubernetesVersion)} is no release from ${releases[0]} to 1.${lastAnnounced}`;
    const help = `kpc follows ${releaseRange}, and knows what is announced up to 1.${lastAnnounced}`;
    return { kind: 'refused', what, help };
  }
  // Without a configuration kpc compiles for IPVS mode, but a kube-proxy without one is in iptables mode.
  const namesMode = asked.from !== undefined || before.isModeNamed;
  const mode = asked.from ?? (namesMode ? before.mode : 'iptables');
  const setup = { mode, namesMode, gates: before.gates };
  const after = setupAfter(setup, upgrade);
  const modeAfter = asked.to ?? after.mode;
  if (!isModeOf(modeAfter, upgrade.release)) {
    const what = `kpc does not follow ${modeFacts[modeAfter].title} of Kubernetes 1.${upgrade.minor}`;
    return { kind: 'refused', what, help: 'name the mode afterwards with --to' };
  }
  const from = before.version === undefined || before.version === 'auto' ? '' : `${before.version} `;
  return {
    kind: 'change',
    from: { words: `${from}${mode}`, proxyMode: mode },
    to: {
      words: `1.${upgrade.minor} ${modeAfter}`,
      proxyMode: modeAfter,
      kubernetesVersion: upgrade.release,
      ...(after.ended.includes('external-ips') ? { gates: [`${announcedEnds['external-ips'].gate}=false`] } : {}),
    },
    announced: announcementsFor(setup, upgrade, after, before.servicePorts),
  };
}

function planMode({ from: asked, to = 'nftables' }: AskedChange, { mode, version = '' }: SetupBefore): Change {
  const from = asked ?? mode;
  const release = parseRelease(version);
  if (release && !isModeOf(to, release)) {
    const what = `kpc does not follow ${modeFacts[to].title} of Kubernetes ${release}`;
    return { kind: 'refused', what, help: 'name the release afterwards with --to-kubernetes-version' };
  }
  if (from === to) {
    const what = asked ? `--from and --to are both ${from}` : `kube-proxy is in ${from} mode already`;
    return { kind: 'refused', what, help: 'name two modes with --from and --to' };
  }
  const side = (proxyMode: ProxyMode): ChangedSide => ({ words: proxyMode, proxyMode });
  return { kind: 'change', from: side(from), to: side(to), announced: [] };
}

/** What to do before a change, the required first: what is announced, and what the nodes need. */
export function sortPreparations(preparations: readonly Preparation[]): readonly Preparation[] {
  return preparations.toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

/** The flags that make a side of a change, with the user's feature gates. */
export function flagsOfChange(
  { proxyMode, kubernetesVersion, gates }: ChangedSide,
  { featureGates = [] }: { readonly featureGates?: string | readonly string[] | undefined },
): { readonly proxyMode: ProxyMode; readonly kubernetesVersion?: Release; readonly featureGates?: string } {
  return {
    proxyMode,
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
    ...(gates === undefined
      ? {}
      : { featureGates: [...[featureGates].flat().filter((gate) => gate !== ''), ...gates].join(',') }),
  };
}
