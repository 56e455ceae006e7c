import { isObject } from '../../base/json/check.ts';
import { isLabelValue } from '../../base/names.ts';
import { zoneLabel } from '../../cluster/node-context.ts';
import {
  meetsRequirement,
  requirementWords,
  type Autoscaler,
  type ContainerPort,
  type FieldPath,
  type HostPort,
  type Labels,
  type Namespace,
  type Node,
  type NodeRequirement,
  type ObjectMeta,
  type Owner,
  type Pod,
  type PodSpec,
  type PodStatus,
  type Taint,
  type Workload,
  type WorkloadKind,
} from '../../cluster/objects.ts';
import {
  areOfEachFamily,
  checkHostAddress,
  checkName,
  checkNetwork,
  type CommonNames,
  readMetadata,
  textsWithoutNull,
} from './check-values.ts';
import type { Report } from './report.ts';
import { readLabelSelector } from './read-traffic.ts';
import type { RawAutoscaler, RawNode, RawPod, RawPodSpec, RawPodStatus, RawWorkload } from './shapes/node.ts';
import type { RawCondition, RawMetadata } from './shapes/shared.ts';
import type { Address } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';

/** Reads podCIDR if podCIDRs is missing. */
export function readNode(raw: RawNode, report: Report, names: CommonNames): Node {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const listed = raw.spec?.podCIDRs ?? [];
  const single = raw.spec?.podCIDR;
  const podCIDRs = listed.length === 0 && single ? [single] : listed;
  const networks = podCIDRs.flatMap((cidr, i) => {
    return checkNetwork(cidr, listed.length === 0 ? ['spec', 'podCIDR'] : ['spec', 'podCIDRs', i], report) ?? [];
  });
  if (listed.length > 0 && networks.length === listed.length && !areOfEachFamily(networks)) {
    report.addWrong(['spec', 'podCIDRs'], listed.join(), 'networks');
  }
  const zone = metadata.labels[zoneLabel];
  if (zone !== undefined && !isLabelValue(zone)) {
    report.addWrong(['metadata', 'labels', zoneLabel], zone, 'label-value');
  }
  const addresses = (raw.status?.addresses ?? []).map(({ type, address }) => ({
    type: type ?? '',
    address: address ?? '',
  }));
  const { kernelVersion, kubeProxyVersion, kubeletVersion, operatingSystem } = raw.status?.nodeInfo ?? {};
  const isWindows = [operatingSystem, metadata.labels['kubernetes.io/os']].includes('windows');
  return {
    metadata,
    kubernetesVersion: kubeProxyVersion || kubeletVersion || '',
    kernelVersion: kernelVersion || undefined,
    podCIDRs,
    addresses,
    isWindows: isWindows || undefined,
    ready: saysReady(raw.status?.conditions ?? []),
    nanoCPUs: readCPUs(raw.status?.allocatable?.cpu ?? '', report),
    taints: readTaints(raw),
  };
}

function readTaints({ spec }: RawNode): readonly Taint[] {
  return (spec?.taints ?? []).flatMap(({ key, value, effect }) => {
    const keepsAway = effect === 'NoSchedule' || effect === 'NoExecute';
    return keepsAway ? [{ key: key ?? '', value: value ?? '', effect }] : [];
  });
}

function saysReady(conditions: readonly RawCondition[]): boolean {
  return conditions.find(({ type }) => type === 'Ready')?.status === 'True';
}

function readCPUs(cpu: string | number, report: Report): bigint {
  if (cpu === '') return 0n;
  const amount = parseQuantity(String(cpu));
  if (amount !== undefined) return amount;
  report.addWrong(['status', 'allocatable', 'cpu'], String(cpu), 'quantity');
  return 0n;
}

const suffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

const quantityShape = /^\+?(\d{1,30})?(?:\.(\d{0,30}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;

/** Returns a Kubernetes quantity ("4", "3920m", "1e3") in billionths, rounded up as in the API server. Undefined if bad or negative. */
function parseQuantity(text: string): bigint | undefined {
  const [, whole = '', fraction = '', suffix = '', exponent] = quantityShape.exec(text) ?? [];
  if (whole + fraction === '') return undefined;
  const [decimal, binary] = [suffixes.indexOf(suffix), binarySuffixes.indexOf(suffix)];
  const tens = exponent === undefined ? (decimal < 0 ? 0 : 3 * (decimal - 3)) : Number(exponent);
  const digits = BigInt(whole + fraction) << BigInt(10 * Math.max(binary, 0));
  const power = tens - fraction.length + 9;
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}

export function readNamespace(raw: Pick<RawPod, 'metadata'>, report: Report, names: CommonNames): Namespace {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  return { metadata, isInjected: asksForInjection(raw.metadata) };
}

const none: readonly never[] = [];

/** Reads the fields of a Pod that determine its endpoints. Checks them like the API server and fills in its defaults. */
export function readPod(raw: RawPod, report: Report, names: CommonNames): Pod {
  return {
    metadata: readOwnedMetadata(raw.metadata, report, names),
    spec: readPodSpec(raw, [], report, names),
    owner: readOwner(raw.metadata),
    terminating: Boolean(raw.metadata?.deletionTimestamp),
    status: raw.status && Object.keys(raw.status).length > 0 ? readStatus(raw.status, report) : undefined,
  };
}

/** Like readMetadata, but accepts generateName and returns '' as the name, because nothing refers to such an object. */
function readOwnedMetadata(raw: RawMetadata | null | undefined, report: Report, names: CommonNames): ObjectMeta {
  if (raw?.name || !raw?.generateName) return readMetadata(raw, 'subdomain', report, names);
  return { ...readMetadata({ ...raw, name: 'generated' }, 'subdomain', report, names), name: '' };
}

/** Returns the object's controller. An object has at most one. */
function readOwner(raw: RawMetadata | null | undefined): Owner | undefined {
  const owner = raw?.ownerReferences?.find(({ controller }) => controller);
  return owner && { kind: owner.kind ?? '', name: owner.name ?? '' };
}

/** `path` leads to the spec in a Pod, or in a workload's template. */
function readPodSpec(
  { metadata, spec }: Pick<RawPod, 'metadata' | 'spec'>,
  path: FieldPath,
  report: Report,
  names: CommonNames,
): PodSpec {
  const raw = spec ?? {};
  const nodeName = raw.nodeName ?? '';
  const node = names.nodes.find(nodeName);
  if (nodeName !== '' && node === undefined) checkName(nodeName, 'subdomain', [...path, 'spec', 'nodeName'], report);
  if (raw.hostname) checkName(raw.hostname, 'label', [...path, 'spec', 'hostname'], report);
  return {
    nodeName: node ?? nodeName,
    hostname: raw.hostname ?? '',
    subdomain: raw.subdomain ?? '',
    hostNetwork: raw.hostNetwork ?? false,
    tolerations: (raw.tolerations ?? none).map(({ key, operator, value, effect }) => ({
      key: key ?? '',
      value: value ?? '',
      effect: effect ?? '',
      isOfAny: operator === 'Exists',
    })),
    nodeTerms: readNodeTerms(raw),
    isInjected: asksForInjection(metadata),
    ports: readContainerPorts(raw),
    readiness: readReadiness(raw),
    hostPorts: raw.hostNetwork ? none : readHostPorts(raw),
  };
}

/** Combines nodeSelector with each term of required node affinity. A Node must match one of the terms. An empty term matches no Node. */
function readNodeTerms({ nodeSelector, affinity }: RawPodSpec): PodSpec['nodeTerms'] {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const written = (
    of: NodeRequirement['of'],
    selector: Parameters<typeof readLabelSelector>[0],
  ): readonly NodeRequirement[] => readLabelSelector(selector).map((each) => ({ ...each, of }));
  const labels = written('nodeSelector', { matchLabels: textsWithoutNull(nodeSelector) });
  if (!terms) return labels.length > 0 ? [labels] : undefined;
  return terms.flatMap(({ matchExpressions, matchFields }) => {
    const own = [...(matchExpressions ?? none), ...(matchFields ?? none)];
    return own.length === 0 ? [] : [[...labels, ...written('affinity', { matchExpressions: own })]];
  });
}

function asksForInjection(metadata: Pick<RawMetadata, 'labels' | 'annotations'> | null | undefined): boolean {
  const all = [...Object.entries(metadata?.labels ?? {}), ...Object.entries(metadata?.annotations ?? {})];
  return all.some(([key, value]) => /inject/.test(key) && value !== 'false' && value !== 'disabled');
}

/** On the host network, the API server makes each port a host port too. */
function readHostPorts({ containers }: RawPodSpec): readonly HostPort[] {
  const ports = (containers ?? none).flatMap((container) => container.ports ?? none);
  const onHost = ports.filter(({ hostPort }) => Boolean(hostPort));
  return onHost.map(({ name, containerPort, hostPort, protocol }) => ({
    name: name ?? '',
    port: containerPort ?? 0,
    hostPort: hostPort ?? 0,
    protocol: protocol || 'TCP',
  }));
}

/** Also reads the ports of sidecars, which are init containers that keep running (FindPort in k8s.io/endpointslice). */
function readContainerPorts({ containers, initContainers }: RawPodSpec): readonly ContainerPort[] {
  const sidecars = (initContainers ?? none).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const ports = [...(containers ?? none), ...sidecars].flatMap((container) => container.ports ?? none);
  const listed = ports.filter(({ containerPort }) => Boolean(containerPort));
  return listed.map(({ name, containerPort, protocol }) => ({
    name: name ?? '',
    port: containerPort ?? 0,
    protocol: protocol || 'TCP',
  }));
}

function readReadiness({ containers, initContainers, readinessGates, schedulingGates }: RawPodSpec): string {
  const probes = [...(containers ?? none), ...(initContainers ?? none)].flatMap(({ readinessProbe, startupProbe }) =>
    readinessProbe || startupProbe ? [[readinessProbe, startupProbe]] : [],
  );
  if (probes.length === 0 && !readinessGates && !schedulingGates) return '';
  const sortKeys = (_: string, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compareText(a, b))) : value;
  return JSON.stringify([probes, readinessGates, schedulingGates], sortKeys);
}

function readStatus(status: RawPodStatus, report: Report): PodStatus {
  return {
    ended: status.phase === 'Succeeded' || status.phase === 'Failed',
    ready: saysReady(status.conditions ?? none),
    addresses: readPodAddresses(status, report),
  };
}

/** Returns podIPs, but podIP alone if the two disagree (Convert_v1_PodStatus_To_core_PodStatus). */
function readPodAddresses({ podIP, podIPs }: RawPodStatus, report: Report): readonly Address[] {
  const listed = podIPs ?? none;
  const isOther = podIP && listed[0]?.ip !== podIP;
  const texts = isOther ? [podIP] : listed.map(({ ip }) => ip ?? '');
  return texts.flatMap((text, i) => {
    const path = isOther ? ['status', 'podIP'] : ['status', 'podIPs', i, 'ip'];
    return checkHostAddress(text, path, report) ?? [];
  });
}

type RawWorkloadSpec = NonNullable<RawWorkload['spec']>;

/** Reads the fields of a workload that determine its Pods. Checks them like the API server and fills in its defaults. */
export function readWorkload(kind: WorkloadKind, raw: RawWorkload, report: Report, names: CommonNames): Workload {
  const metadata = readOwnedMetadata(raw.metadata, report, names);
  const spec = raw.spec ?? {};
  const podSpec = readPodSpec(spec.template ?? {}, ['spec', 'template'], report, names);
  const labels = textsWithoutNull(spec.template?.metadata?.labels);
  if (spec.template) checkSelector(kind, spec, labels, report);
  const isStateful = kind === 'StatefulSet';
  return {
    kind,
    metadata,
    owner: readOwner(raw.metadata),
    replicas: readReplicas(kind, spec, raw.status),
    firstOrdinal: (isStateful && spec.ordinals?.start) || 0,
    isPartial: (spec.selector ?? undefined) === undefined && Object.keys(labels).length === 0,
    template: {
      labels: { ...labels, ...(kind === 'Job' ? jobLabels(metadata.name) : {}) },
      spec: isStateful ? { ...podSpec, subdomain: podSpec.subdomain || (spec.serviceName ?? '') } : podSpec,
    },
  };
}

/** Checks that a selector matches the Pods. A Job is not checked, because the API server makes its selector. */
function checkSelector(kind: WorkloadKind, { selector }: RawWorkloadSpec, labels: Labels, report: Report): void {
  if (kind === 'Job' || kind === 'ReplicationController' || !selector) return;
  const { matchLabels, matchExpressions } = selector;
  const wanted = readLabelSelector({
    matchLabels: textsWithoutNull(matchLabels),
    matchExpressions: matchExpressions ?? none,
  });
  const unmet = wanted.filter((each) => !meetsRequirement(each, labels));
  if (unmet.length === 0) return;
  const details = { kind, selector: unmet.map(requirementWords).join() };
  report.add(['spec', 'selector'], 'unmatched-selector', details);
}

export function readAutoscaler(raw: RawAutoscaler, report: Report, names: CommonNames): Autoscaler {
  const { scaleTargetRef, minReplicas, maxReplicas } = raw.spec ?? {};
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    target: { kind: scaleTargetRef?.kind ?? '', name: scaleTargetRef?.name ?? '' },
    least: minReplicas ?? 1,
    most: maxReplicas ?? Number.POSITIVE_INFINITY,
  };
}

function readReplicas(kind: WorkloadKind, spec: RawWorkloadSpec, status: RawWorkload['status']): number | undefined {
  switch (kind) {
    case 'DaemonSet':
      return undefined;
    case 'Job': {
      const isOver = status?.conditions?.some(
        (condition) => (condition.type === 'Complete' || condition.type === 'Failed') && condition.status === 'True',
      );
      return isOver || spec.suspend ? 0 : Math.min(spec.parallelism ?? 1, spec.completions ?? Infinity);
    }
    case 'Deployment':
    case 'StatefulSet':
    case 'ReplicaSet':
    case 'ReplicationController':
      return spec.replicas ?? 1;
  }
}

function jobLabels(name: string): Readonly<Record<string, string>> {
  return { 'job-name': name, 'batch.kubernetes.io/job-name': name };
}
