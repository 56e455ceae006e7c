import type { Family } from '../../kernel/address.ts';
import { row, ofCompiling, severityBy, type By, type None, type Strings, type Numbers, type Lists } from './rows.ts';

/** `service` is the Service with the most rules. */
export type TooLarge = Numbers<'lines' | 'limit'> &
  Strings<'service'> & { readonly factors: Numbers<'ports' | 'pairs' | 'addresses' | 'sourceRanges'> };

/** `unplaced` are workloads whose nodeSelector or affinity no Node meets, so their Pods are assumed on any Node. */
export interface Assumed extends Lists<'nodes' | 'unplaced'> {
  readonly values: readonly AssumedValues[];
  readonly dualStack?: DualStack | undefined;
  readonly isDefault: boolean;
}

/** Why a dual-stack cluster is assumed: a Service needs the other family, or the other side of a comparison has it. */
export type DualStack = Strings<'name'> &
  ({ readonly by: 'service'; readonly family: Family } | { readonly by: 'side' });

export interface AssumedValues extends Numbers<'count'>, Lists<'from'> {
  readonly what: ClusterValue | 'readyPod' | 'Node' | 'clusterCIDR';
}

type ClusterValue = 'clusterIP' | 'nodePort' | 'healthCheckNodePort' | 'loadBalancerIP';

export type Limited = Numbers<'count' | 'limit'>;

export interface Likely {
  /** A label similar to one in the selector, and its workload. */
  readonly near?: Strings<'label' | 'owner'> | undefined;
  /** An object in another namespace with these labels, such as "Deployment prod/web". */
  readonly elsewhere?: string | undefined;
  /** The only label in the selector that a workload in the namespace lacks. */
  readonly lacking?: (Strings<'label' | 'owner'> & { readonly isOnOwner: boolean }) | undefined;
  readonly maker?: string | undefined;
  /** Whether the input holds all Pods of a cluster. */
  readonly isOfCluster?: boolean;
}

/**
 * Pods that kpc cannot see and that would be endpoints: the Pods of `owner`, if another program sets the label on them, or the Pods of
 * `maker`.
 */
export type UnseenPods =
  { readonly label: string; readonly owner: string; readonly maker?: never } | { readonly maker: string };

export function mayBeUnseen({ near, lacking, maker, isOfCluster = false }: Likely): boolean {
  return !isOfCluster && near === undefined && lacking?.isOnOwner !== true && (lacking ?? maker) !== undefined;
}

export type RangedValue = 'clusterIP' | 'nodePort' | 'loadBalancerIP' | 'podIP' | Family;

export type PortChange = Strings<'label'> & (Numbers<'port' | 'target'> | Numbers<'nodePort'>);

export const serviceFindings = {
  'disagreeing-slices': row<Strings<'service'> & Lists<'slices' | 'endpoints'>>('warning'),
  // Without `address`, the finding is about a node port, which kpc gives to `holder`. `isRefused`: the API server would refuse the second
  // use.
  'address-conflict': row<
    Strings<'protocol' | 'holder' | 'rival'> &
      Numbers<'port'> & { readonly address?: string | undefined; readonly isRefused?: true }
  >('warning'),
  // `first` is the index of the port that has the value already. The API server requires names unique in a slice, kube-proxy per protocol.
  'duplicate-port': row<Strings<'field' | 'value'> & Numbers<'first'> & { readonly isOfSlice?: true }>(
    severityBy('isOfSlice', 'error', { true: 'warning' }),
  ),
  'external-ips': row<Lists<'services'>>('warning'),
  'forwarding-changes-port': row<Strings<'method'> & PortChange>('error'),
  // `clearedFrom`: the release from which the API server clears the field instead of refusing it.
  'ignored-field': row<Strings<'field' | 'needs'> & { readonly clearedFrom?: string }>('warning'),
  // `lack`: the kind of endpoints that are missing on the nodes where kube-proxy writes the comment.
  'long-comment': row<Strings<'servicePort' | 'lack'> & Numbers<'limit'>>('warning'),
  'missing-cluster-ip': row<Strings<'first'>>('warning'),
  'missing-ip-families': row<Numbers<'families'>>('warning'),
  'node-address': row<Strings<'service' | 'address' | 'node'>>('warning'),
  'no-ports': row<None>('warning'),
  'too-large': row<TooLarge>('error'),
  'unloadable-range': row<Strings<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }>('warning'),
  'unnamed-port': row<None>('warning'),
  assumed: ofCompiling<Assumed>('note'),
  'not-assigned': row<
    By<
      'field',
      {
        clusterIP: Strings<'service'>;
        nodePort: Strings<'service'> & Lists<'ports'>;
        healthCheckNodePort: Strings<'service'>;
      }
    >
  >('warning'),
  'no-load-balancer-ip': ofCompiling<Lists<'services'>>('note'),
  // `holder` has the address, or requests it with the same port.
  'other-load-balancer-ip': row<
    Strings<'service' | 'asked'> & Lists<'ranges'> & { readonly holder?: string | undefined }
  >('warning'),
  // `service` is the Service, or the Pods, for which the range is too small. If `what` is a family, there is no range of that family.
  'range-is-full': row<
    Lists<'ranges'> & { readonly what: RangedValue; readonly service?: string; readonly pods?: readonly string[] }
  >('error'),
  // `workloads` are like "3 of Deployment default/web". `unplaced` are the workloads for which no Node is suitable.
  'assumed-endpoints': ofCompiling<Numbers<'pods'> & Lists<'workloads' | 'unplaced'>>('note'),
  'empty-selector': row<Strings<'service'>>('warning'),
  // `services` get endpoints from the input's Pods. `kept` counts the Services that keep given endpoints.
  'endpoints-from-pods': ofCompiling<Lists<'services'> & Numbers<'kept'>>('note'),
  'extra-addresses': row<Numbers<'index' | 'count'>>('warning'),
  // `services` have no endpoints in the input. `selecting` counts Services with a selector.
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
  // `services` select Pods of `owner`. `wanted` is the requirement that no Node meets, such as "pool=web".
  'no-node-fits': row<Lists<'services'> & Strings<'owner' | 'wanted'>>('warning'),
  'no-such-service': row<Lists<'services'>>('note'),
  // `selector` is the first Service's, such as "app=web". `isStale` means that EndpointSlices in the input still list Pods.
  'selects-nothing': row<Lists<'services'> & Strings<'selector'> & Likely & { readonly isStale?: boolean }>({
    among: ['warning', 'note'],
    weigh: (likely: Likely) => (mayBeUnseen(likely) ? 'note' : 'warning'),
  }),
  // `service` is the label's value if it is no valid name; undefined without a label.
  'slice-without-service': row<{ readonly service?: string | undefined }>('warning'),
  'too-many': row<
    By<
      'object',
      {
        EndpointSlice: Limited & Strings<'field'>;
        Endpoints: Limited & Strings<'field'>;
      }
    >
  >('warning'),
  // A Pod counts once for each Service that selects it.
  'too-many-pods': row<Limited & Strings<'of' | 'largest'> & Numbers<'most'>>('error'),
  // `found`: the ports of the Service's slices or of the Pods that it selects, such as "http/TCP". `service` has the port.
  'unknown-port': row<
    Strings<'service' | 'protocol' | 'name'> & Numbers<'port'> & Lists<'found'> & { readonly of: 'slices' | 'pods' }
  >('warning'),
};
