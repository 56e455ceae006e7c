import { hashInputs, type FleetFolder, type NodeFiles, type NodeResult } from '../../bundle/fleet/fleet-folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import type { FleetBundle, FleetNode } from '../../compile/compile-fleet.ts';
import { goldenContext } from '../../compile/compile-node.ts';
import type { FolderForm } from '../../report/check-report.ts';

/** A golden is text for people, who may have written into it: it is always compared with what the input makes. */
export async function writeNode(
  folder: FleetFolder,
  { node, inputs, gates, texts, compile }: FleetNode,
  form: FolderForm,
): Promise<NodeResult> {
  const hash = form === 'golden' ? undefined : hashInputs(inputs, gates, texts);
  return folder.write(node, () => filesOf(compile(), form), hash);
}

/** The files of one node's folder, as a bundle or as a golden. */
export function filesOf({ content, bundle }: FleetBundle, form: FolderForm): NodeFiles {
  if (form === 'golden') return { files: makeGolden(content, goldenContext), digests: {} };
  return { files: bundle.files, digests: bundle.manifest.files };
}
