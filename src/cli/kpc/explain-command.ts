import { refuse } from '../../library/refusal.ts';
import { explain, listCodes } from '../../say/explain.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';

export const addExplainCommand = defineCommand({
  name: 'explain',
  description: 'Explain a message by its code: what it means, an example, and what to do; or list all codes.',
  arguments: [['[code]', 'the code, as in [bad-value] at the end of a message']],
  run: async (call) => {
    // A code may be written as messages show it: "[code]".
    const name = call.words[0]?.replace(/^\[(.*)\]$/, '$1');
    const found = name === undefined ? { text: listCodes() } : explain(name);
    if (!('text' in found)) {
      return refuse({ problem: 'unknown-code', name: name ?? '', meant: found.nearest });
    }
    await call.out(found.text);
    return exitStatus.ok;
  },
});
