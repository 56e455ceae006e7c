import type { ProxyMode } from '../../kube-proxy/modes.ts';

/** A cause in words. */
export interface Cause {
  readonly title: string;
  /** What each mode does, to follow its name. */
  readonly modes?: { readonly [M in ProxyMode]: string };
  /** What an operator can do, if anything; "the new side" is the one that is moved to. */
  readonly advice?: string;
}

const ipvsBinds = 'binds the address to kube-ipvs0, so the node itself answers what no virtual server takes';

/** Why two sides treat packets differently, in the order of the report. */
export const causes = {
  'node-port-addresses': {
    title: 'Node ports do not answer on the same addresses of the node',
    modes: {
      ipvs: 'answers on every address of the node, unless nodePortAddresses picks some',
      iptables: 'answers on every address of the node, unless nodePortAddresses picks some',
      nftables: "answers on the node's primary address only, unless nodePortAddresses picks others",
    },
    advice: 'set nodePortAddresses to the networks of the addresses that clients use (0.0.0.0/0 and ::/0 for all)',
  },
  'node-port-loopback': {
    title: 'Node ports do not answer alike on loopback addresses',
    modes: {
      ipvs: 'serves none there',
      iptables: 'serves them on IPv4 loopback addresses, unless iptables.localhostNodePorts is false',
      nftables: 'has no rules that serve them there',
    },
    advice: "have programs on the node connect to the node's own address or the cluster IP",
  },
  'external-policy-local': {
    title: 'externalTrafficPolicy Local does not choose the same endpoints',
    modes: {
      ipvs: 'sends every client to the endpoints on this node, and to all of them if it has none',
      iptables: 'sends pods and the node itself to all endpoints, and drops clients from outside if this node has none',
      nftables: 'sends pods and the node itself to all endpoints, and drops clients from outside if this node has none',
    },
    advice: 'let pods use the cluster IP, and let load balancers heed the health check node port',
  },
  'internal-policy-local': {
    title: 'internalTrafficPolicy Local does not choose the same endpoints',
    modes: {
      ipvs: 'refuses clients of a node without endpoints of its own, but sends them to all endpoints of a Service with a node port or an external address',
      iptables: 'drops what clients of a node without endpoints of its own send',
      nftables: 'drops what clients of a node without endpoints of its own send',
    },
    advice: 'run the endpoints on every node that has clients, as a DaemonSet does',
  },
  'source-ranges': {
    title: 'loadBalancerSourceRanges does not admit the same clients',
    advice: 'compare the ranges with the addresses that clients really have when they get to the node',
  },
  'no-endpoints': { title: 'Services without endpoints fail in another way' },
  hairpin: {
    title: 'A pod that reaches itself through its Service is not treated alike',
    modes: {
      ipvs: 'masquerades it only if the pod is on this node',
      iptables: 'masquerades it on every node it passes',
      nftables: 'masquerades it only if the pod is on this node',
    },
    advice: 'nothing, as long as pods ask for Services by way of their own node, as they do with usual network plugins',
  },
  masquerade: {
    title: 'Endpoints do not see the same source address',
    advice: 'check masqueradeAll, clusterCIDR and detectLocalMode on both sides, and what reads client addresses',
  },
  endpoints: { title: 'Different endpoints are chosen, or the same ones with different probabilities' },
  'health-check': { title: 'A health check node port is not reached alike' },
  'unserved-port': {
    title: 'Ports that a Service address does not have are not answered alike',
    modes: {
      ipvs: ipvsBinds,
      iptables: 'leaves such packets to routing, away from the node or back out by the default route',
      nftables: 'rejects other ports of cluster IPs, and leaves those of other addresses to routing',
    },
    advice: 'check programs that expect an answer there, such as port scans and health checks of a load balancer',
  },
  ping: {
    title: 'Pings of a Service address are not answered alike',
    modes: {
      ipvs: ipvsBinds,
      iptables: 'leaves pings to routing',
      nftables: 'rejects pings of cluster IPs, and leaves others to routing',
    },
    advice: 'let monitoring ask a port of the Service instead',
  },
  'unserved-address': {
    title: 'Addresses that no Service has are not treated alike',
    modes: {
      ipvs: 'leaves unused addresses of the Service network to routing',
      iptables: 'leaves unused addresses of the Service network to routing',
      nftables: 'drops packets to unused addresses of the Service network, where it knows the network',
    },
  },
  'not-understood': {
    title: 'It depends on a rule that kpc does not understand',
    advice: 'run the kpc trace command below: its last step is the rule',
  },
  other: { title: 'Packets are treated differently' },
} as const satisfies Readonly<Record<string, Cause>>;

/** The name of a cause in JSON and JUnit. */
export type CauseId = keyof typeof causes;

/** All causes, in the order of a report. */
export const causeIds = Object.keys(causes) as readonly CauseId[];
