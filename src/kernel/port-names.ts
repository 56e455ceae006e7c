import { parsePort, parseSocketAddress, type SocketAddress } from './socket-address.ts';

/** Port names in every /etc/services, of those that Services use. */
const ports: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ftp: 21,
    ssh: 22,
    telnet: 23,
    smtp: 25,
    domain: 53,
    tftp: 69,
    http: 80,
    kerberos: 88,
    pop3: 110,
    sunrpc: 111,
    ntp: 123,
    imap2: 143,
    snmp: 161,
    bgp: 179,
    ldap: 389,
    https: 443,
    submission: 587,
    ldaps: 636,
    'domain-s': 853,
    imaps: 993,
    pop3s: 995,
    'ms-sql-s': 1433,
    mqtt: 1883,
    nfs: 2049,
    mysql: 3306,
    sip: 5060,
    amqp: 5672,
    postgresql: 5432,
    redis: 6379,
    'http-alt': 8080,
    'secure-mqtt': 8883,
  }),
);

/** The port printed as a number or name; undefined for an unknown name. */
export function portNumber(text: string): number | undefined {
  return parsePort(text) ?? ports.get(text);
}

/** Reads "10.0.0.1:80" or "10.0.0.1:http"; undefined for a host name or an unknown port name. */
export function parseNamedSocket(text: string): SocketAddress | undefined {
  const colon = text.lastIndexOf(':');
  const port = ports.get(text.slice(colon + 1));
  return parseSocketAddress(port === undefined ? text : `${text.slice(0, colon + 1)}${port}`);
}
