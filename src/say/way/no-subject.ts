// Why nothing is found for the subject of a question.
import type { AddressOwner, NoService, NoSubject, SubjectHint } from '../../base/findings/command-line.ts';
import { nameSome } from '../../base/printable.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { dormantWords } from './lack.ts';
import { listenerWords } from './listeners.ts';

export function noSubjectWords(nothing: NoSubject): string {
  switch (nothing.kind) {
    case 'deaf-address': {
      const { socket, port, owner, listeners } = nothing;
      const where = `${listenerWords(listeners)}${listeners.kind === 'listed' ? ' only' : ''}`;
      return `no Service answers at ${socket}: node port ${port}${owner === undefined ? '' : ` of ${owner}`} listens on ${where}`;
    }
    case 'other-ports':
      return nameSome(nothing.owners.map((owner) => `${nothing.address} ${ownerWords(owner, nothing.port)}`));
    case 'proxied-address':
      return `${nothing.address} is a load balancer address of ${nothing.service} with ipMode Proxy: kube-proxy programs nothing for it, so that packets pass the load balancer`;
    case 'other-node': {
      const { address, node, here, answers } = nothing;
      const what = answers?.kind === 'node-port' ? 'node port' : 'health check node port';
      const there = answers ? `; ${what} ${answers.port} of ${answers.label} answers there` : '';
      return `${address} is an address of node ${node}${here === '' ? '' : `, not of ${here}`}${there}: ask with --node ${node}`;
    }
    case 'idle-pods':
      return nameSome(
        nothing.pods.map(({ name, address }) =>
          address === undefined
            ? `Pod ${name} has no address yet`
            : `Pod ${name} (${address}) is an endpoint of no Service`,
        ),
      );
    case 'no-match':
      return nothing.of === 'dump'
        ? `the dump shows no Service, chain or set that matches ${JSON.stringify(nothing.text)}`
        : `no Service, address, port, chain or set matches ${JSON.stringify(nothing.text)}${subjectHintWords(nothing.hint)}`;
  }
}

function ownerWords({ role, service, ports }: AddressOwner, port: string): string {
  const lacks = `has no port ${port}`;
  const clause =
    service === undefined
      ? lacks
      : role === 'owner'
        ? `belongs to ${service}, which ${lacks}`
        : `is an endpoint of ${service}, which ${lacks} there`;
  return ports.length === 0 ? clause : `${clause} (has ${ports.join(', ')})`;
}

function subjectHintWords(hint: SubjectHint | undefined): string {
  switch (hint?.kind) {
    case 'other-mode':
      return `; ${modeFacts[hint.mode].title} has no chain of that kind, so this may be one that --proxy-mode ${hint.maker} makes`;
    case 'near':
      return `; did you mean ${hint.names.join(' or ')}?`;
    case undefined:
      return '';
  }
}

/** A sentence: a dump shows no Service. */
export function noServiceWords(why: NoService | undefined): string {
  return `the dump shows no Service${why ? `: ${whyNoService(why)}` : ''}`;
}

function whyNoService(why: NoService): string {
  switch (why.kind) {
    case 'dormant-table':
      return dormantWords(why.table);
    case 'iptables-as-nft':
      return 'nft lists its rules of iptables mode, but only the output of iptables-save names their Services';
    case 'unread':
      return 'not all of it could be read';
    case 'lacks-chains':
      return "its rules jump to kube-proxy's chains, but it lacks those";
    case 'no-kube-proxy':
      return 'it holds no chains, sets or virtual servers of a kube-proxy';
  }
}
