const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** What a name must look like: the API server's rules for it. */
export type NameRule = 'label' | 'subdomain';

/** Whether the API server takes the text as a DNS label (63 characters) or as a DNS subdomain (253 characters). */
export function isName(text: string, rule: NameRule): boolean {
  return rule === 'label' ? label.test(text) : text.length <= 253 && subdomain.test(text);
}

/** Whether the API server takes the text as the value of a label. */
export function isLabelValue(text: string): boolean {
  return labelValue.test(text);
}

/** How many bytes the name of a network interface has at most. */
const longestInterface = 15;

/** Whether the kernel takes the text as the name of a network interface, and a rule file takes it as that one alone. */
export function isInterfaceName(text: string): boolean {
  return hasInterfaceShape(text, longestInterface);
}

/** Whether a rule can match interfaces by the text: the wildcard behind it counts as a byte of the name. */
export function isInterfacePrefix(text: string): boolean {
  return hasInterfaceShape(text, longestInterface - 1);
}

/** The kernel counts bytes. To nft a `*` at the end is a wildcard. */
function hasInterfaceShape(text: string, most: number): boolean {
  return /^[^\s/"'\\#*\p{Cc}]+$/u.test(text) && new TextEncoder().encode(text).length <= most;
}
