import { checkPath, SecretStoreError, type SecretDocument, type SecretMetadata } from "@devplat/secret-store";
import { html } from "@devplat/web-kit";
import type { Context } from "hono";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import { isFromForeignPage } from "../../http-api/request-checks.ts";
import { searchNames } from "../../../secrets/search-names.ts";
import type { SecretEditor } from "../../../secrets/secret-editor.ts";
import { folderOf } from "../../../secrets/url-path.ts";
import type { Environment } from "../../http-api/environment.ts";
import { problemResponse } from "./responses.ts";
import type { RouteParts } from "./route-parts.ts";
import { listFolder, type Listing } from "../state/secret-listing.ts";
import { announcementText } from "../pages/announcements.ts";
import { editRow, fieldRow, shownValue } from "../pages/secrets/field-row.ts";
import { folderPage, searchPage } from "../pages/secrets/folder-page.ts";
import type { SecretsFrame } from "../pages/secrets/frame.ts";
import { historyPage } from "../pages/secrets/history-page.ts";
import { fieldName } from "../pages/secrets/links.ts";
import { absentPage, createPage, secretPage } from "../pages/secrets/secret-page.ts";
import { treeItems, type Branch, type TreeNode } from "../pages/secrets/sidebar.ts";

type Ctx = Context<Environment>;

const FOREIGN_REVEAL =
  "Values are not shown, because a page of another site opened this one. Reveal them here if you want to see them.";

/** Additions to a secret's page. */
export interface Shown {
  readonly status?: 200 | 403 | 404 | 409 | 422;
  /** Reason why the action failed. */
  readonly refusal?: string;
  /** The name of a new secret that was typed. */
  readonly typed?: string;
}

/** Shows pages of secrets; the actions on them use it to show one again with a refusal. */
export class SecretPages {
  readonly #parts: RouteParts;
  readonly #secrets: SecretEditor;

  /** @param secrets the secrets for one request, with its limit of time */
  constructor(parts: RouteParts, secrets: SecretEditor) {
    this.#parts = parts;
    this.#secrets = secrets;
  }

  /** The page of a secret, or what there is to say about a path that holds nothing. */
  async secret(c: Ctx, path: string, shown: Shown = {}): Promise<Response> {
    const { policy } = this.#secrets;
    const { status = 200 } = shown;
    const reveal = c.req.query("reveal") === "true";
    // A pop-up of another site would show the values on the screen.
    const refusal =
      shown.refusal ?? (reveal && isFromForeignPage(c.env.incoming) ? FOREIGN_REVEAL : undefined);
    // A form is answered with the newest version; 0 is none.
    const version = c.req.method === "POST" ? undefined : wholeNumber(c.req.query("version")) || undefined;
    const [document, frame] = await Promise.all([this.#read(path, version), this.#frame(c, path, refusal)]);
    const readOnly = policy.refusal(path);
    if (document === undefined) {
      if (readOnly === undefined && version === undefined) return c.html(createPage(frame, path), status);
      return c.html(absentPage(frame, path, readOnly), status === 200 ? 404 : status);
    }
    // A page that refuses something does not reveal on top of it.
    const revealed = reveal && refusal === undefined;
    if (revealed) this.#logReveal(path);
    const old = version !== undefined;
    return c.html(secretPage(frame, { path, document, revealed, readOnly, old }), status);
  }

  async folder(c: Ctx, folder: string, shown: Shown = {}): Promise<Response> {
    const [listing, frame] = await Promise.all([
      listFolder(this.#secrets, folder),
      this.#frame(c, folder, shown.refusal),
    ]);
    const creatable = this.#secrets.policy.coversFolder(folder);
    return c.html(folderPage(frame, folder, listing, creatable, shown.typed), shown.status ?? 200);
  }

  async search(c: Ctx, query: string): Promise<Response> {
    const result = await searchNames(this.#secrets.store, query, c.req.raw.signal);
    const frame = await this.#frame(c, "", undefined);
    return c.html(searchPage({ ...frame, sidebar: { ...frame.sidebar, query } }, query, result));
  }

  async history(c: Ctx, path: string): Promise<Response> {
    const { store, policy } = this.#secrets;
    const [metadata, frame]: [SecretMetadata, SecretsFrame] = await Promise.all([
      store.metadata(path),
      this.#frame(c, path, undefined),
    ]);
    return c.html(historyPage(frame, path, metadata, policy.refusal(path) === undefined));
  }

  /** A part of a page, which htmx puts in its place. */
  async part(c: Ctx, path: string, part: string): Promise<Response> {
    if (isFromForeignPage(c.env.incoming))
      return await problemResponse(c, this.#parts, PROBLEMS.originRefused);
    const { store, policy } = this.#secrets;
    if (part === "tree" && (path === "" || path.endsWith("/"))) {
      return c.html(treeItems(branch(path, await listFolder(this.#secrets, path)), ""));
    }
    const name = fieldName(c.req.query("field"));
    const { fields, version } = await store.read(path);
    const value = name === undefined ? undefined : fields.get(name);
    if (name === undefined || value === undefined)
      return c.html(html`This field is gone. Load the page again.`, 404);
    const editable = policy.refusal(path) === undefined;
    switch (part) {
      case "value":
        this.#logReveal(path);
        return c.html(shownValue(value));
      case "row":
        return c.html(fieldRow(name, value, { path, revealed: false, editable, old: false }));
      case "edit":
        if (!editable) return await problemResponse(c, this.#parts, PROBLEMS.notEditable);
        this.#logReveal(path);
        return c.html(editRow(name, value, version, path));
      default:
        return await problemResponse(c, this.#parts, PROBLEMS.notFound);
    }
  }

  async #read(path: string, version: number | undefined): Promise<SecretDocument | undefined> {
    checkPath(path);
    try {
      return await this.#secrets.store.read(path, version === undefined ? {} : { version });
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  async #frame(c: Ctx, path: string, refusal: string | undefined): Promise<SecretsFrame> {
    const { assets, view, texts } = this.#parts;
    const tree = await this.#tree(path);
    return {
      assets,
      // Read behind the requests to the store, whose results it shows.
      status: view.status(),
      sidebar: { tree, editable: this.#secrets.policy.folders, current: path },
      text: texts.secretView,
      announcement: announcementText(c.req.query("done")),
      refusal,
    };
  }

  /** The root's entries, with the folders above a path opened. The page is also shown when the sidebar cannot be listed. */
  async #tree(path: string): Promise<Branch | undefined> {
    const open: string[] = path.endsWith("/") ? [path] : [];
    for (let folder = folderOf(path); folder !== ""; folder = folderOf(folder)) open.unshift(folder);
    const listings = await Promise.all(
      ["", ...open].map((folder) => listFolder(this.#secrets, folder).catch(() => undefined)),
    );
    let inner: Branch | undefined;
    for (const [at, folder] of ["", ...open].entries().toArray().toReversed()) {
      const listing = listings[at];
      inner = listing && branch(folder, listing, open[at], inner);
    }
    return inner;
  }

  #logReveal(path: string): void {
    this.#parts.logger.info({ path, by: "page" }, "secret revealed");
  }
}

/** A version; undefined for anything else. */
export function wholeNumber(text: string | null | undefined): number | undefined {
  // Ten digits: more versions than a store ever has, and exact as a JavaScript number.
  return text !== null && text !== undefined && /^(?:0|[1-9]\d{0,9})$/.test(text) ? Number(text) : undefined;
}

/** @param opened the folder among them that is shown with what is in it */
function branch(folder: string, { names, fault }: Listing, opened?: string, inner?: Branch): Branch {
  const nodes = names.map((name): TreeNode => {
    const path = folder + name;
    return path === opened && inner !== undefined ? { path, children: inner } : { path };
  });
  return { nodes, ...(fault !== undefined && { fault }) };
}
