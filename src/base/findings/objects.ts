import { row, ofCompiling, byProblem, warningIf, type None, type Texts, type Numbers, type Lists } from './rows.ts';
import type { Found } from './fields.ts';

/** Another object of the same kind and name, which has its namespace, if it has one. */
export interface DuplicateObject extends Texts<'kind' | 'name'> {
  readonly first: Texts<'file'> & Numbers<'line'>;
  /** How many files define it, if more than two do. */
  readonly files?: number | undefined;
  /** How many more objects of one folder another folder holds too. */
  readonly among?: (Numbers<'more'> & Texts<'folder' | 'otherFolder'>) | undefined;
  /**
   * How to leave out one of two folders: what to exclude, undefined if no pattern for it is safe in a shell, and what merges
   * the two objects, if the folder holds a kustomization.
   */
  readonly leaveOut?: { readonly pattern?: string | undefined; readonly build?: string | undefined } | undefined;
  /** kpc goes on without it, though nothing asks for that. */
  readonly isUnread?: true;
}

export interface SkippedKinds {
  /** The most frequent first; a kind of a version that kpc does not read is "Service of v2". */
  readonly kinds: readonly { readonly kind: string; readonly count: number }[];
  /** Whether Pods are assumed of workloads, but none of the CronJobs among the kinds. */
  readonly leavesOutCronJobs: boolean;
}

/** `services` counts all Services. `lacking` names those that get a cluster IP only in the cluster. */
export interface NothingProgrammed extends Numbers<'services'>, Lists<'lacking'> {
  readonly isRefused: boolean;
}

/** What is wrong with whole objects and their names, with documents that are not objects, and with inputs that program nothing. */
export const objectFindings = {
  'duplicate-object': row<DuplicateObject>(warningIf(({ isUnread }) => isUnread === true)),
  'duplicate-configuration': row<{ readonly isOfArguments?: true }>('error'),
  'not-an-object': byProblem<{
    'no-mapping': { readonly found: Found };
    missing: {
      readonly field: 'apiVersion' | 'kind';
      readonly madeBy?: 'kustomize' | 'helm' | undefined;
    };
    unrendered: Texts<'field' | 'value'>;
  }>('error'),
  'skipped-kinds': ofCompiling<SkippedKinds>('note'),
  'unknown-kind': row<Texts<'value' | 'meant'> & { readonly field: 'apiVersion' | 'kind' }>('warning'),
  'no-input': byProblem<{
    'nothing-named': None;
    'no-objects': None;
    /** `kinds`: each with its number. */
    'nothing-read': Lists<'kinds'>;
    /** `build` is the command that makes objects of it. */
    kustomization: Texts<'build'>;
  }>('error'),
  'nothing-programmed': ofCompiling<NothingProgrammed>(
    warningIf(({ isRefused, lacking }) => !isRefused && lacking.length === 0),
  ),
};
