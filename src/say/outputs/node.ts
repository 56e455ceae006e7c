import { about, amount, listOf, objectOf, oneOf, optional, text, wholeNumber } from '../../base/json/schema.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { changedObjects } from '../../ask/changes/kernel-change.ts';
import { conflictSchema } from '../../apply/plan/ownership-draft.ts';

const plannedChangeSchema = objectOf({
  /** "namespace/name:port" from the bundle or from comments in the rules, or else the address. */
  servicePort: optional(about('absent if the change belongs to no Service', text)),
  action: oneOf('add', 'change', 'remove'),
  object: oneOf(...changedObjects),
  text,
});

/** Output of `kpc-apply plan` and `kpc-apply verify`. */
export const plan = objectOf({
  changes: about('empty if nothing would change', listOf(plannedChangeSchema)),
  servicePorts: about(
    'the Service ports of the bundle that would change',
    listOf(
      objectOf({
        servicePort: text,
        addresses: about('cluster IPs with the port', listOf(text)),
        endpoints: wholeNumber(0),
        used: about('the endpoints that this node sends traffic to', wholeNumber(0)),
      }),
    ),
  ),
  conflicts: about('wanted objects that exist with other content, made by another program', listOf(conflictSchema)),
  foreignVirtualServers: listOf(text),
  draining: about(
    'real servers that wait for their connections to end',
    listOf(
      objectOf({
        virtualServer: text,
        realServer: text,
        since: about('milliseconds since 1970', amount),
        sinceBoot: about('milliseconds since the node booted', amount),
      }),
    ),
  ),
  leftSettings: optional(
    about(
      'sysctls that a rollback leaves as they are',
      listOf(
        objectOf({
          path: text,
          value: optional(text),
          made: optional(about('what kpc-apply set it to', listOf(text))),
          before: text,
        }),
      ),
    ),
  ),
  addressesLeft: optional(about('addresses of IPVS mode that stay for open connections', listOf(text))),
  connections: optional(objectOf({ draining: wholeNumber(0), cut: wholeNumber(0) })),
  warnings: optional(listOf(text)),
  refusals: optional(about('why apply would refuse', listOf(objectOf({ subject: text, text, help: optional(text) })))),
});

const nodeCheck = objectOf({
  severity: oneOf('ok', 'note', 'warning', 'error'),
  subject: about('what was checked: "modules", "tools"', text),
  text,
  mode: optional(about('absent if the check is for all examined modes', oneOf(...proxyModes))),
  help: optional(text),
  tool: optional(about('the tool at fault', text)),
});

export const doctor = objectOf({
  fitFor: about('the examined modes that the node is fit for', listOf(oneOf(...proxyModes))),
  checks: listOf(nodeCheck),
});
