import type { FindingCode } from '../../base/findings/codes.ts';
import type { LintedService, LintInput } from './lint-input.ts';
import { ofServices, type Found, type Rule } from './rule.ts';

/** A rule of load balancers with source ranges. */
export function ofRestricted<Code extends FindingCode>(
  check: (service: LintedService, input: LintInput) => Found<Code> | readonly Found<Code>[] | undefined,
): Rule<Code> {
  return ofServices((service, input) => {
    const { object, ports } = service;
    const { type, loadBalancerSourceRanges: ranges } = object.spec;
    return type === 'LoadBalancer' && ranges.length > 0 && ports.length > 0 ? check(service, input) : undefined;
  });
}

/** Whether the ranges let everyone in, so that nothing is restricted. */
export function isOpen({ object: { spec } }: LintedService): boolean {
  return spec.loadBalancerSourceRanges.some((range) => /\/0+$/.test(range.trim()));
}
