import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { DumpFault } from '../diff/read-dump.ts';

/** Why a file of a dump, or a line of it, takes no part. */
export function describeDumpFault(fault: DumpFault, file: string): Diagnostic {
  switch (fault.kind) {
    case 'unread-line':
      return warnOfFile(file, 'unread-line', `left out: ${fault.line.reason}`, fault.line.line);
    case 'no-output':
      return warnOfFile(file, 'unread-file', `not what ${fault.expected} prints: it is left out`);
    case 'cut-off':
      return warnOfFile(
        file,
        'cut-off-file',
        `a table without COMMIT: what ${fault.expected} printed was cut off, and is not compared; print it again`,
      );
  }
}

/** A warning that is about a file of a dump. */
export function warnOfFile(file: string, code: string, text: string, line = 1): Diagnostic {
  return { severity: 'warning', code, text, place: { file, locate: () => ({ file, line, column: 1 }) } };
}
