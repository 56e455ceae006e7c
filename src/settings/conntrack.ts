import { duration, optionalDuration } from '../base/json/kubernetes-schema.ts';
import { amountSetting, secondsSetting, switchSetting } from './kinds.ts';
import type { Requirement } from './setting.ts';

/** The longest timeout in seconds that a kernel with 100 ticks a second can hold. A kernel with more ticks holds only shorter ones. */
const mostSeconds = 21_474_836;

/** The lowest limit per core that kpc-apply accepts. With a lower limit, a node would refuse too many connections. */
const leastPerCore = 1024;

/**
 * The highest limit per core that kpc-apply accepts. Since 1.36, this is kube-proxy's limit for a whole node. Older kube-proxies have no
 * such limit.
 */
const mostPerCore = 1_048_576;

/** The highest limit for a node. At sixteen million connections, the table's buckets alone take 32 MB. */
const mostConnections = 1 << 24;

const must: Requirement<number> = {
  text: `be 0, or from 1 to ${mostSeconds} seconds`,
  isMet: (seconds) => seconds <= mostSeconds && !(seconds > 0 && seconds < 1),
};

/** Settings for connection tracking. kpc-apply sets these on the node; for a dump, it sets none. 0 leaves the kernel's value unchanged. */
export const conntrack = {
  maxPerCore: amountSetting(
    '--conntrack-max-per-core <number>',
    'connections to track for each CPU core; 0 leaves the limit as it is',
    'conntrack.maxPerCore',
    {
      usual: 32 * 1024,
      must: {
        text: `be 0, or from ${leastPerCore} to ${mostPerCore}: connections beyond this limit are dropped`,
        isMet: (connections) => connections === 0 || (connections >= leastPerCore && connections <= mostPerCore),
      },
    },
  ),
  min: amountSetting('--conntrack-min <number>', 'the least number of connections to track', 'conntrack.min', {
    usual: 128 * 1024,
    must: { text: `be ${mostConnections} at most`, isMet: (connections) => connections <= mostConnections },
  }),
  tcpEstablishedTimeout: conntrackTimeoutSetting(
    'tcp-timeout-established',
    'tcpEstablishedTimeout',
    'timeout of idle TCP connections in conntrack',
    24 * 3600,
  ),
  tcpCloseWaitTimeout: conntrackTimeoutSetting(
    'tcp-timeout-close-wait',
    'tcpCloseWaitTimeout',
    'timeout of TCP connections in state CLOSE_WAIT',
    3600,
  ),
  tcpBeLiberal: switchSetting(
    '--conntrack-tcp-be-liberal [bool]',
    'also track TCP packets that are out of window',
    'conntrack.tcpBeLiberal',
    false,
    'any',
  ),
  udpTimeout: conntrackTimeoutSetting('udp-timeout', 'udpTimeout', 'timeout of UDP connections without a reply'),
  udpStreamTimeout: conntrackTimeoutSetting(
    'udp-timeout-stream',
    'udpStreamTimeout',
    'timeout of UDP connections with replies',
  ),
};

/** Makes the setting for a timeout. A timeout without a default leaves the kernel's value unchanged, and its field must not be null. */
function conntrackTimeoutSetting<const F extends string>(flag: F, name: string, help: string, usual = 0) {
  const schema = usual === 0 ? duration : optionalDuration;
  const row = { usual, must };
  return secondsSetting(`--conntrack-${flag} <duration>`, help, `conntrack.${name}`, schema, row);
}
