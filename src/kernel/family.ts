/** An IP family. kube-proxy runs a proxier for each family; kpc keeps both families in one state. */
export type Family = 'ipv4' | 'ipv6';

export const families: readonly Family[] = ['ipv4', 'ipv6'];

export const familyNames = { ipv4: 'IPv4', ipv6: 'IPv6' } as const satisfies Record<Family, string>;

export type Protocol = 'TCP' | 'UDP' | 'SCTP';

export const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];
