import { groupSlices } from '../../cluster/endpoints.ts';
import { skippingLabelOf } from '../../kube-proxy/skipped.ts';
import type { ServiceInfo, ServicePort } from '../../cluster/model.ts';
import {
  fullName,
  type EndpointSlice,
  type Pod,
  type Service,
  type Sourced,
  type Workload,
} from '../../cluster/objects.ts';
import { asPods, isScaledDown } from '../../cluster/slices/assume-pods.ts';
import { findPrinted } from '../../cluster/slices/selector-causes.ts';
import { selectPods } from '../../cluster/slices/place-pods.ts';
import { compileNode, NodeMemo } from '../../snapshot/open/compile-node.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import { prepareChecked, type NodeOptions } from '../../snapshot/open/compile.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';

export interface LintInput {
  readonly loaded: LoadedInputs;
  readonly services: readonly LintedService[];
  /** The input's Nodes, without assumed ones. */
  readonly nodes: readonly CompiledSnapshot[];
  /** One snapshot for each node. If the input has no Nodes, the only snapshot is for the unnamed node ''. */
  readonly snapshots: readonly CompiledSnapshot[];
}

export interface LintedService extends Sourced<Service> {
  readonly name: string;
  /** The Service as written, without the values that kpc assigned. */
  readonly written: Service;
  /** Whether the Service was read from a cluster whose running Pods are all in the input. */
  readonly isOfCluster: boolean;
  readonly skipped: ServiceInfo['skipped'];
  /** The Service's ports in both families; empty if kube-proxy skips the Service. */
  readonly ports: readonly ServicePort[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  /** Whether the Service's endpoints are known: the input gives them, or shows that there are none, or kpc assumes them. */
  readonly isGiven: boolean;
  /** Whether the input shows all endpoints of the Service, through its EndpointSlices or Endpoints, or through a cluster's Pods. */
  readonly knowsEndpoints: boolean;
  readonly selected: readonly Sourced<Pod>[];
  /** The number of selected Pods if all replicas run; Infinity for a DaemonSet. */
  readonly selectedCount: number;
  /** Whether the Service selects only workloads without replicas. */
  readonly isScaledToZero: boolean;
}

/** Reads lint's input. After an error, returns only the diagnostics, because there is no cluster to check. */
export function readLintInput(loaded: LoadedInputs, { node: only, ipFamily }: NodeOptions) {
  const given = loaded.inputs.nodes.map(({ object }) => object.metadata.name);
  const all = given.filter((name) => loaded.nodes.has(name)).toSorted();
  const names = only === undefined ? all : [only];
  const flag = only === undefined ? undefined : names;
  const { preparedFor, diagnostics } = prepareChecked(loaded, { names, flag }, []);
  if (!preparedFor) return { input: undefined, diagnostics };
  const memo = new NodeMemo();
  const compiled = (name: string) => compileNode(preparedFor(name), name, { ipFamily, name: 'manifests' }, memo);
  const nodes = names.map(compiled);
  const snapshots = nodes.length > 0 ? nodes : [compiled('')];
  return { input: { loaded, services: readLintedServices(loaded), nodes, snapshots }, diagnostics };
}

/** Reports whether flags or the input name the mode. If not, the settings are kube-proxy's defaults. */
export function namesMode({ configured, modeNote }: LoadedInputs): boolean {
  return configured || modeNote?.code !== 'default-mode';
}

function readLintedServices({ cluster, inputs, services }: LoadedInputs): readonly LintedService[] {
  const written = new Map(inputs.services.map(({ object }) => [fullName(object.metadata), object]));
  const infos = new Map(cluster.services.map((info) => [fullName(info), info]));
  const slices = groupSlices(inputs.slices);
  const withEndpoints = new Set(inputs.endpoints.map(({ object }) => fullName(object.metadata)));
  const isPrinted = findPrinted(inputs.pods, inputs.services);
  const standsFor = new Map(
    inputs.workloads.filter(hasPods).flatMap((each) => asPods(each).map((pod) => [pod, podsOf(each)] as const)),
  );
  const isIdle = (pod: Sourced<Pod>): boolean => standsFor.get(pod) === 0;
  const ofWorkloads = [...standsFor.keys()];
  const pods = [...inputs.pods, ...ofWorkloads.filter((each) => !isIdle(each)), ...ofWorkloads.filter(isIdle)];
  const selections = new Map(selectPods(services, pods).map((each) => [each.label, each.pods]));
  return services.flatMap(({ object, source }): readonly LintedService[] => {
    const { namespace, name: short } = object.metadata;
    const name = fullName(object.metadata);
    const info = infos.get(name);
    if (!info || skippingLabelOf(info) !== undefined) return [];
    const ports = cluster.addresses.portsOf(name);
    const given = slices.get(namespace, short) ?? [];
    const hasSlices = given.length > 0 || withEndpoints.has(name);
    const own = written.get(name) ?? object;
    const isOfCluster = isPrinted(own);
    const selected = selections.get(name) ?? [];
    const isOfPods = isOfCluster && !ports.some(({ endpoints }) => endpoints.some(({ status }) => status.assumed));
    return [
      {
        object,
        source,
        name,
        written: own,
        isOfCluster,
        skipped: info.skipped,
        ports,
        slices: given,
        isGiven: info.endpointsGiven !== false,
        knowsEndpoints: hasSlices || (isOfPods && info.endpointsGiven !== false),
        selected,
        selectedCount: selected.reduce((sum, pod) => sum + (standsFor.get(pod) ?? 1), 0),
        isScaledToZero: selected.length > 0 && selected.every(isIdle),
      },
    ];
  });
}

function hasPods({ object }: Sourced<Workload>): boolean {
  return object.replicas !== 0 || isScaledDown(object);
}

/** Returns how many replicas each Pod from `asPods` represents; Infinity for a DaemonSet. */
function podsOf({ object: { kind, replicas = Number.POSITIVE_INFINITY } }: Sourced<Workload>): number {
  return kind === 'StatefulSet' ? Math.min(1, replicas) : replicas;
}
