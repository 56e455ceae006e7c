import { type FindingCode, isLintCode, type LintCode } from '../../base/findings/codes.ts';
import type { LintRule } from './rule.ts';
import {
  hostPort,
  localWithoutEndpoint,
  nodeShutOut,
  openNodePort,
  policyPort,
  unboundSourceRanges,
  undetectedPods,
} from './rules/access.ts';
import {
  addressConflict,
  clusterIPEndpoint,
  externalIPs,
  headlessAddresses,
  nodeAddress,
  nodePortRange,
  refusedClusterIP,
  takenHealthCheckPort,
  unservedAddress,
} from './rules/addresses.ts';
import {
  familyWithoutEndpoints,
  headlessPort,
  idleHints,
  noEndpointsGiven,
  noReadyEndpoint,
  selectsNothing,
  undeclaredPort,
  unknownPort,
  unusedSlicePort,
} from './rules/endpoints.ts';
import { ignoredService, misspelledKey, unknownService } from './rules/references.ts';
import { fullSet, idleAffinity, ipvsEnds, laxARP, longComment, unnamedMode } from './rules/settings.ts';

/** The rule for compiling's findings that no packet shows. */
const told = {};

/** The rules, in the order in which ignored findings are listed. */
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
