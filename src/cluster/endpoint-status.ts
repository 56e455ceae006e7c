import type { EndpointStatus } from './objects.ts';

/** Lets a node's endpoints share one status object if theirs are equal, which saves memory and later comparisons. */
export class StatusSharing {
  readonly #last = new Map<string | undefined, EndpointStatus>();

  /** Returns the node's last status if it is equal, else the given one. */
  share(status: EndpointStatus): EndpointStatus {
    const last = this.#last.get(status.nodeName);
    if (last && areSame(last, status)) return last;
    this.#last.set(status.nodeName, status);
    return status;
  }
}

/** False if either has hints: comparing lists is not worth it, because few endpoints have hints. */
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
