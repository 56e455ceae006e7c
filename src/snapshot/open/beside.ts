import { remadeSlices } from '../../cluster/stale-slices.ts';
import { nodesOfPods } from './assumptions.ts';
import type { LoadedInputs, LoadOptions } from './load-texts.ts';

/** What the other side shows of the cluster that both sides belong to; undefined for what changes nothing. */
export type Beside = Pick<LoadOptions, 'dualStackAs' | 'nodesBeside' | 'remade'>;

type ReadSide = Pick<LoadedInputs, 'assumedCluster' | 'inputs'>;

/** `name`: the other side's. */
export function factsBeside(side: ReadSide, other: ReadSide, name: string): Beside {
  const [own, others] = [side.assumedCluster, other.assumedCluster];
  const known = nodesOfPods(side.inputs);
  const nodes = own ? nodesOfPods(other.inputs).filter((node) => !known.includes(node)) : [];
  return {
    dualStackAs: others?.families.length === 2 && own?.families.length === 1 ? name : undefined,
    nodesBeside: nodes.length > 0 ? nodes : undefined,
    remade: remadeSlices(side.inputs, other.inputs),
  };
}
