import { formatBalancer, type ProxyPort } from '../../kernel/balancer/balancer.ts';
import { withoutUnwritable } from '../../kernel/iptables/iptables.ts';
import { rulesPlaces, type FamilyTables, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import { restrictState } from '../../kernel/state.ts';
import { endOf, type ToolCommand, type CommandResult } from '../node/host.ts';
import { translatePlace } from '../node/tools.ts';
import { parseReading } from '../node/node-reading.ts';
import { endOrphans, inHaste } from '../node/tool-time-limits.ts';
import { listSteps, type PlanStep } from '../plan/steps.ts';
import { settingName } from '../plan/node-decisions.ts';
import { isEmptyPlan, type Plan } from '../plan/plan.ts';
import { joinOwned, ownershipOf } from '../state/owned-names.ts';
import { replaceBalancerFile, readRecord, type OwnershipRecord, type StoredSnapshot } from '../state/record.ts';
import { causeOf, Failure, failureOfSignal } from '../state/failure.ts';
import { writeRecord } from '../state/history.ts';
import { drainTerms, look, remark, type ChangeRequest, type Session } from './observe-node.ts';

/** Returns the completed steps. Throws a Failure at the first step that fails. */
export async function runPlan(session: Session, plan: Plan): Promise<readonly PlanStep[]> {
  const { onEvent, signal } = session;
  const steps = listSteps(plan);
  for (const [i, step] of steps.entries()) {
    assertNotInterrupted(signal);
    onEvent({ kind: 'step', step, number: i + 1, of: steps.length });
    await runStep(session, step);
  }
  return steps;
}

export function assertNoFault(signal: AbortSignal | undefined): void {
  const fault = failureOfSignal(signal);
  if (fault) throw fault;
}

/** Throws a Failure if the operator asked to stop or an error aborted the work. */
export function assertNotInterrupted(signal: AbortSignal | undefined): void {
  assertNoFault(signal);
  if (signal?.aborted) throw new Failure('interrupted', {});
}

/** Throws a Failure if a tool reports an error. The caller must read the node back, because exit statuses prove little. */
async function runStep(session: Session, step: PlanStep): Promise<void> {
  const { host } = session;
  if (step.kind === 'run') return assertDone(step.command, await host.run(step.command));
  if (step.kind === 'balance') return setBalancer(session, step.proxyPorts);
  try {
    await host.writeFile(step.setting.path, step.setting.value);
  } catch (error) {
    const { name, value } = step.setting;
    throw new Failure('write-failed', { problem: 'sysctl', name, value, cause: causeOf(error) });
  }
}

/** Replaces nginx's configuration if nginx accepts the new file, then reloads nginx if a reload command was given. */
async function setBalancer(session: Session, proxyPorts: readonly ProxyPort[]): Promise<void> {
  const { host, folder, onEvent, balancerReload: [tool, ...args] = [] } = session;
  await replaceBalancerFile(host, folder, formatBalancer(proxyPorts).join(''), async (path) => {
    const check = { tool: 'nginx', args: ['-t', '-q', '-c', path] };
    assertDone(check, await host.run(check));
  });
  if (tool !== undefined) return assertDone({ tool, args }, await host.run({ tool, args }));
  onEvent(remark('balancer-not-reloaded', { path: folder.balancer }));
}

function assertDone(command: ToolCommand, result: CommandResult): void {
  const { tool } = command;
  if (result.kind === 'missing') {
    throw new Failure('tool-missing', { tool, to: 'change' });
  }
  const said = result.stderr.trim();
  // ipvsadm -R continues after a line that failed and exits with status 0. Test: apply/faults.test.ts.
  if (result.status === 0 && (tool !== 'ipvsadm' || said === '')) return;
  const line = findLine(command, said);
  throw new Failure('tool-failed', { problem: 'failed', tool, ...endOf(command, result), line });
}

function findLine({ stdin }: ToolCommand, said: string) {
  const match = /line:? (\d+)|Command failed -:(\d+)|^\/dev\/stdin:(\d+):/m.exec(said);
  const number = match?.slice(1).find((each) => each !== undefined);
  const text = number === undefined ? undefined : stdin?.split('\n')[Number(number) - 1];
  return number === undefined || text === undefined ? undefined : { number, text };
}

const attempts = 3;

/**
 * Restores a snapshot without waiting long for any tool. Returns the changes still missing; undefined if the node could never be read.
 * `unconfirmed`: the id of the unconfirmed apply, if this process started it.
 */
export async function putBack(
  session: Session,
  snapshot: StoredSnapshot,
  unconfirmed?: string,
): Promise<Plan | 'nothing' | undefined> {
  const { reading } = snapshot;
  const { host } = inHaste(session.host, session.folder, { reading, unconfirmed, mayBeCut: false });
  await endOrphans(host, snapshot);
  const request = requestSnapshot(snapshot);
  const owned = joinOwned(snapshot.record.owned, snapshot.touched);
  let left: Plan | undefined;
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      left = (await look({ host, folder: session.folder }, request, owned, drainTerms(host, request))).plan;
    } catch {
      continue;
    }
    if (isEmptyPlan(left)) {
      await endJournal(session, snapshot.record);
      return 'nothing';
    }
    for (const step of listSteps(left)) await runStep({ ...session, host }, step).catch(() => undefined);
  }
  return left;
}

/** Writes the record only if it has changed, because the disk may be full. On an error, the journal stays until the next command. */
async function endJournal({ host, folder, onEvent }: Session, record: OwnershipRecord): Promise<void> {
  try {
    // A damaged record counts as different.
    const present = await readRecord(host, folder).catch(() => undefined);
    if (JSON.stringify(present) !== JSON.stringify(record)) await writeRecord(host, folder, record);
    await host.remove(folder.journal);
  } catch (error) {
    onEvent(remark('open-journal', { path: folder.journal, cause: causeOf(error) }));
  }
}

export function requestSnapshot(snapshot: StoredSnapshot): ChangeRequest {
  const owned = joinOwned(snapshot.record.owned, snapshot.touched);
  const { variants } = snapshot.reading;
  const state = restrictState(parseReading(snapshot.reading), ownershipOf(owned, variants));
  const settings = Object.entries(snapshot.reading.settings).map(([path, value]) => ({
    path,
    name: settingName(path),
    value,
  }));
  return {
    origin: { kind: 'rollback', to: snapshot.state },
    target: async (used) => ({
      // Restore rules to their former iptables variant, except rules that no tool can write.
      state: { ...state, iptables: moveTables(state.iptables, (place) => translatePlace(place, variants, used)) },
      settings,
      modules: [],
    }),
    adopt: false,
    excluded: [],
    drainTimeout: 0,
    ownedAfter: snapshot.record.owned,
    udpPorts: snapshot.record.udpPorts,
  };
}

function moveTables(iptables: FamilyTables, to: (place: RulesPlace) => RulesPlace): FamilyTables {
  return Object.fromEntries(
    rulesPlaces.flatMap((place) => (iptables[place] ? [[to(place), withoutUnwritable(iptables[place])]] : [])),
  );
}
