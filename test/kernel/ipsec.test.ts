import { expect, test } from 'vitest';
import { parseAddress, type Address } from '../../src/kernel/address.ts';
import { actionOfPolicies, parseIpsecPolicies, type IpsecQuestion } from '../../src/kernel/route/ipsec.ts';

const listing = `src 0.0.0.0/0 dst 0.0.0.0/0 \n\tsocket in priority 0 ptype main 
src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out priority 100 ptype main \n\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 1 mode tunnel
src 10.0.0.0/8 dst 10.9.1.0/24 proto tcp dport 80 dev eth0 \n\tdir out action block priority 5 ptype main \n\tmark 0x10/0xff 
src 10.0.0.0/8 dst 10.8.0.0/16 \n\tdir fwd priority 0 ptype main \n\ttmpl src :: dst ::\n\t\tproto comp reqid 0 mode transport\n\t\tlevel use 
src 10.0.0.0/8 dst 10.7.0.0/16 \n\tdir out action block priority 0 ptype main \n\tif_id 0x7
src 10.0.0.0/8 dst 10.9.2.0/24 \n\tdir out priority 1 ptype main 
`;
const { policies, unread } = parseIpsecPolicies(listing);
const asked: IpsecQuestion = {
  direction: 'out',
  from: parseAddress('10.1.1.1') as Address,
  to: parseAddress('10.9.1.1') as Address,
  protocol: 'tcp',
  port: 80,
  sourcePort: undefined,
  mark: 0x10,
  link: 'eth0',
};

test('leaves out policies of sockets and of interfaces of IPsec', () => {
  expect([policies.length, unread]).toEqual([4, []]);
});

test.each<readonly [string, Partial<IpsecQuestion>, string]>([
  ['the lowest priority', {}, 'block'],
  ['another mark', { mark: 0 }, 'protect'],
  ['another port', { port: 81 }, 'protect'],
  ['a port that the client chose', { port: undefined }, 'protect'],
  ['another link', { link: 'eth1' }, 'protect'],
  ['another protocol', { protocol: 'udp' }, 'protect'],
  ['a policy without templates', { to: parseAddress('10.9.2.1') }, 'allow'],
  ['a template that is an option', { to: parseAddress('10.8.0.1'), direction: 'fwd' }, 'allow'],
  ['no policy', { to: parseAddress('10.7.0.1') }, 'allow'],
  ['another direction', { direction: 'in' }, 'allow'],
  ['an unknown host', { to: undefined }, 'protect'],
])('%s', (_, change, action) => {
  expect(actionOfPolicies(policies, { ...asked, ...change })).toBe(action);
});
