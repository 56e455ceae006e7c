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
  let started = false;
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const char = line.charAt(i);
    if (char === '"') {
      quoted = !quoted;
      started = true;
    } else if (quoted && char === '\\' && i + 1 < line.length) {
      word += line.charAt(++i);
    } else if (!quoted && (char === ' ' || char === '\t')) {
      if (started) words.push(word);
      word = '';
      started = false;
    } else {
      word += char;
      started = true;
    }
  }
  if (quoted) return undefined;
  if (started) words.push(word);
  return words;
}
