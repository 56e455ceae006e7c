import { nameSome } from '../words/rows.ts';
import { compareText } from '../../kernel/compare.ts';
import type { EffectSender } from '../../ask/equivalence/effects.ts';
import type { SenderName } from '../../ask/trace/question.ts';

/** Names the distinct senders, sorted by their full words. `inShort` gives shorter words for some of the senders. */
export function senderTexts(
  senders: readonly EffectSender[],
  inShort: (kind: EffectSender['kind']) => string | undefined = () => undefined,
): readonly string[] {
  const texts = senders.map((each) => [effectSenderWords(each), each.kind] as const);
  return [...new Set(texts.sort(([a], [b]) => compareText(a, b)).map(([text, kind]) => inShort(kind) ?? text))];
}

function effectSenderWords(sender: EffectSender): string {
  switch (sender.kind) {
    case 'endpoint':
      return endpointOfService;
    case 'other-endpoint':
      return `${endpointOfService} on another node`;
    case 'removed-endpoint':
    case 'added-endpoint': {
      const where = sender.isElsewhere ? ' on another node' : '';
      return `${endpointOfService}${where} that is ${sender.kind === 'added-endpoint' ? 'added' : 'removed'}`;
    }
    case 'range': {
      const within = sender.within === undefined ? '' : ` in ${sender.within}`;
      const without = sender.without.length === 0 ? '' : ` outside of ${nameSome(sender.without)}`;
      return `${senderName(sender.who)}${within}${without}`;
    }
    default:
      return senderName(sender.who);
  }
}

const endpointOfService = 'an endpoint of the Service';

const senderNames = {
  node: 'the node itself',
  pod: 'a pod on this node',
  'remote-pod': 'a pod on another node',
  external: 'a client outside the cluster',
  client: 'a client',
} as const;

const podPlaces = {
  'this-node': '',
  'other-node': ' on another node',
  'this-host': " with the node's network",
  'other-host': " with another node's network",
} as const;

export function senderName(who: SenderName): string {
  switch (who.kind) {
    case 'named-pod':
      return `Pod ${who.name}${podPlaces[who.on]}`;
    case 'endpoint':
      return who.isLocal === undefined ? 'an endpoint' : `an endpoint on ${who.isLocal ? 'this' : 'another'} node`;
    default:
      return senderNames[who.kind];
  }
}
