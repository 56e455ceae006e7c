import type { Command } from 'commander';

/** What else there is to know about a command, by program and command: paragraphs behind its options. */
const notes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'kpc-apply': {
    apply: [
      'With --confirm-timeout, the rollback does not depend on this process. Before the first change it starts a second process in its own session and, where systemd runs, the timer kpc-apply-way-back-ID.timer, which starts the service of the same name. If this process is killed, they put everything back when the time is over, or at once if it had not asked for confirmation yet.',
      '"kpc-apply confirm" within the time still keeps the changes. Neither undoes another apply. In a container, both end with the container.',
    ],
    rollback: [
      'The state folder keeps the last 5 states, or fewer if they take more than 64 MiB. A second rollback undoes the first. If the last command changed nothing, was refused or put everything back, there is nothing to undo: the exit status is 2. A repair by watch makes no new state.',
    ],
    watch: [
      'A damaged or missing bundle is reported once. Until it is good again, watch keeps the node on the last good bundle. The state folder holds that bundle in last-good-bundle.json, so a watch that starts with a damaged bundle uses it too, if it came from the same folder. If there is none, watch leaves the node as it is.',
    ],
  },
};

/** The paragraphs about a command of a program. */
export function notesOf(program: string, command: string): readonly string[] {
  return notes[program]?.[command] ?? [];
}

/** Adds them to the help of each command, as wide as the rest of it. */
export function addNotes(program: Command): void {
  for (const command of program.commands) {
    const paragraphs = notesOf(program.name(), command.name());
    if (paragraphs.length === 0) continue;
    command.addHelpText('after', () => {
      const width = command.configureOutput().getOutHelpWidth?.() ?? usualWidth;
      return `\n${command.createHelp().boxWrap(paragraphs.join('\n\n'), width)}`;
    });
  }
}

/** As wide as commander makes help that is no terminal's. */
const usualWidth = 80;
