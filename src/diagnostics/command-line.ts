import { formatCount } from '../base/format-count.ts';
import { nameSome, joinWords } from '../base/join-words.ts';
import { escapeText, quote } from '../base/printable.ts';
import { describeFound, type Found } from './fields.ts';
import {
  row,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Severity,
  type Texts,
  type Words,
  wordsBy,
} from './diagnostic-rows.ts';

const expectedValues = {
  boolean: 'write true or false',
  list: 'write one value or a list',
  one: 'write one value',
  ignores: 'write codes, or for each a mapping with code and reason, and service for one Service',
} as const;

type Flag = Texts<'flag'>;

/** `command`: whose flags they are; undefined for those of any command. */
interface UnknownFlag {
  readonly name: string;
  readonly command?: string | undefined;
  readonly meant?: string | undefined;
}

interface NotShown {
  /** Of the messages that are left out. */
  readonly severity: Severity;
  readonly count: number;
  /** Their code, where they are of one code and one file. */
  readonly of?: string | undefined;
}

/** A name that nothing has, and the names that are spelled like it. */
interface Unknown {
  readonly name: string;
  readonly near: readonly string[];
}

function suggest(near: readonly string[], otherwise: string): string {
  return near.length > 0 ? `did you mean ${near.join(' or ')}?` : otherwise;
}

/** Why kube-proxy programs nothing for a Service. */
const skipped = {
  headless: ['is headless: it has no cluster IP, and kube-proxy programs nothing for it', 'name one of its Pods'],
  'external-name': [
    'is of type ExternalName: kube-proxy programs nothing for it, and DNS names another host',
    'name a Service with a cluster IP',
  ],
  'no-cluster-ip': [
    'has no cluster IP yet, so kube-proxy programs nothing for it',
    'let kpc choose one with --service-cluster-ip-range',
  ],
  'other-proxy': [
    'has the label service.kubernetes.io/service-proxy-name, so kube-proxy ignores it',
    'leave the label out, unless another program serves this Service',
  ],
} as const;

/** Problems with kpc's own flags, with kpc.yaml, and with the packets of kpc trace and kpc test. */
export const commandLineDiagnostics = {
  'bad-expectation': row(
    'error',
    wordsBy('problem', {
      nothing: ['no tests here', 'write them as a list under "tests:", each with from, to and expect'],
      missing: ({ field }: { readonly field: 'from' | 'to' | 'expect' | 'inputs' }) =>
        field === 'inputs'
          ? ['the tests name no cluster', 'name manifests, a bundle or a dump under "inputs:", or with -f']
          : [`a test has no ${field}`, `write ${field}: it needs from, to and expect`],
      rivals: ['node and nodes mean the same', 'keep one of them'],
      /** In the words of whatever reads the field. */
      refused: ({ field, reason, help }: Texts<'field' | 'reason'> & { readonly help?: string | undefined }) => [
        `${field}: ${reason}`,
        help,
      ],
      'not-tests': ({ fields }: Lists<'fields'>) => [
        `no file of kpc test: it has no tests, but ${nameSome(fields.map((field) => escapeText(field)))}`,
        'write them as a list under "tests:", each with from, to and expect; name manifests with -f',
      ],
    }),
  ),
  'bad-kpc-yaml': row(
    'error',
    wordsBy('problem', {
      'link-outside': [
        'a link to something outside the repository',
        'name that file with --kpc-yaml, or leave it out with --kpc-yaml none',
      ],
      'several-documents': ['kpc.yaml holds several documents', 'keep one of them'],
      // Of the file, or of a command's section in it.
      'no-mapping': ({ of, found }: Texts<'of'> & { readonly found: Found }) => [
        `${of} cannot be ${describeFound(found)}`,
        'write flags and their values, such as node: worker-1',
      ],
      'unknown-flag': ({ name, command, meant }: UnknownFlag) => [
        `${command === undefined ? 'kpc' : `kpc ${command}`} has no flag --${escapeText(name)}`,
        meant === undefined ? undefined : `did you mean ${meant}?`,
      ],
      value: (details: Flag & { readonly found: Found; readonly expected: keyof typeof expectedValues }) => [
        `${details.flag} cannot be ${describeFound(details.found)}`,
        expectedValues[details.expected],
      ],
      // An entry of a list, as "ignore[0]".
      lacks: ({ entry, field }: Texts<'entry' | 'field'>) => [`${entry} has no ${field}`, expectedValues.ignores],
      'unknown-field': ({ entry, name, meant }: Texts<'entry' | 'name'> & { readonly meant?: string | undefined }) => [
        `${entry} has no field ${quote(name)}`,
        meant === undefined ? expectedValues.ignores : `did you mean ${meant}?`,
      ],
      'unknown-code': ({ code, meant }: Texts<'code'> & { readonly meant?: string | undefined }) => [
        `no message has the code ${escapeText(code)}`,
        meant === undefined ? 'list the codes with "kpc explain"' : `did you mean ${meant}?`,
      ],
      rivals: ({ flag, other }: Flag & Texts<'other'>) => [`${flag} cannot be used with ${other}`, 'keep one of them'],
      'replaces-outside': ({ flag }: Flag) => [
        `${flag} is outside the folder of kpc.yaml, and its contents would be replaced`,
        'name that folder on the command line',
      ],
      'replaces-git': ({ flag }: Flag) => [
        `${flag} leads into .git, which belongs to git`,
        'name a folder outside of .git',
      ],
      'reads-outside': ({ flag }: Flag) => [
        `${flag} leads out of the repository of kpc.yaml`,
        'name that file or folder on the command line',
      ],
      /** In the words of the flag's parser. */
      refused: ({ flag, reason }: Flag & Texts<'reason'>) => `${flag}: ${reason}`,
    }),
  ),
  'not-shown': row(
    { among: ['error', 'warning', 'note'], weigh: ({ severity }: NotShown) => severity },
    ({ severity, count, of }: NotShown) =>
      `and ${formatCount(count)} more ${count === 1 ? severity : `${severity}s`}${of === undefined ? '' : ` [${of}] in this file`}, not shown`,
  ),
  'bad-packet': row(
    'error',
    wordsBy('problem', {
      'other-family': ({ from }: Texts<'from'>) => [
        `${from} cannot reach an address of the other family`,
        'name a sender and a destination of one family',
      ],
      'no-address': ({ text }: Texts<'text'>) => [
        `${text} is not an address`,
        'each part of an IPv4 address is a number from 0 to 255',
      ],
      'port-range': ({ to }: Texts<'to'>) => [`${to} has no valid port`, 'write a port from 1 to 65535'],
      'no-sender': ({
        name,
        near,
        from,
        kinds,
      }: Unknown & { readonly from: string; readonly kinds: readonly string[] }) => [
        `no Pod ${name} in the input, and ${from} is not ${kinds.join(', ')}`,
        suggest(near, 'name an address, or one of these words'),
      ],
      unread: ({ what, kinds }: Texts<'what'> & Lists<'kinds'>) => [
        `${what} cannot be looked up: kpc could not read ${joinWords(kinds)} of this cluster`,
        'ask for the right to list these in all namespaces, or ask about addresses and Services',
      ],
      'no-endpoint': ({ name, near }: Unknown) => [
        `${name} is neither address:port nor a Pod of the input`,
        suggest(near, 'write address:port'),
      ],
      'no-address-of-pod': ({ pod, family }: Texts<'pod'> & { readonly family: 'ipv4' | 'ipv6' }) => [
        `Pod ${pod} has no ${family === 'ipv4' ? 'IPv4' : 'IPv6'} address`,
        'name a destination of its own family',
      ],
      'no-node-named': ({ nodes }: Numbers<'nodes'>) => [
        `the input has ${nodes} Nodes, and none is named`,
        'name one with --node, or take each with --all-nodes',
      ],
      'no-address-for': ({ sender }: Texts<'sender'>) => [
        `the input names no network with an address for ${sender}`,
        'name the Pod, or write its address, such as 10.244.1.5',
      ],
      'which-port': ({ to, ports, example }: Texts<'to'> & Lists<'ports'> & { readonly example?: string }) => [
        `which port of ${to}?${ports.length > 0 ? ` It has ${ports.join(', ')}` : ''}`,
        example === undefined ? 'name one of them' : `write ${example}, for example`,
      ],
      'no-such-port': ({ to }: Texts<'to'>) => [
        `${to} has no such port or family here`,
        'see its ports with "kpc describe"',
      ],
      several: ({ kind, name, names }: Texts<'kind' | 'name'> & Lists<'names'>) => [
        `several objects of kind ${kind} are named ${name}: ${names.join(', ')}`,
        'name one of them',
      ],
      skipped: ({ service, why }: Texts<'service'> & { readonly why: keyof typeof skipped }): Words => {
        const [reason, help] = skipped[why];
        return [`${service} ${reason}`, help];
      },
      'no-such': ({ kind, name, near, files }: Unknown & { readonly kind: string; readonly files?: string }) => [
        `no ${kind} ${name} here`,
        suggest(
          near,
          kind !== 'Service'
            ? 'name one of the input'
            : files === undefined
              ? 'list the Services with "kpc describe" and the same input'
              : `list the Services with "kpc describe ${files}"`,
        ),
      ],
      'no-port': ({ service, port, ports }: Texts<'service' | 'port'> & Lists<'ports'>) => [
        `${service} has no port ${port} (has ${ports.join(', ')})`,
        `name ${joinWords(ports, 'or')}`,
      ],
      'no-ingress-of-host': ({ request }: Texts<'request'>) => [
        `no Ingress or Gateway of the input takes ${request}`,
        'name a host and path of one, or ingress/NAME or gateway/NAME, or svc/NAME for a Service',
      ],
    }),
  ),
} satisfies DiagnosticTable;
