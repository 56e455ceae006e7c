import { joinWords } from '../base/join-words.ts';
import { nameSome } from '../base/name-some.ts';
import { quote } from '../base/wording.ts';
import type { Family } from '../kernel/family.ts';
import { familyNames } from '../kernel/family.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { DiagnosticTable } from './table.ts';

type UnknownNode =
  | {
      readonly what: 'flag';
      readonly flag: '--node' | 'hostnameOverride';
      readonly names: readonly string[];
      /** Those of the input that may be meant. */
      readonly near: readonly string[];
      /** All that the input holds. */
      readonly known: readonly string[];
    }
  | {
      readonly what: 'pods';
      readonly pods: readonly string[];
      /** The Nodes that they name; none where they are not scheduled. */
      readonly nodes: readonly string[];
    };

function describeUnknownNode(details: UnknownNode): string {
  switch (details.what) {
    case 'flag': {
      const { flag, names, near, known } = details;
      const others = known.length === 1 ? `it holds only ${known[0]}` : `it holds ${nameSome(known)}`;
      const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : others;
      const shown = nameSome(names.map((name) => quote(name)));
      return `${flag} ${shown}: the input holds no such Node: ${hint} (without any Node object a name stands alone)`;
    }
    case 'pods': {
      const { pods, nodes } = details;
      const which = pods.length === 1 ? `Pod ${pods[0]} has` : `${pods.length} Pods have`;
      const [what, wayOut] =
        nodes.length === 0
          ? ['no spec.nodeName', 'write the name of its Node']
          : [`a Node that the input does not hold (${nameSome(nodes)})`, 'add all Nodes (kubectl get nodes -o yaml)'];
      return `${which} ${what}, and the endpointslice controller leaves such a Pod out: ${wayOut}`;
    }
  }
}

/** What follows where a node's addresses are unknown. */
interface UnknownAddresses {
  /** Node ports have no address to listen on. */
  readonly lacksAddresses: boolean;
  /** Node ports listen on all addresses, for want of the node's own. */
  readonly listensOnAll: boolean;
}

const allAddresses = "NodePorts listen on all addresses, because the node's own are unknown";

type NoNode =
  | { readonly problem: 'none-named' | 'none-held' }
  | (UnknownAddresses & {
      readonly problem: 'compiled-for-any';
      /** How many Nodes the input holds. */
      readonly nodes: number;
      readonly mode: ProxyMode;
    });

function describeNoNode(details: NoNode): string {
  switch (details.problem) {
    case 'none-named':
      return 'no node to compile for: --shard needs --all-nodes or --node';
    case 'none-held':
      return 'no node to compile for: the input holds no Node object; add the output of kubectl get nodes -o yaml, or name nodes with --node';
    case 'compiled-for-any': {
      const { nodes, mode, lacksAddresses, listensOnAll } = details;
      const which = nodes === 0 ? 'no node' : `none of the ${nodes} nodes is named with --node`;
      const lacks = [
        'no endpoint counts as local',
        ...modeFacts[mode].gapsWithoutNode,
        ...(lacksAddresses ? ['NodePorts have no address to listen on'] : []),
        ...(listensOnAll ? [allAddresses] : []),
      ];
      const help =
        nodes === 0 ? 'give the Node object (kubectl get nodes -o yaml) with -f and its name with --node' : 'name one';
      return `${which}: ${joinWords(lacks)}; ${help}`;
    }
  }
}

type NoNodeObject =
  | (UnknownAddresses & { readonly of: 'node'; readonly name: string })
  | { readonly of: 'fleet'; readonly names: readonly string[] };

function describeNoNodeObject(details: NoNodeObject): string {
  switch (details.of) {
    case 'node': {
      const { name, lacksAddresses, listensOnAll } = details;
      const all = listensOnAll ? `, and ${allAddresses}` : '';
      const ports = lacksAddresses ? ' and NodePorts have no address to listen on (or give --host-addresses)' : all;
      return `no Node object ${name} in the input: its zone, pod CIDRs and addresses are unknown${ports}; give it with -f (kubectl get nodes -o yaml)`;
    }
    case 'fleet':
      return `no Node object in the input for ${nameSome(details.names)}: zone, pod CIDRs and addresses are unknown there`;
  }
}

interface UnreachableNodePorts {
  readonly node: string;
  /** What --nodeport-addresses says. */
  readonly picked: readonly string[];
  /** The addresses that the node is known to have. */
  readonly addresses: readonly string[];
  /** Whether --host-addresses tells all of them. */
  readonly areAll: boolean;
}

function describeUnreachable({ node, picked, addresses, areAll }: UnreachableNodePorts): string {
  const help = areAll
    ? 'write a network that holds one of them'
    : 'if it has more, give what ip -j addr prints there with --host-addresses';
  return (
    `no node port can be reached on node ${node}: --nodeport-addresses ${picked.join(', ')} has none of its addresses ` +
    `(${nameSome(addresses)}) that node ports can listen on; ${help}`
  );
}

type NoPodCidr =
  /** The object is missing; no names where no node is named at all. */
  | { readonly problem: 'no-node-object'; readonly names: readonly string[] }
  | { readonly problem: 'none-of-node'; readonly name: string }
  | { readonly problem: 'assumed-pods' }
  | { readonly problem: 'assumed-pods-of-family'; readonly family: Family };

function describeNoPodCidr(details: NoPodCidr): string {
  const needed = 'detectLocalMode NodeCIDR needs the pod CIDRs of the Node, and kube-proxy does not start without them';
  switch (details.problem) {
    case 'no-node-object': {
      const which = details.names.length === 0 ? '' : ` for ${nameSome(details.names)}`;
      return `${needed}: give the Node object${which} with -f (kubectl get nodes -o yaml)`;
    }
    case 'none-of-node':
      return `${needed}: Node ${details.name} has none`;
    case 'assumed-pods':
      return 'assumed endpoints need the network of the Pods: name it, as in --assume-endpoints=10.244.0.0/16, or with --cluster-cidr, or give Nodes with podCIDRs';
    case 'assumed-pods-of-family':
      return `assumed Pods have no ${familyNames[details.family]} address, though Services have: name a network of each family, such as --assume-endpoints=10.244.0.0/16,fd00:10:244::/56`;
  }
}

/** `family`: the family of the node's own address. */
type WrongFamily =
  | { readonly of: 'pod-cidrs'; readonly node: string; readonly family: Family }
  /** `node` is '' where none is named. */
  | {
      readonly of: 'cluster-cidrs';
      readonly node: string;
      readonly family: Family;
      readonly clusterCIDRs: readonly string[];
    };

function describeWrongFamily(details: WrongFamily): string {
  const family = familyNames[details.family];
  switch (details.of) {
    case 'pod-cidrs':
      return `kube-proxy does not start: the address of Node ${details.node} is ${family}, but none of its pod CIDRs is, and detectLocalMode NodeCIDR needs one`;
    case 'cluster-cidrs': {
      const node = details.node === '' ? 'the node' : `node ${details.node}`;
      return `the address of ${node} is ${family}, and clusterCIDR ${details.clusterCIDRs.join(',')} is not: no ${family} traffic counts as local, and without both families kube-proxy does not start`;
    }
  }
}

interface LocalhostNodePort {
  readonly servicePort: string;
  readonly nodePort: number;
  readonly families: readonly Family[];
  /** Whether many nodes are compiled for, some of which may have no endpoints for it. */
  readonly ofNodes: boolean;
}

function describeLocalhostNodePort({ servicePort, nodePort, families, ofNodes }: LocalhostNodePort): string {
  const addresses = families.map((family) => (family === 'ipv4' ? '127.0.0.1' : '::1'));
  const where = ofNodes ? ' of each node that has endpoints for it' : '';
  return `${servicePort}: kube-proxy itself listens for node port ${nodePort} on ${joinWords(addresses)}${where}, and passes connections on; no rule can, so a node with these rules and no kube-proxy does not answer there`;
}

type BadHostAddresses =
  { readonly problem: 'content'; readonly reason: string } | { readonly problem: 'no-folder'; readonly path: string };

/** What is wrong with the nodes to compile for, and what is unknown about them. */
export const nodeDiagnostics = {
  'bad-host-addresses': {
    severity: 'error',
    meaning: 'what --host-addresses names is not what ip addr prints on a node',
    words: (details: BadHostAddresses) =>
      details.problem === 'content'
        ? `${details.reason}; write what \`ip -j addr\` prints on the node to a file`
        : `--host-addresses ${details.path} is not a folder: for several nodes, name a folder with the output of \`ip -j addr\` on each in NODE.json`,
  },
  'bad-prune': {
    severity: 'error',
    meaning: '--prune is used without --all-nodes',
    words: () => '--prune needs --all-nodes: only then is it known which nodes are gone',
  },
  'bad-shard': {
    severity: 'error',
    meaning: '--shard does not name a part of the nodes',
    words: ({ shard }: { readonly shard: string }) =>
      `--shard ${shard}: write I/N for part I of N; I counts from 0, so the last of eight is 7/8`,
  },
  'localhost-node-port': {
    severity: 'warning',
    meaning: 'kube-proxy itself listens for a node port on localhost, which no rule can replace',
    words: describeLocalhostNodePort,
  },
  'no-host-addresses': {
    severity: 'note',
    meaning: 'the folder of --host-addresses has no file for some of the nodes',
    words: ({
      path,
      nodes,
      without,
    }: {
      readonly path: string;
      /** How many nodes are compiled for. */
      readonly nodes: number;
      readonly without: readonly string[];
    }) =>
      `${path} holds no file for ${without.length} of ${nodes} nodes, such as ${without[0]}.json: NodePorts listen on the Node object's addresses there`,
  },
  'no-node': {
    severity: {
      among: ['error', 'note'],
      weigh: ({ problem }: NoNode) => (problem === 'compiled-for-any' ? 'note' : 'error'),
    },
    meaning: 'no node is named, and the input holds no Node or several',
    words: describeNoNode,
  },
  'no-node-object': {
    severity: 'note',
    meaning: 'the input holds no Node object of a node that is named',
    words: describeNoNodeObject,
  },
  'no-node-port-address': {
    severity: 'warning',
    meaning: 'node ports listen on none of the addresses of the node',
    words: describeUnreachable,
  },
  'no-pod-cidr': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: NoPodCidr) => (problem === 'assumed-pods-of-family' ? 'warning' : 'error'),
    },
    meaning: "the networks of a node's Pods are not known, and they are needed",
    words: describeNoPodCidr,
  },
  'unknown-node': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ what }: UnknownNode) => (what === 'flag' ? 'error' : 'warning'),
    },
    meaning: 'a flag or a Pod names no Node of the input',
    words: describeUnknownNode,
  },
  'wrong-family': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ of }: WrongFamily) => (of === 'pod-cidrs' ? 'error' : 'warning'),
    },
    meaning: "the networks of the Pods are of another family than the node's address",
    words: describeWrongFamily,
  },
} satisfies DiagnosticTable;
