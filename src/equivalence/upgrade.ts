import { nameSome } from '../base/join-words.ts';
import type { ServicePort } from '../cluster/model.ts';
import {
  announcedDefault,
  announcedEnds,
  endWords,
  kepLink,
  lastAnnounced,
  parseMinor,
  type Minor,
} from '../kube-proxy/announced.ts';
import { gateWords } from '../diagnostics/settings.ts';
import { findGateFaults, type GateFault } from '../kube-proxy/feature-gates.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  modeHistories,
  lastRelease,
  parseRelease,
  type Behaviour,
  type FeatureGates,
  type Release,
} from '../kube-proxy/releases.ts';
import type { Preparation } from './preparations.ts';

export interface Upgrade {
  readonly minor: Minor;
  /** The release itself, or the newest that kpc follows. */
  readonly release: Release;
}

/** Reads a release that kpc follows, or one with announcements; undefined for any other text. */
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
  /** Behaviours that end, unless a gate keeps them. */
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

/** What the announcements for a release ask for, with their sources. */
export function announcementsFor(
  setup: Setup,
  { minor, release }: Upgrade,
  { ended }: UpgradedSetup,
  servicePorts: readonly ServicePort[],
): readonly Preparation[] {
  const rows = findGateFaults(setup.gates, release).map(gateToLeaveOut);
  const title = modeFacts[setup.mode].title;
  if (ended.some((behaviour) => behaviour === modeHistories[setup.mode].needs)) {
    rows.push({
      what: `leave ${title} before the upgrade`,
      why: `it is ${endWords('ipvs-mode', minor)}`,
      check: 'kubectl get configmap -n kube-system kube-proxy -o yaml | grep mode:',
      isRequired: true,
    });
  }
  const users = [...new Set(servicePorts.filter(usesExternalIPs).map((port) => `${port.namespace}/${port.service}`))];
  if (ended.includes('external-ips') && users.length > 0) {
    rows.push({
      what: `give ${nameSome(users, 5)} another address, such as that of a load balancer (MetalLB, kube-vip) or a Gateway`,
      why: `externalIPs are ${endWords('external-ips', minor)}`,
      check:
        'kubectl get services -A -o jsonpath=\'{range .items[?(@.spec.externalIPs)]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}\'',
      isRequired: true,
    });
  }
  if (!setup.namesMode && minor >= announcedDefault.since) {
    rows.push({
      what: "set the mode in kube-proxy's configuration, or prepare for another",
      why: `the configuration sets none, which means ${announcedDefault.mode} from 1.${announcedDefault.since} on, and iptables before (announced: KEP-${announcedDefault.kep}, ${kepLink(announcedDefault.kep)})`,
      check: `mode: ${setup.mode}`,
      isRequired: false,
    });
  }
  return rows;
}

/** Feature gates with which no kube-proxy of the cluster would start after the upgrade. */
function gateToLeaveOut(fault: GateFault): Preparation {
  const words = gateWords(fault);
  const [why, help = ''] = typeof words === 'string' ? [words] : words;
  const what =
    fault.problem === 'needs'
      ? `in kube-proxy's feature gates, before the upgrade: ${help}`
      : `take ${fault.gate} out of kube-proxy's feature gates before the upgrade`;
  return {
    what,
    why,
    check: 'kubectl get configmap -n kube-system kube-proxy -o yaml | grep -A9 featureGates:',
    isRequired: true,
  };
}

function usesExternalIPs({ externalIPs, hasIgnoredExternalIPs }: ServicePort): boolean {
  return externalIPs.length > 0 || hasIgnoredExternalIPs === true;
}
