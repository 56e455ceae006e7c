import type { Into } from '../base/findings/files.ts';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { diagnose, placeAtLine, type Finding } from '../base/findings/finding.ts';
import { TextFile } from '../input/documents/text-file.ts';
import { nameOfChart } from '../input/files/list-files.ts';
import { disk } from '../input/files/file-tree.ts';
import { callWords, runProgram, type ProgramCall } from './run-program.ts';

/**
 * Renders inputs that are charts or kustomizations: `helm template` or `kubectl kustomize`. `into` reads manifests. `revision` is an input
 * in a git revision, which these programs cannot read.
 */
export function renderInputs(
  sources: readonly string[],
  values: readonly string[],
  { into, revision }: { readonly into: Into; readonly revision: string | undefined },
) {
  const files: TextFile[] = [];
  const diagnostics: Finding[] = [];
  const others: string[] = [];
  let charts = 0;
  for (const source of sources) {
    const call = findCall(source, values);
    if (!call) {
      others.push(source);
      continue;
    }
    if (call[0] === 'helm') charts++;
    const printed = runProgram(call);
    const words = callWords(call);
    if (typeof printed === 'string') files.push(new TextFile(words, printed));
    else {
      const { problem, said } = printed;
      const details = { problem, said, tool: call[0], pipe: 'command' in into ? `${words} | ${into.command}` : words };
      diagnostics.push(diagnose('not-rendered', details, placeAtLine(source)));
    }
  }
  if (files.length + diagnostics.length === 0)
    diagnostics.push(
      diagnose(
        'not-rendered',
        revision === undefined ? { problem: 'nothing' } : { problem: 'revision', path: revision },
      ),
    );
  if (values.length > 0 && charts === 0) diagnostics.push(diagnose('not-rendered', { problem: 'idle-values' }));
  return { files, diagnostics, others };
}

/** For a folder with a Chart.yaml or kustomization, or such a file. */
function findCall(source: string, values: readonly string[]): ProgramCall | undefined {
  if (source === '-' || !disk.exists(source)) return undefined;
  const folder = disk.isFolder(source) ? source : dirname(source);
  const isMeant = (name: string): boolean =>
    disk.isFolder(source) ? disk.exists(join(source, name)) : basename(source) === name;
  // Must look neither like an option nor like a chart in a repository: helm takes "web" as a folder only if it exists.
  const path = isAbsolute(folder) || folder.startsWith('.') ? folder : `./${folder}`;
  if (isMeant('Chart.yaml')) {
    const files = values.flatMap((file) => ['--values', file]);
    return ['helm', 'template', nameOfChart(folder, disk) ?? 'kpc', path, ...files];
  }
  const isKustomization = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'].some(isMeant);
  return isKustomization ? ['kubectl', 'kustomize', path] : undefined;
}
