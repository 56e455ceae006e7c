import type { Shaped } from '../../src/base/json-shape.ts';
import type { FindingCode } from '../../src/base/findings/codes.ts';
import type { linted } from '../../src/say/outputs/lint.ts';

/** What kpc lint --output json prints. */
export type Linted = Omit<Shaped<typeof linted>, 'findings'> & {
  readonly findings: readonly (Shaped<typeof linted>['findings'][number] & { readonly code: FindingCode })[];
};
