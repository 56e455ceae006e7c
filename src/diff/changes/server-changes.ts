import { joinHostPort } from '../../kernel/address.ts';
import { formatRealServer, formatServiceOptions, type RealServer, type VirtualServer } from '../../kernel/ipvs.ts';
import { virtualServerKey, type VirtualServerChange } from '../../kernel/ipvs-delta.ts';
import { tally, type ChangeLister } from './change-lister.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { SideOwners } from './owners.ts';

export const serverChanges: ChangeLister<readonly VirtualServerChange[]> = {
  list: virtualServerChanges,
  count: (changes) => {
    const kinds = new Map<string, ChangeKind>();
    for (const change of changes) {
      const key = virtualServerKey(change.service);
      const kind = wholeKind(change);
      if (kind !== 'changed' || !kinds.has(key)) kinds.set(key, kind);
    }
    return tally([...kinds.values()].map((kind) => ['virtual server', kind]));
  },
};

/** What becomes of the virtual server itself. */
function wholeKind({ kind }: VirtualServerChange): ChangeKind {
  switch (kind) {
    case 'add-service':
      return 'added';
    case 'delete-service':
      return 'removed';
    case 'edit-service':
    case 'add-real-server':
    case 'edit-real-server':
    case 'delete-real-server':
      return 'changed';
  }
}

/** A virtual server with what changes of its real servers. */
interface ServerDraft {
  readonly owner: string | undefined;
  readonly server: VirtualServer;
  change: ChangeKind;
  options: { readonly optionsFrom?: string; readonly optionsTo?: string };
  readonly added: string[];
  readonly removed: string[];
  readonly edited: { readonly server: string; readonly from: string; readonly to: string }[];
}

function virtualServerChanges(changes: readonly VirtualServerChange[], owners: SideOwners): readonly OwnedChange[] {
  const drafts = new Map<string, ServerDraft>();
  for (const change of changes) {
    const key = virtualServerKey(change.service);
    let draft = drafts.get(key);
    if (!draft) {
      const { service: server } = change;
      const owner = change.kind === 'delete-service' ? owners.from.ofServer(server) : owners.to.ofServer(server);
      draft = { owner, server, change: 'changed', options: {}, added: [], removed: [], edited: [] };
      drafts.set(key, draft);
    }
    noteServerChange(draft, change);
  }
  return [...drafts.values()].map(({ owner, server, change, options, added, removed, edited }) => {
    const { protocol, port } = server;
    const address = server.address.text;
    return {
      owner,
      change: { kind: 'virtual-server', change, protocol, address, port, ...options, added, removed, edited },
    };
  });
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
