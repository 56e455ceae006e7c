const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

export type NameRule = 'label' | 'subdomain';

/** Applies the API server's rule for a DNS label (63 characters) or a DNS subdomain (253 characters). */
export function isName(text: string, rule: NameRule): boolean {
  return rule === 'label' ? label.test(text) : text.length <= 253 && subdomain.test(text);
}

/** Applies the API server's rule for values of labels. */
export function isLabelValue(text: string): boolean {
  return labelValue.test(text);
}

/** Bytes. */
const longestInterface = 15;

/** Whether the text names a network interface to the kernel, and nothing else to a rule file. */
export function isInterfaceName(text: string): boolean {
  return hasInterfaceShape(text, longestInterface);
}

/** Whether a rule can match interfaces by this prefix: the wildcard after it counts as a byte of the name. */
export function isInterfacePrefix(text: string): boolean {
  return hasInterfaceShape(text, longestInterface - 1);
}

/** The kernel counts bytes. To nft a `*` at the end is a wildcard. */
function hasInterfaceShape(text: string, most: number): boolean {
  return /^[^\s/"'\\#*\p{Cc}]+$/u.test(text) && new TextEncoder().encode(text).length <= most;
}
