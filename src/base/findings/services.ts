import type { Family } from '../../kernel/family.ts';
import { row, ofCompiling, severityBy, type By, type None, type Texts, type Numbers, type Lists } from './rows.ts';

/** `service` is the largest one. */
export type TooLarge = Numbers<'lines' | 'limit'> &
  Texts<'service'> & { readonly factors: Numbers<'ports' | 'pairs' | 'addresses' | 'sourceRanges'> };

/** `unplaced`: workloads whose nodeSelector or affinity no Node meets; their Pods are assumed on any. */
export interface Assumed extends Lists<'nodes' | 'unplaced'> {
  readonly values: readonly AssumedValues[];
  readonly dualStack?: DualStack | undefined;
  readonly isDefault: boolean;
}

/** What says that the cluster has both IP families: a Service that needs the family that nothing else shows, or the other side of a comparison. */
export type DualStack = Texts<'name'> & ({ readonly by: 'service'; readonly family: Family } | { readonly by: 'side' });

/** How many values kpc chose, and the networks that it took them from. */
export interface AssumedValues extends Numbers<'count'>, Lists<'from'> {
  readonly what: 'cluster IP' | 'node port' | 'load balancer address' | 'ready Pod' | 'Node' | 'clusterCIDR';
}

export type Limited = Numbers<'count' | 'limit'>;

/** What a selector may be meant for. */
export interface Likely {
  /** A label much like one of it, and the workload that has it. */
  readonly near?: Texts<'label' | 'owner'> | undefined;
  /** What has the labels in another namespace, as "Deployment prod/web". */
  readonly elsewhere?: string | undefined;
  /** The only label that a workload of the namespace lacks, and that workload. */
  readonly lacking?: (Texts<'label' | 'owner'> & { readonly isOnOwner: boolean }) | undefined;
  /** A custom resource of the namespace, for which an operator may make Pods. */
  readonly maker?: string | undefined;
  /** Whether the input holds the Pods of a cluster: then there are no others. */
  readonly isOfCluster?: boolean;
}

/** Whether the Pods may be there although the manifests do not show them. */
export function mayBeUnseen({ near, lacking, maker, isOfCluster = false }: Likely): boolean {
  return !isOfCluster && near === undefined && lacking?.isOnOwner !== true && (lacking ?? maker) !== undefined;
}

/** Problems with Services, their ports and endpoints, and what a cluster would assign that they lack. */
export const serviceFindings = {
  // Without an address it is a node port. kpc gives it to `holder`. `isRefused`: the API server gives it away once.
  'address-conflict': row<
    Texts<'protocol' | 'holder' | 'rival'> &
      Numbers<'port'> & { readonly address?: string | undefined; readonly isRefused?: true }
  >('warning'),
  // `first`: index of the port that has it. A slice's names must be unique to the API server, per protocol to kube-proxy.
  'duplicate-port': row<Texts<'field' | 'value'> & Numbers<'first'> & { readonly isOfSlice?: true }>(
    severityBy('isOfSlice', 'error', { true: 'warning' }),
  ),
  'external-ips': row<Lists<'services'>>('warning'),
  // `wrong` is which port would change.
  'forwarding-changes-port': row<Texts<'method' | 'wrong' | 'help'>>('error'),
  'ignored-field': row<Texts<'field' | 'needs'>>('warning'),
  // `lack` is what the Service has not on the nodes where kube-proxy writes the comment.
  'long-comment': row<Texts<'servicePort' | 'lack'> & Numbers<'limit'>>('warning'),
  'missing-cluster-ip': row<Texts<'first'>>('warning'),
  'missing-ip-families': row<Numbers<'families'>>('warning'),
  'node-address': row<Texts<'service' | 'address' | 'node'>>('warning'),
  'no-ports': row<None>('warning'),
  'too-large': row<TooLarge>('error'),
  'unloadable-range': row<Texts<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }>('warning'),
  'unnamed-port': row<None>('warning'),
  assumed: ofCompiling<Assumed>('note'),
  'not-assigned': row<
    By<
      'field',
      {
        clusterIP: Texts<'service'>;
        // `ports`: each as "80/TCP".
        nodePort: Texts<'service'> & Lists<'ports'>;
        healthCheckNodePort: Texts<'service'>;
      }
    >
  >('warning'),
  // All Services that lack an address, sorted.
  'no-load-balancer-ip': ofCompiling<Lists<'services'>>('note'),
  // `holder` has it, or asks for it with the same port.
  'other-load-balancer-ip': row<
    Texts<'service' | 'asked'> & Lists<'ranges'> & { readonly holder?: string | undefined }
  >('warning'),
  // `service` is what needs it: a Service, or Pods. `help` says where to give a larger range.
  'range-is-full': row<Texts<'what' | 'service' | 'help'> & Lists<'ranges'>>('error'),
  // `workloads`: each as "3 of Deployment default/web".
  // `unplaced`: those whose nodeSelector or affinity no Node meets; they are assumed on any.
  'assumed-endpoints': ofCompiling<Numbers<'pods'> & Lists<'workloads' | 'unplaced'>>('note'),
  'empty-selector': row<Texts<'service'>>('warning'),
  // `services` get endpoints made from Pods of the input; `kept` counts those that keep the endpoints in the input.
  'endpoints-from-pods': ofCompiling<Lists<'services'> & Numbers<'kept'>>('note'),
  'extra-addresses': row<Numbers<'index' | 'count'>>('warning'),
  // `services` have no endpoints in the input; `selecting` counts the Services with a selector.
  'no-endpoints-given': row<Lists<'services'> & Numbers<'selecting'> & { readonly hasWorkloads: boolean }>('warning'),
  'no-pod-address': ofCompiling<
    By<
      'problem',
      {
        'no-network': None;
        'no-network-of-family': { readonly family: Family };
        'host-network': Lists<'pods'>;
      }
    >
  >(severityBy('problem', 'error', { 'host-network': 'warning', 'no-network-of-family': 'warning' })),
  'no-such-service': row<Lists<'services'>>('note'),
  // `selector` is the first Service's, as "app=web".
  'selects-nothing': row<Lists<'services'> & Texts<'selector'> & Likely>({
    among: ['warning', 'note'],
    weigh: (likely: Likely) => (mayBeUnseen(likely) ? 'note' : 'warning'),
  }),
  // `service` is the value of the label, if it is not a valid name; undefined without a label.
  'slice-without-service': row<{ readonly service?: string | undefined }>('warning'),
  'too-many': row<
    By<
      'object',
      {
        EndpointSlice: Limited & Texts<'field'>;
        Endpoints: Limited & Texts<'field'>;
      }
    >
  >('warning'),
  // A Pod counts once for each Service that selects it.
  'too-many-pods': row<Limited & Texts<'of' | 'largest'> & Numbers<'most'>>('error'),
  // `found`: the existing ports, each as "http/TCP".
  // `service` is whose port it is.
  'unknown-port': row<Texts<'service' | 'owner' | 'protocol' | 'name'> & Numbers<'port'> & Lists<'found'>>('warning'),
};
