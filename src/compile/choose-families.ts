import type { Cluster, NodeContext } from '../cluster/model.ts';
import { families, type Family } from '../kernel/family.ts';
import { isLoopback } from '../kernel/address.ts';

/** --ip-family: auto takes the families that the Services and the node use. */
export const ipFamilyChoices = ['auto', 'ipv4', 'ipv6', 'dual'] as const;

/** A value of --ip-family. */
export type IpFamilyChoice = (typeof ipFamilyChoices)[number];

/** The families to compile for on a node. */
export function chooseFamilies(choice: IpFamilyChoice, cluster: Cluster, node: NodeContext): readonly Family[] {
  switch (choice) {
    case 'ipv4':
      return ['ipv4'];
    case 'ipv6':
      return ['ipv6'];
    case 'dual':
      return families;
    case 'auto':
      return usedFamilies(cluster, node);
  }
}

function usedFamilies(cluster: Cluster, node: NodeContext): readonly Family[] {
  const used = families.filter(
    (family) =>
      cluster.servicePorts.some((port) => port.family === family) ||
      node.podCIDRs.some((network) => network.family === family) ||
      !isLoopback(node.nodeIPs[family]),
  );
  return used.length > 0 ? used : ['ipv4'];
}
