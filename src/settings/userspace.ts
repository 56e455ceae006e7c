import { duration, text } from '../base/json/kubernetes-schema.ts';
import { amount, objectOf, optional, wholeNumber } from '../base/json/schema.ts';
import { parsePort, type PortRange } from '../kernel/ports-and-marks.ts';
import { readSeconds } from './kinds.ts';
import { plainSetting, proxyField, proxyFlag, refuseValue } from './setting.ts';

/** The ports that a kube-proxy in userspace mode may listen on. It takes any that is free if nothing names some. */
export const portRange = plainSetting<PortRange | undefined, 'proxyPortRange', 'text', string | null>({
  flag: proxyFlag('text', '--proxy-port-range <ports>', 'ports for connections to Services, in userspace mode'),
  field: proxyField('portRange', text),
  skipsEmpty: true,
  defaultIn: () => undefined,
  read: (written, source) => {
    if (/^\s*0(?:-0)?\s*$/.test(written.value)) return undefined;
    return parseRange(written.value) ?? refuseValue(source, written, 'ports such as 61000-62000, from 1 to 65535');
  },
  stored: optional(objectOf({ first: wholeNumber(1, 65535), last: wholeNumber(1, 65535) })),
  must: { text: 'begin with its lowest port', isMet: (range) => !range || range.first <= range.last },
});

/** Reads "300-2000", "300+1700" or "300", as ParsePortRange of apimachinery does. */
function parseRange(written: string): PortRange | undefined {
  const [, from = '', sign, to = from] = /^\s*(\d{1,5})(?:([-+])(\d{1,5}))?\s*$/.exec(written) ?? [];
  const [first, end] = [parsePort(from), parsePort(to)];
  if (!first || end === undefined) return undefined;
  const last = sign === '+' ? first + end : end;
  return first <= last && last <= 65535 ? { first, last } : undefined;
}

const expectedIdle = 'a time from 1ms to 24h';

/** Seconds; undefined for kube-proxy's default. */
export const udpIdleTimeout = plainSetting<number | undefined, 'udpTimeout', 'text', string | null>({
  flag: proxyFlag(
    'text',
    '--udp-timeout <duration>',
    'time after which a UDP client that sent nothing is new, in userspace mode',
  ),
  field: proxyField('udpIdleTimeout', duration),
  defaultIn: () => undefined,
  read: (written, source) => {
    const seconds = readSeconds(written, source);
    return seconds === undefined || isIdle(seconds) ? seconds : refuseValue(source, written, expectedIdle);
  },
  stored: optional(amount),
  must: { text: `be ${expectedIdle}`, isMet: (seconds) => seconds === undefined || isIdle(seconds) },
});

function isIdle(seconds: number): boolean {
  return seconds >= 0.001 && seconds <= 86_400;
}
