import { nameOptions, type CallerWords } from '../../src/library/words.ts';
import type { ReadInput } from './questions.ts';

/** The page's controls, by the names of the flags they replace, in camel case. */
const controls: ReadonlyMap<string, string> = new Map([
  ['node', '"Node"'],
  ['proxyMode', '"Mode"'],
  ['kubernetesVersion', '"Kubernetes"'],
  ['assume', 'the box "Assume what is missing"'],
  ['from', '"From"'],
  ['to', '"To"'],
  ['proto', '"Protocol"'],
  ['inInterface', '"Interface"'],
  ['hostAddresses', "the program's --host-addresses"],
]);

/** The page has controls, but no command line. */
function pageWords(kind: ReadInput['kind']): CallerWords {
  return {
    option: (name, isOff) => {
      const control = controls.get(name);
      return control !== undefined && isOff ? `${control} switched off` : control;
    },
    manifests: kind === 'dump' ? 'in "Compare"' : 'to the manifests',
  };
}

/** Puts text into the page's words. A flag without a control becomes "the program's" flag. */
export function inPageWords(words: string, kind: ReadInput['kind']): string {
  return nameOptions(words, pageWords(kind)).replaceAll(/"[^"]*"|(?:the program's )?--[a-z]/g, (found) =>
    found.startsWith('--') ? `the program's ${found}` : found,
  );
}
