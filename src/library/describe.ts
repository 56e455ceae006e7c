import { summarizeServices, type ServiceSummary } from '../describe/service-table.ts';
import type { Side } from '../diff/compared-side.ts';

/** The Services of a side, as `kpc describe --output json` prints them; none of a dump, which does not hold them. */
export function describe({ services }: Side): readonly ServiceSummary[] {
  return services ? summarizeServices({ services }) : [];
}
