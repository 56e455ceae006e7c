import { findNearest } from '../../base/find-nearest.ts';
import type { GateProblem } from '../../diagnostics/settings.ts';
import {
  behaviourOfGate,
  behavioursOf,
  canSetGate,
  featureGateNames,
  type FeatureGates,
  type Release,
} from '../../kube-proxy/releases.ts';
import { featureGatesField, featureGatesFlag } from '../../settings/feature-gates.ts';
import { onCommandLine, refuse, refuseValue, type SettingSource, readSwitch } from '../../settings/setting.ts';

/** At most so many letters off, a name is a slip. No gate of any kube-proxy is as near to one that kpc knows. */
const mostLettersOff = 3;

/** What the settings of gates are read from. */
type GatesSource = Pick<SettingSource, 'flag' | 'field' | 'report'>;

/**
 * The configuration's gates with those of the flag over them. Warns of a gate that turns nothing in the release, and of the
 * misspelled name of one that does. Other gates shape no rule, so kpc does not know them.
 */
export function readFeatureGates(source: GatesSource, release: Release): FeatureGates {
  const configured = Object.entries(source.field(featureGatesField) ?? {});
  const flagged = new Map((source.flag(featureGatesFlag) ?? []).flatMap((text) => readGate(source, text)));
  const gates = new Map([...configured.map(([name, isOn]) => [name, isOn ?? false] as const), ...flagged]);
  for (const [gate, isOn] of gates) {
    const fault = checkGate(gate, isOn, release);
    if (!fault) continue;
    const place = flagged.has(gate) ? onCommandLine : { path: [...featureGatesField.path, gate] };
    refuse(source, place, 'bad-feature-gate', fault);
  }
  return gates;
}

function checkGate(gate: string, isOn: boolean, release: Release): GateProblem | undefined {
  const behaviour = behaviourOfGate(gate);
  if (behaviour !== undefined) {
    if (canSetGate(behaviour, release) || behavioursOf(release).has(behaviour) === isOn) return undefined;
    return { problem: 'without-effect', gate, isOn, release, behaviour };
  }
  const meant = featureGateNames.includes(gate) ? undefined : findNearest(gate, featureGateNames, mostLettersOff);
  return meant === undefined ? undefined : { problem: 'misspelled', gate, meant };
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
