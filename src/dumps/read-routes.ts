import { families, type Family } from '../kernel/family.ts';
import { parseRoutes, parseRoutesJson } from '../kernel/route/parse-routes.ts';
import { parseRoutingRules, parseRoutingRulesJson } from '../kernel/route/parse-rules.ts';
import {
  routeKey,
  ruleKey,
  type Route,
  type RouteAnswer,
  type Routes,
  type RoutingRule,
} from '../kernel/route/route.ts';
import type { UnreadLine } from '../kernel/lines.ts';
import type { ReadableKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';

/** A dump's routes for each family. */
export type KnownRoutes = { readonly [F in Family]?: Routes };

export type RoutingKind = Extract<ReadableKind, 'ip route' | 'ip -j route' | 'ip rule' | 'ip -j rule'>;

export function isRoutingKind(kind: ReadableKind): kind is RoutingKind {
  return /^ip (?:-j )?(?:route|rule)$/.test(kind);
}

interface Drafted {
  readonly routes: Map<string, Route>;
  /** The tables that a listing shows in full. */
  readonly tables: Set<string>;
  isAll: boolean;
  readonly rules: Map<string, RoutingRule>;
  hasRules: boolean;
  readonly answers: RouteAnswer[];
}

/** A dump's routes while its files are read. Merges what is listed both as text and as JSON. */
export class DraftedRoutes {
  readonly #drafts: { [F in Family]?: Drafted } = {};

  /** Takes what an output lists. Returns the unreadable lines. */
  read({ text, command, isPart }: ToolOutput, kind: RoutingKind, file: string): readonly UnreadLine[] {
    const named = /(?:^|[-_./])(?:ip)?v?6(?:[-_.]|$)/.test(file) ? ('ipv6' as const) : undefined;
    const family = command?.routing?.family ?? named;
    if (kind === 'ip rule' || kind === 'ip -j rule') {
      const { rules, unread } =
        kind === 'ip rule' ? parseRoutingRules(text, family) : parseRoutingRulesJson(text, family);
      for (const rule of rules) this.#of(rule.family).rules.set(ruleKey(rule), rule);
      const [first] = rules;
      if (first && !isPart && unread.length === 0) this.#of(first.family).hasRules = true;
      return unread;
    }
    const asked = { family, table: command?.routing?.table };
    const { routes, answers, unread } = kind === 'ip route' ? parseRoutes(text, asked) : parseRoutesJson(text, asked);
    for (const answer of answers) this.#of(answer.family).answers.push(answer);
    for (const route of routes) this.#of(route.family).routes.set(routeKey(route), route);
    // A single route without its command may be only part of the output.
    const isWhole = !isPart && unread.length === 0 && (command?.tool === 'ip' || routes.length > 1);
    if (!isWhole) return unread;
    for (const each of families) {
      const tables = new Set(routes.flatMap((route) => (route.family === each ? [route.table] : [])));
      if (tables.size === 0) continue;
      const draft = this.#of(each);
      if (tables.has('local') && tables.size > 1) draft.isAll = true;
      for (const table of tables) draft.tables.add(table);
    }
    return unread;
  }

  #of(family: Family): Drafted {
    return (this.#drafts[family] ??= {
      routes: new Map(),
      tables: new Set(),
      isAll: false,
      rules: new Map(),
      hasRules: false,
      answers: [],
    });
  }

  known(): KnownRoutes {
    const known = families.flatMap((family): readonly (readonly [Family, Routes])[] => {
      const draft = this.#drafts[family];
      if (!draft) return [];
      const { routes, tables, isAll, rules, hasRules, answers } = draft;
      const listed = hasRules ? [...rules.values()] : undefined;
      return [[family, { routes: [...routes.values()], tables: isAll ? undefined : tables, rules: listed, answers }]];
    });
    return Object.fromEntries(known);
  }
}
