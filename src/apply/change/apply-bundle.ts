import { remarkOf, type Remark } from '../../base/findings/node-checks.ts';
import { hashHex } from '#hash';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { isLearned } from '../../kernel/nftables/table.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { readServicePort, servicePortRecord } from '../../bundle/services-file.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { findGonePorts, forgottenFlows } from '../../cluster/stale-flows.ts';
import { changeNode } from './change-node.ts';
import { remark, type ChangeOutcome, type ChangeRequest, type Observation, type Session } from './observe-node.ts';
import { modeOfState } from '../../kube-proxy/evidence.ts';
import { sysctlsLeftBy } from '../../kube-proxy/left-behind.ts';
import { sysctlPath } from '../../kernel/sysctls-and-modules.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { assertNoKubeProxy } from '../node/processes.ts';
import { forgetStaleFlows } from '../node/open-traffic.ts';
import { examineBeforeApply, examineEndpoints, examineForwarding } from '../doctor/doctor.ts';
import { examineRoom, type NodeCheck, type Needs } from '../doctor/node-checks.ts';
import { causeOf, Failure } from '../state/failure.ts';
import type { Host } from '../node/host.ts';
import { isEmptyPlan, type Plan, type RequiredChange } from '../plan/plan.ts';
import { readRecord, type BundleMark } from '../state/record.ts';
import { listSteps, toolOf } from '../plan/steps.ts';
import { behavioursOf } from '../../kube-proxy/releases.ts';
import {
  conntrackMax,
  decideOnNode,
  readNodeFacts,
  requireSysctl,
  type RequiredSysctl,
} from '../plan/node-decisions.ts';

export interface ApplyChoices {
  /** The command that applies the bundle, the bundle's folder, and the signed serial if the signature was checked. */
  readonly origin: { readonly kind: 'apply' | 'watch'; readonly folder: string; readonly serial?: number | undefined };
  readonly adopt: boolean;
  /** Added to the CIDRs in the bundle's configuration. */
  readonly ipvsExcludeCidrs: readonly string[];
  /** Milliseconds; undefined waits until all connections end. */
  readonly drainTimeout?: number | undefined;
  readonly confirmTimeout?: number | undefined;
  readonly force: boolean;
  readonly assumeAlone: boolean;
}

export function requestBundle(host: Host, bundle: StoredBundle, choices: ApplyChoices): ChangeRequest {
  const { manifest, snapshot } = bundle;
  const { state, cluster } = snapshot;
  return {
    origin: { kind: choices.origin.kind, bundle: markBundle(bundle, choices.origin) },
    target: async () => ({
      state: { ...state, sysctls: new Map(), modules: [], ipvsTimeouts: wholeSeconds(state.ipvsTimeouts) },
      modules: state.modules,
      settings: [
        ...[...state.sysctls].map(([name, value]) => requireSysctl(name, value)),
        ...(await decideWritable(host, bundle)),
      ],
    }),
    adopt: choices.adopt,
    excluded: requireNetworks([...manifest.settings.ipvs.excludeCIDRs, ...choices.ipvsExcludeCidrs]),
    clusterIPs: new Set(cluster.servicePorts.map(({ clusterIP }) => clusterIP.text)),
    drainTimeout: choices.drainTimeout,
    confirmTimeout: choices.confirmTimeout,
    refusesLeftovers: true,
    udpPorts: cluster.servicePorts
      .filter(({ protocol }) => protocol === 'UDP')
      .map((port) => ({ ...servicePortRecord(port), endpoints: [] })),
  };
}

export function markBundle(
  { files }: StoredBundle,
  { folder, serial }: Pick<ApplyChoices['origin'], 'folder' | 'serial'>,
): BundleMark {
  return { folder, digest: hashHex(files.get('manifest.json') ?? ''), serial };
}

/** Rounds down, because ipvsadm accepts only whole seconds. */
function wholeSeconds(timeouts: IpvsTimeouts | undefined): IpvsTimeouts | undefined {
  if (!timeouts) return undefined;
  const { tcp, tcpFin, udp } = timeouts;
  return { tcp: Math.floor(tcp), tcpFin: Math.floor(tcpFin), udp: Math.floor(udp) };
}

/** Returns the sysctls whose values depend on the node, if this network namespace can write them. A dumped bundle has none. */
async function decideWritable(host: Host, { manifest, snapshot }: StoredBundle): Promise<readonly RequiredSysctl[]> {
  if (manifest.dumped) return [];
  const decided = decideOnNode(snapshot.settings, await readNodeFacts(host));
  const writable = await Promise.all(decided.map(({ path }) => host.isWritable(path)));
  return decided.filter((_, i) => writable[i]);
}

function requireNetworks(cidrs: readonly string[]): readonly Network[] {
  return cidrs.map((cidr) => {
    const network = parseNetwork(cidr);
    if (network) return network;
    throw new Failure('bad-usage', { problem: 'no-cidr', cidr });
  });
}

/**
 * Returns a request to remove kpc-apply's objects and, with `adopt`, a kube-proxy's leftovers. Keeps modules and sysctls, as kube-proxy
 * does.
 */
export function requestNothing(
  host: Host,
  choices: Pick<ApplyChoices, 'adopt' | 'ipvsExcludeCidrs' | 'force' | 'assumeAlone' | 'confirmTimeout'>,
): ChangeRequest {
  return {
    origin: { kind: 'cleanup' },
    target: async () => ({ state: emptyState, settings: [], modules: [] }),
    adopt: choices.adopt,
    excluded: requireNetworks(choices.ipvsExcludeCidrs),
    drainTimeout: 0,
    confirmTimeout: choices.confirmTimeout,
    udpPorts: [],
    prepare: async ({ ownership }, isIdle) => {
      // If there are leftovers, look for a kube-proxy even without changes, because a running one may own them.
      if (!choices.force && !(isIdle && ownership.leftovers.length === 0))
        await assertNoKubeProxy(host, choices.assumeAlone);
    },
  };
}

export function needsOf(bundle: StoredBundle): Needs {
  const { manifest, snapshot } = bundle;
  const { modules, sysctls } = snapshot.state;
  return {
    mode: manifest.mode,
    modules,
    sysctls: [...sysctls].map(([name, value]) => ({ name, value })),
    leastVersions: manifest.tools,
    manifest,
  };
}

/** Applies a bundle. Needs the lock. Throws a Failure if nothing was changed. */
export async function applyBundle(
  session: Session,
  bundle: StoredBundle,
  choices: ApplyChoices,
): Promise<ChangeOutcome> {
  const { host } = session;
  const request = requestBundle(host, bundle, choices);
  const prepare: ChangeRequest['prepare'] = async (plan, isIdle, { node: { modules }, reading }) => {
    if (isIdle) return;
    assertNoRefusals(examineRoom(bundle, reading));
    if (!choices.force) {
      assertNoRefusals(await examineBeforeApply(host, needsOf(bundle), { used: toolsOf(plan), modules, ...choices }));
    }
    for (const each of await listRemarks(host, bundle, plan)) session.onEvent({ kind: 'warning', remark: each });
  };
  const { udpPorts } = await readRecord(host, session.folder);
  const outcome = await changeNode(session, { ...request, prepare });
  if (outcome.kind !== 'changed') return outcome;
  const nothingBefore = modeOfState(outcome.plan.present) === undefined ? [] : undefined;
  await forgetUdpFlows(session, bundle, udpPorts?.map((port) => readServicePort(port)) ?? nothingBefore);
  return outcome;
}

/** Deletes stale UDP flows, as kube-proxy does after a sync. Never fails. `before`: the ports served until now. */
async function forgetUdpFlows(
  { host, onEvent }: Session,
  { snapshot }: StoredBundle,
  before: readonly ServicePort[] | undefined,
): Promise<void> {
  const behaviours = behavioursOf(snapshot.settings.release);
  const ports = snapshot.cluster.servicePorts;
  if (before === undefined && forgottenFlows(behaviours).ofGone !== 'none') {
    onEvent(remark('flows-of-gone-services', {}));
  }
  try {
    await forgetStaleFlows(host, { ports, gone: findGonePorts(before ?? [], ports) }, behaviours);
  } catch (error) {
    onEvent(remark('flows-of-gone-endpoints', { cause: causeOf(error) }));
  }
}

export interface Foresight {
  readonly refusals: readonly NodeCheck[];
  readonly warnings: readonly Remark[];
}

/** Returns what applyBundle would refuse or warn about before its first change; empty if there is nothing to change. */
export async function foreseeApply(
  host: Host,
  bundle: StoredBundle,
  { plan, node, reading }: Pick<Observation, 'plan' | 'node' | 'reading'>,
  choices: Pick<ApplyChoices, 'adopt' | 'assumeAlone'>,
): Promise<Foresight> {
  if (isEmptyPlan(plan)) return { refusals: [], warnings: [] };
  const [refusals, warnings] = await Promise.all([
    examineBeforeApply(host, needsOf(bundle), { used: toolsOf(plan), modules: node.modules, ...choices }),
    listRemarks(host, bundle, plan),
  ]);
  return { refusals: [...examineRoom(bundle, reading), ...refusals], warnings };
}

async function listRemarks(host: Host, { manifest }: StoredBundle, plan: Plan): Promise<readonly Remark[]> {
  if (isEmptyPlan(plan)) return [];
  const { mode } = manifest;
  const before = modeOfState(plan.present) ?? mode;
  const forwarding = await examineForwarding(host, { mode, manifest });
  return [
    ...plan.settings.flatMap(remarkOnLowering),
    ...[...examineEndpoints({ manifest }), ...forwarding].map((check) => remarkOf('check-failed', { check })),
    ...(before === mode ? [] : remarkOnModeChange(plan, before, mode)),
  ];
}

function remarkOnModeChange({ present }: Plan, from: ProxyMode, to: ProxyMode): readonly Remark[] {
  const names = sysctlsLeftBy(from, to);
  return [
    ...(names.length > 0 ? [remarkOf('left-sysctls', { mode: from, names })] : []),
    ...(hasAffinity(present) ? [remarkOf('affinity-lost', { from, to })] : []),
  ];
}

function hasAffinity({ iptables, virtualServers, nftables }: KernelState): boolean {
  const rules = Object.values(iptables).flatMap(({ nat }) =>
    [...(nat?.values() ?? [])].flatMap((chain) => chain.rules),
  );
  return (
    rules.some(({ args }) => args.some((arg) => arg.kind === 'recent')) ||
    virtualServers.some((server) => server.persistentSeconds !== undefined) ||
    nftables.some((table) => [...table.sets.values()].some(isLearned))
  );
}

function remarkOnLowering({ setting: { path, name, value, reason }, from }: RequiredChange): readonly Remark[] {
  if (path !== sysctlPath(conntrackMax) || from === undefined || !(Number(from) > Number(value))) return [];
  return [remarkOf('lower-limit', { name, from, to: value, why: reason })];
}

function toolsOf(plan: Plan): ReadonlySet<string> {
  return new Set(listSteps(plan).flatMap((step) => toolOf(step) ?? []));
}

export function assertNoRefusals(checks: readonly NodeCheck[]): void {
  const [first] = checks;
  if (first) throw new Failure('not-ready', { problem: 'refused', checks, tool: first.tool });
}
