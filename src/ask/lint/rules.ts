import { type FindingCode, isLintCode, type LintCode } from '../../base/findings/codes.ts';
import type { LintRule } from './rule.ts';
import { addressConflict } from './rules/addresses/address-conflict.ts';
import { clusterIPEndpoint } from './rules/addresses/cluster-ip-endpoint.ts';
import { externalIPs } from './rules/addresses/external-ips.ts';
import { familyWithoutEndpoints } from './rules/endpoints/family-without-endpoints.ts';
import { fullSet } from './rules/settings/full-set.ts';
import { headlessAddresses } from './rules/addresses/headless-addresses.ts';
import { headlessPort } from './rules/endpoints/headless-port.ts';
import { hostPort } from './rules/access/host-port.ts';
import { idleAffinity } from './rules/settings/idle-affinity.ts';
import { idleHints } from './rules/endpoints/idle-hints.ts';
import { ignoredService } from './rules/references/ignored-service.ts';
import { ipvsEnds } from './rules/settings/ipvs-ends.ts';
import { laxARP } from './rules/settings/lax-arp.ts';
import { localWithoutEndpoint } from './rules/access/local-without-endpoint.ts';
import { longComment } from './rules/settings/long-comment.ts';
import { misspelledKey } from './rules/references/misspelled-key.ts';
import { noEndpointsGiven } from './rules/endpoints/no-endpoints-given.ts';
import { noReadyEndpoint } from './rules/endpoints/no-ready-endpoint.ts';
import { nodeAddress } from './rules/addresses/node-address.ts';
import { nodePortRange } from './rules/addresses/node-port-range.ts';
import { nodeShutOut } from './rules/access/node-shut-out.ts';
import { openNodePort } from './rules/access/open-node-port.ts';
import { policyPort } from './rules/access/policy-port.ts';
import { refusedClusterIP } from './rules/addresses/refused-cluster-ip.ts';
import { selectsNothing } from './rules/endpoints/selects-nothing.ts';
import { takenHealthCheckPort } from './rules/addresses/taken-health-check-port.ts';
import { unboundSourceRanges } from './rules/access/unbound-source-ranges.ts';
import { undeclaredPort } from './rules/endpoints/undeclared-port.ts';
import { undetectedPods } from './rules/access/undetected-pods.ts';
import { unknownPort } from './rules/endpoints/unknown-port.ts';
import { unknownService } from './rules/references/unknown-service.ts';
import { unnamedMode } from './rules/settings/unnamed-mode.ts';
import { unservedAddress } from './rules/addresses/unserved-address.ts';
import { unusedSlicePort } from './rules/endpoints/unused-slice-port.ts';

/** For findings from compiling that no packet shows. */
const told = {};

/** The order in which ignored findings are listed. */
const rules: { readonly [Code in LintCode]: LintRule<Code> } = {
  'local-without-endpoint': localWithoutEndpoint,
  'undetected-pods': undetectedPods,
  'no-ready-endpoint': noReadyEndpoint,
  'no-endpoints-given': noEndpointsGiven,
  'family-without-endpoints': familyWithoutEndpoints,
  'unused-slice-port': unusedSlicePort,
  'cluster-ip-endpoint': clusterIPEndpoint,
  'selects-nothing': selectsNothing,
  'external-ips': externalIPs,
  'unserved-address': unservedAddress,
  'headless-addresses': headlessAddresses,
  'headless-port': headlessPort,
  'undeclared-port': undeclaredPort,
  'open-node-port': openNodePort,
  'unbound-source-ranges': unboundSourceRanges,
  'node-shut-out': nodeShutOut,
  'node-port-range': nodePortRange,
  'refused-cluster-ip': refusedClusterIP,
  'taken-health-check-port': takenHealthCheckPort,
  'idle-hints': idleHints,
  'idle-affinity': idleAffinity,
  'unnamed-mode': unnamedMode,
  'ipvs-ends': ipvsEnds,
  'lax-arp': laxARP,
  'full-set': fullSet,
  'host-port': hostPort,
  'policy-port': policyPort,
  'unknown-service': unknownService,
  'ignored-service': ignoredService,
  'misspelled-key': misspelledKey,
  'address-conflict': addressConflict,
  'long-comment': longComment,
  'node-address': nodeAddress,
  'unknown-port': unknownPort,
  'covered-addresses': told,
  'unloadable-range': told,
  'idle-ignore': told,
};

export const ruleCodes = Object.keys(rules) as readonly LintCode[];

export function lintRuleOf(code: FindingCode): LintRule<FindingCode> | undefined {
  return isLintCode(code) ? rules[code] : undefined;
}
