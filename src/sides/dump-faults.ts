import { placeAtLine } from '../cluster/diagnostic.ts';
import { count } from '../changes/counts.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { DumpFault } from '../diff/read-dump.ts';

/** Why a file of a dump, or a line of it, takes no part. */
export function describeDumpFault(fault: DumpFault, file: string): Diagnostic {
  switch (fault.kind) {
    case 'unread-line': {
      const more = fault.more === 0 ? '' : ` (and ${count(fault.more, 'more line')})`;
      return warnOfFile(file, 'unread-line', `left out: ${fault.line.reason}${more}`, fault.line.line);
    }
    case 'no-output':
      return warnOfFile(file, 'unread-file', `not what ${fault.expected} prints: it is left out`);
    case 'cut-off':
      return warnOfFile(file, 'cut-off-file', describeCutOff(fault.expected));
    case 'refused':
      return warnOfFile(file, 'unread-output', `${fault.output} ${fault.reason}`, fault.line);
    case 'no-table': {
      const text = `no line such as *nat names the table of these rules: kpc takes it to be ${fault.tables.join(' and ')}`;
      return { ...warnOfFile(file, 'no-table', text, fault.line), severity: 'note' };
    }
    case 'taken-whole': {
      const text =
        'taken for all virtual servers of the node; if it is a part of them, put the command that printed it above it, such as ' +
        '"$ ipvsadm -Sn | grep 10.96.0.1"';
      return { ...warnOfFile(file, 'taken-whole', text, fault.line), severity: 'note' };
    }
    case 'legacy-tables': {
      const text = 'iptables-legacy has more rules, which are not here: add what iptables-legacy-save prints';
      return { ...warnOfFile(file, 'legacy-tables', text), severity: 'note' };
    }
    case 'strays': {
      const text = `${count(fault.count, 'line')} that no tool printed: left out`;
      return { ...warnOfFile(file, 'stray-lines', text, fault.line), severity: 'note' };
    }
  }
}

/** What shows that an output was cut off. */
const cutOffSigns: readonly (readonly [RegExp, string])[] = [
  [/-save$/, 'a table without COMMIT'],
  [/^nft /, 'a table without its closing brace'],
];

function describeCutOff(expected: string): string {
  const what = cutOffSigns.find(([kind]) => kind.test(expected))?.[1] ?? 'fewer members than the header of a set says';
  return `${what}: what ${expected} printed was cut off, and is not compared; print it again`;
}

/** A warning that is about a file of a dump. */
export function warnOfFile(file: string, code: string, text: string, line = 1): Diagnostic {
  return { severity: 'warning', code, text, place: placeAtLine(file, line) };
}
