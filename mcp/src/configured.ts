import { kpcYaml } from '../../src/base/names.ts';
import { diagnose, isError, type Finding } from '../../src/base/findings/finding.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { configuredCommands } from '../../src/library/node/kpc-yaml-values.ts';
import { readFlags, takenWords } from '../../src/library/node/kpc-yaml.ts';
import type { Flag } from '../../src/library/options.ts';
import { sayFindings } from '../../src/say/words/said.ts';
import type { TextsBelow } from './texts-below.ts';
import { parameterOf, tools, type Tool } from './tools.ts';

/** The commands that a kpc.yaml configures. It may have flags that no tool has, such as --limit. */
const commands = configuredCommands.map((name) => ({ name, flags: tools.flatMap(({ flags }) => flags) }));

/**
 * What the folder's kpc.yaml says where the agent is silent, and the note that names the file. After errors, answer
 * nothing. A dump fixes its node and mode.
 */
export function readConfigured(tool: Tool, given: object, files: TextsBelow) {
  const text = 'dump' in given ? undefined : files.find(kpcYaml);
  if (text === undefined) return { values: {}, findings: [], isWrong: false };
  const flags = tool.flags.filter(({ isOfCall }) => !isOfCall);
  const call = {
    name: tool.name,
    flags,
    all: flags,
    has: (row: Flag) => parameterOf(row) in given,
    hasSides: false,
  };
  const found = readFlags(new TextFile(kpcYaml, text), call, commands);
  // kpc itself says which flags do not exist.
  const wrong = found.diagnostics.filter((each) => !isUnknownFlag(each));
  const taken = takenWords(found).map((words) => diagnose('reading', { problem: 'read-as', text: words }));
  const { file: manifests, ...values } = Object.fromEntries(found.values);
  return {
    values: {
      ...values,
      ...(manifests === undefined ? {} : { manifests }),
      ...(tool.name === 'lint' && found.ignores.length > 0 ? { ignore: found.ignores } : {}),
    },
    findings: sayFindings([...taken, ...wrong]),
    isWrong: wrong.some(isError),
  };
}

function isUnknownFlag(finding: Finding): boolean {
  return finding.code === 'bad-kpc-yaml' && finding.arguments.problem === 'unknown-flag';
}
