import { printable } from '../../base/printable.ts';
import { refuse } from '../../library/refusal.ts';
import { explain, listCodes } from '../../library/explain.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';

export const addExplainCommand = defineCommand({
  name: 'explain',
  description: 'Explain a message by its code: what it means, an example, and what to do; or list all codes.',
  arguments: [['[code]', 'the code, as in [bad-value] at the end of a message']],
  run: async (call) => {
    // As it is copied from a message.
    const name = call.words[0]?.replace(/^\[(.*)\]$/, '$1');
    const found = name === undefined ? { text: listCodes() } : explain(name);
    if (!('text' in found)) {
      const { nearest } = found;
      const help = nearest === undefined ? 'list the codes with "kpc explain"' : `did you mean ${nearest}?`;
      return refuse(`no message has the code ${printable(name ?? '')}`, help);
    }
    await call.out(found.text);
    return exitStatus.ok;
  },
});
