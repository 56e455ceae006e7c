import type { YamlNumber } from '../yaml-scalars.ts';

/** What sigs.k8s.io/yaml makes of a key that is a number: for a float, the shortest text that is the same in 32 bits. */
export function keyText(number: YamlNumber, isFloat: boolean): string {
  if (!isFloat) return String((number.kind === 'integer' ? number.exact : undefined) ?? number.value);
  const { value } = number;
  if (Number.isNaN(value)) return '.nan';
  const single = Math.fround(value);
  if (!Number.isFinite(single)) return single < 0 ? '-.inf' : '.inf';
  if (single === 0) return Object.is(value, -0) || value < 0 ? '-0' : '0';
  return spell(single);
}

function spell(single: number): string {
  let digits = 1;
  while (Math.fround(Number(single.toPrecision(digits))) !== single) digits++;
  const [mantissa = '', power = '0'] = single.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return Number(`${mantissa}e${exponent}`).toString();
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}
