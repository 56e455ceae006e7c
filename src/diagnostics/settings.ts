import {
  anIP,
  aService,
  itsAddress,
  aNode,
  aNodePort,
  aSelector,
  configuration,
  container,
  endpoint,
  manifests,
  pod,
  run,
  web,
  lint,
} from './examples.ts';
import { endWords } from '../kube-proxy/announced.ts';
import { gatesOf, releasesWithGate, type GateFault } from '../kube-proxy/feature-gates.ts';
import { quote } from '../base/printable.ts';
import { type ProxyMode, modeFacts } from '../kube-proxy/modes.ts';
import {
  type BehaviourChange,
  type Release,
  behaviourChanges,
  kubeProxyVersions,
  modeHistories,
  lastRelease,
  rangeOf,
  releaseRange,
} from '../kube-proxy/releases.ts';
import {
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  type Words,
  row,
  severityBy,
  wordsBy,
} from './diagnostic-rows.ts';
import { findNearest } from '../base/find-nearest.ts';
import { count } from '../base/format-count.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { type Family, familyNames } from '../kernel/family.ts';

/** A flag, or a field of the configuration, and what was written there. */
type WrittenSetting = Texts<'name' | 'value'>;

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
  return change?.gate ?? '';
}

const configVersion = 'kubeproxy.config.k8s.io/v1alpha1';

type FaultOf<P extends GateFault['problem']> = Omit<Extract<GateFault, { readonly problem: P }>, 'problem'>;

/** What is wrong with feature gates, and what to do about it. */
export const gateWords = wordsBy('problem', {
  unknown: ({ gate, release }: FaultOf<'unknown'>) => {
    const meant = findNearest(
      gate,
      gatesOf(release).map(({ name }) => name),
      mostLettersOff,
    );
    const others = releasesWithGate(gate);
    const known = others.length === 0 ? '' : ` (Kubernetes ${others[0]} to ${others.at(-1)} know it)`;
    return [
      `${kubeProxyOf(release)} knows no feature gate ${quote(gate)}, and does not start`,
      others.length === 0 && meant !== undefined ? `did you mean ${meant}?` : `leave it out${known}`,
    ];
  },
  locked: ({ gate, isOn, release }: FaultOf<'locked'>) => [
    `${kubeProxyOf(release)} does not start with the feature gate ${gate}=${isOn}: it is locked to ${!isOn}`,
    'leave it out',
  ],
  needs: ({ unmet, release }: FaultOf<'needs'>) => {
    const pairs = unmet.map(({ gate, needs }) => `${gate} (needs ${joinWords(needs)})`);
    return [
      `${kubeProxyOf(release)} does not start with feature gates on that need others, which are off: ${nameSome(pairs, 5)}`,
      `add ${nameSome([...new Set(unmet.flatMap(({ needs }) => needs.map((need) => `${need}=true`)))], 5)}, or turn off what needs it`,
    ];
  },
});

/** At most so many letters off, a name is a slip. */
const mostLettersOff = 3;

function kubeProxyOf(release: Release): string {
  return `kube-proxy ${kubeProxyVersions[release]}`;
}

const defaultModes = {
  'empty-flag': "mode iptables, kube-proxy's default before Kubernetes 1.40: --proxy-mode is empty",
  configuration:
    "mode iptables, kube-proxy's default before Kubernetes 1.40: the configuration names none (--proxy-mode does)",
  nothing: 'mode ipvs, because neither --proxy-mode nor --config is given',
} as const;

/** `known` lists all Nodes of the input. */
interface UnknownFlagNode extends Lists<'names' | 'known'> {
  readonly flag: '--node' | 'hostnameOverride';
}

function describeUnknownNode({ flag, names, known }: UnknownFlagNode): Words {
  const wrong = `${flag} ${nameSome(names.map((name) => quote(name)))}: the input holds no such Node`;
  // Looking up all names of a fleet would take long.
  const near = new Set(names.slice(0, 3).flatMap((name) => findNearest(name, known) ?? []));
  const any = '(without any Node object, any name is accepted)';
  if (near.size > 0) return [wrong, `did you mean ${[...near].join(' or ')}? ${any}`];
  const held = known.length === 1 ? `only ${known[0]}` : nameSome(known);
  return [`${wrong}: it holds ${held}`, `name one of them ${any}`];
}

const addAllNodes = 'add all Nodes (kubectl get nodes -o yaml)';

interface UnknownAddresses {
  /** Node ports have no address to listen on. */
  readonly lacksAddresses: boolean;
  /** Node ports listen on all addresses, because the node's own are unknown. */
  readonly listensOnAll: boolean;
}

function listGaps(known: readonly string[], { lacksAddresses, listensOnAll }: UnknownAddresses): string {
  return joinWords([
    ...known,
    ...(lacksAddresses ? ['node ports have no address to listen on'] : []),
    ...(listensOnAll ? ["node ports listen on all addresses, because the node's own are unknown"] : []),
  ]);
}

/** `nodes` counts the Nodes of the input. */
function describeAnyNode(details: UnknownAddresses & Numbers<'nodes'> & { readonly mode: ProxyMode }): Words {
  const { nodes, mode } = details;
  const which = nodes === 0 ? 'no node' : `none of the ${nodes} nodes is named with --node`;
  return [
    `${which}: ${listGaps(['no endpoint counts as local', ...modeFacts[mode].gapsWithoutNode], details)}`,
    nodes === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one',
  ];
}

/**
 * `picked` is the value of --nodeport-addresses; `addresses` are the node's known addresses. `areAll`: whether
 * --host-addresses gives all of them.
 */
type UnreachableNodePorts = Texts<'node'> & Lists<'picked' | 'addresses'> & { readonly areAll: boolean };

/** `ofNodes`: whether kpc compiles for many nodes, some of which may have no endpoints for it. */
type LocalhostNodePort = Texts<'servicePort'> &
  Numbers<'nodePort'> & { readonly families: readonly Family[]; readonly ofNodes: boolean };

/** Problems with kube-proxy's flags and configuration and the nodes to compile for, and what kpc chose by default. */
export const settingDiagnostics = {
  'bad-feature-gate': row('error', {
    meaning:
      'kube-proxy of this release of Kubernetes does not start with the feature gates: it does not know one, or one is locked, or needs another',
    example: manifests(web, '--feature-gates AllowServiceExternalIP=false'),
    words: gateWords,
  }),
  'bad-kubernetes-version': row('error', {
    meaning: 'kpc cannot tell the release of Kubernetes from the Node, or does not follow it',
    example: manifests(web, '--kubernetes-version auto'),
    /** `node` is '' if none is named; `version` is what its object reports, '' if nothing. */
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
        return [
          `${nameMode(details)}: kpc follows ${title} of Kubernetes ${rangeOf(details.mode)}, not of ${details.release}`,
          'take one of them with --kubernetes-version, or another mode with --proxy-mode',
        ];
      },
      'gate-off': (details: ModeOfRelease) => [
        `${nameMode(details)}, and the feature gate ${gateOf(details.mode)} is off: kube-proxy ${kubeProxyVersions[details.release]} does not start`,
        'leave the gate out, or take another mode with --proxy-mode',
      ],
    }),
  }),
  'covered-addresses': row('warning', {
    meaning: 'in IPVS mode, nodePortAddresses covers addresses of Services',
    example: manifests(aNodePort, '--proxy-mode ipvs --nodeport-addresses 10.0.0.0/8'),
    words: ({ network, socket }: Texts<'network' | 'socket'>) => [
      `nodePortAddresses ${network} covers addresses of Services: from its second sync on, kube-proxy also serves node ports there (${socket}); kpc compiles its first`,
      "name the node's own network alone",
    ],
    rule: {
      why: 'Whoever may reach the address of one Service then also reaches the node ports of all others.',
      passes: lint(aNodePort, '--proxy-mode ipvs --nodeport-addresses 192.168.1.0/24'),
    },
  }),
  'default-mode': row('note', {
    meaning: 'nothing names a mode: which one kpc took',
    advice: "name the mode of the node with --proxy-mode, or give kube-proxy's configuration with --config",
    example: manifests(web, '--print manifest'),
    // `named` is what leaves the mode to kube-proxy.
    words: ({ named }: { readonly named: keyof typeof defaultModes }) => defaultModes[named],
  }),
  'ipvs-ends': row('warning', {
    meaning: 'the configuration asks for IPVS mode, which ends',
    example: run('compile -f in.yaml --config config.yaml', {
      'in.yaml': web,
      'config.yaml': `${configuration}mode: ipvs\n`,
    }),
    words: () => [
      `IPVS mode is ${endWords('ipvs-mode')}`,
      'move to nftables mode: "kpc migrate" shows what that needs and breaks',
    ],
    rule: {
      why: 'A kube-proxy that is told to use IPVS mode does not start once the mode is off.',
      reports: ['https://kep.k8s.io/5495'],
      passes: lint(web, '--config config.yaml', { 'config.yaml': `${configuration}mode: nftables\n` }),
    },
  }),
  userspace: row(severityBy('problem', 'error', { unserved: 'warning', ignored: 'warning' }), {
    meaning: 'kube-proxy in userspace mode does not start with these settings, or does not serve these Service ports',
    advice: 'correct the flag that the message names; for SCTP or IPv6, use another mode',
    example: manifests(
      aService(`${anIP}, ports: [{ port: 80, protocol: SCTP }]`),
      '--proxy-mode userspace --kubernetes-version 1.25',
    ),
    words: wordsBy('problem', {
      'bind-address': ({ flag, address }: Texts<'flag' | 'address'>) => [
        `${flag} is ${quote(address)}: kube-proxy in userspace mode listens on IPv4, and not on loopback addresses`,
        'give an address of the node, or 0.0.0.0 for all of them',
      ],
      'few-ports': ({ flag, served, size }: Texts<'flag'> & Numbers<'served' | 'size'>) => [
        `${flag} has ${count(size, 'port')} for ${count(served, 'Service port')}`,
        'give a larger range',
      ],
      unserved: ({ labels }: Lists<'labels'>) => [
        `userspace mode serves TCP and UDP over IPv4 alone, so these get no rules: ${nameSome(labels)}`,
        'kube-proxy serves them in every other mode',
      ],
      ignored: ({ services }: Lists<'services'>) => [
        `userspace mode ignores traffic policies, source ranges and health check node ports: every client reaches all endpoints of ${nameSome(services)}`,
        'keep clients out by other means, or use another mode',
      ],
    }),
  }),
  'kubernetes-version': row('note', {
    meaning: 'the release that --kubernetes-version auto took from the Node',
    advice: 'nothing, if the node still runs that release; otherwise name one with --kubernetes-version',
    example: manifests(web + aNode('status: { nodeInfo: { kubeletVersion: v1.35.4 } }'), '--kubernetes-version auto'),
    words: ({ node, version, release }: Texts<'node' | 'version'> & { readonly release: Release }) =>
      `Kubernetes ${release}, as the Node ${quote(node)} says: ${version}`,
  }),
  'kubernetes-preview': row('note', {
    meaning: 'the release is not out yet: what its rules are taken from',
    advice: 'use the rules to see what will change, not on a node; compile again when the release is out',
    example: manifests(web, `--kubernetes-version ${lastRelease}`),
    words: ({ release }: { readonly release: Release }) =>
      `Kubernetes ${release} is not out: its rules are those of kube-proxy ${kubeProxyVersions[release]}`,
  }),
  'no-config': row('error', {
    meaning: 'the file of --config holds no configuration that kube-proxy reads',
    example: run('compile -f in.yaml --config in.yaml', { 'in.yaml': web }),
    words: () => [
      'the file holds no configuration of kube-proxy',
      `name one with a KubeProxyConfiguration (${configVersion}), a ConfigMap with one among its data, or a configuration of kubeadm, kind or k3s`,
    ],
  }),
  'not-applicable': row('warning', {
    meaning: 'kube-proxy takes a setting that kpc-apply does not: it refuses the bundle',
    example: manifests(web, '--conntrack-max-per-core 12'),
    words: ({ name, value, must }: WrittenSetting & Texts<'must'>) => [
      `${name} is ${quote(value)}, but kpc-apply rejects a bundle with it`,
      `it must ${must}`,
    ],
  }),
  'bad-host-addresses': row('error', {
    meaning: 'what --host-addresses names is not what ip addr prints on a node',
    example: run('compile -f in.yaml --host-addresses addresses.json', { 'in.yaml': web, 'addresses.json': '{}' }),
    words: wordsBy('problem', {
      content: ({ reason }: Texts<'reason'>) => [reason, 'write what `ip -j addr` prints on the node to a file'],
      'no-folder': ({ path }: Texts<'path'>) => [
        `--host-addresses ${path} is not a folder`,
        'for several nodes, name a folder with the output of `ip -j addr` on each in NODE.json',
      ],
    }),
  }),
  'bad-prune': row('error', {
    meaning: '--prune is used without --all-nodes',
    example: manifests(web, '--prune'),
    words: ['--prune needs --all-nodes: otherwise kpc cannot know which nodes are gone', 'add --all-nodes'],
  }),
  'localhost-node-port': row('warning', {
    meaning: 'kube-proxy itself listens for a node port on localhost, which no rule can replace',
    advice:
      "leave a kube-proxy running on the node, or reach the Service at its cluster IP or at a node port of the node's own address",
    example: manifests(
      aNodePort + endpoint('nodeName: worker-1, conditions: { ready: true }') + aNode(itsAddress),
      '--proxy-mode nftables --nodeport-addresses localhost --feature-gates KubeProxyNFTablesLocalhostNodePorts=true',
    ),
    words: ({ servicePort, nodePort, families, ofNodes }: LocalhostNodePort) => {
      const addresses = families.map((family) => (family === 'ipv4' ? '127.0.0.1' : '::1'));
      const where = ofNodes ? ' of each node that has endpoints for it' : '';
      return `${servicePort}: kube-proxy itself listens for node port ${nodePort} on ${joinWords(addresses)}${where}, and passes connections on; no rule can, so a node with these rules and no kube-proxy does not answer there`;
    },
  }),
  'no-host-addresses': row('note', {
    meaning: 'the folder of --host-addresses has no file for some of the nodes',
    advice:
      'nothing, if the Node objects have all addresses; otherwise save what `ip -j addr` prints on each node as NODE.json in the folder',
    example: run('compile -f in.yaml --all-nodes --host-addresses hosts -o out', {
      'in.yaml': web + aNode(''),
      'hosts/worker-2.json': '[]',
    }),
    // `nodes` counts the nodes to compile for.
    words: ({ path, nodes, without }: Texts<'path'> & Numbers<'nodes'> & Lists<'without'>) =>
      `${path} holds no file for ${without.length} of ${nodes} nodes, such as ${without[0]}.json: node ports listen on the Node object's addresses there`,
  }),
  'no-service-cidrs': row('note', {
    meaning: 'the input holds the Services of a cluster without its ServiceCIDR objects, which shape rules',
    example: manifests(
      'apiVersion: v1\nkind: Service\nmetadata: { name: kubernetes }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 443 }] }\n',
      '--proxy-mode nftables',
    ),
    words: [
      'without ServiceCIDR objects, the rules do not drop packets to cluster IPs that no Service has, as kube-proxy does',
      'add servicecidrs to what kubectl gets, or name the networks with --service-cluster-ip-range',
    ],
  }),
  'no-node': row(severityBy('problem', 'error', { 'compiled-for-any': 'note' }), {
    meaning: 'no node is named, and the input holds no Node or several',
    example: manifests(web),
    words: wordsBy('problem', {
      'none-chosen': [
        'no node to compile for: none is named, and none is taken from the input',
        'add --all-nodes and the output of kubectl get nodes -o yaml, or name nodes with --node',
      ],
      'compiled-for-any': describeAnyNode,
    }),
  }),
  'no-node-object': row('note', {
    meaning: 'the input holds no Node object of a node that is named',
    example: manifests(web, '--node worker-1'),
    words: (details: UnknownAddresses & Lists<'names'>) => [
      `no Node object ${nameSome(details.names)} in the input: ${listGaps(['zone, pod CIDRs and addresses are unknown'], details)}`,
      `give it with -f (kubectl get nodes -o yaml)${details.lacksAddresses ? ', or give --host-addresses' : ''}`,
    ],
  }),
  'no-node-port-address': row('warning', {
    meaning: 'node ports listen on none of the addresses of the node',
    example: manifests(aNodePort + aNode(itsAddress), '--nodeport-addresses 172.31.0.0/16'),
    words: ({ node, picked, addresses, areAll }: UnreachableNodePorts) => [
      `no node port can be reached on node ${node}: --nodeport-addresses ${picked.join(', ')} has none of its addresses ` +
        `(${nameSome(addresses)}) that node ports can listen on`,
      areAll
        ? 'write a network that holds one of them'
        : 'if it has more, give what ip -j addr prints there with --host-addresses',
    ],
  }),
  'no-pod-cidr': row('error', {
    meaning: "the networks of a node's Pods are not known, and they are needed",
    example: manifests(web, '--node worker-1 --detect-local-mode NodeCIDR'),
    // `names` is empty if no node is named.
    words: ({ names }: Lists<'names'>) => [
      'detectLocalMode NodeCIDR needs the pod CIDRs of the Node, and kube-proxy does not start without them',
      `give the Node object${names.length === 0 ? '' : ` for ${nameSome(names)}`} as the cluster has it, with -f (kubectl get nodes -o yaml)`,
    ],
  }),
  'unknown-node': row('error', {
    meaning: 'a flag names no Node of the input',
    example: manifests(web + aNode(''), '--node worker-2'),
    words: describeUnknownNode,
  }),
  'unknown-node-of-pod': row('warning', {
    meaning: 'Pods have no Node, or one that the input does not hold',
    example: manifests(
      aSelector + pod(`nodeName: worker-2, ${container}`, 'phase: Running, podIP: 10.244.0.1') + aNode(''),
    ),
    // `nodes` are the Nodes that the Pods name; empty if no Pod names one.
    words: ({ pods, nodes }: Lists<'pods' | 'nodes'>) => {
      const names = nodes.length === 0 ? 'no nodeName' : `nodeName ${nameSome(nodes)}`;
      const which = `${nameSome(pods)} ${pods.length === 1 ? 'is' : 'are'} on no Node of the input (${names})`;
      return [
        `${which}, and the endpointslice controller leaves such Pods out`,
        nodes.length === 0 ? 'write the name of the Node' : addAllNodes,
      ];
    },
  }),
  'wrong-family': row(severityBy('of', 'warning', { podCIDRs: 'error' }), {
    meaning: "the networks of the Pods are of another family than the node's address",
    example: manifests(web, '--bind-address fd00::1 --cluster-cidr 10.244.0.0/16'),
    // `of` is "clusterCIDR", or "podCIDRs" of the Node.
    words: ({ of, node, family, cidrs }: Texts<'of' | 'node'> & Lists<'cidrs'> & { readonly family: Family }) => [
      `the address of ${node === '' ? 'the node' : `node ${node}`} is ${familyNames[family]}, and ${of} ${cidrs.join(',')} is not: no ${familyNames[family]} traffic counts as local, and without both families kube-proxy does not start`,
      `name a network of each family in ${of}`,
    ],
  }),
} satisfies DiagnosticTable;
