import { codes, failures } from '#codes';
import { failureCodes } from '../../base/failure-codes.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { printable } from '../../base/printable.ts';
import { diagnosticCodes, severitiesOf, type DiagnosticCode } from '../../diagnostics/codes.ts';
import { refuse } from '../../library/refusal.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';

export const addExplainCommand = defineCommand({
  name: 'explain',
  description: 'Explain a message by its code: what it means, an example, and what to do; or list all codes.',
  arguments: [['[code]', 'the code, as in [bad-value] at the end of a message']],
  run: async (call) => {
    // As it is copied from a message.
    const name = call.words[0]?.replace(/^\[(.*)\]$/, '$1');
    const code = diagnosticCodes.find((each) => each === name);
    const failure = failureCodes.find((each) => each === name);
    if (name === undefined) await call.out(listCodes());
    else if (failure === undefined && code === undefined) {
      const near = findNearest(name, [...diagnosticCodes, ...failureCodes]);
      const help = near === undefined ? 'list the codes with "kpc explain"' : `did you mean ${near}?`;
      refuse(`no message has the code ${printable(name)}`, help);
    }
    // Both programs may have a code of this name.
    if (code !== undefined) await call.out(explainCode(code));
    if (failure !== undefined) {
      const head = `${code === undefined ? '' : '\n'}${failure}: error of kpc-apply`;
      const { meaning, advice } = failures[failure];
      await call.out(`${head}\n${meaning}\n\n${adviceLine(advice)}`);
    }
    return exitStatus.ok;
  },
});

function explainCode(code: DiagnosticCode): string {
  const { meaning, shown, advice } = codes[code];
  const help = advice === undefined ? '' : `\n${adviceLine(advice)}`;
  return `${code}: ${severitiesOf(code).join(' or ')}\n${meaning}\n\n${shown}${help}`;
}

/** Set apart from the help of a message, which is about its own input. */
function adviceLine(advice: string): string {
  return `What to do: ${advice}.\n`;
}

function listCodes(): string {
  const meanings = [
    ...diagnosticCodes.map((code) => [code, codes[code].meaning] as const),
    ...failureCodes.map((code) => [code, `kpc-apply: ${failures[code].meaning}`] as const),
  ];
  const width = Math.max(...meanings.map(([code]) => code.length));
  return meanings.map(([code, meaning]) => `${code.padEnd(width)}  ${meaning}\n`).join('');
}
