import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { kubeProxyVersions, newestRelease, stageOfGate } from '../kube-proxy/releases.ts';
import { findNearest, quote } from './wording.ts';

// The feature gates of kube-proxy v1.36.3: all that its program registers, though it looks at few of them
// (utilfeature.DefaultMutableFeatureGate of a program that imports cmd/kube-proxy/app).

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Always on: setting them to false keeps kube-proxy from starting. */
const lockedOn = words(`
  APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
  AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
  CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
  DeclarativeValidation DisableAllocatorDualWrite DisableNodeKubeProxyVersion DynamicResourceAllocation
  ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
  InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy
  KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
  KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
  MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
  OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
  PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
  RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
  ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
  SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
  ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
  StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
  SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
  WinDSR WinOverlay
`);

/** Always off. */
const lockedOff = words(`
  AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
`);

/** Off, and on with AllAlpha. */
const alpha = words(`
  APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
  CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
  CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
  ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRAListTypeAttributes
  DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling
  GenericWorkload HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
  InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
  ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
  PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams
  PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
  StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
  TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
  WorkloadAwarePreemption WorkloadWithJob
`);

/** On; AllBeta turns them off. */
const betaOn = words(`
  APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
  AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
  ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
  ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
  DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
  DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
  DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
  GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
  InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
  KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
  KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
  MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
  MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums
  OpportunisticBatching PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
  PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
  ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
  ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
  SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
  StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
  StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
  StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
  StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
  TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
  UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
  WatchListClient WindowsGracefulNodeShutdown
`);

/** Off, and on with AllBeta. */
const betaOff = words(`
  ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
  DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
  SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
`);

/** On, of no stage that AllAlpha and AllBeta mean. */
const otherOn = words(`
  AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList DisableCPUQuotaWithExclusiveCPUs
  InformerResourceVersion KubeletPodResourcesListUseActivePods MutatingAdmissionPolicy ServiceCIDRStatusFieldWiping
  StorageNamespaceIndex
`);

/** Off, of no such stage. */
const otherOff = words(`
  AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
  DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
`);

/** What a gate that is on needs to be on, too. */
const dependencies: Readonly<Record<string, readonly string[]>> = {
  AuthorizeNodeWithSelectors: ['AuthorizeWithSelectors'],
  ClusterTrustBundleProjection: ['ClusterTrustBundle'],
  DRAAdminAccess: ['DynamicResourceAllocation'],
  DRAConsumableCapacity: ['DynamicResourceAllocation'],
  DRADeviceBindingConditions: ['DRAResourceClaimDeviceStatus', 'DynamicResourceAllocation'],
  DRADeviceTaintRules: ['DRADeviceTaints'],
  DRADeviceTaints: ['DynamicResourceAllocation'],
  DRAExtendedResource: ['DynamicResourceAllocation'],
  DRAListTypeAttributes: ['DynamicResourceAllocation'],
  DRANodeAllocatableResources: ['DynamicResourceAllocation'],
  DRAPartitionableDevices: ['DynamicResourceAllocation'],
  DRAPrioritizedList: ['DynamicResourceAllocation'],
  DRAResourceClaimGranularStatusAuthorization: ['DRAResourceClaimDeviceStatus', 'DynamicResourceAllocation'],
  DRAResourcePoolStatus: ['DynamicResourceAllocation'],
  DRASchedulerFilterTimeout: ['DynamicResourceAllocation'],
  DRAWorkloadResourceClaims: ['DynamicResourceAllocation', 'GenericWorkload'],
  DeclarativeValidationBeta: ['DeclarativeValidation'],
  DeclarativeValidationTakeover: ['DeclarativeValidation'],
  DisableAllocatorDualWrite: ['MultiCIDRServiceAllocator'],
  ExtendWebSocketsToKubelet: ['NodeDeclaredFeatures'],
  GangScheduling: ['GenericWorkload'],
  GracefulNodeShutdownBasedOnPodPriority: ['GracefulNodeShutdown'],
  ImageVolumeWithDigest: ['ImageVolume'],
  InPlacePodLevelResourcesVerticalScaling: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures', 'PodLevelResources'],
  InPlacePodVerticalScalingExclusiveCPUs: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingExclusiveMemory: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingInitContainers: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures'],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ['MatchLabelKeysInPodTopologySpread'],
  PodCertificateRequest: ['AuthorizeNodeWithSelectors'],
  PodLevelResourceManagers: ['PodLevelResources'],
  PodLifecycleSleepActionAllowZero: ['PodLifecycleSleepAction'],
  ProcMountType: ['UserNamespacesSupport'],
  ResourceHealthStatus: ['DynamicResourceAllocation'],
  ResourceHealthStatusMessage: ['ResourceHealthStatus'],
  RestartAllContainersOnContainerExits: ['ContainerRestartRules', 'NodeDeclaredFeatures'],
  ServiceAccountTokenNodeBinding: ['ServiceAccountTokenNodeBindingValidation'],
  StaleControllerConsistencyDaemonSet: ['AtomicFIFO'],
  StaleControllerConsistencyJob: ['AtomicFIFO'],
  StaleControllerConsistencyReplicaSet: ['AtomicFIFO'],
  StaleControllerConsistencyStatefulSet: ['AtomicFIFO'],
  StorageVersionAPI: ['APIServerIdentity'],
  StructuredAuthenticationConfigurationEgressSelector: ['StructuredAuthenticationConfiguration'],
  StructuredAuthenticationConfigurationJWKSMetrics: ['StructuredAuthenticationConfiguration'],
  TopologyAwareWorkloadScheduling: ['GenericWorkload'],
  UnknownVersionInteroperabilityProxy: ['APIServerIdentity'],
  UserNamespacesHostNetworkSupport: ['NodeDeclaredFeatures', 'UserNamespacesSupport'],
  WindowsGracefulNodeShutdown: ['GracefulNodeShutdown'],
  WorkloadAwarePreemption: ['GangScheduling'],
  WorkloadWithJob: ['GenericWorkload'],
};

/** A gate's value where it is not set. */
interface Gate {
  readonly isOn: boolean;
  readonly isLocked: boolean;
  readonly stage: 'alpha' | 'beta' | 'other';
}

const kinds: readonly (readonly [readonly string[], Gate])[] = [
  [lockedOn, { isOn: true, isLocked: true, stage: 'other' }],
  [lockedOff, { isOn: false, isLocked: true, stage: 'other' }],
  [alpha, { isOn: false, isLocked: false, stage: 'alpha' }],
  [betaOn, { isOn: true, isLocked: false, stage: 'beta' }],
  [betaOff, { isOn: false, isLocked: false, stage: 'beta' }],
  [otherOn, { isOn: true, isLocked: false, stage: 'other' }],
  [otherOff, { isOn: false, isLocked: false, stage: 'other' }],
];

const knownGates: ReadonlyMap<string, Gate> = new Map(
  kinds.flatMap(([names, gate]) => names.map((name): [string, Gate] => [name, gate])),
);

/** Gates that stand for all of a stage. */
const stages = { AllAlpha: 'alpha', AllBeta: 'beta' } as const;

/** What keeps kube-proxy from starting, and the gate it is about. */
export interface GateFault {
  readonly gate: string;
  readonly text: string;
}

/** Whether a gate of kube-proxy's is on. */
export function isGateOn(name: string, gates: FeatureGates): boolean {
  const own = gates.get(name);
  if (own !== undefined) return own;
  const gate = knownGates.get(name);
  if (!gate || gate.isLocked || gate.stage === 'other') return gate?.isOn ?? false;
  return gates.get(gate.stage === 'alpha' ? 'AllAlpha' : 'AllBeta') ?? gate.isOn;
}

/**
 * Checks gates as kube-proxy does when it starts (SetFromMap): it has to know them, some cannot be set, and what is on
 * may need others to be on.
 */
export function checkFeatureGates(gates: FeatureGates, release: Release): readonly GateFault[] {
  if (release !== newestRelease) return checkGatesOfBehaviours(gates, release);
  const faults = [...gates].flatMap(([gate, isOn]) => {
    const text = describeFault(gate, isOn);
    return text === undefined ? [] : [{ gate, text }];
  });
  return faults.length > 0 ? faults : checkDependencies(gates);
}

/** Of another release only those gates are known that change what is programmed. */
function checkGatesOfBehaviours(gates: FeatureGates, release: Release): readonly GateFault[] {
  const version = kubeProxyVersions[release];
  return [...gates].flatMap(([gate, isOn]) => {
    switch (stageOfGate(gate, release)) {
      case 'unknown':
        return {
          gate,
          text: `kube-proxy ${version} knows no feature gate ${quote(gate)}, and does not start: leave it out`,
        };
      case 'locked':
        return isOn
          ? []
          : {
              gate,
              text: `the feature gate ${gate} is true for good, and kube-proxy ${version} does not start with false: leave it out`,
            };
      case 'settable':
      case undefined:
        return [];
    }
  });
}

function describeFault(name: string, isOn: boolean): string | undefined {
  if (Object.hasOwn(stages, name)) return undefined;
  const gate = knownGates.get(name);
  if (!gate) {
    const near = findNearest(name, [...knownGates.keys()]);
    const hint = near === undefined ? 'leave it out' : `did you mean ${near}?`;
    return `kube-proxy v1.36.3 knows no feature gate ${quote(name)}, and does not start: ${hint}`;
  }
  if (!gate.isLocked || gate.isOn === isOn) return undefined;
  return `the feature gate ${name} is ${gate.isOn} for good, and kube-proxy v1.36.3 does not start with ${isOn}: leave it out`;
}

function checkDependencies(gates: FeatureGates): readonly GateFault[] {
  return Object.entries(dependencies).flatMap(([name, needed]) => {
    if (!isGateOn(name, gates)) return [];
    const missing = needed.filter((other) => !isGateOn(other, gates));
    const [first] = missing;
    if (first === undefined) return [];
    const gate = gates.has(name) ? name : (missing.find((other) => gates.has(other)) ?? first);
    const text = `kube-proxy does not start: the feature gate ${name} is on, and needs ${missing.join(' and ')}, too`;
    return [{ gate, text }];
  });
}
