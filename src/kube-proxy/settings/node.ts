import { text } from '../../diagnostics/json-schema.ts';
import { isName } from '../../base/object-names.ts';
import { text as storedText } from '../../base/json-shape.ts';
import { parseAddress } from '../../kernel/address.ts';
import { field } from './field.ts';
import { textFlag } from './flag.ts';
import { givenFilled, refuse, setting } from './setting.ts';

const hostnameFlag = textFlag('--hostname-override <name>', 'the name that kube-proxy uses for the node', { rank: 3 });
const hostnameField = field('hostnameOverride', text);

/** '' where it is not set. Trimmed and in lower case, as kube-proxy reads it (GetHostname of component-helpers). */
export const hostnameOverride = setting({
  flags: [hostnameFlag],
  fields: [hostnameField],
  defaultIn: () => '',
  read: (source) => {
    const written = givenFilled(source, hostnameFlag, hostnameField);
    if (!written) return undefined;
    const name = written.value.trim().toLowerCase();
    if (!isName(name, 'subdomain')) {
      refuse(source, written, 'bad-name', { field: written.name, value: written.value, rule: 'subdomain' });
    }
    return name;
  },
  stored: storedText,
  must: { text: "be a node's name", isMet: (name) => name === '' || isName(name, 'subdomain') },
});

const bindFlag = textFlag('--bind-address <ip>', "the node's own address, instead of the Node object's", { rank: 1 });
const bindField = field('bindAddress', text);

/** '' where it is not set. The unspecified addresses (0.0.0.0, ::) count as not set. */
export const bindAddress = setting({
  flags: [bindFlag],
  fields: [bindField],
  defaultIn: () => '',
  read: (source) => {
    const written = givenFilled(source, bindFlag, bindField);
    if (!written) return undefined;
    const address = parseAddress(written.value);
    if (!address) {
      refuse(source, written, 'bad-address', { field: written.name, value: written.value, expected: 'an IP address' });
    }
    return address && address.text !== '0.0.0.0' && address.text !== '::' ? address.text : '';
  },
  stored: storedText,
  must: { text: 'be an IP address', isMet: (address) => address === '' || parseAddress(address) !== undefined },
});
