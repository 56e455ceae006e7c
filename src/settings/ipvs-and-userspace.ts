import { parseDuration } from '../base/duration.ts';
import { duration, expectedDuration, text, texts } from '../base/json/kubernetes-schema.ts';
import { joinWords } from '../base/printable.ts';
import { listOf, textThat, amount, objectOf, optional, wholeNumber } from '../base/json/schema.ts';
import { parseNetwork } from '../kernel/address.ts';
import { mostIpvsSeconds, schedulers } from '../kernel/ipvs/ipvs.ts';
import { programs } from '../kube-proxy/modes.ts';
import { readSecondsSetting, secondsSetting, switchSetting } from './kinds.ts';
import {
  ignoredUnlessIn,
  itemsOf,
  plainSetting,
  proxyField,
  proxyFlag,
  refuseValue,
  type Given,
  type SettingSource,
} from './setting.ts';
import { parsePort, type PortRange } from '../kernel/ports-and-marks.ts';

/** Settings of IPVS mode. A timeout of 0 leaves the kernel's timeout unchanged. */
export const ipvs = {
  scheduler: plainSetting({
    flag: proxyFlag('text', '--ipvs-scheduler <name>', joinWords(schedulers, 'or')),
    field: proxyField('ipvs.scheduler', text),
    defaultIn: () => 'rr',
    read: (written, source) => {
      const { value } = written;
      if (value === '' || schedulers.includes(value)) return value || undefined;
      const ignoredIn = ignoredUnlessIn('ipvs', source);
      return refuseValue(source, written, `one of ${schedulers.join(', ')}`, { ignoredIn });
    },
    stored: textThat(`one of ${schedulers.join(', ')}`, 'isScheduler'),
  }),
  strictARP: switchSetting(
    '--ipvs-strict-arp [bool]',
    'do not answer ARP for addresses on kube-ipvs0',
    'ipvs.strictARP',
    false,
    'ipvs',
  ),
  excludeCIDRs: plainSetting({
    flag: proxyFlag('list', '--ipvs-exclude-cidrs <cidrs>', 'never remove virtual servers in these CIDRs', {
      isOfNode: true,
    }),
    field: proxyField('ipvs.excludeCIDRs', texts),
    defaultIn: (): readonly string[] => [],
    read: (written, source) =>
      itemsOf(written).flatMap((item) => {
        if (parseNetwork(item.value)) return [item.value];
        refuseValue(source, item, { form: 'network' }, { ignoredIn: ignoredUnlessIn('ipvs', source) });
        return [];
      }),
    stored: listOf(textThat('a CIDR', 'isNetwork')),
    unseenIn: 'ipvs',
  }),
  tcpTimeout: ipvsTimeoutSetting('tcp', 'tcpTimeout', 'timeout of idle TCP connections, such as 15m'),
  tcpFinTimeout: ipvsTimeoutSetting('tcpfin', 'tcpFinTimeout', 'timeout of TCP connections after FIN'),
  udpTimeout: ipvsTimeoutSetting('udp', 'udpTimeout', 'timeout of UDP packets'),
};

function ipvsTimeoutSetting<const F extends string>(flag: F, name: string, help: string) {
  const must = {
    text: `be ${mostIpvsSeconds} seconds at most`,
    isMet: (seconds: number) => seconds <= mostIpvsSeconds,
  };
  return secondsSetting(
    `--ipvs-${flag}-timeout <duration>`,
    help,
    `ipvs.${name}`,
    duration,
    { usual: 0, must, unseenIn: 'ipvs' },
    readTimeout,
  );
}

/** Reads a timeout in seconds. Rounds it down, because the kernel accepts only whole seconds. */
function readTimeout(written: Given<string>, source: SettingSource): number | undefined {
  const seconds = parseDuration(written.value);
  if (seconds === undefined || (seconds < 0 && programs(source.mode, 'ipvsTimeouts'))) {
    return readSecondsSetting(written, source);
  }
  const whole = Math.floor(seconds);
  if (whole >= 0 && whole <= mostIpvsSeconds) return whole;
  const expected = `${expectedDuration} to ${mostIpvsSeconds / 3600}h`;
  return refuseValue(source, written, expected, { ignoredIn: ignoredUnlessIn('ipvs', source) });
}

/** The range of proxy ports for kube-proxy in userspace mode. By default, kube-proxy uses any free port. */
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

/** The idle timeout in seconds. Undefined for kube-proxy's default. */
export const udpIdleTimeout = plainSetting<number | undefined, 'udpTimeout', 'text', string | null>({
  flag: proxyFlag('text', '--udp-timeout <duration>', 'in userspace mode, how long an idle UDP client is remembered'),
  field: proxyField('udpIdleTimeout', duration),
  defaultIn: () => undefined,
  read: (written, source) => {
    const seconds = readSecondsSetting(written, source);
    return seconds === undefined || isIdleTimeout(seconds) ? seconds : refuseValue(source, written, expectedIdle);
  },
  stored: optional(amount),
  unseenIn: 'userspace',
  must: { text: `be ${expectedIdle}`, isMet: (seconds) => seconds === undefined || isIdleTimeout(seconds) },
});

function isIdleTimeout(seconds: number): boolean {
  return seconds >= 0.001 && seconds <= 86_400;
}
