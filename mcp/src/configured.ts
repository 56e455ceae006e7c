import { kpcYaml } from '../../src/base/names.ts';
import { diagnose, isError, type Finding } from '../../src/base/findings/finding.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { configuredCommands } from '../../src/library/node/kpc-yaml-values.ts';
import { readFlags, takenWords } from '../../src/library/node/kpc-yaml.ts';
import { flagRow, openFlags, type Flag } from '../../src/library/options.ts';
import { diagnosticsOf } from '../../src/library/words.ts';
import type { TextsBelow } from './texts-below.ts';

/** The flags whose options the tools accept. */
const rows: readonly Flag[] = [
  ...new Map(
    [
      ...openFlags('looks'),
      ...openFlags('programs'),
      flagRow('text', '--node <name>', 'the node'),
      flagRow('codes', '--ignore <code>', 'accept findings of this code'),
    ].map((row) => [row.name, row]),
  ).values(),
].filter(({ isOfCall }) => !isOfCall);

/**
 * What the folder's kpc.yaml says where the agent is silent, and the note that names the file. After errors, answer
 * nothing. A dump fixes its node and mode.
 */
export function readConfigured(tool: string, given: object, files: TextsBelow) {
  const text = 'dump' in given ? undefined : files.find(kpcYaml);
  if (text === undefined) return { values: {}, findings: [], isWrong: false };
  const call = {
    name: tool,
    flags: rows,
    all: rows,
    has: ({ key }: Flag) => key in given || (key === 'file' && 'manifests' in given),
    isOfOthers: (key: string) => tool === 'lint' && key === 'node',
  };
  const found = readFlags(
    new TextFile(kpcYaml, text),
    call,
    configuredCommands.map((name) => ({ name, flags: rows })),
  );
  // The command line has flags that no tool has, such as --limit; kpc reports those that do not exist.
  const wrong = found.diagnostics.filter((each) => !isUnknownFlag(each));
  const taken = takenWords(found).map((words) => diagnose('reading', { problem: 'read-as', text: words }));
  const { file: manifests, ...values } = Object.fromEntries(found.values);
  return {
    values: {
      ...values,
      ...(manifests === undefined ? {} : { manifests }),
      ...(tool === 'lint' && found.ignores.length > 0 ? { ignore: found.ignores } : {}),
    },
    findings: diagnosticsOf([...taken, ...wrong]),
    isWrong: wrong.some(isError),
  };
}

function isUnknownFlag(finding: Finding): boolean {
  return finding.code === 'bad-kpc-yaml' && finding.arguments.problem === 'unknown-flag';
}
