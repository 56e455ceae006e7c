import { heapLimit } from '#heap';
import { mostItems, mostLines, mostWords } from '../../base/bounds.ts';

/** What the program itself takes. */
const bytesOfProgram = 32_000_000;
/** One text's values may take half of the rest: a mapping that grows takes twice its room, and more is made of them later. */
const room = Math.max(0, heapLimit() - bytesOfProgram) / 2;

/** What a value of JSON or YAML takes at most: a key of a long mapping, with what it holds. */
const bytesOfValue = 150;
/** The same with where it is written. */
const bytesOfPlacedValue = 300;
/** What the package takes for a word of YAML: nodes and tokens. */
const bytesOfWord = 150;

function fitting(most: number, bytes: number): number {
  return Math.min(most, Math.floor(room / bytes / 1000) * 1000);
}

export const mostJsonValues = fitting(mostItems, bytesOfValue);
/** A line of YAML holds one value or two, as an item and its first field do. */
export const mostYamlValues = fitting(3 * mostLines, bytesOfValue);
export const mostPlacedValues = fitting(3 * mostLines, bytesOfPlacedValue);
export const mostYamlWords = fitting(mostWords, bytesOfWord);
