import { joinHostPort } from '../../kernel/address.ts';
import { formatRealServer, formatServiceOptions, type RealServer, type VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { virtualServerKey, type VirtualServerChange } from '../../kernel/ipvs/ipvs-delta.ts';
import { tally, type ChangeLister } from './change-lister.ts';
import type { ChangeKind } from './kernel-change.ts';

export const serverChanges: ChangeLister<readonly VirtualServerChange[]> = {
  list: (changes, owners) =>
    draftsOf(changes).map(({ isGone, server, change, options, added, removed, edited }) => {
      const { protocol, port } = server;
      const address = server.address.text;
      return {
        owner: (isGone ? owners.from : owners.to).ofServer(server),
        change: { kind: 'virtual-server', change, protocol, address, port, ...options, added, removed, edited },
      };
    }),
  count: (changes) => tally(draftsOf(changes).map(({ change }) => ['virtual server', change])),
};

/** A virtual server with what changes of its real servers. */
interface ServerDraft {
  /** Whether only the side before has it, and names its owner. */
  readonly isGone: boolean;
  readonly server: VirtualServer;
  change: ChangeKind;
  options: { readonly optionsFrom?: string; readonly optionsTo?: string };
  readonly added: string[];
  readonly removed: string[];
  readonly edited: { readonly server: string; readonly from: string; readonly to: string }[];
}

function draftsOf(changes: readonly VirtualServerChange[]): readonly ServerDraft[] {
  const drafts = new Map<string, ServerDraft>();
  for (const change of changes) {
    const { service: server } = change;
    const key = virtualServerKey(server);
    let draft = drafts.get(key);
    if (!draft) {
      const isGone = change.kind === 'delete-service';
      draft = { isGone, server, change: 'changed', options: {}, added: [], removed: [], edited: [] };
      drafts.set(key, draft);
    }
    noteServerChange(draft, change);
  }
  return [...drafts.values()];
}

function noteServerChange(draft: ServerDraft, change: VirtualServerChange): void {
  switch (change.kind) {
    case 'add-service':
      draft.change = 'added';
      draft.options = { optionsTo: formatServiceOptions(change.service).trim() };
      for (const real of change.service.realServers) draft.added.push(nameOfReal(real));
      break;
    case 'delete-service':
      draft.change = 'removed';
      draft.options = { optionsFrom: formatServiceOptions(change.service).trim() };
      for (const real of change.service.realServers) draft.removed.push(nameOfReal(real));
      break;
    case 'edit-service':
      draft.options = {
        optionsFrom: formatServiceOptions(change.from).trim(),
        optionsTo: formatServiceOptions(change.service).trim(),
      };
      break;
    case 'add-real-server':
      draft.added.push(nameOfReal(change.server));
      break;
    case 'edit-real-server':
      draft.edited.push({
        server: nameOfReal(change.server),
        from: optionsOfReal(change.from),
        to: optionsOfReal(change.server),
      });
      break;
    case 'delete-real-server':
      draft.removed.push(nameOfReal(change.server));
      break;
    default:
      change satisfies never;
  }
}

function nameOfReal({ address, port }: RealServer): string {
  return joinHostPort(address.text, port);
}

/** "-m -w 1": all that ipvsadm is told of a real server but its name. */
function optionsOfReal(server: RealServer): string {
  return formatRealServer(server).trim().split(' ').slice(2).join(' ');
}
