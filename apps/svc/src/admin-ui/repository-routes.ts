import type { Identity } from "../identity/principal.ts";
import type { Clock, Logger } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import type { Context } from "hono";
import {
  changeOf,
  newRepositorySchema,
  purgeRepository,
  removeRepository,
  repositoryChangeSchema,
  repositoryEvent,
} from "../admin-api/cached-repos.ts";
import { clientOf } from "../http/request/management-client.ts";
import { validateBody } from "../admin-api/validation.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { CachedRepositories } from "../administration/cached-repositories.ts";
import { SvcError } from "../errors.ts";
import type { OwnAddress } from "../own-address.ts";
import type { CachedRepositoryRecord } from "../storage/store.ts";
import { numberOrNull, refusedForm, type FormState } from "./form.ts";
import { pageNumber, pagedList } from "./paged-list.ts";
import { refusalStatus, type Form, type Pages } from "./pages.ts";
import {
  deletePage,
  editFormOf,
  repositoriesPage,
  type RepositoriesPageOptions,
} from "./repositories-page.ts";

export interface RepositoryRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly audit: AuditTrail;
  readonly cacheEnabled: boolean;
  readonly address: OwnAddress;
  readonly clock: Clock;
  readonly logger: Logger;
}

const LIMIT_FIELDS = ["timeout_seconds", "max_cache_size_mb"] as const;
const ADD_FIELDS = ["owner", "name", ...LIMIT_FIELDS] as const;

/** The "Cached Repositories" section; for admins. */
export function addRepositoryRoutes(options: RepositoryRoutes): void {
  const { pages, repositories, audit } = options;
  const note = (
    context: Context,
    identity: Identity,
    action: Parameters<typeof repositoryEvent>[0],
    record: CachedRepositoryRecord,
  ): void => audit.record(repositoryEvent(action, record, identity, clientOf(context)));
  /** @param wanted number of a page, or id of a record that is to be on it */
  const pageFor = (identity: Identity, wanted?: number | string, search = ""): RepositoriesPageOptions => ({
    assets: options.assets,
    version: options.version,
    identity,
    repositories: repositories.list(),
    shown: pagedList(repositories.list(), ({ owner, name }) => `${owner}/${name}`, { search, wanted }),
    maintenance: options.maintenance,
    baseUrl: options.address.baseUrl,
    cacheEnabled: options.cacheEnabled,
    now: options.clock.now(),
  });

  pages.get("/admin/repositories", true, async (context, identity) => {
    const { edit, at, page: number, search } = context.req.query();
    const edited = repositories.list().find(({ id }) => id === edit);
    const page = repositoriesPage({
      ...pageFor(identity, edit ?? at ?? pageNumber(number), search),
      done: context.req.query("done"),
      editing: edited === undefined ? undefined : { id: edited.id, form: editFormOf(edited) },
    });
    return pages.show(context, page);
  });

  pages.post("/admin/repositories", true, async (context, identity, form) => {
    try {
      const body = validateBody(newRepositorySchema, {
        owner: (form["owner"] ?? "").trim(),
        name: (form["name"] ?? "").trim(),
        ...limitsOf(form),
      });
      const record = await repositories.add({
        owner: body.owner,
        name: body.name,
        enabled: true,
        timeoutSeconds: body.timeout_seconds ?? undefined,
        maxCacheSizeMb: body.max_cache_size_mb ?? undefined,
      });
      note(context, identity, "cached_repository.added", record);
      return context.redirect(done("added", record), 303);
    } catch (error) {
      const addForm = refusedForm(error, form, ADD_FIELDS);
      if (addForm === undefined) throw error;
      return pages.show(context, repositoriesPage({ ...pageFor(identity), addForm }), refusalStatus(error));
    }
  });

  pages.post("/admin/repositories/:id", true, async (context, identity, form) => {
    const id = idOf(context);
    try {
      const change = changeOf(validateBody(repositoryChangeSchema, limitsOf(form)));
      const record = await repositories.change(id, change, Number(form["version"]) || undefined);
      note(context, identity, "cached_repository.updated", record);
      return context.redirect(done("saved", record), 303);
    } catch (error) {
      const refused = overtaken(error, form, repositories, id) ?? refusedForm(error, form, LIMIT_FIELDS);
      if (refused === undefined) throw error;
      const page = repositoriesPage({ ...pageFor(identity, id), editing: { id, form: refused } });
      return pages.show(context, page, refusalStatus(error));
    }
  });

  for (const [word, enabled] of [
    ["enable", true],
    ["disable", false],
  ] as const) {
    pages.post(`/admin/repositories/:id/${word}`, true, async (context, identity) => {
      const record = await repositories.change(idOf(context), { enabled });
      note(context, identity, "cached_repository.updated", record);
      return context.redirect(done(`${word}d`, record), 303);
    });
  }

  pages.post("/admin/repositories/:id/warm", true, async (context, identity) => {
    const record = repositories.get(idOf(context));
    const start = await options.maintenance.warm(record.owner, record.name);
    if (start === "started") note(context, identity, "cached_repository.warmed", record);
    return context.redirect(done(`warm-${start}`, record), 303);
  });

  pages.post("/admin/repositories/:id/purge", true, async (context, identity) => {
    const record = repositories.get(idOf(context));
    purgeRepository(options, record);
    note(context, identity, "cached_repository.purged", record);
    return context.redirect(done("purged", record), 303);
  });

  pages.get("/admin/repositories/:id/delete", true, async (context, identity) =>
    pages.show(context, deletePage({ ...pageFor(identity), record: repositories.get(idOf(context)) })),
  );

  pages.post("/admin/repositories/:id/delete", true, async (context, identity) => {
    const record = repositories.get(idOf(context));
    await removeRepository(options, record.id);
    note(context, identity, "cached_repository.removed", record);
    return context.redirect("/admin/repositories?done=deleted#done", 303);
  });

  // A page that answered a post, loaded again.
  pages.get("/admin/repositories/:id", true, async (context) =>
    context.redirect(`/admin/repositories?edit=${repositories.get(idOf(context)).id}`, 303),
  );
}

/** The page of the list that the record is on, saying what was done. */
function done(what: string, { id }: CachedRepositoryRecord): string {
  return `/admin/repositories?done=${what}&at=${id}#done`;
}

/** An emptied field is null, which resets the value. */
function limitsOf(form: Form): Record<(typeof LIMIT_FIELDS)[number], number | string | null> {
  return {
    timeout_seconds: numberOrNull(form["timeout_seconds"]),
    max_cache_size_mb: numberOrNull(form["max_cache_size_mb"]),
  };
}

/** The edit form when somebody else saved first: with what was typed, and the version that it would now replace. */
function overtaken(
  error: unknown,
  form: Form,
  repositories: CachedRepositories,
  id: string,
): FormState | undefined {
  if (!(error instanceof SvcError) || error.code !== "version_mismatch") return undefined;
  return {
    values: { ...form, version: String(repositories.get(id).version) },
    faults: {},
    message:
      "Somebody changed this repository meanwhile. Save again to replace that change, or cancel to see it",
  };
}

function idOf(context: Context): string {
  return context.req.param("id") ?? "";
}
