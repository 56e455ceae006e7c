import {
  about,
  anyOf,
  boolean,
  listOf,
  named,
  number,
  objectOf,
  oneOf,
  optional,
  text,
  wholeNumber,
} from '../../base/json-shape.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { connectionKinds, verdicts } from '../../packet/packet.ts';
import { reasonKinds } from '../../packet/reason.ts';
import { placeFields } from './shared.ts';

const sourceAfter = about('the source that the endpoint sees: an address, or "masqueraded"', text);

const knownFate = {
  verdict: oneOf(...verdicts),
  endpoints: listOf(
    objectOf({
      address: text,
      port: wholeNumber(0),
      probability: number('a share', 0, 1),
      sourceAfter,
      connection: optional(about('where the endpoints differ', oneOf(...connectionKinds))),
    }),
  ),
  sourceAfter,
};

const reasons = listOf(
  objectOf({
    kind: oneOf(...reasonKinds),
    text: about('a clause: "the dump lacks what ip addr prints"', text),
    settle: about('what to do: "add what ip addr prints"', text),
    command: optional(about('the command or flag that settles it', text)),
  }),
);

const fate = {
  ...knownFate,
  connection: about(
    'what becomes of the connection: partial if some of several endpoints work, depends if that is beyond the node',
    oneOf(...connectionKinds),
  ),
  connectionReason: optional(about('why, as a clause', text)),
  reasons: optional(about('why the verdict is unknown', reasons)),
  otherwise: optional(
    about(
      'how the packet ends if what is not shown lets it pass unchanged',
      objectOf({ condition: text, ...knownFate }),
    ),
  ),
};

const step = objectOf({
  hook: optional(about('the hook of netfilter; absent for routing', text)),
  where: about('a rule by tool, table, chain and number, a virtual server, or routing', text),
  what: text,
  rule: optional(about('as the tool writes it', text)),
  servicePort: optional(text),
  file: optional(placeFields.file),
  line: optional(placeFields.line),
  column: optional(placeFields.column),
});

const policies = listOf(
  objectOf({
    direction: about("ingress: at the endpoints' Pods; egress: at the sender's", oneOf('ingress', 'egress')),
    verdict: oneOf('refused', 'refused-node', 'refused-client', 'refused-endpoint', 'unknown'),
    names: listOf(text),
    endpoints: listOf(objectOf({ address: text, port: wholeNumber(0) })),
  }),
);

const existingFlows = listOf(objectOf({ address: text, port: wholeNumber(0), flows: wholeNumber(1) }));

const answerFields = {
  ...fate,
  notes: optional(about('what an operator asks next, in sentences', listOf(text))),
  policies: optional(policies),
  existingFlows: optional(
    about('where the listed flows of these ends keep going, whatever the rules say', existingFlows),
  ),
};

const trace = named(
  'trace',
  objectOf({
    ...answerFields,
    steps: listOf(step),
  }),
);

const ingress = objectOf({
  ingress: optional(about('"namespace/name" of the Ingress, if one takes the request', text)),
  routes: listOf(
    objectOf({
      host: text,
      path: optional(text),
      to: text,
      route: optional(about('the route of the Gateway API: "HTTPRoute shop/web"', text)),
      gateway: optional(about('"namespace/name"', text)),
      depends: optional(
        about('whether only some of these requests go there, by method, headers, query, weights or filters', boolean),
      ),
    }),
  ),
  problems: optional(about('why requests do not get there', listOf(text))),
  traces: listOf(trace),
});

const cells = listOf(
  objectOf({
    from: text,
    to: objectOf({ address: text, port: wholeNumber(0), protocol: text }),
    ...answerFields,
  }),
);

export const answer = named(
  'answer',
  anyOf(
    'one packet, a request over an Ingress or a Gateway, or with --all a packet of each sender',
    trace,
    ingress,
    cells,
  ),
);

/** With --all-nodes. */
const tracedNodes = listOf(objectOf({ node: text, trace: answer }));

export const traced = anyOf('an answer, or one for each node', answer, tracedNodes);

export const tested = listOf(
  objectOf({
    name: text,
    passed: boolean,
    ...placeFields,
    node: optional(text),
    mode: optional(oneOf(...proxyModes)),
    faults: about('how the packet differs from what is expected', listOf(text)),
    trace,
  }),
);
