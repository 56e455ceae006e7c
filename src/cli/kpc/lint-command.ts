import { refuse } from '../../library/refusal.ts';
import { InvalidArgumentError } from 'commander';
import { findNearest } from '../../base/names.ts';
import { findingCodes } from '../../base/findings/codes.ts';
import type { Ignore } from '../../library/lint.ts';
import { lintFiles } from '../../library/node/open.ts';
import { answerOutputs, type AnswerOutput } from '../../say/formats/answer.ts';
import { lintAnswer } from '../../say/lint.ts';
import { nodeFlag } from '../../library/command-flags.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';
import { limitFlag, outputFlag, givenTraceWords } from './flags.ts';
import { lineReader, makeStrict, messageFlags } from './messages.ts';
import { clusterFlags, nameInputs, expectManifests, type ClusterOptions, type InputFlags } from './open-input.ts';

interface LintFlags extends InputFlags, ClusterOptions {
  readonly ignore?: readonly string[];
  readonly configuredIgnores?: readonly Ignore[];
  readonly output: AnswerOutput;
  readonly limit: number;
}

export const addLintCommand = defineCommand<LintFlags>({
  name: 'lint',
  summary: 'Check manifests: errors, warnings, and Services that do not do what they seem to say.',
  description:
    'Check manifests, for all nodes in the input: errors, warnings, and valid Services that do not do what they seem to say. ' +
    'Findings about packets come with a kpc trace command that shows them. Exit status 1 if there are errors, or with --strict also warnings.',
  arguments: [['[input...]', 'manifests, as with -f: files, folders, or - for stdin']],
  flags: [
    flagRow(
      'codes',
      '--ignore <code>',
      'accept findings of this code (repeat for more); to accept those of one object, annotate it with kpc.dev/ignore: CODE, or write ignore: [{ code, service, reason }] into kpc.yaml',
      { parse: readCodes },
    ),
    outputFlag(answerOutputs, { help: 'how to print; sarif and gitlab are for code scanning' }),
    {
      ...limitFlag,
      idle: answerOutputs
        .filter((each) => each !== 'text' && each !== 'markdown')
        .map((each) => ({ beside: `--output ${each}`, why: 'whole-lists' })),
    },
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('look at this node only (default: all Nodes in the input)'),
    ...messageFlags,
  ],
  run: async (asked) => {
    const { call, words } = await nameInputs(asked, asked.words, 'traffic');
    const { options, terminal } = call;
    if (options.file.length === 0) refuse({ problem: 'no-input', takes: 'manifests' });
    await expectManifests(call, options.file);
    const { report, passed, files } = await lintFiles(options, {
      ignores: [
        ...(options.ignore ?? []).map((code) => ({ code, by: '--ignore' })),
        ...(options.configuredIgnores ?? []),
      ],
      trace: givenTraceWords(call.command, words),
      weigh: (diagnostic) => makeStrict([diagnostic], options)[0] ?? diagnostic,
    });
    await call.print(report.notes, files);
    const style = { lineOf: lineReader(files), isColoured: terminal.colour.out, limit: options.limit, said: call.said };
    await call.answerAs(options.output, lintAnswer(report, style));
    if (!report.isRead) return exitStatus.badInput;
    return passed ? exitStatus.ok : exitStatus.negative;
  },
});

function readCodes(written: string): readonly string[] {
  const codes = written.split(',').map((each) => each.trim());
  for (const code of codes) {
    if (findingCodes.some((each) => each === code)) continue;
    const near = findNearest(code, findingCodes);
    throw new InvalidArgumentError(near === undefined ? 'List the codes with "kpc explain".' : `Did you mean ${near}?`);
  }
  return codes;
}
