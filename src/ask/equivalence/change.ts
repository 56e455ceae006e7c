import type { ArgumentsOf } from '../../base/findings/codes.ts';
import type { PreparationArguments } from '../../base/findings/equivalence.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { portAddresses, serviceName, type ServicePort } from '../../cluster/model.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import type { Node } from '../../cluster/objects.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { forwardingSysctls } from '../../kernel/sysctls-and-modules.ts';
import { announcedDefault, announcedEnds, lastAnnounced, type Minor, parseMinor } from '../../kube-proxy/announced.ts';
import { findGateFaults } from '../../kube-proxy/feature-gates.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { modeFacts, type ModeFacts, type ModeSource, type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  type Behaviour,
  type FeatureGates,
  isModeOf,
  lastRelease,
  modeHistories,
  parseRelease,
  type Release,
} from '../../kube-proxy/releases.ts';
import { defaultSettings } from '../../settings/table.ts';
import type { Scene } from '../trace/scene.ts';

export function preparationsFor(from: Scene, to: Scene): readonly Finding[] {
  const steps = [...(from.side.mode === to.side.mode ? [] : modeNeeds(from, to)), ...settingsLost(from, to)];
  return steps.map(diagnosePreparation);
}

function diagnosePreparation(details: PreparationArguments): Finding {
  return diagnose('preparation', details);
}

type Steps = readonly PreparationArguments[];

function modeNeeds(from: Scene, to: Scene): Steps {
  const nodes = to.side.objects.nodes.map(({ object }) => object);
  return [
    ...(from.side.mode && modeFacts[from.side.mode].kinds.has('links') ? answersLost(from, to) : []),
    ...((to.side.mode && neededBy[to.side.mode]?.(nodes)) ?? []),
    ...filtersLost(from, to),
    ...((from.side.mode && leftBehindBy[from.side.mode]?.(from, to)) ?? []),
  ];
}

const neededBy: { readonly [M in ProxyMode]?: (nodes: readonly Node[]) => Steps } = {
  nftables: (nodes) => [...kernelsNeeded(nodes), { step: 'nft-version' }, { step: 'kube-proxy-version' }],
};

/** Lists the filter table's rules that the new mode lacks, if the cluster has traffic that they affect. */
function filtersLost({ side: { mode: from, settings, ports } }: Scene, { side }: Scene): Steps {
  const { mode: to, settings: after } = side;
  if (!from || !to) return [];
  const checks = [...new Set(ports.flatMap(({ healthCheckNodePort: port }) => (port ? port : [])))];
  const isFromOutside = ports.some((port) => port.nodePort || portAddresses(port).length > 1);
  const rows: { readonly [F in ModeFacts['filters'][number]]: Steps } = {
    'health-checks': checks.length > 0 ? [{ step: 'accept-health-checks', from, to, ports: checks }] : [],
    forwarded: isFromOutside ? [{ step: 'accept-forwarded', from, to }] : [],
    invalid:
      ports.length === 0 || [settings, after].some((each) => each?.conntrack.tcpBeLiberal)
        ? []
        : [{ step: 'invalid-packets', from, to }],
  };
  const kept = new Set(modeFacts[to].filters);
  return modeFacts[from].filters.flatMap((filter) => (kept.has(filter) ? [] : rows[filter]));
}

/** The oldest kernel on which kube-proxy starts in nftables mode (nftables/proxier.go). */
const oldestKernel = [5, 13] as const;

function kernelsNeeded(nodes: readonly Node[]): Steps {
  const known = nodes.map(({ metadata: { name }, kernelVersion = '' }) => {
    const [, major, minor] = /^(\d{1,4})\.(\d{1,4})/.exec(kernelVersion) ?? [];
    const isOld =
      major !== undefined &&
      (Number(major) < oldestKernel[0] || (Number(major) === oldestKernel[0] && Number(minor) < oldestKernel[1]));
    return { name, kernelVersion, isOld, isKnown: major !== undefined };
  });
  const old = known.filter(({ isOld }) => isOld).map(({ name, kernelVersion }) => `${name} (${kernelVersion})`);
  if (old.length === 0 && known.length > 0 && known.every(({ isKnown }) => isKnown)) return [];
  return [{ step: 'kernel', oldest: oldestKernel.join('.'), nodes: old }];
}

const leftBehindBy: { readonly [M in ProxyMode]?: (from: Scene, to: Scene) => Steps } = {
  ipvs: ipvsLeft,
};

/**
 * Lists addresses for which nodes answer ARP requests only in IPVS mode, which puts these addresses on kube-ipvs0. In IPv4, Linux answers
 * on every link for the addresses of all links, unless strictARP forbids it. In IPv6, a link answers only for its own addresses. A Node's
 * own address is never lost.
 */
function answersLost(from: Scene, { side: { mode: to } }: Scene): Steps {
  const { side } = from;
  if (side.kind === 'dump' || side.settings.ipvs.strictARP) return [];
  const ofNodes = side.objects.nodes.flatMap(({ object }) => nodeAddresses(object).map(({ text }) => text));
  const own = new Set([...addressesOn(from.links), ...ofNodes]);
  const listAddresses = (kind: 'externalIPs' | 'loadBalancerIPs'): readonly string[] => {
    const all = side.cluster.servicePorts.flatMap((port) => port[kind]);
    return [...new Set(all.filter(({ family, text }) => family === 'ipv4' && !own.has(text)).map(({ text }) => text))];
  };
  const rows = [
    { step: 'announce-external-ips', addresses: listAddresses('externalIPs'), to },
    { step: 'announce-load-balancer-ips', addresses: listAddresses('loadBalancerIPs'), to },
  ] as const;
  return rows.filter(({ addresses }) => addresses.length > 0);
}

/** Lists settings whose value changes only because the new side does not set them. */
function settingsLost({ side: { settings: before, ports } }: Scene, { side: { settings: after } }: Scene): Steps {
  if (!before || !after) return [];
  const modes = { from: before.mode, to: after.mode };
  const usual = defaultSettings(after.mode);
  const rows = (['masqueradeAll', 'masqueradeBit'] as const)
    .filter((name) => before[name] !== after[name] && after[name] === usual[name])
    .map((name) => ({ step: 'masquerade-setting', ...modes, name, value: String(before[name]) }) as const);
  const [was = '', is = '', unset] = [before, after, usual].map(
    ({ nodePortAddresses }) => nodePortAddresses.join(', ') || 'all',
  );
  if (was === is || is !== unset || ports.every(({ nodePort }) => !nodePort)) return rows;
  return [...rows, { step: 'node-port-addresses', ...modes, was, is }];
}

function ipvsLeft({ side }: Scene, { side: { mode: to } }: Scene): Steps {
  const rows: PreparationArguments[] = side.families.map((family) => {
    const sysctl = forwardingSysctls[family];
    return { step: 'forwarding', sysctl, isSetBefore: modeFacts.ipvs.sysctls.includes(sysctl), to };
  });
  if (side.kind === 'dump') return rows;
  const { ipvs } = side.settings;
  const annotated = side.cluster.servicePorts.flatMap(({ scheduler }) => scheduler || []);
  rows.push({ step: 'scheduler', schedulers: [...new Set([ipvs.scheduler, ...annotated])], to });
  const seconds = [ipvs.tcpTimeout, ipvs.tcpFinTimeout, ipvs.udpTimeout];
  if (seconds.some((each) => each > 0)) rows.push({ step: 'timeouts', seconds });
  const addresses = side.state.links.find(({ name }) => name === serviceLink)?.addresses.length ?? 0;
  if (addresses > 0) rows.push({ step: 'bound-addresses', addresses, to });
  const [address] = side.cluster.servicePorts.map((port) => port.clusterIP.text);
  if (address !== undefined) rows.push({ step: 'route', address, to });
  if (ipvs.strictARP) rows.push({ step: 'strict-arp' });
  if (ipvs.excludeCIDRs.length > 0)
    rows.push({ step: 'excluded-networks', networks: ipvs.excludeCIDRs.map(String), to });
  return rows;
}

export interface AskedChange {
  readonly from?: ProxyMode | undefined;
  readonly to?: ProxyMode | undefined;
  readonly toKubernetesVersion?: string | undefined;
  /** The configuration after the change, in the form that the caller gives. */
  readonly toConfig?: unknown;
  readonly featureGates?: string | readonly string[] | undefined;
  /** The Node to change, if only one changes. */
  readonly node?: string | undefined;
}

interface Setup {
  readonly settings: { readonly mode: ProxyMode };
  readonly gates: FeatureGates;
  /** States the chosen mode and the reason for it. The code is `default-mode` if neither a flag nor a configuration names a mode. */
  readonly modeNote: Finding | undefined;
}

export interface SetupBefore extends Setup {
  readonly cluster: { readonly servicePorts: readonly ServicePort[] };
  readonly version: string | undefined;
  readonly nodes: ReadonlyMap<string, Pick<Node, 'kubernetesVersion'>>;
}

interface ChangedSide {
  readonly words: string;
  readonly options: {
    readonly proxyMode: ProxyMode;
    readonly kubernetesVersion?: Release | 'auto';
    readonly featureGates?: readonly string[];
    /** Drops gates that would keep kube-proxy from starting. The preparations already name these gates. */
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
      /** What set the old mode, if the user did not name it. */
      readonly modeFrom: ModeSource | undefined;
    }
  | { readonly kind: 'refused'; readonly why: ArgumentsOf<'bad-call'> };

/** Returns why a change is impossible, whatever the input; undefined if it may be possible. `version`: the old release, if given. */
export function findWrongChange(
  { from, toConfig, to = toConfig === undefined ? 'nftables' : undefined, toKubernetesVersion }: AskedChange,
  version: string | undefined,
): ArgumentsOf<'bad-call'> | undefined {
  if (toKubernetesVersion !== undefined)
    return readUpgrade(toKubernetesVersion) ? undefined : { problem: 'no-release', release: toKubernetesVersion };
  const release = parseRelease(version ?? '');
  if (to === undefined) return undefined;
  if (release && !isModeOf(to, release)) return { problem: 'unknown-mode', mode: to, release, by: 'release' };
  return from === to ? { problem: 'same-mode', mode: from, isNamed: true } : undefined;
}

/** Plans a change. `settled`: the settings that flags and `toConfig` give kube-proxy after the change, without a flag for the mode. */
export function planChange(asked: AskedChange, before: SetupBefore, settled: Setup = before): Change {
  const wrong = findWrongChange(asked, before.version);
  if (wrong) return refusedChange(wrong);
  const upgrade = readUpgrade(asked.toKubernetesVersion);
  const after = asked.toConfig === undefined ? undefined : settled;
  const change = upgrade
    ? planUpgrade(asked, before, { upgrade, gates: settled.gates, after })
    : planMode(asked, before, after);
  const named = after && namedBy(after);
  if (change.kind === 'refused' || named === undefined || named === change.to.options.proxyMode) return change;
  return refusedChange({ problem: 'other-mode', mode: named, to: change.to.options.proxyMode });
}

function namedBy({ settings, modeNote }: Setup): ProxyMode | undefined {
  return modeNote?.code === 'default-mode' ? undefined : settings.mode;
}

interface AskedUpgrade {
  readonly upgrade: Upgrade;
  readonly gates: FeatureGates;
  /** The setup that the new configuration describes, if there is one. */
  readonly after: Setup | undefined;
}

function planUpgrade(asked: AskedChange, before: SetupBefore, { upgrade, gates, after: own }: AskedUpgrade): Change {
  // If no configuration names a mode, kpc compiles for IPVS mode although kube-proxy would run in iptables mode.
  const unnamed = unnamedBy(asked, before);
  const mode = asked.from ?? (unnamed === undefined ? before.settings.mode : 'iptables');
  const named = own ? namedBy(own) : unnamed === undefined ? mode : undefined;
  const setup = { mode: named ?? 'iptables', namesMode: named !== undefined, gates };
  const after = setupAfter(setup, upgrade);
  const modeAfter = asked.to ?? after.mode;
  if (!isModeOf(modeAfter, upgrade.release))
    return refusedChange({ problem: 'unknown-mode', mode: modeAfter, release: `1.${upgrade.minor}`, by: 'mode' });
  const run = releasesBefore(asked, before);
  const from = run.length === 1 ? `${run.join()} ` : '';
  return {
    kind: 'change',
    from: {
      words: `${from}${mode}`,
      // Without a named release, "auto" keeps kpc from comparing the upgrade with a guessed release.
      options: {
        proxyMode: mode,
        isModeUnnamed: unnamed === 'nothing',
        ...(before.version === undefined ? { kubernetesVersion: 'auto' } : {}),
      },
    },
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
    announced: announcementsFor(setup, upgrade, after, before.cluster.servicePorts),
    modeFrom: unnamed && 'configuration',
  };
}

/** Returns the old releases that a flag or the Nodes name. */
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

function planMode(change: AskedChange, before: SetupBefore, after: Setup | undefined): Change {
  // kube-proxy before Kubernetes 1.40 runs in iptables mode if nothing names a mode.
  const { from = before.settings.mode, to = after ? (namedBy(after) ?? 'iptables') : 'nftables' } = change;
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
    modeFrom: unnamed,
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
  /** The release to upgrade to, or the newest release that kpc knows if the upgrade is to a later one. */
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

/** Applies an upgrade to a setup. The default mode may change, and a behaviour ends unless a feature gate keeps it. */
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
