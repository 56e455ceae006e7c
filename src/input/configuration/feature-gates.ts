import { findGateFaults, type GateFault } from '../../kube-proxy/feature-gates.ts';
import type { FeatureGates, Release } from '../../kube-proxy/releases.ts';
import { featureGatesField, featureGatesFlag } from '../../settings/feature-gates.ts';
import { onCommandLine, refuse, refuseValue, type SettingSource, readSwitch } from '../../settings/setting.ts';

/** What the settings of gates are read from. */
type GatesSource = Pick<SettingSource, 'flag' | 'field' | 'report'>;

/**
 * The configuration's gates with those of the flag over them. Reports those with which the release's kube-proxy does not
 * start, or leaves them out.
 */
export function readFeatureGates(
  source: GatesSource,
  release: Release,
  refused: 'reported' | 'left-out',
): FeatureGates {
  const configured = Object.entries(source.field(featureGatesField) ?? {});
  const flagged = new Map((source.flag(featureGatesFlag) ?? []).flatMap((text) => readGate(source, text)));
  const gates = new Map([...configured.map(([name, isOn]) => [name, isOn ?? false] as const), ...flagged]);
  const faults = findGateFaults(gates, release);
  if (refused === 'left-out') return withoutFaults(gates, faults);
  for (const fault of faults) {
    const gate = culpritsOf(fault).find((name) => gates.has(name)) ?? '';
    const place = flagged.has(gate) ? onCommandLine : { path: [...featureGatesField.path, gate] };
    refuse(source, place, 'bad-feature-gate', fault);
  }
  return gates;
}

/** The gates that a fault comes from, if they are set. */
function culpritsOf(fault: GateFault): readonly string[] {
  if (fault.problem !== 'needs') return [fault.gate];
  return [...fault.unmet.flatMap(({ gate, needs }) => [gate, ...needs]), 'AllAlpha', 'AllBeta'];
}

function withoutFaults(gates: FeatureGates, faults: readonly GateFault[]): FeatureGates {
  const out = new Set(faults.flatMap(culpritsOf));
  return new Map([...gates].filter(([gate]) => !out.has(gate)));
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
