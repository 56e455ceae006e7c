import type { EndpointStatus } from './objects.ts';

/** Keeps one status for the many endpoints of a node that have the same: it saves memory, and comparing them later. */
export class StatusSharing {
  readonly #last = new Map<string | undefined, EndpointStatus>();

  /** The status, or that which came last for its node, where it says the same. */
  share(status: EndpointStatus): EndpointStatus {
    const last = this.#last.get(status.nodeName);
    if (last && areSame(last, status)) return last;
    this.#last.set(status.nodeName, status);
    return status;
  }

  /** As share, of a status without hints, which is made only where there is none like it. */
  shareWithoutHints(
    nodeName: string | undefined,
    zone: string | undefined,
    ready: boolean,
    serving: boolean,
    terminating: boolean,
  ): EndpointStatus {
    const last = this.#last.get(nodeName);
    const isLike = last?.zone === zone && last?.ready === ready && last.serving === serving;
    if (isLike && last.terminating === terminating && isBare(last)) return last;
    return this.share({ nodeName, zone, ready, serving, terminating, zoneHints: none, nodeHints: none });
  }
}

const none: readonly never[] = [];

/** Whether a status has no hints, and is of a Pod that the input holds. */
function isBare({ assumed, zoneHints, nodeHints }: EndpointStatus): boolean {
  return assumed === undefined && zoneHints.length + nodeHints.length === 0;
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
