import { printableLines } from '../../base/printable.ts';
import type { Terminal } from '../shared/terminal.ts';

interface MessageDetails {
  /** By default info. */
  readonly level?: 'error' | 'warning';
  readonly code?: string | undefined;
  /** The advice. */
  readonly help?: string | undefined;
}

/** The terminal of a command that may run for long, whose messages may go to a log. */
export interface ApplyTerminal extends Terminal {
  /** Writes a message for people, or as a record. */
  readonly tell: (text: string, details?: MessageDetails) => Promise<void>;
}

export function formatMessage(text: string, { level, code, help }: MessageDetails = {}): string {
  const start = level === undefined ? '' : `${level}: `;
  const end = `${code === undefined ? '' : ` [${code}]`}${help === undefined ? '' : `\n  help: ${help}`}`;
  return `${printableLines(`${start}${text}${end}`)}\n`;
}

/** A message as a line of JSON. */
export function formatLogRecord(
  text: string,
  { level, code, help }: MessageDetails = {},
  milliseconds: number,
): string {
  const said = { message: printableLines(text), code, help: help === undefined ? undefined : printableLines(help) };
  return `${JSON.stringify({ time: new Date(milliseconds).toISOString(), level: level ?? 'info', ...said })}\n`;
}
