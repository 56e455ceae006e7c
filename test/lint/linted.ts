import type { Shaped } from '../../src/base/json/schema.ts';
import type { FindingCode } from '../../src/base/findings/codes.ts';
import type { Envelope } from '../../src/say/outputs/envelope.ts';
import type { linted } from '../../src/say/outputs/compile-and-compare.ts';

type Whole = Envelope<Shaped<typeof linted>>;

/** What kpc lint --output json prints. */
export type Linted = Omit<Whole, 'findings'> & {
  readonly findings: readonly (Whole['findings'][number] & { readonly code: FindingCode })[];
};
