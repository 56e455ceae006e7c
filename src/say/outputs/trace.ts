import {
  about,
  boolean,
  listOf,
  named,
  number,
  objectOf,
  oneOf,
  optional,
  text,
  wholeNumber,
} from '../../base/json/schema.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { connectionKinds, verdicts } from '../../packet/packet.ts';
import { reasonKinds } from '../../packet/reason.ts';
import { stopKinds } from '../../ask/trace/stop.ts';
import { place } from './envelope.ts';

const sourceAfter = about(
  'the source that the endpoint sees: an address, "node" for an unknown address of the node, or "masqueraded"',
  text,
);

const knownFate = {
  verdict: oneOf(...verdicts),
  endpoints: listOf(
    objectOf({
      address: text,
      port: wholeNumber(0),
      probability: number('a share', 0, 1),
      sourceAfter,
      connection: optional(
        about(
          'what happens to the connection at this endpoint, if that differs between the endpoints',
          oneOf(...connectionKinds),
        ),
      ),
    }),
  ),
  sourceAfter,
  redirectedTo: optional(about('the port on the node to which a rule redirects the packet', wholeNumber(0))),
};

const reasons = listOf(
  objectOf({
    kind: oneOf(...reasonKinds),
    text: about('why, as a clause: "the dump lacks the output of ip addr"', text),
    settle: about('what to do: "add the output of ip addr"', text),
    command: optional(about('the command or flag that settles it', text)),
  }),
);

const otherEnds = listOf(
  objectOf({
    verdict: oneOf(...verdicts),
    probability: number('a share', 0, 1),
    address: optional(about('the endpoint that rules chose, if the packet is lost on its way there', text)),
    port: optional(wholeNumber(0)),
    connection: oneOf(...connectionKinds),
    reason: optional(about('what decides whether the connection works, as a clause', text)),
  }),
);

const fate = {
  ...knownFate,
  otherEnds: optional(about('the outcomes of the first packets that end in another way', otherEnds)),
  connection: about(
    'what happens to the connection; partial: some of several endpoints work; depends: it depends on more than the rules',
    oneOf(...connectionKinds),
  ),
  connectionReason: optional(about('why, as a clause', text)),
  failing: optional(
    about('the share of connections that are known to fail; absent if the verdict is unknown', number('a share', 0, 1)),
  ),
  reasons: optional(about('why the verdict is unknown', reasons)),
  otherwise: optional(
    about(
      'how the packet ends, assuming that what is not shown lets the packet pass unchanged',
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
  place: optional(place),
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

const destination = {
  address: about('"node" for an unknown address of the node', text),
  port: wholeNumber(0),
  protocol: text,
};

const answerFields = {
  ...fate,
  cause: optional(
    about(
      'why the packet is dropped or refused, or why some connections are',
      objectOf({ kind: oneOf(...stopKinds), text: about('as a clause', text) }),
    ),
  ),
  from: objectOf({
    sender: about('in words: "a pod on this node"', text),
    example: optional(about('whether kpc chose the address as an example for this kind of sender', boolean)),
    address: optional(about('absent for the node, which chooses its source address itself', text)),
    column: optional(about('the column of this sender in the table of --all', text)),
  }),
  to: objectOf({ ...destination, servicePort: optional(about('the Service port that was named', text)) }),
  node: optional(about('absent for a dump, and if no node is named', text)),
  mode: optional(oneOf(...proxyModes)),
  assumed: optional(about('the values here that kpc chose because the input lacks them', listOf(text))),
  otherService: optional(
    about(
      "present if a dump's rules treat the packet as one to another Service than the manifests have there",
      objectOf({ asked: text, by: optional(about('the Service port that the rules name', text)) }),
    ),
  ),
  notes: optional(about('what an operator is likely to want to know next, as sentences', listOf(text))),
  policies: optional(policies),
  existingFlows: optional(
    about('where the listed flows between these addresses keep going, whatever the rules say', existingFlows),
  ),
};

const trace = named(
  'trace',
  objectOf({
    ...answerFields,
    steps: optional(about('absent in the table of --all', listOf(step))),
  }),
);

const request = objectOf({
  node: optional(text),
  ingress: optional(about('"namespace/name" of the Ingress, if one accepts the request', text)),
  routes: listOf(
    objectOf({
      host: text,
      path: optional(text),
      to: text,
      route: optional(about('the route of the Gateway API: "HTTPRoute shop/web"', text)),
      gateway: optional(about('"namespace/name"', text)),
      depends: optional(
        about(
          'whether only some of these requests go there, depending on method, headers, query, weights or filters',
          boolean,
        ),
      ),
    }),
  ),
  assumed: optional(about('the assumptions behind this answer, as clauses', listOf(text))),
  problems: optional(about('why requests do not get there', listOf(text))),
});

export const traced = objectOf({
  traces: about('traces of one packet, of a request, or of one packet from each sender, node by node', listOf(trace)),
  requests: optional(about('paths through an Ingress or a Gateway, one for each node', listOf(request))),
});

export const tested = objectOf({
  tests: listOf(
    objectOf({
      name: text,
      passed: boolean,
      place,
      faults: about('how the packet differs from what is expected', listOf(text)),
      trace,
    }),
  ),
});
