import { nameOptions, type CallerWords } from '../../src/library/words.ts';
import type { ReadInput } from './questions.ts';

/** What the page has in the place of flags, by their names in camel case. */
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

/** The words of the page: it has controls, and no command line. */
function pageWords(kind: ReadInput['kind']): CallerWords {
  return {
    option: (name, isOff) => {
      const control = controls.get(name);
      return control !== undefined && isOff ? `${control} switched off` : control;
    },
    manifests: kind === 'dump' ? 'in "Compare"' : 'to the manifests',
  };
}

/** What is said about manifests; "the program's" flags are those that the page has nothing for. */
export function inPageWords(words: string, kind: ReadInput['kind']): string {
  return nameOptions(words, pageWords(kind)).replaceAll(/"[^"]*"|(?:the program's )?--[a-z]/g, (found) =>
    found.startsWith('--') ? `the program's ${found}` : found,
  );
}
