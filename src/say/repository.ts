// The files that kpc init writes into a repository.
import { printableJson } from '../base/printable.ts';
import { projectUrl, repository, version } from '../base/version.ts';

export const noWorkflow =
  projectUrl === undefined
    ? 'No workflow is written: this build of kpc names no repository to take its action from. A job that has kpc can run the command below; examples/github-actions of the package has one.'
    : undefined;

export type KeptFlags = ReadonlyMap<string, string | readonly string[] | boolean>;

export interface SetupFacts {
  readonly node: string | undefined;
  /** The number of Nodes in the input. */
  readonly nodes: number;
  /** The mode that kpc chose because nothing names one. Only a comment in the file names it, so that the choice stays kpc's. */
  readonly mode: string | undefined;
  /** Undefined if a flag names the release. */
  readonly release: string | undefined;
  readonly isReleaseOfNode: boolean;
}

export function kpcYamlText(
  file: readonly string[],
  { node, nodes, mode, release, isReleaseOfNode }: SetupFacts,
  isAssumed: boolean,
  given: KeptFlags,
): string {
  const source = isReleaseOfNode ? 'as the Node says' : 'the newest: write that of your nodes';
  const others = nodes > 1 ? ` # one of ${nodes} Nodes: all that are alike have the same rules` : '';
  return [
    '# Flags of kpc for this repository, without their dashes. A flag on the command line wins.',
    `file: ${yamlValue(file)}`,
    ...(file.some((path) => /^\.\/*$/.test(path)) ? ['exclude: /.github'] : []),
    ...[...given].map(([flag, value]) => `${flag}: ${yamlValue(value)}`),
    ...(mode === undefined
      ? []
      : [`# proxy-mode: ${mode} # nothing names a mode, and kpc takes this one: write that of your nodes`]),
    ...(release === undefined ? [] : [`kubernetes-version: '${release}' # ${source}`]),
    ...(node === undefined ? [] : [`node: ${yamlWord(node)}${others}`]),
    ...(isAssumed ? ['compile:', '  assume: true # the manifests lack addresses, endpoints or Nodes'] : []),
    '',
  ].join('\n');
}

function yamlValue(value: string | readonly string[] | boolean): string {
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return yamlWord(value);
  const [first = ''] = value;
  return value.length === 1 ? yamlWord(first) : `[${value.map(yamlWord).join(', ')}]`;
}

/** Quotes a text for YAML. A plain word needs no quotes; any other text is written as JSON, which is valid YAML. */
function yamlWord(text: string): string {
  return /^[A-Za-z./][\w./-]*$/.test(text) && !/^(?:true|false|yes|no|on|off|null|y|n)$/i.test(text)
    ? text
    : printableJson(JSON.stringify(text));
}

export function workflowText(file: readonly string[], golden: string): string {
  return `# Compares the Services of a pull request with the golden, and writes what changes to the job's summary.
name: Services

on: pull_request

permissions:
  contents: read

jobs:
  kpc:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with:
          # The base of the pull request, too: the summary compares with it.
          fetch-depth: 2
          persist-credentials: false
      - uses: ${repository}@v${version}
        with:
          files: |
${file.map((path) => `            ${path}\n`).join('')}          golden: ${yamlWord(golden)}
`;
}
