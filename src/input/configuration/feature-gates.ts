import { findNearest } from '../../base/find-nearest.ts';
import type { GateProblem } from '../../diagnostics/settings.ts';
import { isSince, releases, type FeatureGates, type Release } from '../../kube-proxy/releases.ts';
import table from './feature-gates.json' with { type: 'json' };
import { featureGatesField, featureGatesFlag } from '../../kube-proxy/settings/feature-gates.ts';
import {
  onCommandLine,
  refuse,
  refuseValue,
  type SettingSource,
  readSwitch,
} from '../../kube-proxy/settings/setting.ts';

/** What a release makes of a feature gate. */
interface Gate {
  /** Its value if it is not set. */
  readonly isOn: boolean;
  readonly isLocked: boolean;
  /** Whether AllAlpha or AllBeta turns it, too. */
  readonly stage: 'alpha' | 'beta' | 'other';
}

/** Reads a gate from the table's word: its stage, if AllAlpha or AllBeta switches it, or its lock; and its value. */
function readKind(kind: string): Gate {
  const stage = kind.startsWith('alpha') ? 'alpha' : kind.startsWith('beta') ? 'beta' : 'other';
  return { isOn: kind === 'beta' || /(?:^|-)on$/.test(kind), isLocked: kind.startsWith('locked'), stage };
}

/**
 * All that the program of each kube-proxy registers, though it looks at few of them (DefaultMutableFeatureGate.GetAll of a
 * program that imports what cmd/kube-proxy/app imports, at the versions of kubeProxyVersions): what the first release makes of
 * it that is named, what each does that changes it, and what it needs to be on, too.
 */
const gateTable: Readonly<Record<string, { readonly history: string; readonly needs?: string }>> = table;

/** The feature gates that a release's kube-proxy knows, but AllAlpha and AllBeta. */
export function gatesOf(release: Release): ReadonlyMap<string, Gate> {
  return new Map(
    Object.entries(gateTable).flatMap(([name, { history }]) => {
      const changes = history.split(', ').map((change) => change.split(' '));
      const [, kind = 'gone'] = changes.findLast(([since]) => isSince(release, releaseOf(since))) ?? [];
      return kind === 'gone' ? [] : [[name, readKind(kind)] as const];
    }),
  );
}

function releaseOf(text: string | undefined): Release {
  const release = releases.find((each) => each === text);
  if (!release) throw new Error(`${text} is not a release`);
  return release;
}

/** The first release whose gates need others. */
const dependenciesSince: Release = '1.35';

/** Gates that switch all of a stage. */
const stages = { AllAlpha: 'alpha', AllBeta: 'beta' } as const;

/** What keeps kube-proxy from starting, and the gate it is about. */
interface GateFault {
  readonly gate: string;
  readonly fault: GateProblem;
}

/** Whether a gate is on, for a kube-proxy that knows these gates. */
export function isGateOn(name: string, gates: FeatureGates, known: ReadonlyMap<string, Gate>): boolean {
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
  return Object.entries(gateTable).flatMap(([name, { needs }]) => {
    if (needs === undefined || !known.has(name) || !isGateOn(name, gates, known)) return [];
    const needed = needs.split(', ').flatMap((need) => needIn(release, need));
    const missing = needed.filter((other) => !isGateOn(other, gates, known));
    const [first] = missing;
    if (first === undefined) return [];
    const gate = gates.has(name) ? name : (missing.find((other) => gates.has(other)) ?? first);
    return [{ gate, fault: { problem: 'needs', gate: name, needed: missing, release } }];
  });
}

/** "MemoryManager until 1.36" is needed in the releases before, "PLEGOnDemandRelist since 1.37" in that one and later ones. */
function needIn(release: Release, need: string): readonly string[] {
  const [name = '', word, bound] = need.split(' ');
  return word === undefined || isSince(release, releaseOf(bound)) === (word === 'since') ? [name] : [];
}

/** What the settings of gates are read from. */
type GatesSource = Pick<SettingSource, 'flag' | 'field' | 'report'>;

/** The configuration's gates with those of the flag over them. Reports what keeps the release's kube-proxy from starting. */
export function readFeatureGates(source: GatesSource, release: Release): FeatureGates {
  const configured = Object.entries(source.field(featureGatesField) ?? {});
  const flagged = new Map((source.flag(featureGatesFlag) ?? []).flatMap((text) => readGate(source, text)));
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
  const expected = 'the name of a gate, = and true or false';
  refuseValue(source, { name: featureGatesFlag.name, value: text, path: undefined }, expected);
  return [];
}
