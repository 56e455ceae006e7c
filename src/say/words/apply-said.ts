import type { FailureFault } from '../../base/findings/apply.ts';
import type { CheckFault, Remark } from '../../base/findings/node-checks.ts';
import { applyWords } from './apply.ts';
import { checkWords, remarkWords } from './node-checks.ts';
import { sayIn, type Said } from './rows.ts';

const words = { ...applyWords, ...checkWords, ...remarkWords };

/** A failure of kpc-apply, a check of a node or a remark, in words. */
export function sayApply(fault: FailureFault | CheckFault | Remark): Said {
  return sayIn(words, fault);
}
