import type { ToBuild } from './files.ts';
import { row, ofCompiling, byProblem, warningIf, type None, type Strings, type Numbers, type Lists } from './rows.ts';
import type { FoundValue } from './fields.ts';

export interface DuplicateObject extends Strings<'kind' | 'name'> {
  readonly first: Strings<'file'> & Numbers<'line'>;
  readonly files?: number | undefined;
  readonly among?: (Numbers<'more'> & Strings<'folder' | 'otherFolder'>) | undefined;
  /** How to exclude one of two folders (undefined if no pattern is safe in a shell), or how to merge both. */
  readonly leaveOut?: { readonly pattern?: string | undefined; readonly build?: ToBuild | undefined } | undefined;
  /** Set if kpc continues without the object, although no flag requests that. */
  readonly isUnread?: true;
}

export interface SkippedKinds {
  readonly kinds: readonly { readonly kind: string; readonly count: number }[];
  /** Whether kpc assumes Pods for workloads, but not for the CronJobs among these kinds. */
  readonly leavesOutCronJobs: boolean;
}

export interface NothingProgrammed extends Numbers<'services'>, Lists<'lacking'> {
  readonly isRefused: boolean;
  /** Set if no flag allows an empty result here. */
  readonly isUseless?: true;
}

type UnknownKind = Strings<'value' | 'meant'> & { readonly field: 'apiVersion' | 'kind' };

export const objectFindings = {
  'duplicate-object': row<DuplicateObject>(warningIf(({ isUnread }) => isUnread === true)),
  'duplicate-configuration': row<{ readonly isOfArguments?: true }>('error'),
  'not-an-object': byProblem<{
    'no-mapping': { readonly found: FoundValue };
    missing: {
      readonly field: 'apiVersion' | 'kind';
      /** The key that differs from the field only in its capitals. */
      readonly near?: string | undefined;
      readonly madeBy?: 'kustomize' | 'helm' | 'kubectl' | undefined;
    };
    unrendered: Strings<'field' | 'value'>;
  }>('error'),
  // `selector` is the part that the workload's Pod labels do not match, such as "app=web".
  'unmatched-selector': row<Strings<'kind' | 'selector'>>('error'),
  'skipped-kinds': ofCompiling<SkippedKinds>('note'),
  'unknown-kind': row<UnknownKind>('warning'),
  'no-input': byProblem<{
    'nothing-named': None;
    'no-objects': None;
    'unknown-kind': UnknownKind;
    'nothing-read': Lists<'kinds'>;
    kustomization: ToBuild;
    kubeconfig: None;
  }>('error'),
  'nothing-programmed': ofCompiling<NothingProgrammed>(
    warningIf(({ isRefused, lacking }) => !isRefused && lacking.length === 0),
  ),
};
