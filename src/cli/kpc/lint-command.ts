import { mostForPrograms } from '../../diagnostics/tally.ts';
import { shellWord } from '../../base/printable.ts';
import { InvalidArgumentError, type Command } from 'commander';
import { findNearest } from '../../base/find-nearest.ts';
import { loadInputs } from '../../snapshot/files/read-texts.ts';
import { diagnosticCodes } from '../../diagnostics/codes.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { lintInputs } from '../../lint/lint.ts';
import type { Ignore } from '../../lint/ignores.ts';
import { formatLint, lintOutputs } from '../../report/lint.ts';
import { reportLint } from '../../report/lint-report.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow } from '../../settings/flag.ts';
import type { SideOptions } from '../../snapshot/files/read-side.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { clusterFlags, withCluster, type ClusterOptions } from './cluster-input.ts';
import { addFlags, nodeFlag, outputFlag } from './flags.ts';
import { namedInputs, takesIptables, traceWords } from './input-options.ts';
import { repositoryPaths } from './repository-paths.ts';
import { makeStrict, messageFlags, quieten, refuseStored, reportDiagnostics, type MessageOptions } from './messages.ts';

interface LintOptions extends SideOptions, MessageOptions, ClusterOptions {
  readonly ignore?: readonly string[];
  /** Those of kpc.yaml. */
  readonly configuredIgnores?: readonly Ignore[];
  readonly output: (typeof lintOutputs)[number];
}

export function addLintCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('lint')
    .summary('Check manifests: errors, warnings, and Services that do not do what they seem to say.')
    .description(
      'Check manifests, on all nodes of the input: errors and warnings, and Services that are valid and do not do what they seem to say. ' +
        'Findings about packets come with the kpc trace that shows them. Exit status 1 if there are errors, or with --strict also warnings.',
    )
    .argument('[input...]', 'manifests, as with -f: files, folders, or - for stdin');
  addFlags(command, [
    flagRow(
      'codes',
      '--ignore <code>',
      'accept findings of this code (repeat for more); to accept those of one object, annotate it with kpc.dev/ignore: CODE, or write ignore: [{ code, service, reason }] into kpc.yaml',
      { parse: readCodes },
    ),
    outputFlag(lintOutputs, { help: 'how to print; sarif and gitlab are for code scanning' }),
    ...openFlags('looks', takesIptables),
    ...clusterFlags,
    nodeFlag('look at this node only (default: all Nodes of the input)'),
    ...messageFlags,
  ]).action(async (inputs: readonly string[], given: LintOptions) => {
    const named = namedInputs(command, inputs, given.file);
    const asked = await withCluster(command, { file: named, terminal: quieten(terminal, given) }, 'traffic');
    if (!asked) return done(exitStatus.badInput);
    const options = { ...given, ...asked.options };
    if (options.file.length === 0) command.error('error: no input is named\nadd manifests, with - for stdin');
    done(await runLint(options, (settings) => traceWords(command, asked.words, settings), asked.terminal));
  });
}

/** One code, or several with commas between them, as in the annotation. */
function readCodes(written: string): readonly string[] {
  const codes = written.split(',').map((each) => each.trim());
  for (const code of codes) {
    if (diagnosticCodes.some((each) => each === code)) continue;
    const near = findNearest(code, diagnosticCodes);
    throw new InvalidArgumentError(near === undefined ? 'List the codes with "kpc explain".' : `Did you mean ${near}?`);
  }
  return codes;
}

async function runLint(
  options: LintOptions & { readonly file: readonly string[] },
  wordsOfTrace: (settings: Readonly<Record<string, string>>) => readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  for (const path of options.file) {
    const look = `look at it with kpc describe -f ${shellWord(path)}`;
    const refused = await refuseStored(path, 'kpc lint checks manifests', look, terminal);
    if (refused !== undefined) return refused;
  }
  const asked = {
    ...options,
    traffic: true,
    unnamedMode: 'iptables',
    into: 'kpc lint -',
    mostOfCode: mostForPrograms,
  } as const;
  const loaded = await loadInputs(asked, terminal.readStdin);
  const flags = (options.ignore ?? []).map((code): Ignore => ({ code, by: '--ignore' }));
  const result = lintInputs(loaded, options, [...flags, ...(options.configuredIgnores ?? [])]);
  const findings = result.findings.map((finding) => {
    const [diagnostic = finding.diagnostic] = makeStrict([finding.diagnostic], options);
    return { ...finding, diagnostic };
  });
  const settings = result.namesMode ? {} : { '--proxy-mode': result.mode };
  const report = reportLint({ ...result, findings }, wordsOfTrace(settings));
  await reportDiagnostics(result.notes, loaded.files, terminal);
  const lineOf = (file: string, line: number) => loaded.files.get(file)?.lineAt(line) ?? '';
  await terminal.out(
    formatLint(report, options.output, { lineOf, isColoured: terminal.colour.out, pathOf: repositoryPaths() }),
  );
  const errors = findings.map(({ diagnostic }) => diagnostic).filter(isError);
  // Without anything that was read, there is nothing to judge.
  if (errors.some(({ code }) => code === 'no-input' || code === 'unreadable-file')) return exitStatus.badInput;
  return errors.length > 0 ? exitStatus.negative : exitStatus.ok;
}
