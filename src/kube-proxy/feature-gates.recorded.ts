/**
 * The feature gates of each kube-proxy, by "npm run record" from its own code: no line is written by hand. The first line has the
 * versions. A gate has a letter for each: - unknown, a alpha, b beta, s set as one likes (generally available or
 * deprecated), l locked; a capital for one that is on by default. Then the gates that it needs, since the first release in which there
 * are both, or the one after @.
 */
export const recordedGates = `
v1.25.16 v1.30.14 v1.31.14 v1.32.10 v1.33.13 v1.34.2 v1.35.4 v1.36.3 v1.37.2 v1.38.0-beta.0
APIListChunking BLLL------
APIPriorityAndFairness BL--------
APIResponseCompression BBBBBBBBBB
APIServerIdentity aBBBBBBBBB
APIServerTracing aBBBBLLL--
APIServerWebhookAuthenticationToken --------aa
APIServingWithRoutine -aaaaaaaaa
AdmissionWebhookMatchConditions -LLL------
AdvancedAuditing S---------
AggregatedDiscoveryEndpoint -LLL------
AggregatedDiscoveryRemoveBetaType ----SSLLL-
AllAlpha aaaaaaaaaa
AllBeta bbbbbbbbbb
AllocatorPoolBufferCap ---------B
AllowDNSOnlyNodeCSR --ssssssss
AllowInsecureKubeletCertificateSigningRequests --ssssssss
AllowOverwriteTerminationGracePeriodSeconds ---ssslll-
AllowParsingUserUIDFromCertAuth ----BBBBBB
AllowServiceExternalIPs -------SSS
AllowServiceLBStatusOnNonLB -sslll----
AllowUnsafeMalformedObjectDeletion ---aaaaaBB
AnonymousAuthConfigurableEndpoints --aBBLLL--
AnyVolumeDataSource BBBBLLLL--
AppArmor BBLL------
AppArmorFields -BLL------
AtomicFIFO -------BBB
AtomicWriteVolumeUserFields --------aB
AuthorizeNodeWithSelectors --aBBLLL-- AuthorizeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission ------BBBL
AuthorizeWithSelectors --aBBLLL--
BtreeWatchCache ---BLLLL--
CBORServingAndStorage ---aaaaaaa
CPUManager BLLL------
CPUManagerPolicyAlphaOptions aaaaaaaaaa
CPUManagerPolicyBetaOptions BBBBBBBBBB
CPUManagerPolicyOptions BBBBLLLLLL
CRDObservedGenerationTracking ------bBBB
CRDValidationRatcheting -BBBLLLLL-
CRIListStreaming -------aaa
CSIInlineVolume L---------
CSIMigration L---------
CSIMigrationAWS L---------
CSIMigrationAzureDisk L---------
CSIMigrationAzureFile B---------
CSIMigrationGCE L---------
CSIMigrationOpenStack L---------
CSIMigrationPortworx bbBBLLL---
CSIMigrationRBD as--------
CSIMigrationvSphere B---------
CSINodeExpandSecret aL--------
CSIServiceAccountTokenSecrets ------BLLL
CSIStorageCapacity L---------
CSIVolumeHealth aaaaaaaaaa
CSRDuration L---------
CertificateSigningRequestMLDSA ---------b
ChangeContainerStatusOnKubeletRestart ------ssss
ClearingNominatedNodeNameAfterBinding -----aBBBB
ClientsAllowCARotation -------BBB
ClientsAllowCBOR ---aaaaaaa
ClientsAllowConnectionPool ---------B
ClientsAllowTLSCacheGC -------BBB
ClientsPreferCBOR ---aaaaaaa
CloudControllerManagerWatchBasedRoutesReconciliation ------aaaa
CloudControllerManagerWebhook -aaaaaaaaa
CloudDualStackNodeIPs -LL-------
CloudNodeAdditionalLabelsReconciliation ---------a
ClusterTrustBundle -aaabbbbSS
ClusterTrustBundleProjection -aaabbbbSS ClusterTrustBundle
ComponentFlagz ---aaaaBBB
ComponentSLIs -BBLLL----
ComponentStatusz ---aaaaBBB
CompositePodGroup --------ab GenericWorkload,TopologyAwareWorkloadScheduling
ConcurrentWatchObjectDecode --bbbbbbBB
ConditionalAuthorization ---------a
ConsistentGetFromCache ---------a
ConsistentHTTPGetHandlers -L--------
ConsistentListFromCache -aBBBLLL--
ConsistentListFromCacheSkipTimeoutFallback --------aa
ConstrainedImpersonation ------aBBB
ContainerCheckpoint aBBBBBBBBB
ContainerRestartRules -----aBBBB
ContainerStopSignals ----aaaaaa
ContextualLogging -BBBBBBBBB
ControllerManagerLeaderMigration L---------
CoordinatedLeaderElection --aabbbbbb
CronJobTimeZone B---------
CronJobsScheduledAnnotation -BBLLL----
CrossNamespaceVolumeDataSource -aaaaaaaaa
CustomCPUCFSQuotaPeriod aaaaaaaSSS
CustomResourceFieldSelectors -aBLLLLLL-
CustomResourceValidationExpressions BL--------
DRAAdminAccess ---aaBBLLL DynamicResourceAllocation
DRAConsumableCapacity -----aaBBS DynamicResourceAllocation
DRAControlPlaneController --a-------
DRADerivedAttributes --------aa DynamicResourceAllocation
DRADeviceBindingConditions -----aaBBL DRAResourceClaimDeviceStatus,DynamicResourceAllocation
DRADeviceCompatibilityGroups --------aa DRAPartitionableDevices,DynamicResourceAllocation
DRADeviceTaintRules ------abSL DRADeviceTaints
DRADeviceTaints ----aaaBSL DynamicResourceAllocation
DRAExtendedResource -----aaBLL DynamicResourceAllocation
DRAFractionalCapacityRange --------bS DRAConsumableCapacity
DRAListTypeAttributes -------aaa DynamicResourceAllocation
DRANodeAllocatableResources -------aaa DynamicResourceAllocation
DRAOptionalNodeOperations --------aa DynamicResourceAllocation,NodeDeclaredFeatures
DRAPartitionableDevices ----aaaBBL DynamicResourceAllocation
DRAPartitionableDevicesType --------aa DRAPartitionableDevices,DRAResourcePoolStatus,DynamicResourceAllocation
DRAPrioritizedList ----aBBSLL DynamicResourceAllocation
DRAResourceClaimDeviceStatus ---aBBBBLL
DRAResourceClaimGranularStatusAuthorization -------BBB DRAResourceClaimDeviceStatus,DynamicResourceAllocation
DRAResourcePoolStatus -------aaa DynamicResourceAllocation
DRASchedulerFilterTimeout -----BBBBB DynamicResourceAllocation
DRAWorkloadResourceClaims -------abb DynamicResourceAllocation,GenericWorkload
DaemonSetUpdateSurge L---------
DeclarativeValidation ----BBBLLL
DeclarativeValidationBeta -------BBB DeclarativeValidation
DeclarativeValidationTakeover ----bbbsll DeclarativeValidation
DefaultHostNetworkHostPortsInPodTemplates -s--------
DefaultPodSysctls --------aa
DefaultPodTopologySpread L---------
DelegateFSGroupToCSIDriver B---------
DeploymentReplicaSetTerminatingReplicas ----aaBBBB
DetectCacheInconsistency -----BBBBB
DevicePluginCDIDevices -BLLL-----
DevicePlugins B---------
DisableAcceleratorUsageMetrics L---------
DisableAllocatorDualWrite --aabSLLL- MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs ----BBBSLL
DisableCloudProviders aBLL------
DisableKubeletCloudCredentialProviders aBLL------
DisableNodeKubeProxyVersion -assSSSLLL
DownwardAPIHugePages B---------
DryRun S---------
DynamicKubeletConfig s---------
DynamicNodeLocalEphemeralVolumes ---------a NodeDeclaredFeatures
DynamicResourceAllocation -aabbSLLL-
EfficientWatchResumption LLLL------
ElasticIndexedJob -BLLL-----
EmptyDirVolumeMode --------aa
EndpointSliceTerminatingCondition B---------
EnvFiles -----aBBBL
EphemeralContainers L---------
EtcdRangeStream --------BB
EventedPLEG -aaaaaaaaa PLEGOnDemandRelist@1.37
EvictionRequestAPI --------aa
ExcludeAdmissionWebhookVirtualResources --------BB
ExecProbeTimeout SSSSSSLLL-
ExpandCSIVolumes S---------
ExpandInUsePersistentVolumes S---------
ExpandPersistentVolumes S---------
ExpandedDNSConfig a---------
ExperimentalHostUserNamespaceDefaulting b---------
ExtendWebSocketsToKubelet -------BBL NodeDeclaredFeatures
ExternalServiceAccountTokenSigner ---aaBBLLL
GRPCContainerProbe B---------
GRPCContainerProbeTLS --------aa
GangScheduling ------aa-- GenericWorkload
GenericWorkload ------aabb
GitRepoVolumeDriver ----ssslll
GracefulNodeShutdown BBBBBBBBBB
GracefulNodeShutdownBasedOnPodPriority BBBBBBBBBB GracefulNodeShutdown
H2CContainerProbe --------aa NodeDeclaredFeatures
HPAConfigurableTolerance ----aaBBLL
HPAContainerMetrics aLL-------
HPAGeneration --------BL
HPAOptimizedSelectorStore --------BB
HPAScaleToZero aaaaaaaaBB
HonorPVReclaimPolicy aaBBLLL---
HostnameOverride -----aBBLL
HugepageAwareEviction --------BB
IPTablesOwnershipCleanup a---------
IdentifyPodOS L---------
ImageMaximumGCAge -BBBBBLLLL
ImageVolume --aabbBLLL
ImageVolumeWithDigest -------aaa ImageVolume
InOrderInformers ----BBBLLL
InOrderInformersBatchProcess ------BBBB
InPlacePodLevelResourcesVerticalScaling ------aBBB InPlacePodVerticalScaling,NodeDeclaredFeatures,PodLevelResources
InPlacePodVerticalScaling -aaaBBLLL-
InPlacePodVerticalScalingAllocatedStatus ---asss--- InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs ---aaaaaaa InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory -----aaaaa InPlacePodVerticalScaling,MemoryManager
InPlacePodVerticalScalingInitContainers -------BLL InPlacePodVerticalScaling,NodeDeclaredFeatures
InPlacePodVerticalScalingMemoryBackedVolumes --------aa InPlacePodVerticalScaling,NodeDeclaredFeatures
InPlacePodVerticalScalingSchedulerPreemption --------aa InPlacePodVerticalScaling
InTreePluginAWSUnregister aa--------
InTreePluginAzureDiskUnregister aa--------
InTreePluginAzureFileUnregister aa--------
InTreePluginGCEUnregister aa--------
InTreePluginOpenStackUnregister aa--------
InTreePluginPortworxUnregister aaaaaaa---
InTreePluginRBDUnregister as--------
InTreePluginvSphereUnregister aa--------
IndexedJob L---------
InformerResourceVersion -aaaaaSSSS
InterPodAffinityHostnameFastPath --------aa
JobBackoffLimitPerIndex -BBBLLLL--
JobManagedBy -aaBBBLLL-
JobMutableNodeSchedulingDirectives B---------
JobPodFailurePolicy aBLL------
JobPodReplacementPolicy -BBBBLLL--
JobReadyPods BL--------
JobSuccessPolicy -aBBLLLL--
JobTrackingWithFinalizers B---------
KMSv1 -sssssssss
KMSv2 aLL-------
KMSv2KDF -LL-------
KubeAPIServerWorkloadsTrust ---------a ClusterTrustBundle,ClusterTrustBundleProjection
KubeProxyDrainingTerminatingNodes -BLL------
KubeProxyIPVS --------SS
KubeProxyNFTablesLocalhostNodePorts --------aB
KubeletAllocatedPodsEndpoint --------aa InPlacePodVerticalScaling
KubeletCgroupDriverFromCRI -aBBBLLLLL
KubeletCrashLoopBackOffMax ---aaaBBBB
KubeletCredentialProviders B---------
KubeletEnsureSecretPulledImages ----aaBBBB
KubeletFineGrainedAuthz ---aBBBLLL
KubeletInUserNamespace aaaaaaaaBB
KubeletPSI ----aBBLLL
KubeletPodResources B---------
KubeletPodResourcesDynamicResources -aaaaBBLLL
KubeletPodResourcesGet -aaaaBBLLL
KubeletPodResourcesGetAllocatable B---------
KubeletPodResourcesListUseActivePods -----SSSSS
KubeletRegistrationGetOnExistsOnly ---sssssss
KubeletSeparateDiskGC -aBBBBBBBB
KubeletServiceAccountTokenForCredentialProviders ----aBBBBB
KubeletTracing aBBBBLLLL-
LegacyServiceAccountTokenCleanUp -LL-------
LegacyServiceAccountTokenNoAutoGeneration B---------
LegacySidecarContainers ----s-----
ListFromCacheSnapshot ----aBBBBB
LoadBalancerIPMode -BBLLL----
LocalStorageCapacityIsolation L---------
LocalStorageCapacityIsolationFSQuotaMonitoring aabbbbbbbb
LogarithmicScaleDown BBLLLLLL--
LoggingAlphaOptions -aaaaaaaaa
LoggingBetaOptions -BBBBBBBBB
ManagedFieldsOptOut ---------a
ManagedFieldsOptOutClient ---------a
ManifestBasedAdmissionControlConfig -------aBB
MatchLabelKeysInPodAffinity -aBBLLLLL-
MatchLabelKeysInPodTopologySpread aBBBBBBBBB
MatchLabelKeysInPodTopologySpreadSelectorMerge -----BBBBB MatchLabelKeysInPodTopologySpread
MaxUnavailableStatefulSet aaaaaabbBB
MemoryManager BBBLLLL---
MemoryQoS aaaaaaaaBB
MinDomainsInPodTopologySpread bLL-------
MixedProtocolLBService B---------
MultiCIDRRangeAllocator a---------
MultiCIDRServiceAllocator -abbSLLLL-
MutableCSINodeAllocatableCount ----abBLLL
MutablePVNodeAffinity ------aaaa
MutablePodResourcesForSuspendedJobs ------aBBB
MutableSchedulingDirectivesForSuspendedJobs ------aBBB
MutatingAdmissionPolicy -aaaabbSSS
NFTablesNetlink --------BB
NFTablesProxyMode -aBBLLLLL-
NativeHistograms -------aBB
NetworkPolicyEndPort L---------
NetworkPolicyStatus a---------
NewVolumeManagerReconstruction -LL-------
NodeControllerLeaseCircuitBreaker --------BB AtomicFIFO
NodeDeclaredFeatures ------aBLL
NodeInclusionPolicyInPodTopologySpread aBBBLLLLLL
NodeLifecycleConditions --------aa
NodeLogQuery -bbbbbbLLL
NodeOutOfServiceVolumeDetach aLL-------
NodeSwap aBBBBLLLL-
NominatedNodeNameForExpectation -----aBBBB
NonPreemptingPriority L---------
OpenAPIEnums BBBBBBBBBB
OpenAPIV2LazyBuild ---------B
OpenAPIV3 B---------
OpportunisticBatching ------BBBB
OrderedNamespaceDeletion -bbbBLLL--
PDBUnhealthyPodEvictionPolicy -BLL------
PLEGOnDemandRelist -------BLL
PersistentVolumeClaimUnusedSinceTime -------aBB
PersistentVolumeLastPhaseTransitionTime -BLL------
PodAffinityNamespaceSelector L---------
PodAndContainerStatsFromCRI aaaaaaaabb
PodCertificateMLDSA ---------b
PodCertificateRequest -----abbSS AuthorizeNodeWithSelectors
PodDeletionCost BBBBBBBBBB
PodDisruptionConditions aBLLL-----
PodGroupPreemptionPolicy --------a- GenericWorkload
PodHasNetworkCondition a---------
PodHostIPs -LL-------
PodIndexLabel -BBLLL----
PodLevelResourceManagers -------abb PodLevelResources
PodLevelResources ---aaBBBBB
PodLevelResourcesFixDefaulting --------BB PodLevelResources
PodLevelResourcesFixKubeletQOSClass --------BB PodLevelResources
PodLifecycleSleepAction -BBBBLLL--
PodLifecycleSleepActionAllowZero ---aBLLL-- PodLifecycleSleepAction
PodLogsQuerySplitStreams ---aaaaaaa
PodObservedGenerationTracking ----aBLLLL
PodOverhead L---------
PodReadyToStartContainersCondition -BBBBBBBLL
PodSchedulingReadiness -LLLLLLLL-
PodSecurity L---------
PodTopologyLabelsAdmission ----aaBBBB
PodsAPI -------aBB
PortForwardWebsockets -aBBBBBBBL
PreferNominatedNode L---------
PreferSameTrafficDistribution ----aBLLL-
PreventStaticPodAPIReferences -----BBB--
ProbeHostPodSecurityStandards -----L----
ProbeTerminationGracePeriod B---------
ProcMountType aabbBBBLLL UserNamespacesSupport
ProxyTerminatingEndpoints a---------
QOSReserved aaaaaaaaaa
ReadWriteOncePod aL--------
RecoverVolumeExpansionFailure aaaBBLLLL-
RecursiveReadOnlyMounts -aBBLLLLLL
ReduceDefaultCrashLoopBackOffDecay ----aaaaaa
RelaxedDNSSearchValidation ---aBLLL--
RelaxedEnvironmentVariableValidation -aaBBLLLLL
RelaxedServiceNameValidation -----aaBLL
ReloadKubeletClientCAFile -------BBB
ReloadKubeletServerCertificateFile --BBBBBBBB
RemainingItemCount BLLL------
RemoteRequestHeaderUID ---aBBBBBB
RemoveSelfLink L---------
RequestCostAggregation ---------a
ResilientWatchCacheInitialization --BBBLLL--
ResourceHealthStatus --aaaaaBBB DynamicResourceAllocation
ResourceHealthStatusMessage -------BBB ResourceHealthStatus
RestartAllContainersOnContainerExits ------aBBB ContainerRestartRules,NodeDeclaredFeatures
RetroactiveDefaultStorageClass a---------
RetryGenerateName -aBLLLLL--
RotateKubeletServerCertificate BBBBBBBBBB
RuntimeClassInImageCriApi -aaaaaaaaa
SELinuxChangePolicy ---aBBBLLL
SELinuxMount -aaabbbbSS
SELinuxMountReadWriteOncePod aBBBBBBLLL
SchedulerAsyncAPICalls -----bbbbb
SchedulerAsyncPreemption ---aBBBBBB
SchedulerPopFromBackoffQ ----BBBBBB
SchedulerPreQueueingHints --------aB
SchedulerQueueingHints -bbBBLLL--
SeccompDefault B---------
SecurityProfileOCI ---------a
SeparateCacheWatchRPC -BBBssslll
SeparateTaintEvictionController -BBBBLLLL-
ServerSideApply SLL-------
ServerSideFieldValidation BLL-------
ServiceAccountNodeAudienceRestriction ---bBBBBBB
ServiceAccountTokenJTI -BBLLLLLL-
ServiceAccountTokenMLDSA ---------b
ServiceAccountTokenNodeBinding -aBBLLLLL- ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation -BBLLLLLL-
ServiceAccountTokenPodNodeInfo -BBLLLLLL-
ServiceCIDRStatusFieldWiping -------SSS
ServiceIPStaticSubrange B---------
ServiceInternalTrafficPolicy B---------
ServiceLBNodePortControl L---------
ServiceLoadBalancerClass L---------
ServiceNodePortStaticSubrange -L--------
ServiceTrafficDistribution -aBBLLL---
ShardedListAndWatch -------aaB
SidecarContainers -BBBLLLL--
SizeBasedListCostEstimate -----BBBBB
SizeMemoryBackedVolumes BBBLLL----
SkipReadOnlyValidationGCE -S--------
StableLoadBalancerNodeSet -LL-------
StaleControllerConsistencyDaemonSet -------BBB AtomicFIFO
StaleControllerConsistencyHPA --------BB AtomicFIFO
StaleControllerConsistencyJob -------BBB AtomicFIFO
StaleControllerConsistencyReplicaSet -------BBB AtomicFIFO
StaleControllerConsistencyStatefulSet -------BBB AtomicFIFO
StatefulSetAutoDeletePVC aBBLLL----
StatefulSetMinReadySeconds L---------
StatefulSetRecreateStrategy --------aB
StatefulSetSemanticRevisionComparison -----BBBBB
StatefulSetStartOrdinal -BLLL-----
StorageCapacityScoring ----aaaaBB
StorageNamespaceIndex -BBBSSSSSS
StorageVersionAPI aaaaaaaaaa APIServerIdentity
StorageVersionHash BBBBBBBBBB
StorageVersionMigrator -aaaaabbSS
StreamingCollectionEncodingToJSON ----BLLL--
StreamingCollectionEncodingToProtobuf ----BLLL--
StrictCostEnforcementForVAP -bbLLL----
StrictCostEnforcementForWebhooks -bbLLL----
StrictIPCIDRValidation ----aaaBBL
StructuredAuthenticationConfiguration -BBBBLLL--
StructuredAuthenticationConfigurationEgressSelector -----BBBBB StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics ------BBBB StructuredAuthenticationConfiguration
StructuredAuthorizationConfiguration -BBLLLL---
SupplementalGroupsPolicy --aaBBLLL-
SuspendJob L---------
SystemdWatchdog ---BBBLLL-
TaintTolerationComparisonOperators ------aaaa
TokenRequestServiceAccountUIDValidation -----BBBBB
TopologyAwareHints BBBBLLL---
TopologyAwareWorkloadScheduling -------aab GenericWorkload
TopologyManager B---------
TopologyManagerPolicyAlphaOptions -aaaaaaaaa
TopologyManagerPolicyBetaOptions -BBBBBBBBB
TopologyManagerPolicyOptions -BBSSSSLLL
TranslateStreamCloseWebsocketRequests -BBBBBBBBL
UnauthenticatedHTTP2DOSMitigation bBBBBBBBBB
UnknownVersionInteroperabilityProxy -aaaaaaBBB APIServerIdentity
UnlockWhileProcessingFIFO -------BBB
UserNamespacesHostNetworkSupport ------aaaa NodeDeclaredFeatures@1.36,UserNamespacesSupport
UserNamespacesPodSecurityStandards -aaaaa----
UserNamespacesStatelessPodsSupport a---------
UserNamespacesSupport -bbbBBBLLL
ValidatingAdmissionPolicy -LL-------
VolumeAttributesClass -abbbSSLLL
VolumeBindMountOptions --------aa
VolumeCapacityPriority aaaa------
VolumeLimitScaling ------aaBB
WatchBookmark LLLL------
WatchCacheInitializationPostStartHook --bbbbbBLL
WatchFromStorageWithoutPrevKV ---------B
WatchFromStorageWithoutResourceVersion -bbblll---
WatchList -aaBbBBBBB
WatchListClient -bbbbbBBBB
WatchListClientConcurrentDecoding ---------B
WatchListCompression --------BB
WebhookRoundTripLoadBalancing --------BB
WinDSR aaaaBLLLL-
WinOverlay BBBBBLLLL-
WindowsCPUAndMemoryAffinity ---aaaaaaB MemoryManager
WindowsGracefulNodeShutdown ---aaBBBBB GracefulNodeShutdown
WindowsHostNetwork -AAAsssss-
WindowsHostProcessContainers B---------
WorkloadAwarePreemption -------a-- GangScheduling
WorkloadWithJob -------aaa GenericWorkload
ZeroLimitedNominalConcurrencyShares -LL-------
`;
