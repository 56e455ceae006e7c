import type { LineFault } from '../../kernel/lines.ts';

const words: Readonly<Record<Exclude<LineFault, 'other-line'>, string>> = {
  'control-character': 'a control character in the line',
  duplicate: 'what it names is listed above already',
  fragments: 'a rule for fragments',
  'long-line': 'too long a line',
  'mark-server': 'a firewall-mark virtual server, which kube-proxy does not make',
  'named-address': 'an address by name (print it with -n)',
  'no-head':
    'the table, chain, set, link or virtual server that it belongs to is missing above it: print all of the output',
  'no-json': 'not the JSON that ip -j prints',
  'no-name': 'a link without a name',
  'no-prefix': 'not an IP address with its prefix length',
  'no-scheduler': 'a virtual server without a scheduler',
  'not-numeric': 'an address or port that is not numeric (save with ipvsadm -Sn)',
  'open-brace': 'a brace is not closed',
  'open-quote': 'a quote that is not closed',
  'other-hook': 'a hook or priority that kpc does not know',
  'other-object': 'neither a chain, a set, a map nor a counter',
  'other-part': 'not a part of a table',
  'other-policy': 'not a policy that a chain can have',
  'other-property': 'a property that kpc does not know',
  'other-table': 'not a table that iptables has',
  'own-policy': 'a policy, but not one of the chains of the kernel',
  'past-end': 'inserted beyond the end of its chain',
  'scheduler-flags': 'scheduler flags that kpc does not know',
  'short-server': 'a real server without its way of forwarding or its weight',
  'too-long': 'too long',
  wrapped: 'the lines are wrapped or edited, and no rule of them is read',
};

/** `of`: the kind of output. */
export function lineFaultWords(reason: LineFault, of: string): string {
  return reason === 'other-line'
    ? `not a line of ${of === 'rules' ? 'iptables rules' : of}, or not all of one`
    : words[reason];
}
