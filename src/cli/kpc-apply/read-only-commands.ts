import { foreseeApply, needsOf, requestBundle } from '../../apply/change/apply-bundle.ts';
import { observe } from '../../apply/change/observe-node.ts';
import { dumpNode } from '../../apply/change/dump-node.ts';
import { examineForAnyMode, examineNode, examineState, modesOfToday } from '../../apply/doctor/doctor.ts';
import { fitModes } from '../../apply/doctor/node-checks.ts';
import { isEmptyPlan } from '../../apply/plan/plan.ts';
import { Failure } from '../../apply/state/failure.ts';
import { version } from '../../base/version.ts';
import { replaceFolder } from '../../bundle/folder.ts';
import { makeBundle } from '../../bundle/make-bundle.ts';
import { describeDumped, formatNodeChecks, formatNodeChecksJson } from '../../say/apply-outcomes.ts';
import { formatPlanJson, formatPlanText } from '../../say/plan-text.ts';
import { loadBundle, bundleSource } from '../../apply/open/load-bundle.ts';
import { type ExitStatus, exitStatus } from '../shared/terminal.ts';
import { openSession, type ApplyEnvironment } from './environment.ts';
import { defineApplyCommand, type Options } from './options.ts';

export const plan = defineApplyCommand({
  name: 'plan',
  description: 'Show what apply would change on this node: exit status 1 if it would change anything.',
  bundle: '<bundle>',
  flags: ['drainTimeout', 'all', 'output', 'adopt', 'assumeAlone', 'ipvsExcludeCidrs', 'trust', 'stateDir'],
  run: (options, environment, bundle) => compareNode('plan', bundle, options, environment),
});

export const verify = defineApplyCommand({
  name: 'verify',
  description: 'Check that this node matches a bundle: if not, print the drift, with exit status 1.',
  bundle: '<bundle>',
  flags: ['output', 'trust', 'stateDir'],
  run: (options, environment, bundle) =>
    compareNode('drift', bundle, { ...options, adopt: false, assumeAlone: false, ipvsExcludeCidrs: [] }, environment),
});

async function compareNode(
  as: 'plan' | 'drift',
  folder: string,
  options: Options<'output' | 'adopt' | 'assumeAlone' | 'ipvsExcludeCidrs' | 'trust' | 'stateDir'> &
    Partial<Options<'all' | 'drainTimeout'>>,
  environment: ApplyEnvironment,
): Promise<ExitStatus> {
  const { host, terminal } = environment;
  const session = await openSession(environment, { ...options, mayChange: false });
  const bundle = await loadBundle(folder, bundleSource(folder, options, environment));
  const request = requestBundle(host, bundle, { ...options, origin: { kind: 'apply', folder }, force: true });
  const observation = await observe(session, request);
  const { plan: found } = observation;
  const foresight = as === 'plan' ? await foreseeApply(host, bundle, observation, options) : undefined;
  await terminal.out(
    options.output === 'json'
      ? formatPlanJson(found, { command: `kpc-apply ${as === 'plan' ? 'plan' : 'verify'}`, bundle, foresight })
      : formatPlanText(found, { as, bundle, foresight, namesAll: options.all }),
  );
  return isEmptyPlan(found) && found.ownership.conflicts.length === 0 ? exitStatus.ok : exitStatus.negative;
}

export const doctor = defineApplyCommand({
  name: 'doctor',
  description:
    'Check what this node has and lacks, for one bundle or for each mode: exit status 1 if it is fit for none.',
  bundle: '[bundle]',
  flags: ['output', 'trust', 'stateDir'],
  async run(options, environment, folder: string | undefined) {
    const { terminal, host } = environment;
    const state = await examineState(host, options.stateDir);
    const bundle =
      folder === undefined ? undefined : await loadBundle(folder, bundleSource(folder, options, environment));
    const needs = bundle && needsOf(bundle);
    const checks = [
      ...(needs ? await examineNode(host, needs, state.owned) : await examineForAnyMode(host, state.owned)),
      ...state.checks,
    ].toSorted((a, b) => Number(a.mode !== undefined) - Number(b.mode !== undefined));
    const modes = needs ? [needs.mode] : modesOfToday;
    await terminal.out(
      options.output === 'json'
        ? formatNodeChecksJson(checks, modes, bundle)
        : formatNodeChecks(checks, modes, terminal.colour.out),
    );
    return fitModes(checks, modes).length > 0 ? exitStatus.ok : exitStatus.negative;
  },
});

export const dump = defineApplyCommand({
  name: 'dump',
  description:
    "Write this node's state, made by kpc-apply or kube-proxy, to a folder that kpc diff and kpc describe read.",
  flags: ['out', 'node', 'stateDir'],
  async run(options, environment) {
    const content = await dumpNode(await openSession(environment, { ...options, mayChange: false }), options.node);
    const { manifest, files } = makeBundle({ ...content, kpcVersion: version });
    const problem = await replaceFolder(options.out, files);
    if (problem) throw new Failure('bad-usage', { problem: 'folder', why: problem });
    await environment.terminal.tell(describeDumped(manifest, options.out));
    return exitStatus.ok;
  },
});
