import { findNearest } from '../base/find-nearest.ts';
import type { GateProblem } from '../diagnostics/settings.ts';
import { isSince, type FeatureGates, type Release } from '../kube-proxy/releases.ts';
import { gatesOf, type Gate } from './feature-gate-histories.ts';
import { featureGatesField, featureGatesFlag } from '../kube-proxy/settings/feature-gates.ts';
import { readSwitch, splitList } from '../kube-proxy/settings/flag.ts';
import { onCommandLine, refuse, type SettingSource } from '../kube-proxy/settings/setting.ts';

/** The name of a gate, and the releases that ask for it where not all do. */
type Need = string | { readonly name: string; readonly since?: Release; readonly until?: Release };

/** The first release whose gates need others. */
const dependenciesSince: Release = '1.35';

/** What a gate that is on needs to be on, too. */
const dependencies: Readonly<Record<string, readonly Need[]>> = {
  AuthorizeNodeWithSelectors: ['AuthorizeWithSelectors'],
  ClusterTrustBundleProjection: ['ClusterTrustBundle'],
  CompositePodGroup: ['GenericWorkload', 'TopologyAwareWorkloadScheduling'],
  DRAAdminAccess: ['DynamicResourceAllocation'],
  DRAConsumableCapacity: ['DynamicResourceAllocation'],
  DRADerivedAttributes: ['DynamicResourceAllocation'],
  DRADeviceBindingConditions: ['DRAResourceClaimDeviceStatus', 'DynamicResourceAllocation'],
  DRADeviceCompatibilityGroups: ['DRAPartitionableDevices', 'DynamicResourceAllocation'],
  DRADeviceTaintRules: ['DRADeviceTaints'],
  DRADeviceTaints: ['DynamicResourceAllocation'],
  DRAExtendedResource: ['DynamicResourceAllocation'],
  DRAFractionalCapacityRange: ['DRAConsumableCapacity'],
  DRAListTypeAttributes: ['DynamicResourceAllocation'],
  DRANodeAllocatableResources: ['DynamicResourceAllocation'],
  DRAOptionalNodeOperations: ['DynamicResourceAllocation', 'NodeDeclaredFeatures'],
  DRAPartitionableDevices: ['DynamicResourceAllocation'],
  DRAPartitionableDevicesType: ['DRAPartitionableDevices', 'DRAResourcePoolStatus', 'DynamicResourceAllocation'],
  DRAPrioritizedList: ['DynamicResourceAllocation'],
  DRAResourceClaimGranularStatusAuthorization: ['DRAResourceClaimDeviceStatus', 'DynamicResourceAllocation'],
  DRAResourcePoolStatus: ['DynamicResourceAllocation'],
  DRASchedulerFilterTimeout: ['DynamicResourceAllocation'],
  DRAWorkloadResourceClaims: ['DynamicResourceAllocation', 'GenericWorkload'],
  DeclarativeValidationBeta: ['DeclarativeValidation'],
  DeclarativeValidationTakeover: ['DeclarativeValidation'],
  DisableAllocatorDualWrite: ['MultiCIDRServiceAllocator'],
  EventedPLEG: [{ name: 'PLEGOnDemandRelist', since: '1.37' }],
  ExtendWebSocketsToKubelet: ['NodeDeclaredFeatures'],
  GangScheduling: ['GenericWorkload'],
  GracefulNodeShutdownBasedOnPodPriority: ['GracefulNodeShutdown'],
  H2CContainerProbe: ['NodeDeclaredFeatures'],
  ImageVolumeWithDigest: ['ImageVolume'],
  InPlacePodLevelResourcesVerticalScaling: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures', 'PodLevelResources'],
  InPlacePodVerticalScalingAllocatedStatus: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingExclusiveCPUs: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingExclusiveMemory: ['InPlacePodVerticalScaling', { name: 'MemoryManager', until: '1.36' }],
  InPlacePodVerticalScalingInitContainers: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures'],
  InPlacePodVerticalScalingMemoryBackedVolumes: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures'],
  InPlacePodVerticalScalingSchedulerPreemption: ['InPlacePodVerticalScaling'],
  KubeletAllocatedPodsEndpoint: ['InPlacePodVerticalScaling'],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ['MatchLabelKeysInPodTopologySpread'],
  NodeControllerLeaseCircuitBreaker: ['AtomicFIFO'],
  PodCertificateRequest: [{ name: 'AuthorizeNodeWithSelectors', until: '1.37' }],
  PodGroupPreemptionPolicy: ['GenericWorkload'],
  PodLevelResourceManagers: ['PodLevelResources'],
  PodLevelResourcesFixDefaulting: ['PodLevelResources'],
  PodLevelResourcesFixKubeletQOSClass: ['PodLevelResources'],
  PodLifecycleSleepActionAllowZero: ['PodLifecycleSleepAction'],
  ProcMountType: ['UserNamespacesSupport'],
  ResourceHealthStatus: ['DynamicResourceAllocation'],
  ResourceHealthStatusMessage: ['ResourceHealthStatus'],
  RestartAllContainersOnContainerExits: ['ContainerRestartRules', 'NodeDeclaredFeatures'],
  ServiceAccountTokenNodeBinding: ['ServiceAccountTokenNodeBindingValidation'],
  StaleControllerConsistencyDaemonSet: ['AtomicFIFO'],
  StaleControllerConsistencyHPA: ['AtomicFIFO'],
  StaleControllerConsistencyJob: ['AtomicFIFO'],
  StaleControllerConsistencyReplicaSet: ['AtomicFIFO'],
  StaleControllerConsistencyStatefulSet: ['AtomicFIFO'],
  StorageVersionAPI: ['APIServerIdentity'],
  StructuredAuthenticationConfigurationEgressSelector: [
    { name: 'StructuredAuthenticationConfiguration', until: '1.37' },
  ],
  StructuredAuthenticationConfigurationJWKSMetrics: [{ name: 'StructuredAuthenticationConfiguration', until: '1.37' }],
  TopologyAwareWorkloadScheduling: ['GenericWorkload'],
  UnknownVersionInteroperabilityProxy: ['APIServerIdentity'],
  UserNamespacesHostNetworkSupport: [{ name: 'NodeDeclaredFeatures', since: '1.36' }, 'UserNamespacesSupport'],
  WindowsCPUAndMemoryAffinity: [{ name: 'MemoryManager', until: '1.36' }],
  WindowsGracefulNodeShutdown: ['GracefulNodeShutdown'],
  WorkloadAwarePreemption: ['GangScheduling'],
  WorkloadWithJob: ['GenericWorkload'],
};

/** Gates that stand for all of a stage. */
const stages = { AllAlpha: 'alpha', AllBeta: 'beta' } as const;

/** What keeps kube-proxy from starting, and the gate it is about. */
interface GateFault {
  readonly gate: string;
  readonly fault: GateProblem;
}

/** Whether a gate of a release's kube-proxy is on. */
export function isGateOn(name: string, gates: FeatureGates, release: Release): boolean {
  return isKnownGateOn(name, gates, gatesOf(release));
}

function isKnownGateOn(name: string, gates: FeatureGates, known: ReadonlyMap<string, Gate>): boolean {
  const own = gates.get(name);
  if (own !== undefined) return own;
  const gate = known.get(name);
  if (!gate || gate.isLocked || gate.stage === 'other') return gate?.isOn ?? false;
  return gates.get(gate.stage === 'alpha' ? 'AllAlpha' : 'AllBeta') ?? gate.isOn;
}

/**
 * Checks gates as kube-proxy does when it starts (SetFromMap): it has to know them, some cannot be set, and what is on
 * may need others to be on.
 */
export function checkFeatureGates(gates: FeatureGates, release: Release): readonly GateFault[] {
  const known = gatesOf(release);
  const faults = [...gates].flatMap(([gate, value]) => {
    const fault = findFault(gate, value, known, release);
    return fault ? [{ gate, fault }] : [];
  });
  return faults.length > 0 ? faults : checkDependencies(gates, known, release);
}

function findFault(
  name: string,
  value: boolean,
  known: ReadonlyMap<string, Gate>,
  release: Release,
): GateProblem | undefined {
  if (Object.hasOwn(stages, name)) return undefined;
  const gate = known.get(name);
  if (!gate) {
    const meant = findNearest(name, [...known.keys()]);
    return { problem: 'unknown', gate: name, release, meant };
  }
  if (!gate.isLocked || gate.isOn === value) return undefined;
  return { problem: 'locked', gate: name, release, value };
}

function checkDependencies(
  gates: FeatureGates,
  known: ReadonlyMap<string, Gate>,
  release: Release,
): readonly GateFault[] {
  if (!isSince(release, dependenciesSince)) return [];
  return Object.entries(dependencies).flatMap(([name, needs]) => {
    if (!known.has(name) || !isKnownGateOn(name, gates, known)) return [];
    const needed = needs.flatMap((need) => needIn(release, need));
    const missing = needed.filter((other) => !isKnownGateOn(other, gates, known));
    const [first] = missing;
    if (first === undefined) return [];
    const gate = gates.has(name) ? name : (missing.find((other) => gates.has(other)) ?? first);
    return [{ gate, fault: { problem: 'needs', gate: name, needed: missing } }];
  });
}

function needIn(release: Release, need: Need): readonly string[] {
  if (typeof need === 'string') return [need];
  const { since, until, name } = need;
  if (since !== undefined && !isSince(release, since)) return [];
  return until !== undefined && isSince(release, until) ? [] : [name];
}

/** What the settings of gates are read from. */
type GatesSource = Pick<SettingSource, 'flag' | 'field' | 'report'>;

/** The configuration's gates with those of the flag over them. Reports what keeps the release's kube-proxy from starting. */
export function readFeatureGates(source: GatesSource, release: Release): FeatureGates {
  const configured = Object.entries(source.field(featureGatesField) ?? {});
  const flagged = new Map((splitList(source.flag(featureGatesFlag)) ?? []).flatMap((text) => readGate(source, text)));
  const gates = new Map([...configured.map(([name, isOn]) => [name, isOn ?? false] as const), ...flagged]);
  for (const { gate, fault } of checkFeatureGates(gates, release)) {
    const isConfigured = !flagged.has(gate) && configured.some(([name]) => name === gate);
    const place = isConfigured ? { path: [...featureGatesField.path, gate] } : onCommandLine;
    refuse(source, place, 'bad-feature-gate', fault);
  }
  return gates;
}

/** "Name=true", with blanks around both allowed; none of what is blank or wrong. */
function readGate(source: GatesSource, text: string): readonly (readonly [name: string, isOn: boolean])[] {
  if (text.trim() === '') return [];
  const [name = '', ...values] = text.split('=');
  const isOn = readSwitch(values.join('=').trim());
  if (values.length > 0 && isOn !== undefined) return [[name.trim(), isOn]];
  refuse(source, onCommandLine, 'bad-feature-gate', { problem: 'no-gate', flag: featureGatesFlag.name, value: text });
  return [];
}
