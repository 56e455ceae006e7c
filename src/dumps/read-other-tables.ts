import { families } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import type { NftTable } from '../kernel/nftables/table.ts';

/**
 * Another program's table, such as "inet firewalld", as packets meet it: one of the family inet sees those of both families.
 * What kpc does not read of a rule is an unknown expression. Undefined for a table of which more than that could not be read.
 */
export function readOtherTable(family: string, text: string): readonly NftTable[] | undefined {
  const seenAs = family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
  const read = seenAs.map((each) => parseNftText(textAs(text, nftFamily[each])));
  if (read.some(({ unread }) => unread.some(({ text: line, reason }) => !isHarmless(line, reason)))) return undefined;
  return read.flatMap(({ tables }) => tables);
}

/** Objects that only rules use, which are unknown then, and properties that change no lookup. */
function isHarmless(line: string, reason: string): boolean {
  if (reason === 'a property that is not known') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  if (reason === 'neither a chain, a set, a map nor a counter') return true;
  return reason === 'not a part of a table' && /^\s*flags (?:owner|persist)/.test(line);
}

/** Without counters and logging, which let packets be, and with lists of states in the form of sets. */
function textAs(text: string, family: string): string {
  const [head = '', ...lines] = text.trimStart().split('\n');
  return [head.replace(/^(\s*table )\S+/, `$1${family}`), ...lines.map(plainLine)].join('\n');
}

function plainLine(line: string): string {
  const plain = line
    .replaceAll(/[ \t]counter packets \d+ bytes \d+/g, '')
    .replaceAll(logging, '')
    .replaceAll(/[ \t]ct state (!= )?([a-z]+(?:,[a-z]+)+)/g, (_, not: string | undefined, states: string) => {
      return ` ct state ${not ?? ''}{ ${states.replaceAll(',', ', ')} }`;
    });
  // A rule that does nothing else counts all the same.
  return plain.trim() === '' && line.trim() !== '' ? 'continue' : plain;
}

const logging =
  /(?<!jump|goto|chain)[ \t]log(?![\w-])(?: (?:prefix "[^"]*"|level [a-z]+|flags [a-z]+|tcp [a-z,]+|ip options|group \d+|snaplen \d+))*/g;
