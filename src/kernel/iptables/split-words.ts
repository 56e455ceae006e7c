/**
 * Splits a line into words as iptables-restore does: blanks separate, double quotes hold a word together, and within
 * them a backslash takes the next character as it is. Undefined where a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  if (!line.includes('"') && !line.includes('\t')) {
    const words = line.split(' ');
    return words.includes('') ? words.filter((word) => word !== '') : words;
  }
  const words: string[] = [];
  let word = '';
  /** Where the piece of the word begins that is not in `word` yet. */
  let from = 0;
  let started = false;
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const code = line.charCodeAt(i);
    if (code === quote || (code === backslash && quoted && i + 1 < line.length)) {
      word = from === i ? word : word + line.slice(from, i);
      if (code === quote) quoted = !quoted;
      else word += line.charAt(++i);
      from = i + 1;
      started = true;
    } else if (!quoted && (code === blank || code === tab)) {
      if (started || from < i) words.push(word === '' ? line.slice(from, i) : word + line.slice(from, i));
      word = '';
      from = i + 1;
      started = false;
    }
  }
  if (quoted) return undefined;
  if (started || from < line.length) words.push(word + line.slice(from));
  return words;
}

const tab = 9;
const blank = 32;
const quote = 34;
const backslash = 92;
