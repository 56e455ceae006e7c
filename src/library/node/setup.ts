import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { kpcYaml } from '../../base/names.ts';
import { printable } from '../../base/printable.ts';
import { describeError } from '../../base/system-errors.ts';
import { findRepository, findStrayTarget } from '../../input/files/file-tree.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { summarizeSide } from '../../say/bundle-text.ts';
import { kpcYamlText, noWorkflow, type KeptFlags, type SetupFacts, workflowText } from '../../say/repository.ts';
import { loadInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import { chooseNodeName } from '../../snapshot/open/compile-node.ts';
import { compileLoaded } from '../../snapshot/open/compile.ts';
import { releaseRunBy, type LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { openFlags } from '../options.ts';
import { refuse } from '../refusal.ts';
import { writeGolden } from './compile.ts';
import { readsOutside } from './kpc-yaml.ts';

export const workflowFile = '.github/workflows/kpc.yaml';

export interface SetupOptions extends FileOptions {
  readonly file: readonly string[];
  readonly node?: string;
  readonly golden: string;
  readonly github?: boolean;
}

/** Compiles a repository's manifests for the node, mode and release that they show. Refuses to replace existing files. */
export async function openSetup(options: SetupOptions, given: KeptFlags) {
  const { file, golden, github, render } = options;
  const present = [kpcYaml, ...(github ? [workflowFile] : [])].filter((path) => existsSync(path));
  if (present.length > 0) refuse({ problem: 'is-there', paths: present });
  for (const path of [golden, ...(github ? [workflowFile] : [])]) {
    const stray = findStrayTarget(path, findRepository('.'));
    if (stray) refuse({ problem: 'leads-away', path, to: stray === 'replaces-git' ? 'git' : 'outside' });
  }
  const unsafe = github ? [...file, golden].find((path) => !isSafeInWorkflow(path)) : undefined;
  if (unsafe !== undefined) refuse({ problem: 'unsafe-name', path: unsafe });
  if (file.includes('-')) refuse({ problem: 'stdin-kept' });
  if (render) refuse({ problem: 'render-kept' });
  const read = openFlags('compares').flatMap(({ name, path }) =>
    path === 'read' ? (given.get(name.slice(2)) ?? []) : [],
  );
  const outside = [...file, ...read].find(
    (path): path is string => typeof path === 'string' && readsOutside(path, '.'),
  );
  if (outside !== undefined) refuse({ problem: 'leads-away', path: outside, to: 'outside' });
  const setup = chooseSetup(await loadInputs(options), options, given);
  const chosen = { ...options, ...setup.options, emptyResult: 'useless' } as const;
  const loaded = await loadInputs(chosen);
  const { snapshot, gaps, diagnostics } = compileLoaded(loaded, { node: setup.node, ipFamily: options.ipFamily });
  return { setup, snapshot, diagnostics: [...gaps(), ...diagnostics], files: loaded.files };
}

export async function writeSetup(
  setup: Setup,
  snapshot: CompiledSnapshot,
  { file, golden, github: asked }: SetupOptions,
  given: KeptFlags,
) {
  const github = asked === true && noWorkflow === undefined;
  await writeGolden(golden, snapshot);
  const { assigned, assumedEndpoints = [], assumed } = snapshot;
  const isAssumed = assigned.length + assumedEndpoints.length > 0 || assumed.node;
  try {
    writeFileSync(kpcYaml, kpcYamlText(file, setup, isAssumed, given), { flag: 'wx' });
    if (github) {
      mkdirSync(dirname(workflowFile), { recursive: true });
      writeFileSync(workflowFile, workflowText(file, golden), { flag: 'wx' });
    }
  } catch (error) {
    return refuse({ problem: 'system', reason: describeError(error) });
  }
  const paths = [kpcYaml, golden, ...(github ? [workflowFile] : [])];
  return { paths, summary: summarizeSide(snapshot) };
}

export interface Setup extends SetupFacts {
  readonly options: Pick<FileOptions, 'kubernetesVersion' | 'node'>;
}

/** Chooses the release and node that the manifests show. An unnamed mode is written only as a comment, so that kpc still chooses it. */
function chooseSetup(loaded: LoadedInputs, options: SetupOptions, given: ReadonlyMap<string, unknown>): Setup {
  const { modeNote } = loaded;
  const nodes = [...loaded.nodes.keys()].toSorted();
  const node = options.node ?? nodes[0];
  const release = releaseRunBy(loaded.nodes.get(node ?? chooseNodeName(undefined, loaded)));
  // A configuration in the input may also name the mode.
  const isUnnamed = modeNote?.code === 'default-mode' && modeNote.arguments.named === 'nothing';
  const kubernetesVersion = options.kubernetesVersion ?? release ?? newestRelease;
  return {
    node,
    nodes: nodes.length,
    mode: isUnnamed ? loaded.settings.mode : undefined,
    release: given.has('kubernetes-version') ? undefined : kubernetesVersion,
    isReleaseOfNode: release !== undefined,
    options: {
      kubernetesVersion,
      ...(node === undefined ? {} : { node }),
    },
  };
}

/** Reports whether a path is safe in a workflow. GitHub splits and trims lines, and evaluates ${{ }}. */
function isSafeInWorkflow(path: string): boolean {
  return printable(path) === path && path.trim() === path && !path.includes('${{');
}
