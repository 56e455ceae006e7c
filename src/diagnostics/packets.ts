import { joinWords } from '../base/join-words.ts';
import { web } from './examples.ts';
import { wordsBy, type DiagnosticTable, type Words } from './diagnostic-rows.ts';

/** A name that nothing has, and the names that are spelled like it. */
interface Unknown {
  readonly name: string;
  readonly near: readonly string[];
}

function meant(near: readonly string[], otherwise: string): string {
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
} as const;

const nameOneEnd = 'name the Pod, or its address';

/** What is wrong with a packet that kpc trace or kpc test is asked for. */
export const packetDiagnostics = {
  'bad-packet': {
    severity: 'error',
    meaning: 'kpc trace or kpc test is asked about a packet whose sender or destination kpc cannot find',
    example: () => ({
      words: ['trace', 'in.yaml', '--from', 'pod', '--to', '10.96.0.10:99999'],
      files: { 'in.yaml': web },
    }),
    words: wordsBy('problem', {
      'other-family': ({ from }: { readonly from: string }) => [
        `${from} cannot reach an address of the other family`,
        'name a sender and a destination of one family',
      ],
      'no-address': ({ text }: { readonly text: string }) => [
        `${text} is not an address`,
        'each part of an IPv4 address is a number from 0 to 255',
      ],
      'port-range': ({ to }: { readonly to: string }) => [`${to} has no valid port`, 'write a port from 1 to 65535'],
      'no-sender': ({
        name,
        near,
        from,
        kinds,
      }: Unknown & { readonly from: string; readonly kinds: readonly string[] }) => [
        `no Pod ${name} in the input, and ${from} is not ${kinds.join(', ')}`,
        meant(near, 'name an address, or one of these words'),
      ],
      'no-endpoint': ({ name, near }: Unknown) => [
        `${name} is neither address:port nor a Pod of the input`,
        meant(near, 'write address:port'),
      ],
      'no-address-of-pod': ({ pod, family }: { readonly pod: string; readonly family: 'ipv4' | 'ipv6' }) => [
        `Pod ${pod} has no ${family === 'ipv4' ? 'IPv4' : 'IPv6'} address`,
        'name a destination of its own family',
      ],
      'no-node-named': ({ nodes }: { readonly nodes: number }) => [
        `the input has ${nodes} Nodes, and none is named`,
        'name one with --node, or take each with --all-nodes',
      ],
      'no-pods-here': ['no network of Pods on this node is known', nameOneEnd],
      'no-pods-elsewhere': ['no network of Pods on other nodes is known', nameOneEnd],
      'no-free-address': ['no address outside the cluster is free', 'name the address of the sender'],
      'which-port': ({
        to,
        ports,
        example,
      }: {
        readonly to: string;
        readonly ports: readonly string[];
        readonly example?: string;
      }) => [
        `which port of ${to}?${ports.length > 0 ? ` It has ${ports.join(', ')}` : ''}`,
        example === undefined ? 'name one of them' : `write ${example}, for example`,
      ],
      'no-such-port': ({ to }: { readonly to: string }) => [
        `${to} has no such port or family here`,
        'see its ports with "kpc describe"',
      ],
      'several-services': ({ name, names }: { readonly name: string; readonly names: readonly string[] }) => [
        `several Services are called ${name}: ${names.join(', ')}`,
        'name one of them',
      ],
      skipped: ({ service, why }: { readonly service: string; readonly why: keyof typeof skipped }): Words => {
        const [is, help] = skipped[why];
        return [`${service} ${is}`, help];
      },
      'no-service': ({ name, near }: Unknown) => [
        `no Service ${name} here`,
        meant(near, 'list the Services with "kpc describe"'),
      ],
      'no-port': ({
        service,
        port,
        ports,
      }: {
        readonly service: string;
        readonly port: string;
        readonly ports: readonly string[];
      }) => [`${service} has no port ${port} (has ${ports.join(', ')})`, `name ${joinWords(ports, 'or')}`],
      'no-ingress-of-host': ({ request }: { readonly request: string }) => [
        `no Ingress of the input has ${request}`,
        'name a host and path of one, or ingress/NAME',
      ],
      'no-ingress': ({ name, near }: Unknown) => [
        `no Ingress ${name} in the input`,
        meant(near, 'name one of those that the input has'),
      ],
      'several-ingresses': ({ name, names }: { readonly name: string; readonly names: readonly string[] }) => [
        `several Ingresses are called ${name}: ${names.join(', ')}`,
        'name one of them',
      ],
    }),
  },
} satisfies DiagnosticTable;
