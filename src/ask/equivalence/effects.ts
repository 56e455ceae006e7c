import { about, number, objectOf, oneOf, optional, text, wholeNumber, type Shaped } from '../../base/json/schema.ts';
import { families } from '../../kernel/address.ts';
import type { SenderName } from '../trace/question.ts';
import type { CauseId, CauseReason, Situation } from './causes.ts';
import type { Unsettled } from './compare.ts';
import type { End, SeenSources } from './ends.ts';
import type { SenderPlace } from './places.ts';

/**
 * How a difference affects clients, worst first: something breaks, may break, works differently, starts to work, or fails on both sides in
 * different ways.
 */
export const severities = ['breaks', 'unknown', 'changes', 'opens', 'fails-otherwise'] as const;

export type EffectSeverity = (typeof severities)[number];

export const severitySchema = about(
  'breaks: what worked no longer does; unknown: whether it still does; changes: it works differently; opens: what failed now works',
  oneOf(...severities),
);

const share = number('a share', 0, 1);

const shares = objectOf({
  endpoints: wholeNumber(0),
  least: about('the least share of connections that one of them gets', share),
  most: share,
});

export type EndpointShares = Shaped<typeof shares>;

export const choiceFields = {
  from: shares,
  to: shares,
  kept: about('endpoints that both choose from', wholeNumber(0)),
  lost: optional(about('the share of connections that fail, if any do', objectOf({ from: share, to: share }))),
};

const choiceSchema = objectOf(choiceFields);

export type EffectChoice = Shaped<typeof choiceSchema> & { readonly source: SeenSources | undefined };

export const destinationKinds = [
  'cluster-ip',
  'external-ip',
  'load-balancer-ip',
  'unknown',
  'node-port',
  'health-check',
  'ping',
  'unserved-port',
  'unserved-address',
  'node',
] as const;

/** Senders at one place. They are inside the range `within` but outside the ranges `without`. */
export interface SenderRange {
  readonly kind: 'range';
  readonly who: SenderName;
  readonly within: string | undefined;
  readonly without: readonly string[];
}

export type EffectSender =
  | { readonly kind: SenderPlace; readonly who: SenderName }
  | { readonly kind: 'endpoint' | 'other-endpoint' }
  | { readonly kind: 'removed-endpoint' | 'added-endpoint'; readonly isElsewhere: boolean }
  | SenderRange;

export const destinationFields = {
  to: text,
  protocol: text,
  nodePort: optional(about('sent to this port of every node: the input names no address of one', wholeNumber(0))),
  family: optional(about('with `nodePort`: of the address', oneOf(...families))),
};

/** The fields of an effect that are printed unchanged. */
export const effectFields = {
  target: about('what the packets are sent to', oneOf(...destinationKinds)),
  severity: severitySchema,
  classes: wholeNumber(0),
  example: objectOf({
    from: text,
    ...destinationFields,
    interface: optional(text),
    node: about('empty if the side that shows it names none', text),
  }),
  shownBy: optional(
    about(
      'the side whose answer to the example explains the difference; missing if no side alone gives that answer',
      oneOf('old', 'new'),
    ),
  ),
};

const printed = objectOf(effectFields);

export interface Effect extends Shaped<typeof printed> {
  /** The senders, sorted by their keys. */
  readonly senders: readonly EffectSender[];
  readonly from: End;
  readonly to: End;
  readonly choice: EffectChoice | undefined;
  /** Why it is unknown how the example ends on the side that explains the effect. */
  readonly lacks: readonly Unsettled[];
}

export interface Divergence {
  readonly cause: CauseId;
  readonly reasons: readonly CauseReason[];
  /** Sorted. The addresses on which only one side serves node ports, or the sockets on which only one side answers health checks. */
  readonly served: { readonly old: readonly string[]; readonly new: readonly string[] };
  readonly situations: readonly Situation[];
  readonly severity: EffectSeverity;
  readonly services: readonly string[];
  readonly servicePorts: readonly string[];
  readonly effects: readonly Effect[];
  readonly classes: number;
  /** The names of the traced nodes that show this effect. '' stands for a node without a Node object. */
  readonly nodes: readonly string[];
}
