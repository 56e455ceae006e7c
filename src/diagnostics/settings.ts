import { quote } from '../base/wording.ts';
import { listModes, modeFacts, proxyModeNames } from '../kube-proxy/modes.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { behaviourChanges, kubeProxyVersions, newestRelease, releaseRange } from '../kube-proxy/releases.ts';
import type { BehaviourChange } from '../kube-proxy/releases.ts';
import type { Release } from '../kube-proxy/releases.ts';
import { describeFound } from './found.ts';
import type { Found } from './found.ts';
import { describeShape } from './shape.ts';
import type { ShapeProblem } from './shape.ts';
import type { DiagnosticTable, Severity } from './table.ts';

/** A flag, or a field of the configuration, and what was written there. */
interface Setting {
  readonly name: string;
  readonly value: string;
}

/** kube-proxy reads some settings in one mode only: in the other modes a wrong value is a warning. */
interface OfOneMode {
  /** The mode to compile for, if it is another one. */
  readonly ignoredIn?: ProxyMode | undefined;
}

function weighByMode({ ignoredIn }: OfOneMode): Severity {
  return ignoredIn === undefined ? 'error' : 'warning';
}

function endByMode({ ignoredIn }: OfOneMode): string {
  return ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
}

type ModeProblem =
  | (Setting & { readonly problem: 'unknown' })
  | { readonly problem: 'gone' | 'windows'; readonly name: string }
  /** `name` is undefined where no flag or field is meant, but the mode that is compiled for. */
  | {
      readonly problem: 'not-in-release' | 'gate-off';
      readonly name?: string | undefined;
      readonly mode: ProxyMode;
      readonly release: Release;
    };

function describeMode(details: ModeProblem): string {
  const instead = `compile for another mode with ${listModes((mode) => `--proxy-mode ${mode}`)}`;
  switch (details.problem) {
    case 'unknown':
      return `${details.name} is ${quote(details.value)}: write ${proxyModeNames}`;
    case 'gone':
      return `${details.name} is userspace, which kube-proxy has not had since v1.26: it does not start; ${instead}`;
    case 'windows':
      return `${details.name} is kernelspace, the mode of Windows nodes, which kpc does not compile for: ${instead}`;
    case 'not-in-release': {
      const { mode, release } = details;
      const { title, since } = modeFacts[mode];
      const what = nameMode(details);
      return `${what}: kpc follows ${title} of Kubernetes ${since} to ${newestRelease}, not of ${release}: take one of them with --kubernetes-version, or another mode with --proxy-mode`;
    }
    case 'gate-off': {
      const { mode, release } = details;
      return `${nameMode(details)}, and the feature gate ${gateOf(mode)} is off: kube-proxy ${kubeProxyVersions[release]} does not start; leave the gate out, or take another mode with --proxy-mode`;
    }
  }
}

function nameMode({ name, mode }: { readonly name?: string | undefined; readonly mode: ProxyMode }): string {
  return name === undefined ? `mode ${mode}` : `${name} is ${mode}`;
}

function gateOf(mode: ProxyMode): string {
  const { needs } = modeFacts[mode];
  const change: BehaviourChange | undefined = needs && behaviourChanges[needs];
  return change?.gate?.name ?? '';
}

type VersionProblem = { readonly flag: string } & (
  | { readonly problem: 'not-followed' | 'no-release'; readonly value: string }
  | { readonly problem: 'no-node-named' }
  | { readonly problem: 'no-node-object' | 'no-version-of-node'; readonly node: string }
  | { readonly problem: 'not-followed-on-node'; readonly node: string; readonly version: string }
);

function describeVersion(details: VersionProblem): string {
  const { flag } = details;
  const wayOut = 'give its Node object with -f, or name a release';
  switch (details.problem) {
    case 'not-followed':
      return `${flag} ${quote(details.value)}: kpc knows the kube-proxy of Kubernetes ${releaseRange}`;
    case 'no-release':
      return `${flag} is ${quote(details.value)}: write a release of Kubernetes, such as ${newestRelease}, or auto`;
    case 'no-node-named':
      return `${flag}: no node is named; ${wayOut}`;
    case 'no-node-object':
      return `${flag}: there is no Node ${quote(details.node)} in the input; ${wayOut}`;
    case 'no-version-of-node':
      return `${flag}: the Node ${quote(details.node)} does not say its version (status.nodeInfo); name a release`;
    case 'not-followed-on-node':
      return `${flag}: the Node ${quote(details.node)} runs ${quote(details.version)}, and kpc knows Kubernetes ${releaseRange}`;
  }
}

const configVersion = 'kubeproxy.config.k8s.io/v1alpha1';

/** `apiVersion` is that of a KubeProxyConfiguration, where there is one of another version. */
interface NoConfig {
  readonly apiVersion?: Found | undefined;
}

function describeNoConfig({ apiVersion }: NoConfig): string {
  return apiVersion
    ? `the KubeProxyConfiguration is of apiVersion ${describeFound(apiVersion)}: kube-proxy reads ${configVersion} only`
    : `the file holds neither a KubeProxyConfiguration (${configVersion}) nor a ConfigMap with one among its data, nor a configuration of kubeadm, kind or k3s`;
}

/** Why kube-proxy of a release does not start with a feature gate. */
export type GateProblem =
  | {
      readonly problem: 'unknown';
      readonly gate: string;
      readonly release: Release;
      readonly meant?: string | undefined;
    }
  /** It is locked to the other value. */
  | { readonly problem: 'locked'; readonly gate: string; readonly release: Release; readonly value: boolean }
  | { readonly problem: 'needs'; readonly gate: string; readonly needed: readonly string[] };

type FeatureGateProblem =
  | (GateProblem & {
      /** Set where that is not the release that the input was read for. */
      readonly asRelease?: Release | undefined;
    })
  | { readonly problem: 'no-gate'; readonly flag: string; readonly value: string };

function describeGate(details: FeatureGateProblem): string {
  if (details.problem === 'no-gate') {
    return `${details.flag} ${quote(details.value)}: write the name of a gate, = and true or false`;
  }
  const { asRelease } = details;
  return `${asRelease === undefined ? '' : `Kubernetes ${asRelease}: `}${describeGateProblem(details)}`;
}

function describeGateProblem(details: GateProblem): string {
  switch (details.problem) {
    case 'unknown': {
      const { gate, release, meant } = details;
      const hint = meant === undefined ? 'leave it out' : `did you mean ${meant}?`;
      return `kube-proxy ${kubeProxyVersions[release]} knows no feature gate ${quote(gate)}, and does not start: ${hint}`;
    }
    case 'locked': {
      const { gate, release, value } = details;
      return `the feature gate ${gate} is ${!value} for good, and kube-proxy ${kubeProxyVersions[release]} does not start with ${value}: leave it out`;
    }
    case 'needs':
      return `kube-proxy does not start: the feature gate ${details.gate} is on, and needs ${details.needed.join(' and ')}, too`;
  }
}

type BindAddressProblem = Setting & { readonly problem: 'form' | 'no-address' | 'no-port' };

const bindAddressWords: { readonly [P in BindAddressProblem['problem']]: string } = {
  form: 'is not an IP:port: write it like 0.0.0.0:10256 or [::]:10256',
  'no-address': 'has no IP address before the port: host names are not taken',
  'no-port': 'has no port from 1 to 65535',
};

type DetectLocalProblem =
  | (Setting & { readonly problem: 'unknown'; readonly hint: string })
  /** The mode needs what is missing: a field, or the flag for it. */
  | { readonly problem: 'missing'; readonly mode: string; readonly field: string; readonly flag: string }
  | { readonly problem: 'interface-name' | 'interface-prefix'; readonly value: string };

function describeDetectLocal(details: DetectLocalProblem): string {
  switch (details.problem) {
    case 'unknown':
      return `${details.name} is ${quote(details.value)}: write ${details.hint}`;
    case 'missing':
      return `detectLocalMode ${details.mode} needs ${details.field}, or ${details.flag}`;
    case 'interface-name':
    case 'interface-prefix': {
      const what =
        details.problem === 'interface-prefix'
          ? 'a prefix of interface names: 14 bytes'
          : 'an interface name: 15 bytes';
      return `${quote(details.value)} is not ${what} at most, without blanks, quotes, slashes or *; kube-proxy takes it, and its rules fail or match other interfaces`;
    }
  }
}

type DurationProblem = Setting &
  ({ readonly problem: 'no-duration' } | ({ readonly problem: 'negative' | 'too-long' } & OfOneMode));

function describeDuration(details: DurationProblem): string {
  const what = `${details.name} is ${quote(details.value)}`;
  switch (details.problem) {
    case 'no-duration':
      return `${what}: write a duration such as 15m0s or 30s`;
    case 'negative':
      return `${what}: write a duration from 0 up${endByMode(details)}`;
    case 'too-long':
      return `${what}: ipvsadm takes no more than 31 days (744h)${endByMode(details)}`;
  }
}

const bitHint = 'the bit of the packet mark is a number from 0 to 31';

type MasqueradeBitProblem =
  | ShapeProblem
  | { readonly problem: 'flag'; readonly flag: string; readonly value: string }
  | ({ readonly problem: 'field'; readonly value: number } & OfOneMode);

function describeMasqueradeBit(details: MasqueradeBitProblem): string {
  switch (details.problem) {
    case 'flag':
      return `${details.flag} ${quote(details.value)}: ${bitHint}`;
    case 'field':
      return `masqueradeBit ${details.value}: ${bitHint}${endByMode(details)}`;
    default:
      return describeShape(details);
  }
}

type SyncPeriodProblem =
  | (Setting & { readonly problem: 'negative' })
  /** Both as they are written, or in seconds where kube-proxy's default counts. */
  | {
      readonly problem: 'shorter-than-least';
      readonly period: string | number;
      readonly least: string | number;
    };

function describeSyncPeriod(details: SyncPeriodProblem): string {
  switch (details.problem) {
    case 'negative':
      return `kube-proxy does not start: ${details.name} is ${quote(details.value)}, and must not be negative`;
    case 'shorter-than-least':
      return `kube-proxy does not start: syncPeriod is ${describePeriod(details.period)}, and minSyncPeriod is longer: ${describePeriod(details.least)}`;
  }
}

function describePeriod(period: string | number): string {
  return typeof period === 'string' ? quote(period) : `${period}s, its default`;
}

/** What is wrong with kube-proxy's flags and the fields of its configuration, and what kpc chose where they are silent. */
export const settingDiagnostics = {
  'bad-bind-address': {
    severity: 'error',
    meaning: 'an address for kube-proxy to serve on is not valid, and kube-proxy does not start',
    words: ({ name, value, problem }: BindAddressProblem) =>
      `kube-proxy does not start: ${name} ${quote(value)} ${bindAddressWords[problem]}`,
  },
  'bad-detect-local': {
    severity: 'error',
    meaning: 'detectLocalMode is not one of its four values, or lacks the name of an interface',
    words: describeDetectLocal,
  },
  'bad-duration': {
    severity: {
      among: ['error', 'warning'],
      weigh: (details: DurationProblem) => (details.problem === 'no-duration' ? 'error' : weighByMode(details)),
    },
    meaning: 'a value is not a duration, or is out of range',
    words: describeDuration,
  },
  'bad-feature-gate': {
    severity: 'error',
    meaning: 'kube-proxy does not start with this feature gate, or not with this value',
    words: describeGate,
  },
  'bad-flag': {
    severity: 'error',
    meaning: 'a flag that takes true or false has another value',
    words: ({ name, value }: Setting) => `${name} is ${quote(value)}: write true or false`,
  },
  'bad-kubernetes-version': {
    severity: 'error',
    meaning: 'kpc does not follow this release of Kubernetes, or cannot tell the release',
    words: describeVersion,
  },
  'bad-masquerade-bit': {
    severity: {
      among: ['error', 'warning'],
      weigh: (details: MasqueradeBitProblem) => (details.problem === 'field' ? weighByMode(details) : 'error'),
    },
    meaning: 'the bit of the packet mark is not a number from 0 to 31',
    words: describeMasqueradeBit,
  },
  'bad-mode': {
    severity: 'error',
    meaning: 'kpc does not compile for this mode, or not for this mode of this release of Kubernetes',
    words: describeMode,
  },
  'bad-scheduler': {
    severity: {
      among: ['error', 'warning'],
      weigh: weighByMode,
    },
    meaning: 'IPVS has no scheduler of that name',
    words: (details: Setting & OfOneMode & { readonly known: readonly string[] }) =>
      `${details.name} is ${quote(details.value)}: write one of ${details.known.join(', ')}${endByMode(details)}`,
  },
  'bad-sync-period': {
    severity: 'error',
    meaning: 'kube-proxy does not start with these sync periods',
    words: describeSyncPeriod,
  },
  'covered-addresses': {
    severity: 'warning',
    meaning: 'in IPVS mode, nodePortAddresses covers addresses of Services',
    words: ({ network, socket }: { readonly network: string; readonly socket: string }) =>
      `nodePortAddresses ${network} covers addresses of Services: from its second sync on, kube-proxy also serves node ports there (${socket}), and kpc writes its first; name the node's own network alone`,
  },
  'default-mode': {
    severity: 'note',
    meaning: 'nothing names a mode: which one kpc took',
    words: ({
      named,
    }: {
      /** What leaves the mode to kube-proxy. */
      readonly named: 'empty-flag' | 'configuration' | 'nothing';
    }) => {
      switch (named) {
        case 'empty-flag':
          return `mode iptables, kube-proxy's default before Kubernetes 1.40: --proxy-mode is empty`;
        case 'configuration':
          return "mode iptables, kube-proxy's default before Kubernetes 1.40: the configuration names none (--proxy-mode does)";
        case 'nothing':
          return 'mode ipvs: neither --proxy-mode nor a configuration (--config) names one';
      }
    },
  },
  'kubernetes-version': {
    severity: 'note',
    meaning: 'the release that --kubernetes-version auto took from the Node',
    words: ({
      release,
      node,
      version,
    }: {
      readonly release: Release;
      readonly node: string;
      readonly version: string;
    }) => `Kubernetes ${release}, as the Node ${quote(node)} says: ${version}`,
  },
  'no-config': {
    severity: 'error',
    meaning: 'the file of --config holds no configuration that kube-proxy reads',
    words: describeNoConfig,
  },
  'not-applicable': {
    severity: 'warning',
    meaning: 'kube-proxy takes a setting that kpc-apply does not: it refuses the bundle',
    words: ({ name, value, must }: Setting & { readonly must: string }) =>
      `${name} is ${quote(value)}, and kpc-apply takes no bundle with it: it must ${must}`,
  },
} satisfies DiagnosticTable;
