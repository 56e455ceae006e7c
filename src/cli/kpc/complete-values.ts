import { codes } from '#codes';
import { findingCodes } from '../../base/findings/codes.ts';
import { proposeValues } from '../../library/node/names.ts';
import type { FileOptions } from '../../library/node/open.ts';
import type { Completion, ValueRequest } from '../shared/common-commands.ts';
import { applyKpcYaml, isConfigured } from './flags.ts';

/** Finds candidates for values in kpc's data and input: codes, modes, releases, and names in the manifests of -f or kpc.yaml. */
export async function findKpcValues(request: ValueRequest): Promise<readonly Completion[]> {
  const { of, typed } = request;
  if (of === 'explain code' || of === 'ignore')
    return findingCodes.map((value) => ({ value, help: codes[value].meaning }));
  return (await proposeValues(of, typed, async () => findManifests(request))).map((value) => ({ value }));
}

function findManifests({ program, called, before }: ValueRequest): FileOptions | undefined {
  if (!isConfigured(called.name())) return undefined;
  const { operands } = called.parseOptions([...before]);
  applyKpcYaml(called, program, called.opts<{ readonly kpcYaml?: string }>().kpcYaml);
  const options = called.opts<FileOptions>();
  const file = [...(options.file ?? []), ...operands].filter((path) => path !== '-');
  return file.length === 0 ? undefined : { ...options, file };
}
