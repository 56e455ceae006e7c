import type { EndpointStatus } from './objects.ts';

/** Lets the endpoints of a node share one status object if theirs are equal: it saves memory, and comparisons later. */
export class StatusSharing {
  readonly #last = new Map<string | undefined, EndpointStatus>();

  /** Returns the last status of the same node if it is equal, else the given one. */
  share(status: EndpointStatus): EndpointStatus {
    const last = this.#last.get(status.nodeName);
    if (last && areSame(last, status)) return last;
    this.#last.set(status.nodeName, status);
    return status;
  }
}

/** False if one has hints: these are lists, and few endpoints have any. */
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
