import { diagnose, placeAtLine, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { DumpFault } from '../diff/dump.ts';

/** Why a file of a dump, or a line of it, takes no part. */
export function describeDumpFault(fault: DumpFault, file: string): Diagnostic {
  switch (fault.kind) {
    case 'unread-line': {
      const { reason, line } = fault.line;
      return diagnose('unread-line', { reason, more: fault.more }, placeAtLine(file, line));
    }
    case 'no-output':
      return diagnose('unread-file', { problem: 'other-content', expected: fault.expected }, placeAtLine(file));
    case 'cut-off':
      return diagnose('cut-off-file', { expected: fault.expected }, placeAtLine(file));
    case 'refused': {
      const { output, reason, line } = fault;
      return diagnose('unread-output', { output, reason, isAll: false }, placeAtLine(file, line));
    }
    case 'no-table':
      return diagnose('no-table', { tables: fault.tables }, placeAtLine(file, fault.line));
    case 'taken-whole':
      return diagnose('taken-whole', {}, placeAtLine(file, fault.line));
    case 'legacy-tables':
      return diagnose('legacy-tables', {}, placeAtLine(file));
    case 'second-listing': {
      const { output, differences } = fault;
      return diagnose('second-listing', { output, differences }, placeAtLine(file, fault.line));
    }
    case 'other-host': {
      const { outputs, host, first } = fault;
      return diagnose('other-host', { outputs, host, first }, placeAtLine(file, fault.line));
    }
    case 'strays':
      return diagnose('stray-lines', { count: fault.count }, placeAtLine(file, fault.line));
  }
}
