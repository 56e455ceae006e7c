import type { ServicePort } from '../../cluster/model.ts';
import { announcedDefault, announcedEnds, lastAnnounced, parseMinor, type Minor } from '../../kube-proxy/announced.ts';
import type { PreparationArguments } from '../../base/findings/equivalence.ts';
import type { Finding } from '../../base/findings/finding.ts';
import { findGateFaults } from '../../kube-proxy/feature-gates.ts';
import { type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  modeHistories,
  lastRelease,
  parseRelease,
  type Behaviour,
  type FeatureGates,
  type Release,
} from '../../kube-proxy/releases.ts';
import { prepare } from './preparations.ts';

export interface Upgrade {
  readonly minor: Minor;
  /** The release itself, or the newest that kpc follows. */
  readonly release: Release;
}

/** Reads a release that kpc follows or that has announcements; undefined for any other text. */
export function readUpgrade(text: string): Upgrade | undefined {
  const minor = parseMinor(text);
  if (minor === undefined || minor > lastAnnounced) return undefined;
  const release = parseRelease(text) ?? (minor > (parseMinor(lastRelease) ?? 0) ? lastRelease : undefined);
  return release && { minor, release };
}

export interface Setup {
  readonly mode: ProxyMode;
  /** Whether a flag or the configuration names the mode. */
  readonly namesMode: boolean;
  readonly gates: FeatureGates;
}

export interface UpgradedSetup {
  readonly mode: ProxyMode;
  /** Behaviours that end unless a gate keeps them. */
  readonly ended: readonly EndingBehaviour[];
}

type EndingBehaviour = keyof typeof announcedEnds;

/** Applies an upgrade to a setup: the default mode may change, and behaviours end unless their gate keeps them. */
export function setupAfter({ mode, namesMode, gates }: Setup, { minor }: Upgrade): UpgradedSetup {
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

/** What the announcements for a release require, with their sources. */
export function announcementsFor(
  setup: Setup,
  { minor, release }: Upgrade,
  { ended }: UpgradedSetup,
  servicePorts: readonly ServicePort[],
): readonly Finding[] {
  const rows: PreparationArguments[] = findGateFaults(setup.gates, release).map((fault) => ({ step: 'gate', fault }));
  const { mode, namesMode } = setup;
  if (ended.some((behaviour) => behaviour === modeHistories[mode].needs)) {
    rows.push({ step: 'leave-mode', mode, minor });
  }
  const users = [...new Set(servicePorts.filter(usesExternalIPs).map((port) => `${port.namespace}/${port.service}`))];
  if (ended.includes('external-ips') && users.length > 0) {
    rows.push({ step: 'replace-external-ips', services: users, minor });
  }
  if (!namesMode && minor >= announcedDefault.since) rows.push({ step: 'set-mode', mode });
  return rows.map(prepare);
}

function usesExternalIPs({ externalIPs, hasIgnoredExternalIPs }: ServicePort): boolean {
  return externalIPs.length > 0 || hasIgnoredExternalIPs === true;
}
