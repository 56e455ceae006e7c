import { manifests, aNode, aNodePort, annotated, run, web } from './examples.ts';
import { quote } from '../base/printable.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  behaviourChanges,
  kubeProxyVersions,
  newestRelease,
  releaseRange,
  type BehaviourChange,
  type Release,
  modeHistories,
} from '../kube-proxy/releases.ts';
import { endByMode, type OfOneMode } from './fields.ts';
import { describeFound, type Found } from './value-in-words.ts';
import { row, wordsBy, type DiagnosticTable, type Texts, warningIf } from './diagnostic-rows.ts';

/** A flag, or a field of the configuration, and what was written there. */
type Setting = Texts<'name' | 'value'>;

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

const configVersion = 'kubeproxy.config.k8s.io/v1alpha1';

/** `asRelease` is set if `release` is not the one that the input was read for. */
interface GateOfRelease extends Texts<'gate'> {
  readonly release: Release;
  readonly asRelease?: Release | undefined;
}

function startOf({ asRelease }: GateOfRelease): string {
  return asRelease === undefined ? '' : `Kubernetes ${asRelease}: `;
}

const describeGate = wordsBy('problem', {
  unknown: (details: GateOfRelease & { readonly meant?: string | undefined }) => [
    `${startOf(details)}kube-proxy ${kubeProxyVersions[details.release]} knows no feature gate ${quote(details.gate)}, and does not start`,
    details.meant === undefined ? 'leave it out' : `did you mean ${details.meant}?`,
  ],
  /** It is locked to the other value. */
  locked: (details: GateOfRelease & { readonly value: boolean }) => [
    `${startOf(details)}the feature gate ${details.gate} is ${!details.value} for good, and kube-proxy ${kubeProxyVersions[details.release]} does not start with ${details.value}`,
    'leave it out',
  ],
  needs: (details: GateOfRelease & { readonly needed: readonly string[] }) => [
    `${startOf(details)}kube-proxy does not start: the feature gate ${details.gate} is on, and needs ${details.needed.join(' and ')}, too`,
    'turn all of them on, or none',
  ],
});

/** Why kube-proxy of a release does not start with a feature gate. */
export type GateProblem = Parameters<typeof describeGate>[0];

const defaultModes = {
  'empty-flag': "mode iptables, kube-proxy's default before Kubernetes 1.40: --proxy-mode is empty",
  configuration:
    "mode iptables, kube-proxy's default before Kubernetes 1.40: the configuration names none (--proxy-mode does)",
  nothing: 'mode ipvs, because neither --proxy-mode nor --config is given',
} as const;

/** What is wrong with kube-proxy's flags and the fields of its configuration, and what kpc chose where they are silent. */
export const settingDiagnostics = {
  'bad-detect-local': row('error', {
    meaning: 'detectLocalMode lacks the name of an interface, or kube-proxy writes wrong rules with it',
    example: manifests(web, '--detect-local-mode BridgeInterface'),
    // An interface's name has a byte more than a prefix: `most`.
    words: ({ mode, field, value, most }: Texts<'mode' | 'field' | 'value'> & { readonly most: number }) => [
      value === ''
        ? `detectLocalMode ${mode} needs ${field}`
        : `${field} cannot be ${quote(value)}: kube-proxy takes it, and its rules fail or match other interfaces`,
      `write at most ${most} bytes without blanks, quotes, slashes and *`,
    ],
  }),
  'bad-feature-gate': row('error', {
    meaning: 'kube-proxy does not start with this feature gate, or not with this value',
    example: manifests(web, '--feature-gates NoSuchGate=true'),
    words: describeGate,
  }),
  'bad-kubernetes-version': row('error', {
    meaning: 'kpc cannot tell the release of Kubernetes from the Node, or does not follow it',
    example: manifests(web, '--kubernetes-version auto'),
    /** A node, '' if none is named, and what its object says that it runs, '' if nothing. */
    words: ({ flag, node, version }: Texts<'flag' | 'node' | 'version'>) => {
      const whose = node === '' ? 'no node is named' : `the input does not say what the Node ${quote(node)} runs`;
      return [
        `${flag}: ${version === '' ? whose : `the Node ${quote(node)} runs ${quote(version)}, which kpc does not follow`}`,
        `${version === '' ? 'give its Node object with -f, or name' : 'name'} a release of Kubernetes ${releaseRange}`,
      ];
    },
  }),
  'bad-mode': row('error', {
    meaning: 'kpc does not compile for this mode of this release of Kubernetes',
    example: manifests(web, '--proxy-mode nftables --kubernetes-version 1.30'),
    words: wordsBy('problem', {
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
  }),
  'bad-setting': row(
    warningIf(({ ignoredIn }: OfOneMode) => ignoredIn !== undefined),
    {
      meaning: 'a flag, a field of the configuration or an annotation has a value that it does not take',
      example: manifests(annotated('kpc.dev/ipvs-forwarding-method: nat')),
      words: (details: Setting & OfOneMode & Texts<'expected'>) => [
        `${details.name} cannot be ${quote(details.value)}${endByMode(details)}`,
        `write ${details.expected}`,
      ],
    },
  ),
  'covered-addresses': row('warning', {
    meaning: 'in IPVS mode, nodePortAddresses covers addresses of Services',
    example: manifests(aNodePort, '--nodeport-addresses 10.0.0.0/8'),
    words: ({ network, socket }: Texts<'network' | 'socket'>) => [
      `nodePortAddresses ${network} covers addresses of Services: from its second sync on, kube-proxy also serves node ports there (${socket}), and kpc writes its first`,
      "name the node's own network alone",
    ],
  }),
  'default-mode': row('note', {
    meaning: 'nothing names a mode: which one kpc took',
    example: manifests(web),
    // `named` is what leaves the mode to kube-proxy.
    words: ({ named }: { readonly named: keyof typeof defaultModes }) => defaultModes[named],
  }),
  'kubernetes-version': row('note', {
    meaning: 'the release that --kubernetes-version auto took from the Node',
    example: manifests(web + aNode('status: { nodeInfo: { kubeletVersion: v1.35.4 } }'), '--kubernetes-version auto'),
    words: ({ node, version, release }: Texts<'node' | 'version'> & { readonly release: Release }) =>
      `Kubernetes ${release}, as the Node ${quote(node)} says: ${version}`,
  }),
  'no-config': row('error', {
    meaning: 'the file of --config holds no configuration that kube-proxy reads',
    example: run('compile -f in.yaml --config in.yaml', { 'in.yaml': web }),
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
  }),
  'not-applicable': row('warning', {
    meaning: 'kube-proxy takes a setting that kpc-apply does not: it refuses the bundle',
    example: manifests(web, '--conntrack-max-per-core 12'),
    words: ({ name, value, must }: Setting & Texts<'must'>) => [
      `${name} is ${quote(value)}, and kpc-apply takes no bundle with it`,
      `it must ${must}`,
    ],
  }),
} satisfies DiagnosticTable;
