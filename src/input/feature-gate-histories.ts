import { isSince, releases, type Release } from '../kube-proxy/releases.ts';

/** What a release makes of a feature gate. */
export interface Gate {
  /** Its value where it is not set. */
  readonly isOn: boolean;
  readonly isLocked: boolean;
  /** Whether AllAlpha or AllBeta turns it, too. */
  readonly stage: 'alpha' | 'beta' | 'other';
}

const kinds: Readonly<Record<string, Gate>> = {
  alpha: { isOn: false, isLocked: false, stage: 'alpha' },
  'alpha-on': { isOn: true, isLocked: false, stage: 'alpha' },
  beta: { isOn: true, isLocked: false, stage: 'beta' },
  'beta-off': { isOn: false, isLocked: false, stage: 'beta' },
  on: { isOn: true, isLocked: false, stage: 'other' },
  off: { isOn: false, isLocked: false, stage: 'other' },
  'locked-on': { isOn: true, isLocked: true, stage: 'other' },
  'locked-off': { isOn: false, isLocked: true, stage: 'other' },
};

/** The feature gates that a release's kube-proxy knows, but AllAlpha and AllBeta. */
export function gatesOf(release: Release): ReadonlyMap<string, Gate> {
  const gates = new Map<string, Gate>();
  for (const line of histories.trim().split('\n')) {
    const [name = '', ...words] = line.trim().split(/,? /);
    let kind = 'gone';
    for (let at = 0; at < words.length; at += 2) {
      const since = releases.find((each) => each === words[at]);
      if (since !== undefined && isSince(release, since)) kind = words[at + 1] ?? kind;
    }
    const gate = kinds[kind];
    if (gate) gates.set(name, gate);
  }
  return gates;
}

/**
 * All that the program of each kube-proxy registers, though it looks at few of them (DefaultMutableFeatureGate.GetAll of a
 * program that imports what cmd/kube-proxy/app imports, at the versions of kubeProxyVersions): what the first release makes of
 * it that is named, and what each does that changes it.
 */
const histories = `
  APIListChunking 1.30 locked-on, 1.33 gone
  APIPriorityAndFairness 1.30 locked-on, 1.31 gone
  APIResponseCompression 1.30 beta
  APIServerIdentity 1.30 beta
  APIServerTracing 1.30 beta, 1.34 locked-on, 1.37 gone
  APIServerWebhookAuthenticationToken 1.37 alpha
  APIServingWithRoutine 1.30 alpha
  AdmissionWebhookMatchConditions 1.30 locked-on, 1.33 gone
  AggregatedDiscoveryEndpoint 1.30 locked-on, 1.33 gone
  AggregatedDiscoveryRemoveBetaType 1.33 on, 1.35 locked-on
  AllowDNSOnlyNodeCSR 1.31 off
  AllowInsecureKubeletCertificateSigningRequests 1.31 off
  AllowOverwriteTerminationGracePeriodSeconds 1.32 off, 1.35 locked-off
  AllowParsingUserUIDFromCertAuth 1.33 beta
  AllowServiceExternalIPs 1.36 on
  AllowServiceLBStatusOnNonLB 1.30 off, 1.32 locked-off, 1.35 gone
  AllowUnsafeMalformedObjectDeletion 1.32 alpha, 1.37 beta
  AnonymousAuthConfigurableEndpoints 1.31 alpha, 1.32 beta, 1.34 locked-on, 1.37 gone
  AnyVolumeDataSource 1.30 beta, 1.33 locked-on, 1.37 gone
  AppArmor 1.30 beta, 1.31 locked-on, 1.33 gone
  AppArmorFields 1.30 beta, 1.31 locked-on, 1.33 gone
  AtomicFIFO 1.36 beta
  AtomicWriteVolumeUserFields 1.37 alpha
  AuthorizeNodeWithSelectors 1.31 alpha, 1.32 beta, 1.34 locked-on, 1.37 gone
  AuthorizePodWebsocketUpgradeCreatePermission 1.35 beta
  AuthorizeWithSelectors 1.31 alpha, 1.32 beta, 1.34 locked-on, 1.37 gone
  BtreeWatchCache 1.32 beta, 1.33 locked-on, 1.37 gone
  CBORServingAndStorage 1.32 alpha
  CPUManager 1.30 locked-on, 1.33 gone
  CPUManagerPolicyAlphaOptions 1.30 alpha
  CPUManagerPolicyBetaOptions 1.30 beta
  CPUManagerPolicyOptions 1.30 beta, 1.33 locked-on
  CRDObservedGenerationTracking 1.35 beta-off, 1.36 beta
  CRDValidationRatcheting 1.30 beta, 1.33 locked-on
  CRIListStreaming 1.36 alpha
  CSIMigrationPortworx 1.30 beta-off, 1.31 beta, 1.33 locked-on, 1.36 gone
  CSIMigrationRBD 1.30 off, 1.31 gone
  CSINodeExpandSecret 1.30 locked-on, 1.31 gone
  CSIServiceAccountTokenSecrets 1.35 beta, 1.36 locked-on
  CSIVolumeHealth 1.30 alpha
  ChangeContainerStatusOnKubeletRestart 1.35 off
  ClearingNominatedNodeNameAfterBinding 1.34 alpha, 1.35 beta
  ClientsAllowCARotation 1.36 beta
  ClientsAllowCBOR 1.32 alpha
  ClientsAllowTLSCacheGC 1.36 beta
  ClientsPreferCBOR 1.32 alpha
  CloudControllerManagerWatchBasedRoutesReconciliation 1.35 alpha
  CloudControllerManagerWebhook 1.30 alpha
  CloudDualStackNodeIPs 1.30 locked-on, 1.32 gone
  ClusterTrustBundle 1.30 alpha, 1.33 beta-off, 1.37 on
  ClusterTrustBundleProjection 1.30 alpha, 1.33 beta-off, 1.37 on
  ComponentFlagz 1.32 alpha, 1.36 beta
  ComponentSLIs 1.30 beta, 1.32 locked-on, 1.35 gone
  ComponentStatusz 1.32 alpha, 1.36 beta
  CompositePodGroup 1.37 alpha
  ConcurrentWatchObjectDecode 1.31 beta-off, 1.37 beta
  ConsistentHTTPGetHandlers 1.30 locked-on, 1.31 gone
  ConsistentListFromCache 1.30 alpha, 1.31 beta, 1.34 locked-on, 1.37 gone
  ConsistentListFromCacheSkipTimeoutFallback 1.37 alpha
  ConstrainedImpersonation 1.35 alpha, 1.36 beta
  ContainerCheckpoint 1.30 beta
  ContainerRestartRules 1.34 alpha, 1.35 beta
  ContainerStopSignals 1.33 alpha
  ContextualLogging 1.30 beta
  ControllerManagerReleaseLeaderElectionLockOnExit 1.36 alpha
  CoordinatedLeaderElection 1.31 alpha, 1.33 beta-off
  CronJobsScheduledAnnotation 1.30 beta, 1.32 locked-on, 1.35 gone
  CrossNamespaceVolumeDataSource 1.30 alpha
  CustomCPUCFSQuotaPeriod 1.30 alpha, 1.36 on
  CustomResourceFieldSelectors 1.30 alpha, 1.31 beta, 1.32 locked-on
  CustomResourceValidationExpressions 1.30 locked-on, 1.31 gone
  DRAAdminAccess 1.32 alpha, 1.34 beta, 1.36 locked-on
  DRAConsumableCapacity 1.34 alpha, 1.36 beta
  DRAControlPlaneController 1.31 alpha, 1.32 gone
  DRADerivedAttributes 1.37 alpha
  DRADeviceBindingConditions 1.34 alpha, 1.36 beta
  DRADeviceCompatibilityGroups 1.37 alpha
  DRADeviceTaintRules 1.35 alpha, 1.36 beta-off, 1.37 on
  DRADeviceTaints 1.33 alpha, 1.36 beta, 1.37 on
  DRAExtendedResource 1.34 alpha, 1.36 beta, 1.37 locked-on
  DRAFractionalCapacityRange 1.37 beta-off
  DRAListTypeAttributes 1.36 alpha
  DRANodeAllocatableResources 1.36 alpha
  DRAOptionalNodeOperations 1.37 alpha
  DRAPartitionableDevices 1.33 alpha, 1.36 beta
  DRAPartitionableDevicesType 1.37 alpha
  DRAPrioritizedList 1.33 alpha, 1.34 beta, 1.36 on, 1.37 locked-on
  DRAResourceClaimDeviceStatus 1.32 alpha, 1.33 beta, 1.37 locked-on
  DRAResourceClaimGranularStatusAuthorization 1.36 beta
  DRAResourcePoolStatus 1.36 alpha
  DRASchedulerFilterTimeout 1.34 beta
  DRAWorkloadResourceClaims 1.36 alpha, 1.37 beta-off
  DeclarativeValidation 1.33 beta, 1.36 locked-on
  DeclarativeValidationBeta 1.36 beta
  DeclarativeValidationTakeover 1.33 beta-off, 1.36 off, 1.37 locked-off
  DefaultHostNetworkHostPortsInPodTemplates 1.30 off, 1.31 gone
  DefaultPodSysctls 1.37 alpha
  DeploymentReplicaSetTerminatingReplicas 1.33 alpha, 1.35 beta
  DetectCacheInconsistency 1.34 beta
  DevicePluginCDIDevices 1.30 beta, 1.31 locked-on, 1.34 gone
  DisableAllocatorDualWrite 1.31 alpha, 1.33 beta-off, 1.34 on, 1.35 locked-on
  DisableCPUQuotaWithExclusiveCPUs 1.33 beta, 1.36 on, 1.37 locked-on
  DisableCloudProviders 1.30 beta, 1.31 locked-on, 1.33 gone
  DisableKubeletCloudCredentialProviders 1.30 beta, 1.31 locked-on, 1.33 gone
  DisableNodeKubeProxyVersion 1.30 alpha, 1.31 off, 1.33 on, 1.36 locked-on
  DynamicResourceAllocation 1.30 alpha, 1.32 beta-off, 1.34 on, 1.35 locked-on
  EfficientWatchResumption 1.30 locked-on, 1.33 gone
  ElasticIndexedJob 1.30 beta, 1.31 locked-on, 1.34 gone
  EmptyDirVolumeMode 1.37 alpha
  EnvFiles 1.34 alpha, 1.35 beta
  EtcdRangeStream 1.37 beta
  EventedPLEG 1.30 alpha
  EvictionRequestAPI 1.37 alpha
  ExcludeAdmissionWebhookVirtualResources 1.37 beta
  ExecProbeTimeout 1.30 on, 1.35 locked-on
  ExtendWebSocketsToKubelet 1.36 beta
  ExternalServiceAccountTokenSigner 1.32 alpha, 1.34 beta, 1.36 locked-on
  GRPCContainerProbeTLS 1.37 alpha
  GangScheduling 1.35 alpha, 1.37 gone
  GenericWorkload 1.35 alpha, 1.37 beta-off
  GitRepoVolumeDriver 1.33 off, 1.36 locked-off
  GracefulNodeShutdown 1.30 beta
  GracefulNodeShutdownBasedOnPodPriority 1.30 beta
  H2CContainerProbe 1.37 alpha
  HPAConfigurableTolerance 1.33 alpha, 1.35 beta, 1.37 locked-on
  HPAContainerMetrics 1.30 locked-on, 1.32 gone
  HPAGeneration 1.37 beta
  HPAOptimizedSelectorStore 1.37 beta
  HPAScaleToZero 1.30 alpha, 1.37 beta
  HonorPVReclaimPolicy 1.30 alpha, 1.31 beta, 1.33 locked-on, 1.36 gone
  HostnameOverride 1.34 alpha, 1.35 beta, 1.37 locked-on
  HugepageAwareEviction 1.37 beta
  ImageMaximumGCAge 1.30 beta, 1.35 locked-on
  ImageVolume 1.31 alpha, 1.33 beta-off, 1.35 beta, 1.36 locked-on
  ImageVolumeWithDigest 1.36 alpha
  InOrderInformers 1.33 beta, 1.36 locked-on
  InOrderInformersBatchProcess 1.35 beta
  InPlacePodLevelResourcesVerticalScaling 1.35 alpha, 1.36 beta
  InPlacePodVerticalScaling 1.30 alpha, 1.33 beta, 1.35 locked-on
  InPlacePodVerticalScalingAllocatedStatus 1.32 alpha, 1.33 off, 1.36 gone
  InPlacePodVerticalScalingExclusiveCPUs 1.32 alpha
  InPlacePodVerticalScalingExclusiveMemory 1.34 alpha
  InPlacePodVerticalScalingInitContainers 1.36 beta, 1.37 locked-on
  InPlacePodVerticalScalingMemoryBackedVolumes 1.37 alpha
  InPlacePodVerticalScalingSchedulerPreemption 1.37 alpha
  InTreePluginAWSUnregister 1.30 alpha, 1.31 gone
  InTreePluginAzureDiskUnregister 1.30 alpha, 1.31 gone
  InTreePluginAzureFileUnregister 1.30 alpha, 1.31 gone
  InTreePluginGCEUnregister 1.30 alpha, 1.31 gone
  InTreePluginOpenStackUnregister 1.30 alpha, 1.31 gone
  InTreePluginPortworxUnregister 1.30 alpha, 1.36 gone
  InTreePluginRBDUnregister 1.30 off, 1.31 gone
  InTreePluginvSphereUnregister 1.30 alpha, 1.31 gone
  InformerResourceVersion 1.30 alpha, 1.35 on
  InterPodAffinityHostnameFastPath 1.37 alpha
  JobBackoffLimitPerIndex 1.30 beta, 1.33 locked-on, 1.37 gone
  JobManagedBy 1.30 alpha, 1.32 beta, 1.35 locked-on
  JobPodFailurePolicy 1.30 beta, 1.31 locked-on, 1.33 gone
  JobPodReplacementPolicy 1.30 beta, 1.34 locked-on, 1.37 gone
  JobReadyPods 1.30 locked-on, 1.31 gone
  JobSuccessPolicy 1.30 alpha, 1.31 beta, 1.33 locked-on, 1.37 gone
  KMSv1 1.30 off
  KMSv2 1.30 locked-on, 1.32 gone
  KMSv2KDF 1.30 locked-on, 1.32 gone
  KubeProxyDrainingTerminatingNodes 1.30 beta, 1.31 locked-on, 1.33 gone
  KubeProxyIPVS 1.37 on
  KubeProxyNFTablesLocalhostNodePorts 1.37 alpha
  KubeletAllocatedPodsEndpoint 1.37 alpha
  KubeletCgroupDriverFromCRI 1.30 alpha, 1.31 beta, 1.34 locked-on
  KubeletCrashLoopBackOffMax 1.32 alpha, 1.35 beta
  KubeletEnsureSecretPulledImages 1.33 alpha, 1.35 beta
  KubeletFineGrainedAuthz 1.32 alpha, 1.33 beta, 1.36 locked-on
  KubeletInUserNamespace 1.30 alpha, 1.37 beta
  KubeletPSI 1.33 alpha, 1.34 beta, 1.36 locked-on
  KubeletPodResourcesDynamicResources 1.30 alpha, 1.34 beta, 1.36 locked-on
  KubeletPodResourcesGet 1.30 alpha, 1.34 beta, 1.36 locked-on
  KubeletPodResourcesListUseActivePods 1.34 on
  KubeletRegistrationGetOnExistsOnly 1.32 off
  KubeletSeparateDiskGC 1.30 alpha, 1.31 beta
  KubeletServiceAccountTokenForCredentialProviders 1.33 alpha, 1.34 beta
  KubeletTracing 1.30 beta, 1.34 locked-on
  LegacyServiceAccountTokenCleanUp 1.30 locked-on, 1.32 gone
  LegacySidecarContainers 1.33 off, 1.34 gone
  ListFromCacheSnapshot 1.33 alpha, 1.34 beta
  LoadBalancerIPMode 1.30 beta, 1.32 locked-on, 1.35 gone
  LocalStorageCapacityIsolationFSQuotaMonitoring 1.30 alpha, 1.31 beta-off
  LogarithmicScaleDown 1.30 beta, 1.31 locked-on, 1.37 gone
  LoggingAlphaOptions 1.30 alpha
  LoggingBetaOptions 1.30 beta
  ManifestBasedAdmissionControlConfig 1.36 alpha, 1.37 beta
  MatchLabelKeysInPodAffinity 1.30 alpha, 1.31 beta, 1.33 locked-on
  MatchLabelKeysInPodTopologySpread 1.30 beta
  MatchLabelKeysInPodTopologySpreadSelectorMerge 1.34 beta
  MaxUnavailableStatefulSet 1.30 alpha, 1.35 beta-off, 1.37 beta
  MemoryManager 1.30 beta, 1.32 locked-on, 1.36 gone
  MemoryQoS 1.30 alpha, 1.37 beta
  MinDomainsInPodTopologySpread 1.30 locked-on, 1.32 gone
  MultiCIDRServiceAllocator 1.30 alpha, 1.31 beta-off, 1.33 on, 1.34 locked-on
  MutableCSINodeAllocatableCount 1.33 alpha, 1.34 beta-off, 1.35 beta, 1.36 locked-on
  MutablePVNodeAffinity 1.35 alpha
  MutablePodResourcesForSuspendedJobs 1.35 alpha, 1.36 beta
  MutableSchedulingDirectivesForSuspendedJobs 1.35 alpha, 1.36 beta
  MutatingAdmissionPolicy 1.30 alpha, 1.34 beta-off, 1.36 on
  NFTablesNetlink 1.37 beta
  NFTablesProxyMode 1.30 alpha, 1.31 beta, 1.33 locked-on
  NativeHistograms 1.36 alpha, 1.37 beta
  NewVolumeManagerReconstruction 1.30 locked-on, 1.32 gone
  NodeControllerLeaseCircuitBreaker 1.37 beta
  NodeDeclaredFeatures 1.35 alpha, 1.36 beta, 1.37 locked-on
  NodeInclusionPolicyInPodTopologySpread 1.30 beta, 1.33 locked-on
  NodeLifecycleConditions 1.37 alpha
  NodeLogQuery 1.30 beta-off, 1.36 locked-on
  NodeOutOfServiceVolumeDetach 1.30 locked-on, 1.32 gone
  NodeSwap 1.30 beta, 1.34 locked-on
  NominatedNodeNameForExpectation 1.34 alpha, 1.35 beta
  OpenAPIEnums 1.30 beta
  OpportunisticBatching 1.35 beta
  OrderedNamespaceDeletion 1.30 beta-off, 1.33 beta, 1.34 locked-on, 1.37 gone
  PDBUnhealthyPodEvictionPolicy 1.30 beta, 1.31 locked-on, 1.33 gone
  PLEGOnDemandRelist 1.36 beta, 1.37 locked-on
  PersistentVolumeClaimUnusedSinceTime 1.36 alpha, 1.37 beta
  PersistentVolumeLastPhaseTransitionTime 1.30 beta, 1.31 locked-on, 1.33 gone
  PodAndContainerStatsFromCRI 1.30 alpha, 1.37 beta-off
  PodCertificateRequest 1.34 alpha, 1.35 beta-off, 1.37 on
  PodDeletionCost 1.30 beta
  PodDisruptionConditions 1.30 beta, 1.31 locked-on, 1.34 gone
  PodGroupPreemptionPolicy 1.37 alpha
  PodHostIPs 1.30 locked-on, 1.32 gone
  PodIndexLabel 1.30 beta, 1.32 locked-on, 1.35 gone
  PodLevelResourceManagers 1.36 alpha, 1.37 beta-off
  PodLevelResources 1.32 alpha, 1.34 beta
  PodLevelResourcesFixDefaulting 1.37 beta
  PodLevelResourcesFixKubeletQOSClass 1.37 beta
  PodLifecycleSleepAction 1.30 beta, 1.34 locked-on, 1.37 gone
  PodLifecycleSleepActionAllowZero 1.32 alpha, 1.33 beta, 1.34 locked-on, 1.37 gone
  PodLogsQuerySplitStreams 1.32 alpha
  PodObservedGenerationTracking 1.33 alpha, 1.34 beta, 1.35 locked-on
  PodReadyToStartContainersCondition 1.30 beta, 1.37 locked-on
  PodSchedulingReadiness 1.30 locked-on
  PodTopologyLabelsAdmission 1.33 alpha, 1.35 beta
  PodsAPI 1.36 alpha, 1.37 beta
  PortForwardWebsockets 1.30 alpha, 1.31 beta
  PreferSameTrafficDistribution 1.33 alpha, 1.34 beta, 1.35 locked-on
  PreventStaticPodAPIReferences 1.34 beta, 1.37 gone
  ProbeHostPodSecurityStandards 1.34 locked-on, 1.35 gone
  ProcMountType 1.30 alpha, 1.31 beta-off, 1.33 beta, 1.36 locked-on
  QOSReserved 1.30 alpha
  ReadWriteOncePod 1.30 locked-on, 1.31 gone
  RecoverVolumeExpansionFailure 1.30 alpha, 1.32 beta, 1.34 locked-on
  RecursiveReadOnlyMounts 1.30 alpha, 1.31 beta, 1.33 locked-on
  ReduceDefaultCrashLoopBackOffDecay 1.33 alpha
  RelaxedDNSSearchValidation 1.32 alpha, 1.33 beta, 1.34 locked-on, 1.37 gone
  RelaxedEnvironmentVariableValidation 1.30 alpha, 1.32 beta, 1.34 locked-on
  RelaxedServiceNameValidation 1.34 alpha, 1.36 beta, 1.37 locked-on
  ReloadKubeletClientCAFile 1.36 beta
  ReloadKubeletServerCertificateFile 1.31 beta
  RemainingItemCount 1.30 locked-on, 1.33 gone
  RemoteRequestHeaderUID 1.32 alpha, 1.33 beta
  ResilientWatchCacheInitialization 1.31 beta, 1.34 locked-on, 1.37 gone
  ResourceHealthStatus 1.31 alpha, 1.36 beta
  ResourceHealthStatusMessage 1.36 beta
  RestartAllContainersOnContainerExits 1.35 alpha, 1.36 beta
  RetryGenerateName 1.30 alpha, 1.31 beta, 1.32 locked-on, 1.37 gone
  RotateKubeletServerCertificate 1.30 beta
  RuntimeClassInImageCriApi 1.30 alpha
  SELinuxChangePolicy 1.32 alpha, 1.33 beta, 1.36 locked-on
  SELinuxMount 1.30 alpha, 1.33 beta-off, 1.37 on
  SELinuxMountReadWriteOncePod 1.30 beta, 1.36 locked-on
  SchedulerAsyncAPICalls 1.34 beta-off
  SchedulerAsyncPreemption 1.32 alpha, 1.33 beta
  SchedulerPopFromBackoffQ 1.33 beta
  SchedulerPreQueueingHints 1.37 alpha
  SchedulerQueueingHints 1.30 beta-off, 1.32 beta, 1.34 locked-on, 1.37 gone
  SeparateCacheWatchRPC 1.30 beta, 1.33 off, 1.36 locked-off
  SeparateTaintEvictionController 1.30 beta, 1.34 locked-on
  ServerSideApply 1.30 locked-on, 1.32 gone
  ServerSideFieldValidation 1.30 locked-on, 1.32 gone
  ServiceAccountNodeAudienceRestriction 1.32 beta-off, 1.33 beta
  ServiceAccountTokenJTI 1.30 beta, 1.32 locked-on
  ServiceAccountTokenNodeBinding 1.30 alpha, 1.31 beta, 1.33 locked-on
  ServiceAccountTokenNodeBindingValidation 1.30 beta, 1.32 locked-on
  ServiceAccountTokenPodNodeInfo 1.30 beta, 1.32 locked-on
  ServiceCIDRStatusFieldWiping 1.36 on
  ServiceNodePortStaticSubrange 1.30 locked-on, 1.31 gone
  ServiceTrafficDistribution 1.30 alpha, 1.31 beta, 1.33 locked-on, 1.36 gone
  ShardedListAndWatch 1.36 alpha
  SidecarContainers 1.30 beta, 1.33 locked-on, 1.37 gone
  SizeBasedListCostEstimate 1.34 beta
  SizeMemoryBackedVolumes 1.30 beta, 1.32 locked-on, 1.35 gone
  SkipReadOnlyValidationGCE 1.30 on, 1.31 gone
  StableLoadBalancerNodeSet 1.30 locked-on, 1.32 gone
  StaleControllerConsistencyDaemonSet 1.36 beta
  StaleControllerConsistencyHPA 1.37 beta
  StaleControllerConsistencyJob 1.36 beta
  StaleControllerConsistencyReplicaSet 1.36 beta
  StaleControllerConsistencyStatefulSet 1.36 beta
  StatefulSetAutoDeletePVC 1.30 beta, 1.32 locked-on, 1.35 gone
  StatefulSetRecreateStrategy 1.37 alpha
  StatefulSetSemanticRevisionComparison 1.34 beta
  StatefulSetStartOrdinal 1.30 beta, 1.31 locked-on, 1.34 gone
  StorageCapacityScoring 1.33 alpha, 1.37 beta
  StorageNamespaceIndex 1.30 beta, 1.33 on
  StorageVersionAPI 1.30 alpha
  StorageVersionHash 1.30 beta
  StorageVersionMigrator 1.30 alpha, 1.35 beta-off, 1.37 on
  StreamingCollectionEncodingToJSON 1.33 beta, 1.34 locked-on, 1.37 gone
  StreamingCollectionEncodingToProtobuf 1.33 beta, 1.34 locked-on, 1.37 gone
  StrictCostEnforcementForVAP 1.30 beta-off, 1.32 locked-on, 1.35 gone
  StrictCostEnforcementForWebhooks 1.30 beta-off, 1.32 locked-on, 1.35 gone
  StrictIPCIDRValidation 1.33 alpha, 1.36 beta
  StructuredAuthenticationConfiguration 1.30 beta, 1.34 locked-on, 1.37 gone
  StructuredAuthenticationConfigurationEgressSelector 1.34 beta
  StructuredAuthenticationConfigurationJWKSMetrics 1.35 beta
  StructuredAuthorizationConfiguration 1.30 beta, 1.32 locked-on, 1.36 gone
  SupplementalGroupsPolicy 1.31 alpha, 1.33 beta, 1.35 locked-on
  SystemdWatchdog 1.32 beta, 1.35 locked-on
  TaintTolerationComparisonOperators 1.35 alpha
  TokenRequestServiceAccountUIDValidation 1.34 beta
  TopologyAwareHints 1.30 beta, 1.33 locked-on, 1.36 gone
  TopologyAwareWorkloadScheduling 1.36 alpha
  TopologyManagerPolicyAlphaOptions 1.30 alpha
  TopologyManagerPolicyBetaOptions 1.30 beta
  TopologyManagerPolicyOptions 1.30 beta, 1.32 on, 1.36 locked-on
  TranslateStreamCloseWebsocketRequests 1.30 beta
  UnauthenticatedHTTP2DOSMitigation 1.30 beta
  UnknownVersionInteroperabilityProxy 1.30 alpha, 1.36 beta
  UnlockWhileProcessingFIFO 1.36 beta
  UserNamespacesHostNetworkSupport 1.35 alpha
  UserNamespacesPodSecurityStandards 1.30 alpha, 1.35 gone
  UserNamespacesSupport 1.30 beta-off, 1.33 beta, 1.36 locked-on
  ValidatingAdmissionPolicy 1.30 locked-on, 1.32 gone
  VolumeAttributesClass 1.30 alpha, 1.31 beta-off, 1.34 on, 1.36 locked-on
  VolumeBindMountOptions 1.37 alpha
  VolumeCapacityPriority 1.30 alpha, 1.33 gone
  VolumeLimitScaling 1.35 alpha, 1.37 beta
  WatchBookmark 1.30 locked-on, 1.33 gone
  WatchCacheInitializationPostStartHook 1.31 beta-off, 1.36 beta, 1.37 locked-on
  WatchFromStorageWithoutResourceVersion 1.30 beta-off, 1.33 locked-off, 1.36 gone
  WatchList 1.30 alpha, 1.32 beta, 1.33 beta-off, 1.34 beta
  WatchListClient 1.30 beta-off, 1.35 beta
  WatchListCompression 1.37 beta
  WebhookRoundTripLoadBalancing 1.37 beta
  WinDSR 1.30 alpha, 1.33 beta, 1.34 locked-on
  WinOverlay 1.30 beta, 1.34 locked-on
  WindowsCPUAndMemoryAffinity 1.32 alpha
  WindowsGracefulNodeShutdown 1.32 alpha, 1.34 beta
  WindowsHostNetwork 1.30 alpha-on, 1.33 off
  WorkloadAwarePreemption 1.36 alpha, 1.37 gone
  WorkloadWithJob 1.36 alpha
  ZeroLimitedNominalConcurrencyShares 1.30 locked-on, 1.32 gone
`;
