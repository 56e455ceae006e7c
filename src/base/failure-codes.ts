/** What each code of a failure of kpc-apply means and what to do about it, for docs/codes.md and "kpc explain". */
export const failureFacts = {
  'bad-bundle': {
    meaning: 'a folder is not a bundle that can be applied',
    advice: 'compile the bundle again and copy the whole folder; it must belong to root, or to the user of sudo',
  },
  'bad-state-folder': {
    meaning: 'the state folder cannot be trusted, or a file in it is damaged',
    advice:
      'let root alone own and write the folder; remove a damaged file if the message says so, or name another folder with --state-dir',
  },
  'bad-usage': {
    meaning: 'the command line is wrong, or names a folder that cannot be written',
    advice: 'correct the flag that the message names; --help lists all of them',
  },
  busy: {
    meaning: 'another kpc-apply is running',
    advice: 'wait until the process that the message names has ended, then try again',
  },
  conflict: {
    meaning: 'an object to be added exists already, and kpc-apply did not make it',
    advice:
      'apply with --adopt if kube-proxy left these objects; otherwise stop the program that made them, or change what collides with them in the bundle',
  },
  'internal-error': {
    meaning: 'kpc-apply has a bug',
    advice: 'report the line and the command; then run kpc-apply rollback if a change was under way',
  },
  interrupted: {
    meaning: 'a signal stopped kpc-apply before it was done',
    advice: 'apply again, or run kpc-apply rollback to go back to what was before',
  },
  'node-too-large': {
    meaning: 'what the node lists of its objects is longer than kpc-apply reads',
    advice:
      'run the command that the message names, see which program made so many objects, and remove those that nobody needs',
  },
  'not-confirmed': {
    meaning: 'the change was not confirmed in time, and kpc-apply put everything back',
    advice:
      'find out why nobody confirmed, such as a lost connection; then run the command again, with a longer --confirm-timeout if that was too short',
  },
  'not-ready': {
    meaning: 'the node lacks what the bundle needs, or another program works on it',
    advice: 'run kpc-apply doctor: it lists all that the node lacks and how to add it, and which program is in the way',
  },
  'not-trusted': {
    meaning: 'no key that --trust names signed the bundle, or the node had a newer one',
    advice:
      'sign the pack with kpc bundle pack --sign and a key of --trust; if the message calls the pack old, sign it again with a higher --serial; find out how this pack came to the node',
  },
  'nothing-to-confirm': {
    meaning: 'no apply waits for a confirmation',
    advice:
      'see what is applied with kpc-apply rollback --list; run confirm within the time of --confirm-timeout, after apply asks for it',
  },
  'nothing-to-roll-back': {
    meaning: 'there is no state to go back to',
    advice: 'apply the bundle that you want; if another folder keeps the states, name it with --state-dir',
  },
  'nothing-to-undo': {
    meaning: 'the last command did not change the node, so a rollback has nothing to undo',
    advice: 'list the states with kpc-apply rollback --list, and go to one of them with rollback --to ID',
  },
  'system-error': {
    meaning: 'the operating system refused something',
    advice: 'remove the cause that the message names (rights, space, a missing file), and try again',
  },
  'tool-failed': {
    meaning: 'a tool that changes the kernel failed',
    advice: 'correct what the tool complains of, and apply again; --dry-run prints what each tool is given',
  },
  'tool-missing': {
    meaning: 'a tool that is needed is not installed',
    advice: 'install the package of the tool: kpc-apply doctor names it',
  },
  'unreadable-node': {
    meaning: 'the state of the node cannot be read',
    advice: 'run the command that the message names by hand, as root, and see what it says',
  },
  'write-failed': {
    meaning: 'a file of the state folder, the lock or a sysctl cannot be written',
    advice: 'free some space, or make the path that the message names writable: a container may have it read-only',
  },
  'wrong-result': {
    meaning: 'the tools reported success, but the node is not as it should be',
    advice:
      'look for a program that changes the rules too: kpc-apply doctor names a kube-proxy that runs; then apply again',
  },
} as const;

export type FailureCode = keyof typeof failureFacts;
