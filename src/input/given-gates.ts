import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { featureGatesField, featureGatesFlag } from '../kube-proxy/settings/feature-gates.ts';
import { readSwitch, splitList } from '../kube-proxy/settings/flag.ts';
import { onCommandLine, refuse, type SettingSource } from '../kube-proxy/settings/setting.ts';
import { checkFeatureGates } from './feature-gates.ts';

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
