import {
  about,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  text as anyText,
  wholeNumber,
  type Shaped,
} from '../../base/json/schema.ts';
import type { CauseId, CauseReason, Situation } from './causes.ts';

/**
 * How a difference affects clients, worst first. Something breaks, may break, works differently, starts to work, or fails on both sides in
 * different ways.
 */
export const severities = ['breaks', 'unknown', 'changes', 'opens', 'fails-otherwise'] as const;

export type EffectSeverity = (typeof severities)[number];

export const severitySchema = about(
  'breaks: what worked no longer does; unknown: whether it still does; changes: it works differently; opens: what failed now works',
  oneOf(...severities),
);

const sharesSchema = objectOf({
  endpoints: wholeNumber(0),
  least: about('the least share of connections that one of them gets', number('a share', 0, 1)),
  most: number('a share', 0, 1),
});

export type EndpointShares = Shaped<typeof sharesSchema>;

const choiceSchema = objectOf({
  from: sharesSchema,
  to: sharesSchema,
  kept: about('endpoints that both choose from', wholeNumber(0)),
  source: optional(about('whose address receivers see, if that differs', objectOf({ from: anyText, to: anyText }))),
  lost: optional(
    about(
      'the share of connections that fail, if any do',
      objectOf({ from: number('a share', 0, 1), to: number('a share', 0, 1) }),
    ),
  ),
});

export type EffectChoice = Shaped<typeof choiceSchema>;

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

const senderKinds = [
  'outside',
  'other-node',
  'pod',
  'node',
  'endpoint',
  'other-endpoint',
  'removed-endpoint',
  'added-endpoint',
  'range',
] as const;

const senderSchema = objectOf({ kind: oneOf(...senderKinds), text: anyText });

export type EffectSender = Shaped<typeof senderSchema>;

export const destinationFields = {
  to: anyText,
  protocol: anyText,
  nodePort: optional(about('sent to this port of every node: the input names no address of one', wholeNumber(0))),
};

export const effectFields = {
  target: about('what the packets are sent to', oneOf(...destinationKinds)),
  senders: listOf(senderSchema),
  from: anyText,
  to: anyText,
  severity: severitySchema,
  classes: wholeNumber(0),
  choice: optional(about('both sides deliver to endpoints, and choose them otherwise', choiceSchema)),
  example: objectOf({
    from: anyText,
    ...destinationFields,
    interface: optional(anyText),
    node: about('empty if the side that shows it names none', anyText),
  }),
  shownBy: optional(
    about(
      'the side whose answer to the example explains the difference; missing if no side alone gives that answer',
      oneOf('old', 'new'),
    ),
  ),
  lacks: optional(about('why the example is not known on that side, and what settles it', anyText)),
};

const effectSchema = objectOf(effectFields);

export type Effect = Shaped<typeof effectSchema>;

export interface Divergence {
  readonly cause: CauseId;
  readonly reasons: readonly CauseReason[];
  /** The addresses on which only one side serves node ports, sorted. */
  readonly served: { readonly old: readonly string[]; readonly new: readonly string[] };
  readonly situations: readonly Situation[];
  readonly severity: EffectSeverity;
  readonly services: readonly string[];
  readonly servicePorts: readonly string[];
  readonly effects: readonly Effect[];
  readonly classes: number;
  /** The traced nodes with this effect; '' without a Node object. */
  readonly nodes: readonly string[];
}
