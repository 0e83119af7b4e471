import type { Clock } from "@devplat/base";
import type { Repositories, RepositoryState } from "../../administration/repositories/repositories.ts";
import { SvcError } from "../../errors.ts";
import type { Actor } from "../../identity/principal.ts";
import type { OwnAddress } from "../../own-address.ts";
import { numberOrNull, refusedForm, type FormState } from "../common/form.ts";
import { pageNumber, pagedList } from "../common/paged-list.ts";
import { refusalStatus, type Form, type Pages } from "../common/pages.ts";
import {
  deletePage,
  editFormOf,
  repositoriesPage,
  type RepositoriesPageOptions,
} from "./repositories-page.ts";

export interface RepositoryRoutes {
  readonly pages: Pages;
  readonly repositories: Repositories;
  readonly cacheEnabled: boolean;
  readonly address: OwnAddress;
  readonly clock: Clock;
}

const PATH = "/admin/repositories";
const LIMIT_FIELDS = ["timeout_seconds", "max_cache_size_mb"] as const;
const ADD_FIELDS = ["owner", "name", ...LIMIT_FIELDS] as const;

/** The "Cached Repositories" section; for admins. */
export function addRepositoryRoutes(routes: RepositoryRoutes): void {
  const { pages, repositories, cacheEnabled, address, clock } = routes;
  /** @param wanted number of a page, or id of a record that is to be on it */
  const pageFor = (actor: Actor, wanted?: number | string, search = ""): RepositoriesPageOptions => {
    const all = repositories.list(actor);
    const shown = pagedList(all, ({ owner, name }) => `${owner}/${name}`, { search, wanted });
    return {
      repositories: all,
      summed: repositories.summed,
      shown,
      baseUrl: address.baseUrl,
      cacheEnabled,
      now: clock.now(),
    };
  };

  pages.get(PATH, "admin", async ({ actor, query, show }) => {
    await repositories.look(actor);
    const { edit, at, page: number, search, done: key } = query;
    const options = pageFor(actor, edit ?? at ?? pageNumber(number), search);
    const edited = options.repositories.find(({ id }) => id === edit);
    const editing = edited === undefined ? undefined : { id: edited.id, form: editFormOf(edited) };
    return show(repositoriesPage({ ...options, done: key, editing }));
  });

  pages.post(PATH, "admin", async ({ actor, form, show, redirect }) => {
    try {
      const { owner = "", name = "" } = form;
      const input = { owner: owner.trim(), name: name.trim(), ...limitsOf(form) };
      return redirect(done("added", await repositories.add(actor, input)));
    } catch (error) {
      const addForm = refusedForm(error, form, ADD_FIELDS);
      if (addForm === undefined) throw error;
      return show(repositoriesPage({ ...pageFor(actor), addForm }), refusalStatus(error));
    }
  });

  pages.post(`${PATH}/:id`, "admin", async ({ actor, id, form, show, redirect }) => {
    const version = Number(form["version"]);
    try {
      const state = await repositories.change(
        actor,
        id,
        changeOf(form, repositories.seeds),
        version ? [version] : undefined,
      );
      return redirect(done("saved", state));
    } catch (error) {
      const refused = isOvertaken(error)
        ? overtaken(form, repositories.get(actor, id))
        : refusedForm(error, form, LIMIT_FIELDS);
      if (refused === undefined) throw error;
      const page = repositoriesPage({ ...pageFor(actor, id), editing: { id, form: refused } });
      return show(page, refusalStatus(error));
    }
  });

  for (const [word, enabled] of [
    ["enable", true],
    ["disable", false],
  ] as const) {
    pages.post(`${PATH}/:id/${word}`, "admin", async ({ actor, id, redirect }) =>
      redirect(done(`${word}d`, await repositories.change(actor, id, { enabled }))),
    );
  }

  pages.post(`${PATH}/:id/warm`, "admin", async ({ actor, id, show, redirect }) => {
    try {
      await repositories.warm(actor, id);
      return redirect(done("warmed", { id }));
    } catch (error) {
      const failure = refusedForm(error, {}, [])?.message;
      if (failure === undefined) throw error;
      return show(repositoriesPage({ ...pageFor(actor, id), failure }), refusalStatus(error));
    }
  });

  pages.post(`${PATH}/:id/purge`, "admin", async ({ actor, id, redirect }) => {
    await repositories.purge(actor, id);
    return redirect(done("purged", { id }));
  });

  pages.get(`${PATH}/:id/delete`, "admin", async ({ actor, id, show }) =>
    show(deletePage(repositories.get(actor, id))),
  );

  pages.post(`${PATH}/:id/delete`, "admin", async ({ actor, id, redirect }) => {
    await repositories.remove(actor, id);
    return redirect(`${PATH}?done=deleted#done`);
  });

  // A page that answered a post, loaded again.
  for (const tail of ["", "/warm"]) {
    pages.get(`${PATH}/:id${tail}`, "admin", async ({ actor, id, redirect }) =>
      redirect(`${PATH}?${tail === "" ? "edit" : "at"}=${repositories.get(actor, id).id}`),
    );
  }
}

/** The page of the list that the record is on, with a message. @param key of the message */
function done(key: string, { id }: Pick<RepositoryState, "id">): string {
  return `${PATH}?done=${key}&at=${id}#done`;
}

/** An emptied field is null, which resets the value. */
function limitsOf(form: Form): Record<(typeof LIMIT_FIELDS)[number], number | string | null> {
  return {
    timeout_seconds: numberOrNull(form["timeout_seconds"]),
    max_cache_size_mb: numberOrNull(form["max_cache_size_mb"]),
  };
}

/**
 * A form of an earlier version lacks these boxes. A box that is not ticked is not sent.
 *
 * @param seeds whether repositories have seeds whose records do not say so
 */
function changeOf(form: Form, seeds: boolean): object {
  const limits = limitsOf(form);
  const before = form["seed_before"];
  const seed = form["seed"] === "on";
  return {
    ...limits,
    // A box that stays as it was leaves the record as it is, so that the record follows `cache.seeds` as before.
    ...(before === undefined || seed === (before === "on") ? {} : { seed: seed === seeds ? null : seed }),
    ...(form["bundles_shown"] === undefined ? {} : { bundles: form["bundles"] === "on" ? true : null }),
  };
}

/** Whether another change of the record came first. */
function isOvertaken(error: unknown): boolean {
  return error instanceof SvcError && error.code === "version_mismatch";
}

/** The edit form after another change came first: with the typed values, and the version that it would now replace. */
function overtaken(form: Form, { version, seed }: RepositoryState): FormState {
  return {
    values: { ...form, version: String(version), seed_before: seed ? "on" : "off" },
    faults: {},
    message: "Another user changed this repository. Save again to replace that change, or cancel to see it",
  };
}
