import { joinWords, pluralOf } from '../../base/printable.ts';
import { nameSome } from '../words/rows.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { lines, type Block } from '../lines.ts';
import type { Address } from '../../kernel/address.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { Step } from '../../packet/step.ts';
import type { Trace } from '../../ask/trace/question.ts';
import type { Scene } from '../../ask/trace/scene.ts';

/** Returns the addresses, ports and node name in a trace, in the order of its text. */
export function valuesOfTrace({ sender, target, fate }: Trace, { side }: Scene): readonly string[] {
  return [
    ...socketValues(target),
    ...addressValues(sender.address),
    side.nodeName,
    ...(side.assumed?.clusterCIDRs ?? []),
    ...fate.endpoints.flatMap((each) => [
      ...socketValues(each),
      ...addressValues(each.source === 'masqueraded' ? undefined : each.source),
    ]),
    ...fate.steps.flatMap(valuesOfStep),
  ];
}

function socketValues({ address, port }: { readonly address: Address; readonly port?: number | undefined }) {
  return [address.text, ...(port === undefined ? [] : [String(port)])];
}

function addressValues(address: Address | undefined): readonly string[] {
  return address ? [address.text] : [];
}

function valuesOfStep(step: Step): readonly string[] {
  switch (step.kind) {
    case 'virtual-server':
    case 'listener':
      return [step.chosen, step.server].flatMap((at) => (at ? socketValues(at) : []));
    case 'route':
      return addressValues(step.destination);
    case 'rule':
      switch (step.action.kind) {
        case 'snat':
          return addressValues(step.action.address);
        case 'dnat':
          return socketValues(step.action.target);
        case 'dnat-random':
          return step.action.targets.flatMap(socketValues);
        default:
          return [];
      }
    case 'policy':
    case 'carrier':
      return [];
  }
}

/** Returns a line that names the values that kpc chose because the input lacks them. Empty if kpc chose none. */
export function assumedLine(values: readonly string[], side: Snapshot): Block {
  const named = groupBy(assumedValues(values, side), ({ kind }) => kind);
  const parts = [...named].map(([kind, own]) => {
    const names = own.map(({ value }) => value);
    const listed = names.length > mostAssumed ? nameSome(names, mostAssumed) : joinWords(names);
    return `${own.length === 1 ? kind : pluralOf(kind)} ${listed}`;
  });
  const all = [...parts, ...unplacedWords(unplacedAmong(values, side))];
  return lines('dim', 1, all.length > 0 && `assumed: ${all.join(', ')}`);
}

/** `values`: the values in a trace. Returns the workloads of the Pods with these addresses, if no known Node suits the workload. */
function unplacedAmong(values: readonly string[], side: Snapshot): readonly string[] {
  if (side.kind === 'dump') return [];
  const unplaced = new Set(side.assumed.unplaced);
  const ownPods = (side.assumedEndpoints ?? []).filter(({ workload }) => unplaced.has(workload));
  const asked = new Set(values);
  const isAsked = ({ pods }: (typeof ownPods)[number]) =>
    pods.some(({ addresses }) => addresses.some((address) => asked.has(address)));
  return ownPods.filter(isAsked).map(({ workload }) => workload);
}

/** Names the workloads for which kpc assumed a Node because no known Node suits them. */
export function unplacedWords(workloads: readonly string[]): readonly string[] {
  return workloads.length === 0 ? [] : [`a Node that fits the nodeSelector or affinity of ${nameSome(workloads)}`];
}

const mostAssumed = 6;

/** Returns those of the values that kpc chose because the input lacks them. */
export function assumedValues(values: readonly string[], side: Snapshot) {
  const chosen = chosenValues(side);
  return [...new Set(values)].flatMap((value) => {
    const kind = chosen.get(value);
    return kind === undefined ? [] : [{ value, kind }];
  });
}

/** Returns all values that kpc chose because the input lacks them. Each value comes with its kind. */
function chosenValues(side: Snapshot): ReadonlyMap<string, string> {
  if (side.kind === 'dump') return new Map();
  const { assumed, node } = side;
  const all = (kind: string, texts: readonly (string | number)[]) => texts.map((text) => [String(text), kind] as const);
  return new Map([
    ...(assumed.node
      ? all(
          'address',
          node.hostAddresses.map(({ text }) => text),
        )
      : []),
    ...(assumed.node ? all('node', [node.name]) : []),
    ...all('Pod', [...assumed.pods]),
    ...all('clusterCIDR', assumed.clusterCIDRs),
    ...assumed.services.flatMap(({ clusterIPs, nodePorts, healthCheckNodePort = [], loadBalancerIPs = [] }) => [
      ...all('cluster IP', clusterIPs),
      ...all('node port', Object.values(nodePorts)),
      ...all('health check port', [healthCheckNodePort].flat()),
      ...all('load balancer address', loadBalancerIPs),
    ]),
  ]);
}
