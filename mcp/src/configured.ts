import kpcYamlSchema from '../../schemas/kpc.yaml.schema.json' with { type: 'json' };
import { kpcYaml } from '../../src/base/names.ts';
import { diagnose, isError } from '../../src/base/findings/finding.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { configuredCommands } from '../../src/library/node/kpc-yaml-values.ts';
import { readFlags } from '../../src/library/node/kpc-yaml.ts';
import type { Flag } from '../../src/library/options.ts';
import { sayFindings } from '../../src/say/words/said.ts';
import type { TextsBelow } from './texts-below.ts';
import { parameterOf, type Tool } from './tools.ts';

const known = new Map(
  configuredCommands.map((name) => [name, Object.keys(kpcYamlSchema.properties[name].properties)] as const),
);

/**
 * Returns the options in the folder's kpc.yaml that the agent did not give, and a note that names the file. If `isWrong`, the question
 * must not be answered.
 */
export function readConfigured(tool: Tool, given: object, files: TextsBelow) {
  const text = files.find(kpcYaml);
  if (text === undefined) return { values: {}, findings: [], isWrong: false };
  const flags = tool.flags.filter(({ isOfCall }) => !isOfCall);
  const call = {
    name: tool.name,
    flags,
    all: flags,
    // The parameter `dump` also counts as an input.
    has: (row: Flag) => parameterOf(row) in given || (row.key === 'file' && 'dump' in given),
    hasSides: false,
  };
  const found = readFlags(new TextFile(kpcYaml, text), call, known);
  const taken = [...found.places.keys()];
  const { file: manifests, ...values } = Object.fromEntries(found.values);
  return {
    values: {
      ...values,
      ...(manifests === undefined ? {} : { manifests }),
      ...(tool.name === 'lint' && found.ignores.length > 0 ? { ignore: found.ignores } : {}),
    },
    findings: sayFindings([
      ...(taken.length > 0
        ? [diagnose('reading', { problem: 'taken-flags', file: found.file.name, flags: taken })]
        : []),
      ...found.diagnostics,
    ]),
    isWrong: found.diagnostics.some(isError),
  };
}
