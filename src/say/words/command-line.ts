import { formatCount, joinWords, escapeText, quote } from '../../base/printable.ts';
import { skippedBecause } from './calls.ts';
import { foundWords } from './fields.ts';
import { addNames, holdsNoNames } from './files.ts';
import { familyNames } from '../../kernel/address.ts';
import { senderName } from '../way/sender.ts';
import { noServiceWords, noSubjectWords } from '../way/lack.ts';
import { byCase, didYouMean, listCodes, type WordsOf, nameSome } from './rows.ts';
import type { commandLineFindings } from '../../base/findings/command-line.ts';

const expectedValues = {
  boolean: 'write true or false',
  list: 'write one value or a list',
  one: 'write one value',
  ignores:
    'write codes, or mappings such as { code: CODE, reason: TEXT, service: NAMESPACE/NAME }; service is optional',
} as const;

function suggestNearest(near: readonly string[], otherwise: string) {
  return didYouMean(near.join(' or ') || undefined, otherwise);
}

/** What to do about a Service for which kube-proxy programs nothing. */
const insteadOf = {
  headless: 'name one of its Pods by address or DNS name, such as 10.244.1.5:5432 or web-0.db:5432',
  'external-name': 'name a Service with a cluster IP: DNS leads clients of this one to another host',
  'no-cluster-ip': 'set --service-cluster-ip-range, so that kpc chooses one',
  'other-proxy': 'remove the label, unless another program serves this Service',
  'headless-label': 'remove the label',
} as const;

/** Words for problems with kpc's own flags, with kpc.yaml, and with the packets of kpc trace and kpc test. */
export const commandLineWords: WordsOf<typeof commandLineFindings> = {
  'bad-expectation': byCase('problem', {
    nothing: ['no tests here', 'write them as a list under "tests:", each with from, to and expect'],
    missing: ({ field }) =>
      field === 'inputs'
        ? ['the tests name no cluster', 'name manifests, a bundle or a dump under "inputs:", or with -f']
        : [`a test has no ${field}`, `add ${field}: a test needs from, to and expect`],
    empty: ({ field }) => [`${field} is empty, so nothing would be tested`, `name one, or leave out ${field}`],
    rivals: ['node and nodes mean the same', 'keep one of them'],

    'unknown-source': ({ value, known }) => `source: ${value} is neither ${known.join(', ')} nor an address`,
    'unknown-verdict': ({ value, known, near }) => [
      `expect: ${value} is not one of ${known.join(', ')}`,
      didYouMean(near, 'for endpoints, write a list'),
    ],
    'idle-source': ['source applies only to delivered packets', 'set expect to delivered, or to endpoints'],
    'no-endpoints': ['expect: the list is empty', 'to expect that no endpoint is reached, write refused or dropped'],
    'other-input': ({ field, what, kind, known }) =>
      `${field}: the input is a ${kind}${known === undefined ? '' : ` of ${known}`}, but only manifests can be compiled for another ${what}`,
    'no-file': ({ field, option }) => [
      `${field}: the library reads no files`,
      `give it as the option ${option}, and leave this field out`,
    ],
    refused: ({ field, error }, say) => [`${field}: ${say(error).text}`, say(error).help],
    unsent: ({ field, error }, say) => [`${field}: ${say(error).text}`, say(error).help],
    'not-tests': ({ fields }) => [
      `not a file of kpc test: it has ${nameSome(fields.map((field) => escapeText(field)))}, but no tests`,
      'write them as a list under "tests:", each with from, to and expect; name manifests with -f',
    ],
  }),
  'bad-kpc-yaml': byCase('problem', {
    'link-outside': [
      'a link to something outside the repository',
      'name that file with --kpc-yaml',
      'leave it out with --kpc-yaml none',
    ],
    'several-documents': ['kpc.yaml holds several documents', 'keep one of them'],

    'no-mapping': ({ of, found }) => [
      `${of} cannot be ${foundWords(found)}`,
      'write flags and their values, such as node: worker-1',
    ],
    'unknown-flag': ({ name, command, meant }) => [
      `${command === undefined ? 'kpc' : `kpc ${command}`} has no flag --${escapeText(name)}`,
      didYouMean(meant),
    ],
    'of-call': ({ flag }) => [
      `${flag} cannot be set in kpc.yaml`,
      `write --${flag} on the command line, and remove it here`,
    ],
    value: ({ flag, found, expected, choices, meaning }) => [
      `${flag} cannot be ${foundWords(found)}`,
      choices
        ? `write ${joinWords(choices, 'or')}`
        : `${expectedValues[expected]}${meaning === undefined ? '' : `: ${meaning}`}`,
    ],

    lacks: ({ entry, field }) => [`${entry} has no ${field}`, expectedValues.ignores],
    'unknown-field': ({ entry, name, meant }) => [
      `${entry} has no field ${quote(name)}`,
      didYouMean(meant, expectedValues.ignores),
    ],
    'unknown-code': ({ code, meant }) => [`no message has the code ${escapeText(code)}`, didYouMean(meant, listCodes)],
    rivals: ({ flag, other }) => [`${flag} cannot be used with ${other}`, 'keep one of them'],
    'replaces-outside': ({ flag }) => [
      `${flag} is outside the folder of kpc.yaml, and kpc would replace its contents`,
      'name that folder on the command line',
    ],
    'replaces-git': ({ flag }) => [`${flag} leads into .git, which belongs to git`, 'name a folder outside of .git'],
    'reads-outside': ({ flag }) => [
      `${flag} leads out of the repository of kpc.yaml`,
      'name that file or folder on the command line',
    ],

    refused: ({ flag, reason }) => `${flag}: ${reason}`,
  }),
  'not-shown': ({ severity, count, of }) =>
    `${formatCount(count)} more ${count === 1 ? severity : `${severity}s`}${of === undefined ? '' : ` [${of}] in this file`} not shown`,
  'not-found': byCase('problem', {
    'no-subject': ({ nothing, isNoPath }) =>
      `${noSubjectWords(nothing)}${isNoPath ? '; there is no such file or folder either' : ''}`,
    'no-service': ({ why, lists }) => [
      noServiceWords(why),
      lists === 'flows'
        ? 'add the output of iptables-save, nft list ruleset or ipvsadm -Sn, or manifests, to find stale flows'
        : undefined,
    ],
    'pending-sender': ({ owner, wanted }) => [
      `${owner} has no Pod on a Node, because no Node has ${wanted}`,
      'correct its nodeSelector or affinity, or give all Nodes (kubectl get nodes -o yaml)',
    ],
    'no-sender': ({ name, near, from, kinds, lacksPods }) => [
      `there is no Pod ${name} in the input, and ${from} is none of ${kinds.join(', ')}`,
      suggestNearest(
        near,
        'name an address, a Pod, deployment/NAME, or one of these words (external: a client outside the cluster)',
      ),
      lacksPods && near.length === 0 ? 'add the output of kubectl get pods -A -o yaml' : undefined,
    ],
    'is-node': ({ name, kind, use }) => [`${name} is a Node, not a ${kind}`, `write ${use}`],
    'no-such-port': ({ to, others }) => [
      `${to} has no such port or family here${others.length === 0 ? '' : `: it has ${joinWords(others, 'and')}`}`,
      'see its ports with "kpc describe"',
    ],
    'no-such': ({ kind, name, near, files, nameless }) => [
      `no ${kind} ${name} here${nameless ? `: ${holdsNoNames(nameless)}` : ''}`,
      suggestNearest(
        near,
        nameless
          ? addNames
          : kind !== 'Service'
            ? 'name one from the input'
            : files === undefined
              ? 'list the Services with "kpc describe" and the same input'
              : `list the Services with "kpc describe ${files}"`,
      ),
    ],
    'no-port': ({ service, port, ports, near }) => [
      `${service} has no port ${port}${ports.length === 0 ? ' whose number is known' : ` (has ${ports.join(', ')})`}`,
      suggestNearest(
        near.map((each) => `${service}:${each}`),
        `write ${joinWords(ports.length === 0 ? [service] : ports.map((each) => `${service}:${each}`), 'or')}`,
      ),
    ],
    'no-host': ({ service, name, near, hosts }) => [
      `${service} has no ready endpoint ${name}`,
      suggestNearest(near, hosts.length === 0 ? 'it has none' : `it has ${nameSome(hosts)}`),
    ],
    'no-ingress-of-host': ({ request }) => [
      `no Ingress or Gateway in the input accepts ${request}`,
      'name a host and path that one accepts, or ingress/NAME or gateway/NAME, or svc/NAME for a Service',
    ],
  }),
  'bad-packet': byCase('problem', {
    'other-family': ({ from }) => [
      `${from} cannot reach an address of the other IP family`,
      'name a sender and a destination of one family',
    ],
    'no-address': ({ text }) => [`${text} is not an address`, 'each part of an IPv4 address is a number from 0 to 255'],
    'port-range': ({ to }) => [`${to} has no valid port`, 'write a port from 1 to 65535'],
    unread: ({ what, kinds }) => [
      `${what} cannot be looked up: kpc could not read ${joinWords(kinds)} of this cluster`,
      'get the right to list these in all namespaces',
      'name only addresses and Services',
    ],
    'no-endpoint': ({ name, near }) => [
      `${name} is neither address:port nor a Pod in the input`,
      suggestNearest(near, 'write address:port'),
    ],
    'no-address-of-pod': ({ pod, family }) => [
      `Pod ${pod} has no ${familyNames[family]} address`,
      'name a destination of its own family',
    ],
    'no-node-named': ({ nodes }) => [
      `the input has ${nodes} Nodes, but no node is named`,
      'name one with --node',
      'use --all-nodes',
    ],
    'other-node': ({ sender, to, node, home, kind }) => [
      `packets from ${sender} to ${to} do not pass ${node || 'this node'}: its own node${home && `, ${home},`} handles them`,
      kind !== 'manifests'
        ? 'trace them in a dump of that node'
        : home === ''
          ? 'ask from pod, on that node'
          : `name that node with --node ${home}`,
    ],
    'no-address-for': ({ sender }) => [
      `no example address of ${senderName({ kind: sender })} is known`,
      'name the Pod, or write its address, such as 10.244.1.5',
    ],
    'which-port': ({ to, ports, example }) => [
      `which port of ${to}?${ports.length > 0 ? ` It has ${ports.join(', ')}` : ''}`,
      example === undefined ? 'name one of them' : `write ${example}, for example`,
    ],
    several: ({ kind, name, names }) => [
      `several objects of kind ${kind} are named ${name}: ${names.join(', ')}`,
      'name one of them',
    ],
    skipped: ({ service, why }) => [
      `${service} ${skippedBecause[why]}, so kube-proxy programs nothing for it`,
      insteadOf[why],
    ],
  }),
};
