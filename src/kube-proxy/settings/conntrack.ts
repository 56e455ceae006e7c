import { duration, optionalDuration } from '../../diagnostics/json-schema.ts';
import { amountSetting, secondsSetting, switchSetting } from './kinds.ts';
import { group, type Requirement } from './setting.ts';

/** The longest timeout of connection tracking that any kernel takes: it counts ticks, 100 in a second. */
const mostSeconds = 21_474_836;

/** Fewer connections per core than this make a node deaf rather than safe. */
const leastPerCore = 1024;

/** kube-proxy of Kubernetes 1.36 gives a whole node no more than this. Older ones multiply without a bound. */
const mostPerCore = 1_048_576;

/** Sixteen million connections: the table's buckets alone take 32 MB by then. */
const mostConnections = 1 << 24;

const must: Requirement<number> = {
  text: `be 0, or from 1 to ${mostSeconds} seconds`,
  isMet: (seconds) => seconds <= mostSeconds && !(seconds > 0 && seconds < 1),
};

/**
 * The connection tracking that kpc-apply sets on the node. A timeout of 0 leaves the kernel's own timeout as it is; 0
 * connections per core leave the limit as it is. A dump asks for nothing.
 */
export const conntrack = group({
  maxPerCore: amountSetting(
    '--conntrack-max-per-core <number>',
    'connections to track for each CPU core; 0 leaves the limit as it is',
    'conntrack.maxPerCore',
    {
      usual: 32 * 1024,
      must: {
        text: `be 0, or ${leastPerCore} at least, beyond which connections are dropped, and ${mostPerCore} at most`,
        isMet: (connections) => connections === 0 || (connections >= leastPerCore && connections <= mostPerCore),
      },
    },
  ),
  min: amountSetting('--conntrack-min <number>', 'the least number of connections to track', 'conntrack.min', {
    usual: 128 * 1024,
    must: { text: `be ${mostConnections} at most`, isMet: (connections) => connections <= mostConnections },
  }),
  tcpEstablishedTimeout: secondsSetting(
    '--conntrack-tcp-timeout-established <duration>',
    'timeout of idle TCP connections in conntrack',
    'conntrack.tcpEstablishedTimeout',
    optionalDuration,
    { usual: 24 * 3600, must },
  ),
  tcpCloseWaitTimeout: secondsSetting(
    '--conntrack-tcp-timeout-close-wait <duration>',
    'timeout of TCP connections in state CLOSE_WAIT',
    'conntrack.tcpCloseWaitTimeout',
    optionalDuration,
    { usual: 3600, must },
  ),
  tcpBeLiberal: switchSetting(
    '--conntrack-tcp-be-liberal [bool]',
    'also track TCP packets that are out of window',
    'conntrack.tcpBeLiberal',
    false,
  ),
  udpTimeout: secondsSetting(
    '--conntrack-udp-timeout <duration>',
    'timeout of UDP connections without a reply',
    'conntrack.udpTimeout',
    duration,
    { usual: 0, must },
  ),
  udpStreamTimeout: secondsSetting(
    '--conntrack-udp-timeout-stream <duration>',
    'timeout of UDP connections with replies',
    'conntrack.udpStreamTimeout',
    duration,
    { usual: 0, must },
  ),
});
