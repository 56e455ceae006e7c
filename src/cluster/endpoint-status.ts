import type { EndpointStatus } from './objects.ts';

/** Keeps one status for the many endpoints of a node that have the same: it saves memory, and comparing them later. */
export class StatusSharing {
  readonly #last = new Map<string | undefined, EndpointStatus>();

  /** The status, or the last one of its node if that says the same. */
  share(status: EndpointStatus): EndpointStatus {
    const last = this.#last.get(status.nodeName);
    if (last && areSame(last, status)) return last;
    this.#last.set(status.nodeName, status);
    return status;
  }
}

/** Whether two of one node, without hints, are the same. Hints are lists, and few have any. */
function areSame(a: EndpointStatus, b: EndpointStatus): boolean {
  return (
    a.zone === b.zone &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    a.assumed === b.assumed &&
    a.zoneHints.length + a.nodeHints.length + b.zoneHints.length + b.nodeHints.length === 0
  );
}
