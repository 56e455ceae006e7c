import { pod, run, container, endpoint, manifests, aNode, aNodePort, aSelector, web } from './examples.ts';
import { findNearest } from '../base/find-nearest.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { quote } from '../base/printable.ts';
import { familyNames, type Family } from '../kernel/family.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  row,
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

const addAllNodes = 'add all Nodes (kubectl get nodes -o yaml)';

/** What follows from a node's addresses being unknown. */
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

/** `nodes` is how many the input holds. */
function describeAnyNode(details: UnknownAddresses & Numbers<'nodes'> & { readonly mode: ProxyMode }): Words {
  const { nodes, mode } = details;
  const which = nodes === 0 ? 'no node' : `none of the ${nodes} nodes is named with --node`;
  return [
    `${which}: ${listGaps(['no endpoint counts as local', ...modeFacts[mode].gapsWithoutNode], details)}`,
    nodes === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one',
  ];
}

/**
 * `picked` is the value of --nodeport-addresses; `addresses` are those that the node is known to have. `areAll`: whether
 * --host-addresses gives all of them.
 */
type UnreachableNodePorts = Texts<'node'> & Lists<'picked' | 'addresses'> & { readonly areAll: boolean };

/** `ofNodes`: whether many nodes are compiled for, some of which may have no endpoints for it. */
type LocalhostNodePort = Texts<'servicePort'> &
  Numbers<'nodePort'> & { readonly families: readonly Family[]; readonly ofNodes: boolean };

/** What is wrong with the nodes to compile for, and what is unknown about them. */
export const nodeDiagnostics = {
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
    words: ['--prune needs --all-nodes: only then is it known which nodes are gone', 'add --all-nodes'],
  }),
  'bad-shard': row('error', {
    meaning: '--shard does not name a part of the nodes',
    example: run('compile -f in.yaml --all-nodes --shard 8/8 -o out', { 'in.yaml': web + aNode('') }),
    words: ({ shard }: Texts<'shard'>) => [
      `--shard cannot be ${shard}`,
      'write I/N for part I of N; I counts from 0, so the last of eight is 7/8',
    ],
  }),
  'localhost-node-port': row('warning', {
    meaning: 'kube-proxy itself listens for a node port on localhost, which no rule can replace',
    example: manifests(
      aNodePort +
        endpoint('nodeName: worker-1, conditions: { ready: true }') +
        aNode('status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }'),
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
    example: run('compile -f in.yaml --all-nodes --host-addresses hosts -o out', {
      'in.yaml': web + aNode(''),
      'hosts/worker-2.json': '[]',
    }),
    // `nodes` is how many nodes are compiled for.
    words: ({ path, nodes, without }: Texts<'path'> & Numbers<'nodes'> & Lists<'without'>) =>
      `${path} holds no file for ${without.length} of ${nodes} nodes, such as ${without[0]}.json: node ports listen on the Node object's addresses there`,
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
    example: manifests(
      aNodePort + aNode('status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }'),
      '--nodeport-addresses 172.31.0.0/16',
    ),
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
    // No names if no node is named at all.
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
    words: ({ pods }: Lists<'pods'>) => [
      `the input holds no Node of ${nameSome(pods)}, and the endpointslice controller leaves such Pods out`,
      addAllNodes,
    ],
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
