import { joinWords, printable, shellWord } from '../../base/printable.ts';
import { openSetup, workflowFile, writeSetup, type SetupOptions } from '../../library/node/setup.ts';
import { noWorkflow } from '../../say/repository.ts';
import { withoutDefaultMode } from '../../library/open.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';
import { nodeFlag } from '../../library/command-flags.ts';
import { flagsToKeep, wordsOfCall } from './flags.ts';
import { messageFlags, type MessageOptions } from './messages.ts';
import { expectManifests } from './open-input.ts';

/** The file name in advice to save the output of helm template or kubectl kustomize. */
const rendered = 'rendered.yaml';

export const addInitCommand = defineCommand<SetupOptions & MessageOptions>({
  name: 'init',
  summary: 'Set up a repository: write kpc.yaml, the first golden and a workflow.',
  description:
    'Set up a repository of manifests for reviews: write kpc.yaml with the flags that the manifests call for, the first golden, and ' +
    'with --github a workflow that compares each pull request with it. It asks nothing and replaces nothing but a golden.',
  arguments: [['[input...]', 'manifests, as with -f (default: this folder)']],
  flags: [
    ...openFlags('compares'),
    nodeFlag('the node to compile for (default: the first Node in the input)'),
    flagRow('text', '--golden <folder>', 'the folder of the golden', { parse: parseOutFolder, usual: 'golden' }),
    flagRow('on', '--github', `also write ${workflowFile}`),
    ...messageFlags,
  ],
  run: async (call) => {
    const named = call.inputs(call.words, call.options.file);
    // kpc.yaml names files, so the input cannot be a pipe.
    const into = { file: rendered, command: wordsOfCall(call.command, [rendered]) };
    const options = { ...call.options, into, file: named.length === 0 ? ['.'] : named };
    const given = flagsToKeep(call.command);
    await expectManifests(
      call,
      named.filter((path) => path !== '-'),
    );
    const opened = await openSetup(options, given);
    // The note on the mode is dropped, because the output names the mode.
    await call.report(withoutDefaultMode(opened));
    const { paths, summary } = await writeSetup(opened.setup, opened.snapshot ?? call.end(), options, given);
    await call.out(`Wrote ${printable(joinWords(paths))}: ${printable(summary)}\n`);
    if (options.github && noWorkflow !== undefined) await call.say(`${noWorkflow}\n`);
    await call.say(
      `Commit ${paths.length === 2 ? 'both' : 'all of it'}. After a change to the manifests, this command shows its effect and how to accept it:\n` +
        `  kpc compile --check ${shellWord(options.golden)}\n`,
    );
    return exitStatus.ok;
  },
});
