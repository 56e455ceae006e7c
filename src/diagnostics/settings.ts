import { compile, configured, manifests, aNode, aNodePort, web } from './examples.ts';
import { quote } from '../base/printable.ts';
import { modeFacts, proxyModeNames, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  behaviourChanges,
  kubeProxyVersions,
  newestRelease,
  releaseRange,
  type BehaviourChange,
  type Release,
  modeHistories,
} from '../kube-proxy/releases.ts';
import { describeFound, type Found } from './value-in-words.ts';
import {
  wordsBy,
  type DetailsBy,
  type DiagnosticTable,
  type Wordings,
  type Lists,
  type Texts,
  warningIf,
} from './diagnostic-rows.ts';

/** A flag, or a field of the configuration, and what was written there. */
type Setting = Texts<'name' | 'value'>;

function cannotBe({ name, value }: Setting): string {
  return `${name} cannot be ${quote(value)}`;
}

/** kube-proxy reads some settings in one mode only: in the other modes a wrong value is a warning. */
interface OfOneMode {
  /** The mode to compile for, if it is another one. */
  readonly ignoredIn?: ProxyMode | undefined;
}

function isOfOtherMode({ ignoredIn }: OfOneMode): boolean {
  return ignoredIn !== undefined;
}

function endByMode({ ignoredIn }: OfOneMode): string {
  return ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
}

/** `name` is undefined if no flag or field is meant, but the mode that is compiled for. */
interface ModeOfRelease {
  readonly name?: string | undefined;
  readonly mode: ProxyMode;
  readonly release: Release;
}

function nameMode({ name, mode }: ModeOfRelease): string {
  return name === undefined ? `mode ${mode}` : `${name} is ${mode}`;
}

function gateOf(mode: ProxyMode): string {
  const { needs } = modeHistories[mode];
  const change: BehaviourChange | undefined = needs && behaviourChanges[needs];
  return change?.gate?.name ?? '';
}

type Flag = Texts<'flag'>;

type WrongVersion = Flag & Texts<'value'>;

/** A node, '' if none is named, and what its object says that it runs, '' if nothing. */
type VersionOfNode = Flag & Texts<'node' | 'version'>;

const configVersion = 'kubeproxy.config.k8s.io/v1alpha1';

type Gate = Texts<'gate'>;

interface GateOfRelease extends Gate {
  readonly release: Release;
}

/** The words for a feature gate with which kube-proxy of a release does not start, by `problem`. */
const gateWords = {
  unknown: ({ gate, release, meant }: GateOfRelease & { readonly meant?: string | undefined }) => [
    `kube-proxy ${kubeProxyVersions[release]} knows no feature gate ${quote(gate)}, and does not start`,
    meant === undefined ? 'leave it out' : `did you mean ${meant}?`,
  ],
  /** It is locked to the other value. */
  locked: ({ gate, release, value }: GateOfRelease & { readonly value: boolean }) => [
    `the feature gate ${gate} is ${!value} for good, and kube-proxy ${kubeProxyVersions[release]} does not start with ${value}`,
    'leave it out',
  ],
  needs: ({ gate, needed }: Gate & Lists<'needed'>) => [
    `kube-proxy does not start: the feature gate ${gate} is on, and needs ${needed.join(' and ')}, too`,
    'turn all of them on, or none',
  ],
} as const satisfies Wordings;

/** Why kube-proxy of a release does not start with a feature gate. */
export type GateProblem = DetailsBy<'problem', typeof gateWords>;

const describeGate = wordsBy('problem', {
  ...gateWords,
  'no-gate': ({ flag, value }: Flag & Texts<'value'>) => [
    `${flag} cannot be ${quote(value)}`,
    'write the name of a gate, = and true or false',
  ],
});

const defaultModes = {
  'empty-flag': "mode iptables, kube-proxy's default before Kubernetes 1.40: --proxy-mode is empty",
  configuration:
    "mode iptables, kube-proxy's default before Kubernetes 1.40: the configuration names none (--proxy-mode does)",
  nothing: 'mode ipvs, because neither --proxy-mode nor --config is given',
} as const;

/** What is wrong with kube-proxy's flags and the fields of its configuration, and what kpc chose where they are silent. */
export const settingDiagnostics = {
  'bad-detect-local': {
    severity: 'error',
    meaning: 'detectLocalMode is not one of its four values, or lacks the name of an interface',
    example: () => manifests(web, '--detect-local-mode', 'PodCIDR'),
    words: wordsBy('problem', {
      unknown: (details: Setting & Texts<'hint'>) => [cannotBe(details), `write ${details.hint}`],
      missing: ({ mode, field, flag }: Flag & Texts<'mode' | 'field'>) => [
        `detectLocalMode ${mode} needs ${field}`,
        `write it, or ${flag}`,
      ],
      /** A name has a byte more than a prefix. */
      interface: ({ value, most }: Texts<'value'> & { readonly most: 14 | 15 }) => [
        `${quote(value)} is not ${most === 15 ? 'an interface name' : 'a prefix of interface names'}: kube-proxy takes it, and its rules fail or match other interfaces`,
        `leave out blanks, quotes, slashes and *, and write at most ${most} bytes`,
      ],
    }),
  },
  'bad-duration': {
    severity: warningIf(isOfOtherMode),
    meaning: 'a value is not a duration, or is out of range',
    example: () => configured('ipvs: { tcpTimeout: 15 minutes }'),
    // `most` is set for what goes to ipvsadm, which takes no more.
    words: (details: Setting & OfOneMode & { readonly most?: string }) => [
      `${cannotBe(details)}${endByMode(details)}`,
      `write a duration such as 15m0s or 30s, from 0 up${details.most === undefined ? '' : ` to ${details.most}`}`,
    ],
  },
  'bad-feature-gate': {
    severity: 'error',
    meaning: 'kube-proxy does not start with this feature gate, or not with this value',
    example: () => manifests(web, '--feature-gates', 'NoSuchGate=true'),
    words: describeGate,
  },
  'bad-flag': {
    severity: 'error',
    meaning: 'a flag that takes true or false has another value',
    example: () => manifests(web, '--masquerade-all=maybe'),
    words: (details: Setting) => [cannotBe(details), 'write true or false'],
  },
  'bad-kubernetes-version': {
    severity: 'error',
    meaning: 'kpc does not follow this release of Kubernetes, or cannot tell the release',
    example: () => manifests(web, '--kubernetes-version', '1.12'),
    words: (details: WrongVersion | VersionOfNode) => {
      if ('value' in details)
        return [
          `${details.flag} cannot be ${quote(details.value)}`,
          `write a release of Kubernetes ${releaseRange}, or auto`,
        ];
      const { flag, node, version } = details;
      const whose = node === '' ? 'no node is named' : `the input does not say what the Node ${quote(node)} runs`;
      return [
        `${flag}: ${version === '' ? whose : `the Node ${quote(node)} runs ${quote(version)}, which kpc does not follow`}`,
        `${version === '' ? 'give its Node object with -f, or name' : 'name'} a release of Kubernetes ${releaseRange}`,
      ];
    },
  },
  'bad-mode': {
    severity: 'error',
    meaning: 'kpc does not compile for this mode, or not for this mode of this release of Kubernetes',
    example: () => configured('mode: userspace'),
    words: wordsBy('problem', {
      unknown: (details: Setting) => [cannotBe(details), `write ${proxyModeNames}`],
      'not-in-release': (details: ModeOfRelease) => {
        const { title } = modeFacts[details.mode];
        const { since } = modeHistories[details.mode];
        return [
          `${nameMode(details)}: kpc follows ${title} of Kubernetes ${since} to ${newestRelease}, not of ${details.release}`,
          'take one of them with --kubernetes-version, or another mode with --proxy-mode',
        ];
      },
      'gate-off': (details: ModeOfRelease) => [
        `${nameMode(details)}, and the feature gate ${gateOf(details.mode)} is off: kube-proxy ${kubeProxyVersions[details.release]} does not start`,
        'leave the gate out, or take another mode with --proxy-mode',
      ],
    }),
  },
  'bad-scheduler': {
    severity: warningIf(isOfOtherMode),
    meaning: 'IPVS has no scheduler of that name',
    example: () => manifests(web, '--ipvs-scheduler', 'fastest'),
    words: (details: Setting & OfOneMode & Lists<'known'>) => [
      `${cannotBe(details)}${endByMode(details)}`,
      `write one of ${details.known.join(', ')}`,
    ],
  },
  'covered-addresses': {
    severity: 'warning',
    meaning: 'in IPVS mode, nodePortAddresses covers addresses of Services',
    example: () => manifests(aNodePort, '--nodeport-addresses', '10.0.0.0/8'),
    words: ({ network, socket }: Texts<'network' | 'socket'>) => [
      `nodePortAddresses ${network} covers addresses of Services: from its second sync on, kube-proxy also serves node ports there (${socket}), and kpc writes its first`,
      "name the node's own network alone",
    ],
  },
  'default-mode': {
    severity: 'note',
    meaning: 'nothing names a mode: which one kpc took',
    example: () => manifests(web),
    // `named` is what leaves the mode to kube-proxy.
    words: ({ named }: { readonly named: keyof typeof defaultModes }) => defaultModes[named],
  },
  'kubernetes-version': {
    severity: 'note',
    meaning: 'the release that --kubernetes-version auto took from the Node',
    example: () =>
      manifests(web + aNode('status: { nodeInfo: { kubeletVersion: v1.35.4 } }'), '--kubernetes-version', 'auto'),
    words: (details: Texts<'node' | 'version'> & { readonly release: Release }) =>
      `Kubernetes ${details.release}, as the Node ${quote(details.node)} says: ${details.version}`,
  },
  'no-config': {
    severity: 'error',
    meaning: 'the file of --config holds no configuration that kube-proxy reads',
    example: () => ({ words: [...compile, '--config', 'in.yaml'], files: { 'in.yaml': web } }),
    /** `apiVersion` is that of a KubeProxyConfiguration, if there is one of another version. */
    words: ({ apiVersion }: { readonly apiVersion?: Found | undefined }) =>
      apiVersion
        ? [
            `the KubeProxyConfiguration is of apiVersion ${describeFound(apiVersion)}`,
            `write ${configVersion}: kube-proxy reads nothing else`,
          ]
        : [
            'the file holds no configuration of kube-proxy',
            `name one with a KubeProxyConfiguration (${configVersion}), a ConfigMap with one among its data, or a configuration of kubeadm, kind or k3s`,
          ],
  },
  'not-applicable': {
    severity: 'warning',
    meaning: 'kube-proxy takes a setting that kpc-apply does not: it refuses the bundle',
    example: () => manifests(web, '--conntrack-max-per-core', '12'),
    words: ({ name, value, must }: Setting & Texts<'must'>) => [
      `${name} is ${quote(value)}, and kpc-apply takes no bundle with it`,
      `it must ${must}`,
    ],
  },
} satisfies DiagnosticTable;
