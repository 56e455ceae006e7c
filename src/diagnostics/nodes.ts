import { compile, container, deployment, endpoint, manifests, aNode, aNodePort, aSelector, web } from './examples.ts';
import { findNearest } from '../base/find-nearest.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { quote } from '../base/printable.ts';
import { familyNames, type Family } from '../kernel/family.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  severityBy,
  wordsBy,
  type DiagnosticTable,
  type Words,
  type Lists,
  type Numbers,
  type Texts,
} from './diagnostic-rows.ts';

/** `known` are all that the input holds. */
interface UnknownFlagNode extends Lists<'names' | 'known'> {
  readonly flag: '--node' | 'hostnameOverride';
}

function describeUnknownNode({ flag, names, known }: UnknownFlagNode): Words {
  const wrong = `${flag} ${nameSome(names.map((name) => quote(name)))}: the input holds no such Node`;
  // A fleet's names would take long.
  const near = new Set(names.slice(0, 3).flatMap((name) => findNearest(name, known) ?? []));
  const any = '(without any Node object, any name is accepted)';
  if (near.size > 0) return [wrong, `did you mean ${[...near].join(' or ')}? ${any}`];
  const held = known.length === 1 ? `only ${known[0]}` : nameSome(known);
  return [`${wrong}: it holds ${held}`, `name one of them ${any}`];
}

/** `nodes` are those that the Pods name; none if they are not scheduled. */
function describePodNode({ pods, nodes }: Lists<'pods' | 'nodes'>): Words {
  const which = pods.length === 1 ? `Pod ${pods[0]} has` : `${pods.length} Pods have`;
  const [what, help] =
    nodes.length === 0
      ? ['no spec.nodeName', 'write the name of its Node']
      : [`a Node that the input does not hold (${nameSome(nodes)})`, addAllNodes];
  return [`${which} ${what}, and the endpointslice controller leaves such a Pod out`, help];
}

const addAllNodes = 'add all Nodes (kubectl get nodes -o yaml)';

/** What follows from a node's addresses being unknown. */
interface UnknownAddresses {
  /** Node ports have no address to listen on. */
  readonly lacksAddresses: boolean;
  /** Node ports listen on all addresses, because the node's own are unknown. */
  readonly listensOnAll: boolean;
}

const allAddresses = "node ports listen on all addresses, because the node's own are unknown";

interface ForAnyNode extends UnknownAddresses {
  /** How many Nodes the input holds. */
  readonly nodes: number;
  readonly mode: ProxyMode;
}

function describeAnyNode({ nodes, mode, lacksAddresses, listensOnAll }: ForAnyNode): Words {
  const which = nodes === 0 ? 'no node' : `none of the ${nodes} nodes is named with --node`;
  const lacks = [
    'no endpoint counts as local',
    ...modeFacts[mode].gapsWithoutNode,
    ...(lacksAddresses ? ['node ports have no address to listen on'] : []),
    ...(listensOnAll ? [allAddresses] : []),
  ];
  return [
    `${which}: ${joinWords(lacks)}`,
    nodes === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one',
  ];
}

function describeNoNodeObject({ name, lacksAddresses, listensOnAll }: UnknownAddresses & Texts<'name'>): Words {
  const all = listensOnAll ? `, and ${allAddresses}` : '';
  const ports = lacksAddresses ? ' and node ports have no address to listen on' : all;
  return [
    `no Node object ${name} in the input: its zone, pod CIDRs and addresses are unknown${ports}`,
    `give it with -f (kubectl get nodes -o yaml)${lacksAddresses ? ', or give --host-addresses' : ''}`,
  ];
}

/**
 * `picked` is the value of --nodeport-addresses; `addresses` are those that the node is known to have. `areAll`: whether
 * --host-addresses gives all of them.
 */
type UnreachableNodePorts = Texts<'node'> & Lists<'picked' | 'addresses'> & { readonly areAll: boolean };

const needsPodCidrs =
  'detectLocalMode NodeCIDR needs the pod CIDRs of the Node, and kube-proxy does not start without them';

/** `family`: the family of the address of the node, whose name is '' if none is named. */
type OfFamily = Texts<'node'> & { readonly family: Family };

/** `ofNodes`: whether many nodes are compiled for, some of which may have no endpoints for it. */
type LocalhostNodePort = Texts<'servicePort'> &
  Numbers<'nodePort'> & { readonly families: readonly Family[]; readonly ofNodes: boolean };

/** What is wrong with the nodes to compile for, and what is unknown about them. */
export const nodeDiagnostics = {
  'bad-host-addresses': {
    severity: 'error',
    meaning: 'what --host-addresses names is not what ip addr prints on a node',
    example: () => ({
      words: [...compile, '--host-addresses', 'addresses.json'],
      files: { 'in.yaml': web, 'addresses.json': '{}' },
    }),
    words: wordsBy('problem', {
      content: ({ reason }: Texts<'reason'>) => [reason, 'write what `ip -j addr` prints on the node to a file'],
      'no-folder': ({ path }: Texts<'path'>) => [
        `--host-addresses ${path} is not a folder`,
        'for several nodes, name a folder with the output of `ip -j addr` on each in NODE.json',
      ],
    }),
  },
  'bad-prune': {
    severity: 'error',
    meaning: '--prune is used without --all-nodes',
    example: () => manifests(web, '--prune'),
    words: ['--prune needs --all-nodes: only then is it known which nodes are gone', 'add --all-nodes'],
  },
  'bad-shard': {
    severity: 'error',
    meaning: '--shard does not name a part of the nodes',
    example: () => ({
      words: ['compile', '-f', 'in.yaml', '--all-nodes', '--shard', '8/8', '-o', 'out'],
      files: { 'in.yaml': web + aNode('') },
    }),
    words: ({ shard }: Texts<'shard'>) => [
      `--shard cannot be ${shard}`,
      'write I/N for part I of N; I counts from 0, so the last of eight is 7/8',
    ],
  },
  'localhost-node-port': {
    severity: 'warning',
    meaning: 'kube-proxy itself listens for a node port on localhost, which no rule can replace',
    example: () =>
      manifests(
        aNodePort +
          endpoint('nodeName: worker-1, conditions: { ready: true }') +
          aNode('status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }'),
        '--proxy-mode',
        'nftables',
        '--nodeport-addresses',
        'localhost',
        '--feature-gates',
        'KubeProxyNFTablesLocalhostNodePorts=true',
      ),
    words: ({ servicePort, nodePort, families, ofNodes }: LocalhostNodePort) => {
      const addresses = families.map((family) => (family === 'ipv4' ? '127.0.0.1' : '::1'));
      const where = ofNodes ? ' of each node that has endpoints for it' : '';
      return `${servicePort}: kube-proxy itself listens for node port ${nodePort} on ${joinWords(addresses)}${where}, and passes connections on; no rule can, so a node with these rules and no kube-proxy does not answer there`;
    },
  },
  'no-host-addresses': {
    severity: 'note',
    meaning: 'the folder of --host-addresses has no file for some of the nodes',
    example: () => ({
      words: ['compile', '-f', 'in.yaml', '--all-nodes', '--host-addresses', 'hosts', '-o', 'out'],
      files: { 'in.yaml': web + aNode(''), 'hosts/worker-2.json': '[]' },
    }),
    // `nodes` is how many nodes are compiled for.
    words: ({ path, nodes, without }: Texts<'path'> & Numbers<'nodes'> & Lists<'without'>) =>
      `${path} holds no file for ${without.length} of ${nodes} nodes, such as ${without[0]}.json: node ports listen on the Node object's addresses there`,
  },
  'no-node': {
    severity: severityBy('problem', 'error', { 'compiled-for-any': 'note' }),
    meaning: 'no node is named, and the input holds no Node or several',
    example: () => manifests(web),
    words: wordsBy('problem', {
      'none-named': ['no node to compile for', 'add --all-nodes or --node: --shard needs one of them'],
      'none-held': [
        'no node to compile for: the input holds no Node object',
        'add the output of kubectl get nodes -o yaml, or name nodes with --node',
      ],
      'compiled-for-any': describeAnyNode,
    }),
  },
  'no-node-object': {
    severity: 'note',
    meaning: 'the input holds no Node object of a node that is named',
    example: () => manifests(web, '--node', 'worker-1'),
    words: wordsBy('of', {
      node: describeNoNodeObject,
      fleet: ({ names }: Lists<'names'>) => [
        `no Node object in the input for ${nameSome(names)}: zone, pod CIDRs and addresses are unknown there`,
        addAllNodes,
      ],
    }),
  },
  'no-node-port-address': {
    severity: 'warning',
    meaning: 'node ports listen on none of the addresses of the node',
    example: () =>
      manifests(
        aNodePort + aNode('status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }'),
        '--nodeport-addresses',
        '172.31.0.0/16',
      ),
    words: ({ node, picked, addresses, areAll }: UnreachableNodePorts) => [
      `no node port can be reached on node ${node}: --nodeport-addresses ${picked.join(', ')} has none of its addresses ` +
        `(${nameSome(addresses)}) that node ports can listen on`,
      areAll
        ? 'write a network that holds one of them'
        : 'if it has more, give what ip -j addr prints there with --host-addresses',
    ],
  },
  'no-pod-cidr': {
    severity: severityBy('problem', 'error', { 'assumed-pods-of-family': 'warning' }),
    meaning: "the networks of a node's Pods are not known, and they are needed",
    example: () => manifests(aSelector + deployment(container), '--assume-endpoints'),
    words: wordsBy('problem', {
      /** The object is missing; no names if no node is named at all. */
      'no-node-object': ({ names }: Lists<'names'>) => [
        needsPodCidrs,
        `give the Node object${names.length === 0 ? '' : ` for ${nameSome(names)}`} with -f (kubectl get nodes -o yaml)`,
      ],
      'none-of-node': ({ name }: Texts<'name'>) => [
        `${needsPodCidrs}: Node ${name} has none`,
        'give the Node as the cluster has it (kubectl get nodes -o yaml)',
      ],
      'assumed-pods': [
        'assumed endpoints need the network of the Pods',
        'name it, as in --assume-endpoints=10.244.0.0/16, or with --cluster-cidr, or give Nodes with podCIDRs',
      ],
      'assumed-pods-of-family': ({ family }: { readonly family: Family }) => [
        `assumed Pods have no ${familyNames[family]} address, though Services have`,
        'name a network of each family, such as --assume-endpoints=10.244.0.0/16,fd00:10:244::/56',
      ],
    }),
  },
  'unknown-node': {
    severity: severityBy('what', 'warning', { flag: 'error' }),
    meaning: 'a flag or a Pod names no Node of the input',
    example: () => manifests(web + aNode(''), '--node', 'worker-2'),
    words: wordsBy('what', { flag: describeUnknownNode, pods: describePodNode }),
  },
  'wrong-family': {
    severity: severityBy('of', 'warning', { 'pod-cidrs': 'error' }),
    meaning: "the networks of the Pods are of another family than the node's address",
    example: () => manifests(web, '--bind-address', 'fd00::1', '--cluster-cidr', '10.244.0.0/16'),
    words: wordsBy('of', {
      'pod-cidrs': ({ node, family }: OfFamily) =>
        `kube-proxy does not start: the address of Node ${node} is ${familyNames[family]}, but none of its pod CIDRs is, and detectLocalMode NodeCIDR needs one`,
      'cluster-cidrs': ({ node, family, clusterCIDRs }: OfFamily & Lists<'clusterCIDRs'>) => [
        `the address of ${node === '' ? 'the node' : `node ${node}`} is ${familyNames[family]}, and clusterCIDR ${clusterCIDRs.join(',')} is not: no ${familyNames[family]} traffic counts as local, and without both families kube-proxy does not start`,
        'name a network of each family in clusterCIDR',
      ],
    }),
  },
} satisfies DiagnosticTable;
