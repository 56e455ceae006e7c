import {
  about,
  anyOf,
  boolean,
  listOf,
  mapOf,
  named,
  number,
  objectOf,
  oneOf,
  openOf,
  optional,
  text,
  variantOf,
  wholeNumber,
} from '../../base/json/schema.ts';
import { families, protocols } from '../../kernel/address.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { kernelObjectKinds } from '../../ask/changes/kernel-change.ts';
import { skipReasons } from '../../kube-proxy/skipped.ts';
import { flowChange, place } from './envelope.ts';
import { modeSources } from '../../ask/describe/read-dumped.ts';

const portNumber = wholeNumber(0, 65_535);
const protocol = oneOf(...protocols);
const serviceType = oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName');
const skipped = about('why kube-proxy programs nothing for the Service', oneOf(...skipReasons));

const assumed = about(
  'what kpc chose because the input lacks it',
  objectOf({
    clusterIPs: listOf(text),
    nodePorts: about('a map from the name of each port to its number', mapOf(portNumber)),
    healthCheckNodePort: optional(portNumber),
    loadBalancerIPs: optional(listOf(text)),
  }),
);

const serviceSummary = objectOf({
  service: about('"namespace/name"', text),
  type: serviceType,
  skipped: optional(skipped),
  clusterIPs: listOf(text),
  loadBalancerIPs: listOf(text),
  externalIPs: listOf(text),
  externalName: optional(text),
  ports: listOf(objectOf({ name: text, port: portNumber, protocol, nodePort: optional(portNumber) })),
  endpoints: optional(
    about(
      'how many endpoint addresses the Service has, how many are ready, and how many the node uses; absent if the Service cannot have any',
      anyOf(
        'the numbers of endpoints, or "not-given" if the input does not hold them',
        objectOf({
          used: wholeNumber(0),
          ready: wholeNumber(0),
          total: wholeNumber(0),
          assumed: optional(about('how many are of Pods that kpc assumed', wholeNumber(1))),
        }),
        oneOf('not-given'),
      ),
    ),
  ),
  policies: about('traffic policies other than the default', listOf(text)),
  notes: about('problems, such as that the Service has no endpoints, and why', listOf(text)),
  assumed: optional(assumed),
});

const policy = oneOf('Cluster', 'Local');

const clients = named(
  'clients',
  variantOf('kind', {
    all: objectOf({}),
    'all-but': objectOf({ clients: about('how pods are recognised: a network, or "interface cni0"', text) }),
    node: objectOf({}),
  }),
);

const masquerade = about(
  "clients whose packets get the node's address as their source",
  objectOf({ clusterIP: optional(clients), external: optional(clients) }),
);

const facts = {
  family: oneOf(...families),
  protocol,
  port: optional(portNumber),
  addresses: listOf(
    objectOf({ kind: oneOf('cluster-ip', 'external-ip', 'load-balancer-ip', 'unknown'), address: text }),
  ),
  nodePort: optional(portNumber),
  internalTrafficPolicy: optional(policy),
  externalTrafficPolicy: optional(policy),
  affinitySeconds: optional(wholeNumber(0)),
  sourceRanges: listOf(text),
  hidesSourceRanges: optional(
    about('packets from outside the source ranges are dropped, but the dump does not show the ranges', oneOf(true)),
  ),
  healthCheckNodePort: optional(portNumber),
  scheduler: optional(text),
  masquerade: optional(masquerade),
};

const use = oneOf(
  'ready',
  'last-resort',
  'not-ready',
  'terminating',
  'other-node-hinted',
  'other-zone-hinted',
  'other-node',
  'as-hinted',
  'on-its-node',
);

const endpoint = objectOf({
  endpoint: about('"address:port"', text),
  node: optional(text),
  condition: text,
  cluster: optional(about('for traffic with policy Cluster', use)),
  local: optional(about('for traffic with policy Local', use)),
  zoneHints: optional(listOf(text)),
  nodeHints: optional(listOf(text)),
  assumed: optional(about('the input does not hold its Pod', boolean)),
  place: optional(place),
});

const portInFamily = objectOf({
  ...facts,
  endpoints: listOf(endpoint),
  fallback: optional(
    about(
      'what happens to traffic without an endpoint',
      oneOf('no-endpoints-given', 'no-endpoints', 'local-drops', 'local-to-all'),
    ),
  ),
  unboundHints: optional(
    about(
      'why zone hints have no effect on this node',
      variantOf('kind', {
        'endpoint-without-hint': objectOf({ endpoint: text }),
        'node-without-zone': objectOf({}),
        'none-for-zone': objectOf({ zone: text }),
      }),
    ),
  ),
  forwarding: optional(about('absent for masquerade', oneOf('masquerade', 'direct', 'tunnel'))),
});

const kernelItem = openOf({
  kind: about('which object it is, which determines the other fields', oneOf(...kernelObjectKinds)),
  text,
  rules: optional(about('the rules of a chain, as the tool lists them', listOf(text))),
  takenBy: optional(about('the Service port that has this address or port instead', text)),
  place: optional(place),
});

const because = about('why the question leads to this Service', listOf(openOf({ kind: text })));

const describedService = objectOf({
  because,
  service: about('"namespace/name"', text),
  type: serviceType,
  skipped: optional(skipped),
  selector: optional(about('as it is written', mapOf(text))),
  clusterIPs: listOf(text),
  assumed: optional(assumed),
  place: optional(place),
  ports: listOf(
    objectOf({
      servicePort: about('"namespace/name:port"', text),
      place: optional(place),
      targetPort: optional(
        about('as the manifest has it: a number or a name', anyOf('a number or a name', text, wholeNumber(0))),
      ),
      problems: optional(
        about('why the port has no endpoint, and whether a container lists the target port', listOf(text)),
      ),
      families: listOf(portInFamily),
      kernel: listOf(kernelItem),
    }),
  ),
  dns: listOf(objectOf({ name: text, type: oneOf('A', 'AAAA', 'SRV', 'CNAME'), value: text })),
  environment: listOf(objectOf({ name: text, value: text })),
});

const logPlace = objectOf({ file: text, line: wholeNumber(1) });

/** A chain, set, map or rule that does not belong to a single Service port. */
const sharedSubject = named(
  'subject',
  objectOf({
    kind: oneOf('chain', 'set', 'map', 'rule'),
    name: text,
    family: optional(oneOf(...families)),
    table: optional(text),
    type: optional(about('the type of a set', text)),
    items: listOf(objectOf({ text, owner: optional(about('the Service port of the item', text)) })),
  }),
);

export const describedDump = objectOf({
  servicePorts: listOf(
    objectOf({
      servicePort: about('"namespace/name:port", or the address if nothing shows a name', text),
      ...facts,
      fallback: optional(oneOf('no-endpoints', 'local-drops', 'local-to-all')),
      endpoints: optional(
        listOf(
          objectOf({
            endpoint: text,
            takes: about('the traffic policies that send traffic to this endpoint', listOf(policy)),
            draining: optional(oneOf(true)),
          }),
        ),
      ),
    }),
  ),
  withoutRules: optional(
    about('the Service ports in the manifests beside the dump for which the node has no rule', listOf(text)),
  ),
  leftovers: optional(about('what another mode left, as sentences', listOf(text))),
  skipped: optional(
    about('what is skipped because it comes from another node or time than the rest, as sentences', listOf(text)),
  ),
  log: optional(
    about(
      'what a log of kube-proxy says',
      objectOf({
        lines: wholeNumber(0),
        firstTime: optional(about('the time of the first line, as the log writes it', text)),
        lastTime: optional(text),
        mode: optional(oneOf(...proxyModes)),
        modeFrom: optional(
          about(
            'what decided the mode: fallback if IPVS does not work there; config may leave it to the default',
            oneOf(...modeSources),
          ),
        ),
        version: optional(text),
        nodeAddresses: optional(listOf(text)),
        flags: mapOf(text),
        sysctls: mapOf(text),
        syncs: about('how many syncs have a duration in the log', wholeNumber(0)),
        slowestSync: optional(about('seconds', number('seconds', 0))),
        slowestSyncAt: optional(logPlace),
        minSyncPeriod: optional(about('as the log writes it; changes wait for a sync that takes longer', text)),
        problems: listOf(
          objectOf({
            code: about('the row for such lines in the table of known lines', text),
            meaning: text,
            advice: text,
            releases: about('releases of Kubernetes whose kube-proxy writes such a line', text),
            source: about('the file of Kubernetes that writes it', text),
            count: wholeNumber(1),
            file: text,
            line: wholeNumber(1),
            detail: about('what the last such line says', text),
          }),
        ),
        unknown: about(
          'lines that match no row of that table',
          objectOf({ lines: wholeNumber(0), errors: wholeNumber(0), firstError: optional(logPlace) }),
        ),
      }),
    ),
  ),
  flows: optional(
    about(
      'the UDP flows that conntrack lists',
      objectOf({
        listed: wholeNumber(0),
        stale: listOf(
          objectOf({
            servicePort: optional(about('absent if no Service has the destination', text)),
            destination: about('"address:port", where the client sends', text),
            endpoint: about('"address:port", where the flow goes', text),
            because: oneOf('not-serving', 'no-rule', 'untranslated', 'no-service'),
            flows: wholeNumber(1),
            unanswered: wholeNumber(0),
            command: about('the command that deletes these flows and no others', text),
          }),
        ),
        change: optional(flowChange),
      }),
    ),
  ),
  subjects: optional(listOf(sharedSubject)),
});

const describedServices = objectOf({ services: listOf(describedService) });

const sharedSubjects = objectOf({ subjects: listOf(sharedSubject) });

const serviceTable = objectOf({ services: listOf(serviceSummary) });

export const describe = anyOf(
  'the table of all Services, one Service, chains and sets, or a dump',
  serviceTable,
  describedServices,
  sharedSubjects,
  describedDump,
);
