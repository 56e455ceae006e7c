/** What each code of a failure of kpc-apply means, for docs/codes.md and "kpc explain". */
export const failureMeanings = {
  'bad-bundle': 'a folder is not a bundle that can be applied',
  'bad-state-folder': 'the state folder cannot be trusted, or a file in it is damaged',
  'bad-usage': 'the command line is wrong, or names a folder that cannot be written',
  busy: 'another kpc-apply is running',
  conflict: 'an object to be added exists already, and kpc-apply did not make it',
  'internal-error': 'kpc-apply has a bug',
  interrupted: 'a signal stopped kpc-apply before it was done',
  'not-confirmed': 'the apply was not confirmed in time, and kpc-apply put everything back',
  'not-ready': 'the node lacks what the bundle needs, or another program works on it',
  'not-trusted': 'no key that --trust names signed the bundle, or the node had a newer one',
  'nothing-to-confirm': 'no apply waits for a confirmation',
  'nothing-to-roll-back': 'there is no state to go back to',
  'nothing-to-undo': 'the last command did not change the node, so a rollback has nothing to undo',
  'system-error': 'the operating system refused something',
  'tool-failed': 'a tool that changes the kernel failed',
  'tool-missing': 'a tool that is needed is not installed',
  'unreadable-node': 'the state of the node cannot be read',
  'write-failed': 'a file of the state folder, the lock or a sysctl cannot be written',
  'wrong-result': 'the tools reported success, but the node is not as it should be',
} as const;

/** What a failure of kpc-apply is of. */
export type FailureCode = keyof typeof failureMeanings;
