import { codes, failures } from '#codes';
import { failureCodes } from '../base/findings/apply.ts';
import { findNearest } from '../base/names.ts';
import { findingCodes, severitiesOf, type FindingCode } from '../base/findings/codes.ts';

/** Returns what a code means in kpc, in kpc-apply, or in both. `nearest`: a similar code, if the given code does not exist. */
export function explain(name: string): { readonly text: string } | { readonly nearest: string | undefined } {
  const code = findingCodes.find((each) => each === name);
  const failure = failureCodes.find((each) => each === name);
  const texts = [...(code ? [explainCode(code)] : []), ...(failure ? [explainFailure(failure)] : [])];
  if (texts.length > 0) return { text: texts.join('\n') };
  return { nearest: findNearest(name, [...findingCodes, ...failureCodes]) };
}

function explainFailure(failure: (typeof failureCodes)[number]): string {
  const { meaning, advice } = failures[failure];
  return `${failure}: error of kpc-apply\n${meaning}\n\n${adviceLine(advice)}`;
}

function explainCode(code: FindingCode): string {
  const { meaning, shown, advice } = codes[code];
  const help = advice === undefined ? '' : `\n${adviceLine(advice)}`;
  return `${code}: ${severitiesOf(code).join(' or ')}\n${meaning}\n\n${shown}${help}`;
}

function adviceLine(advice: string): string {
  return `What to do: ${advice}.\n`;
}

export function listCodes(): string {
  const meanings = [
    ...findingCodes.map((code) => [code, codes[code].meaning] as const),
    ...failureCodes.map((code) => [code, `kpc-apply: ${failures[code].meaning}`] as const),
  ];
  const width = Math.max(...meanings.map(([code]) => code.length));
  return meanings.map(([code, meaning]) => `${code.padEnd(width)}  ${meaning}\n`).join('');
}
