import type { Family } from '../kernel/family.ts';
import type { Rule, TableName } from '../kernel/iptables/iptables.ts';
import { setMatch, type SetId } from './ipvs-sets.ts';
import { baseChains } from './chain-names.ts';

/**
 * What closes the addresses on kube-ipvs0 to all but Services. To the kernel they are the node's own: without this, a
 * program on the node that listens on all addresses would answer there.
 */
export const accessFilter = {
  table: 'filter',
  /** The kernel's chain that jumps there, and with which comment. */
  from: 'INPUT',
  chain: baseChains.accessFilter,
  comment: 'kubernetes ipvs access filter',
} as const satisfies { readonly table: TableName } & Readonly<Record<string, string>>;

/** The chain, called from OUTPUT, that closes load balancers to the node itself where their source ranges leave it out. */
export const accessOutFilterChain = baseChains.accessOutFilter;

/** Sets of addresses and ports that Services have. */
export const openSets = [
  'loadBalancer',
  'clusterIP',
  'externalIP',
  'externalIPLocal',
] as const satisfies readonly SetId[];

/** What is not of these sets is refused, on all addresses of the set ipvsAddresses. */
export function accessFilterRules(family: Family, open: readonly SetId[]): readonly Rule[] {
  return [
    ...open.map((id): Rule => ({ args: [setMatch(id, family), { kind: 'jump', target: { kind: 'return' } }] })),
    {
      args: [
        { kind: 'conntrack-state', states: ['NEW'] },
        setMatch('ipvsAddresses', family),
        { kind: 'jump', target: { kind: 'reject' } },
      ],
    },
  ];
}
