import { Option, type Command } from 'commander';

/** How messages are written to stderr. */
export interface LogOptions {
  logFormat?: 'text' | 'json' | undefined;
}

export function addLogOption(command: Command): Command {
  return command.addOption(
    new Option('--log-format <format>', 'how to write messages: json is one object a line')
      .choices(['text', 'json'])
      .default('text'),
  );
}

/** "error: …", "warning: …" or a note, with the code of an error and what to do about it. */
const message = /^(?:(error|warning): )?(.*?)(?: \[([a-z-]+)\])?(?:\n {2}help: (.*))?$/s;

/** A message as one line of JSON: time, level, message, and for an error its code and help. */
export function formatLogRecord(text: string, milliseconds: number): string {
  const [, level = 'info', said, code, help] = message.exec(text.trimEnd()) ?? [];
  const time = new Date(milliseconds).toISOString();
  return `${JSON.stringify({ time, level, message: said, code, help })}\n`;
}
