import type { ServicePort } from '../../cluster/model.ts';
import type { planTraffic } from '../../cluster/plan-traffic.ts';
import type { LintedNode, LintedService, LintInput } from './lint-input.ts';

/** A port of a Service, and the nodes where something holds of it. */
interface OnNodes {
  readonly port: ServicePort;
  /** The first of these nodes. */
  readonly node: LintedNode;
  readonly nodes: readonly LintedNode[];
  /** Their names, and how many nodes there are. */
  readonly on: { readonly nodes: readonly string[]; readonly of: number };
}

/** The first port of the Service of which something holds on a node, with all nodes where it holds of one. */
export function findNodes(
  { name }: LintedService,
  { nodes }: LintInput,
  holds: (port: ServicePort, node: LintedNode) => boolean,
): OnNodes | undefined {
  const found = nodes.flatMap((node) => {
    const port = node.portsOf(name).find((each) => holds(each, node));
    return port ? [{ port, node }] : [];
  });
  const [first] = found;
  const own = found.map(({ node }) => node);
  return first && { ...first, nodes: own, on: { nodes: own.map(({ name: node }) => node), of: nodes.length } };
}

/** The same for what a lack of endpoints shows: nothing, if the input does not show all endpoints of the Service. */
export function findGap(...[service, input, lacks]: Parameters<typeof findNodes>): OnNodes | undefined {
  return service.knowsEndpoints ? findNodes(service, input, lacks) : undefined;
}

export function isRefusedForLack({ refusal }: ReturnType<typeof planTraffic>['internal']): boolean {
  return refusal?.reason === 'no-local-endpoints';
}
