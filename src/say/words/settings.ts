import { count, joinWords, quote } from '../../base/printable.ts';
import { lineFaultWords, unreadWords } from './unread.ts';
import { findNearest } from '../../base/names.ts';
import { familyNames } from '../../kernel/address.ts';
import { announcedEndWords } from './behaviours.ts';
import { gatesOf, releasesWithGate } from '../../kube-proxy/feature-gates.ts';
import { type ProxyMode, modeFacts } from '../../kube-proxy/modes.ts';
import {
  type BehaviourChange,
  type Release,
  behaviourChanges,
  kubeProxyVersions,
  modeHistories,
  parseRelease,
  releasesOfMode,
  releaseRange,
} from '../../kube-proxy/releases.ts';
import type { Numbers } from '../../base/findings/rows.ts';
import { byCase, type Words, type WordsOf, nameSome } from './rows.ts';
import type {
  ModeOfRelease,
  UnknownFlagNode,
  UnknownAddresses,
  settingFindings,
} from '../../base/findings/settings.ts';

function nameMode({ name, mode }: ModeOfRelease): string {
  return name === undefined ? `mode ${mode}` : `${name} is ${mode}`;
}

function wayToMode({ mode, side }: ModeOfRelease): string {
  return side === 'mode' ? `instead of side ${mode}` : 'with --proxy-mode';
}

function gateOfMode(mode: ProxyMode): string {
  const { needs } = modeHistories[mode];
  const change: BehaviourChange | undefined = needs && behaviourChanges[needs];
  return change?.gate ?? '';
}

const saveAddresses = "save the node's `ip -j addr` output to a file";

const configVersion = 'kubeproxy.config.k8s.io/v1alpha1';

/** The most letters by which a name may differ from a known name and still count as a misspelling of it. */
const mostLettersOff = 3;

function kubeProxyOf(release: Release): string {
  return `kube-proxy ${kubeProxyVersions[release]}`;
}

const defaultModes = {
  'empty-flag': "mode iptables, kube-proxy's default before Kubernetes 1.40, because --proxy-mode is empty",
  configuration:
    "mode iptables, kube-proxy's default before Kubernetes 1.40, because neither the configuration nor --proxy-mode names one",
  nothing: 'mode ipvs, because neither --proxy-mode nor --config is given',
} as const;

function describeUnknownNode({ flag, names, known, isOfFleet }: UnknownFlagNode): Words {
  const lacks = isOfFleet ? 'the fleet holds no such node' : 'the input holds no such Node';
  const wrong = `${flag} ${nameSome(names.map((name) => quote(name)))}: ${lacks}`;
  // Looking up all names of a large fleet would take too long.
  const near = new Set(names.slice(0, 3).flatMap((name) => findNearest(name, known) ?? []));
  const any = isOfFleet ? '' : ' (without any Node object, any name is accepted)';
  if (near.size > 0) return [wrong, `did you mean ${[...near].join(' or ')}?${any}`];
  const held = known.length === 1 ? `only ${known[0]}` : nameSome(known);
  return [`${wrong}: it holds ${held}`, `name one of them${any}`];
}

const addAllNodes = 'add all Nodes (kubectl get nodes -o yaml)';

function listGaps(known: readonly string[], { lacksAddresses, listensOnAll }: UnknownAddresses): string {
  return joinWords([
    ...known,
    ...(lacksAddresses ? ['node ports have no address to listen on'] : []),
    ...(listensOnAll ? ["node ports listen on all addresses, because the node's own are unknown"] : []),
  ]);
}

const withoutHairpins = ['the hairpin set stays empty'];

/** What does not work in each mode if the node's name is unknown. */
const gapsWithoutNode: Readonly<Record<ProxyMode, readonly string[]>> = {
  ipvs: withoutHairpins,
  iptables: [],
  nftables: withoutHairpins,
  userspace: ['the node itself reaches no Service'],
};

/** `nodes`: the number of Nodes in the input. */
function describeAnyNode(details: UnknownAddresses & Numbers<'nodes'> & { readonly mode: ProxyMode }): Words {
  const { nodes, mode } = details;
  const which = nodes === 0 ? 'no Node in the input' : `none of the ${nodes} nodes is named with --node`;
  return [
    `${which}: ${listGaps(['no endpoint counts as local', ...gapsWithoutNode[mode]], details)}`,
    nodes === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one',
  ];
}

/** Words for problems with kube-proxy's flags and configuration and with the chosen nodes, and for notes on kpc's defaults. */
export const settingWords: WordsOf<typeof settingFindings> = {
  'bad-feature-gate': byCase('problem', {
    unknown: ({ gate, release }) => {
      const meant = findNearest(
        gate,
        gatesOf(release).map(({ name }) => name),
        mostLettersOff,
      );
      const others = releasesWithGate(gate);
      const known = others.length === 0 ? '' : ` (Kubernetes ${others[0]} to ${others.at(-1)} know it)`;
      return [
        `${kubeProxyOf(release)} does not start with the unknown feature gate ${quote(gate)}`,
        others.length === 0 && meant !== undefined ? `did you mean ${meant}?` : `leave it out${known}`,
      ];
    },
    locked: ({ gate, isOn, release }) => [
      `${kubeProxyOf(release)} does not start with the feature gate ${gate}=${isOn}: it is locked to ${!isOn}`,
      'remove it',
    ],
    needs: ({ unmet, release }) => {
      const pairs = unmet.map(({ gate, needs }) => `${gate} (needs ${joinWords(needs)})`);
      return [
        `${kubeProxyOf(release)} does not start: these feature gates need others that are off: ${nameSome(pairs, 5)}`,
        `add ${nameSome([...new Set(unmet.flatMap(({ needs }) => needs.map((need) => `${need}=true`)))], 5)}`,
        'turn off the gates that need them',
      ];
    },
  }),
  'bad-kubernetes-version': ({ flag, node, version, nodeObject }) => {
    const name = `name a release of Kubernetes ${releaseRange}`;
    if (version !== '')
      return [`${flag}: the Node ${quote(node)} runs ${quote(version)}, which kpc does not follow`, name];
    const whose = {
      given: [`the Node ${quote(node)} has no kubeletVersion`, 'give it as kubectl get node -o yaml prints it'],
      assumed: [
        `the input has no Node, and the assumed Node ${quote(node)} has no release`,
        'give the Node object with -f',
      ],
      missing: [`the input has no Node ${quote(node)}`, 'give its Node object with -f'],
    } as const;
    const [wrong, help] = node === '' ? ['no node is named', 'name it with --node'] : whose[nodeObject];
    return [`${flag}: ${wrong}`, `${help}, or ${name}`];
  },
  'bad-mode': byCase('problem', {
    'not-in-release': (details) => {
      const { title } = modeFacts[details.mode];
      return [
        `${nameMode(details)}: kpc follows ${title} of Kubernetes ${releasesOfMode(details.mode)}, not of ${details.release}`,
        details.side === 'release'
          ? `name one of these releases instead of side ${details.release}, or choose another mode with --proxy-mode`
          : `choose one of these releases with --kubernetes-version, or another mode ${wayToMode(details)}`,
      ];
    },
    'gate-off': (details) => [
      `${nameMode(details)}, but the feature gate ${gateOfMode(details.mode)} is off: kube-proxy ${kubeProxyVersions[details.release]} does not start`,
      'remove the gate',
      `choose another mode ${wayToMode(details)}`,
    ],
  }),
  'covered-addresses': ({ network, socket }) => [
    `nodePortAddresses ${network} covers addresses of Services: kube-proxy also serves node ports at these addresses (${socket}) from its second sync on; kpc compiles the first sync`,
    "name only the node's own network",
  ],
  'default-mode': ({ named }) => defaultModes[named],
  'ipvs-ends': () => [
    `IPVS mode is ${announcedEndWords('ipvs-mode')}`,
    'move to nftables mode: "kpc migrate" shows what that needs and breaks',
  ],
  userspace: byCase('problem', {
    'bind-address': ({ flag, address }) => [
      `${flag} is ${quote(address)}: kube-proxy in userspace mode listens on IPv4, but not on loopback addresses`,
      'give an address of the node, or 0.0.0.0 for all of them',
    ],
    'few-ports': ({ flag, served, size }) => [
      `${flag} has ${count(size, 'port')} for ${count(served, 'Service port')}`,
      'give a larger range',
    ],
    unserved: ({ labels }) => [
      `userspace mode serves only TCP and UDP over IPv4, so these get no rules: ${nameSome(labels)}`,
      'kube-proxy serves them in every other mode',
    ],
    ignored: ({ services }) => [
      `userspace mode ignores traffic policies, source ranges and health check node ports: every client reaches all endpoints of ${nameSome(services)}`,
      'block clients by other means',
      'use another mode',
    ],
  }),
  'kubernetes-version': ({ node, version, release }) =>
    parseRelease(version) === release
      ? `Kubernetes ${release}, because Node ${quote(node)} runs ${version}`
      : `Kubernetes ${release}, although Node ${quote(node)} runs ${version}, which kpc does not follow`,
  'kubernetes-preview': ({ release }) =>
    `Kubernetes ${release} is not released yet, so the rules follow kube-proxy ${kubeProxyVersions[release]}`,
  'no-config': () => [
    'the file holds no configuration of kube-proxy',
    `name one with a KubeProxyConfiguration (${configVersion}), a ConfigMap that contains one, a systemd unit that starts kube-proxy with flags, or a configuration of kubeadm, kind or k3s`,
  ],
  'not-applicable': ({ name, value, must }) => [
    `${name} is ${quote(value)}, but kpc-apply rejects a bundle with it`,
    `it must ${must}`,
  ],
  'bad-host-addresses': byCase('problem', {
    'bad-line': ({ reason }) => [lineFaultWords(reason, 'ip addr'), saveAddresses],
    content: ({ reason }) => [unreadWords(reason), saveAddresses],
    'no-folder': ({ path }) => [
      `--host-addresses ${path} is not a folder`,
      "for several nodes, name a folder that holds each node's `ip -j addr` output as NODE.json",
    ],
    'other-node': ({ node, addresses }) => [
      `--host-addresses lists none of the InternalIPs of node ${node} (${joinWords(addresses)}), so the list is another node's`,
      saveAddresses,
    ],
  }),
  'bad-prune': ['--prune needs --all-nodes: otherwise kpc cannot know which nodes are gone', 'add --all-nodes'],
  'localhost-node-port': ({ servicePort, nodePort, families, ofNodes }) => {
    const addresses = families.map((family) => (family === 'ipv4' ? '127.0.0.1' : '::1'));
    const where = ofNodes ? ' of each node that has endpoints for it' : '';
    return `${servicePort}: node port ${nodePort} on ${joinWords(addresses)}${where} needs a running kube-proxy, which itself listens on that port: no rule can replace that`;
  },
  'no-host-addresses': ({ path, nodes, without }) =>
    `${path} holds no file for ${without.length} of ${nodes} nodes, such as ${without[0]}.json: on these nodes, node ports listen on the Node object's addresses`,
  'no-service-cidrs': [
    'kube-proxy drops packets to unused cluster IPs; these rules do not, because the input has no ServiceCIDRs',
    'add the output of kubectl get servicecidrs -o yaml',
    'set --service-cluster-ip-range',
  ],
  'no-node': byCase('problem', {
    'none-chosen': [
      'no node to compile for: no node is named, and the input has no Node',
      'add the output of kubectl get nodes -o yaml, and --all-nodes or --node NAME',
    ],
    'compiled-for-any': describeAnyNode,
    'named-windows': ({ names }) => [`kpc does not compile for Windows nodes: ${nameSome(names)}`, 'name another node'],
    windows: ({ names }) => `left out, because kpc does not compile for Windows nodes: ${nameSome(names)}`,
  }),
  'no-node-object': (details) => [
    `no Node object ${nameSome(details.names)} in the input: ${listGaps(['zone, pod CIDRs and addresses are unknown'], details)}`,
    'give it with -f (kubectl get nodes -o yaml)',
    details.lacksAddresses ? 'give the output of ip -j addr with --host-addresses' : undefined,
  ],
  'no-node-port-address': ({ nodes, picked, addresses, areAll }) => [
    `no node port can be reached on ${nodes.length === 1 ? 'node' : 'nodes'} ${nameSome(nodes)}: ` +
      `--nodeport-addresses ${picked.join(', ')} includes none of ${nodes.length === 1 ? 'its' : 'their'} addresses ` +
      `(${nameSome(addresses)}) where node ports can listen`,
    areAll
      ? 'write a network that holds one of them'
      : 'if the node has more, give its output of ip -j addr with --host-addresses',
  ],
  'no-pod-cidr': ({ names }) => [
    'detectLocalMode NodeCIDR needs the pod CIDRs of the Node: kube-proxy does not start without them',
    `give the Node object${names.length === 0 ? '' : ` for ${nameSome(names)}`} as the cluster has it, with -f (kubectl get nodes -o yaml)`,
  ],
  'unknown-node': describeUnknownNode,
  'unknown-node-of-pod': ({ pods, nodes }) => {
    const names = nodes.length === 0 ? 'no nodeName' : `nodeName ${nameSome(nodes)}`;
    const which = `${nameSome(pods)} ${pods.length === 1 ? 'is' : 'are'} on no Node in the input (${names})`;
    return [
      `${which}, so the endpointslice controller leaves ${pods.length === 1 ? 'it' : 'them'} out`,
      nodes.length === 0 ? 'write the name of the Node' : addAllNodes,
    ];
  },
  'wrong-family': ({ of, node, family, cidrs }) => [
    `${node === '' ? "the node's address" : `the address of node ${node}`} is ${familyNames[family]}, but ${of} ${cidrs.join(',')} is not, so no ${familyNames[family]} traffic counts as local, and kube-proxy starts only on a dual-stack node`,
    `name a network of each family in ${of}`,
  ],
};
