import type { Failure } from '../state/failure.ts';
import type { Plan } from '../plan/plan.ts';
import type { Step } from '../plan/steps.ts';

/** How a change goes on, for an operator who watches. */
export type ChangeEvent =
  | { readonly kind: 'recovering' }
  | { readonly kind: 'reading' }
  /** What is about to change; nothing has yet. */
  | { readonly kind: 'planned'; readonly plan: Plan }
  | { readonly kind: 'step'; readonly step: Step; readonly number: number; readonly of: number }
  | { readonly kind: 'checking' }
  | { readonly kind: 'awaiting-confirmation'; readonly milliseconds: number }
  /** A tool takes long: since when (milliseconds since 1970), and how long it may take at most, in milliseconds. */
  | { readonly kind: 'waiting'; readonly command: string; readonly since: number; readonly limit: number }
  | { readonly kind: 'putting-back'; readonly because: Failure }
  /** Something is not as it should be, and does not stop the work. */
  | { readonly kind: 'warning'; readonly text: string };
