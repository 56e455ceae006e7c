import { inOneLine } from '../../src/say/words/words.ts';
import type { Finding } from '../../src/base/findings/finding.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { sortDiagnostics } from '../../src/input/sort-diagnostics.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

/** What is wrong with a text, a line each: the place, the severity, the code and its arguments, as in '3:1 error yaml-tab {}'. */
export function diagnose(text: string, name = 'in.yaml'): string[] {
  return describe(collectFiles([new TextFile(name, text)]).diagnostics);
}

/** Diagnostics in the order in which they are shown, without the file's name. */
export function describe(diagnostics: readonly Finding[]): string[] {
  return sortDiagnostics(diagnostics).map((finding) => {
    const { severity, code, place, arguments: details } = finding;
    const location = place?.locate();
    return `${location ? `${location.line}:${location.column} ` : ''}${severity} ${code} ${JSON.stringify(details)}`;
  });
}

/** What people are told, a line each: for names and numbers that the words take from elsewhere than the arguments. */
export function tell(text: string): string[] {
  return sortDiagnostics(collectFiles([new TextFile('in.yaml', text)]).diagnostics).map((finding) =>
    inOneLine(finding),
  );
}

/** A Service named web with these lines of spec, which start at line 4. */
export function service(...spec: string[]): string {
  const lines = spec.map((line) => `  ${line}\n`).join('');
  return `apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n${lines}`;
}
