import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { checkReleases, parseVersionChoice, releaseOfNode, type VersionChoice } from '../compile/kubernetes-version.ts';
import { prepareForRelease } from '../compile/compile-node.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import type { Release } from '../kube-proxy/releases.ts';

/** The releases to compare; undefined where one cannot be told, which the diagnostics say. */
export interface ReleasePair {
  readonly from: Release | undefined;
  readonly to: Release | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads which releases are meant: the one that was loaded for, and the one that `toFlag` names. */
export function chooseReleases(
  { version, prepared }: LoadedInputs,
  nodeName: string,
  toVersion: string,
  toFlag: string,
): ReleasePair {
  const wanted = parseVersionChoice(toVersion, toFlag);
  if (wanted.diagnostics.length > 0) return { from: undefined, to: undefined, diagnostics: wanted.diagnostics };
  const diagnostics: Diagnostic[] = [];
  const settle = (choice: VersionChoice, flag: string): Release | undefined => {
    if (choice.kind === 'release') return choice.release;
    const found = releaseOfNode(prepared.nodes.get(nodeName), nodeName, flag);
    if (found.kind === 'release') return found.release;
    diagnostics.push(found.diagnostic);
    return undefined;
  };
  const from = settle(
    version,
    version.kind === 'auto' ? '--kubernetes-version auto' : '--kubernetes-version is not given',
  );
  const to = settle(wanted.choice, `${toFlag} auto`);
  const named = [...new Set([from, to])].filter((release) => release !== undefined);
  const seen = named.map((release) => prepareForRelease(prepared, release));
  diagnostics.push(...checkReleases(prepared, seen));
  return { from, to, diagnostics };
}
