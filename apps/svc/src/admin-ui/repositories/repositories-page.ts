import { html, type Html } from "@devplat/web-kit";
import { DEFAULT_TIMEOUT_SECONDS } from "../../administration/repositories/cached-repositories.ts";
import type { BucketFigures, CacheStats } from "../../cache/policy.ts";
import type { RepositoryState, SummedFigures } from "../../administration/repositories/repositories.ts";
import { cacheFigures } from "../common/cache-figures.ts";
import {
  EMPTY_FORM,
  doneBanner,
  failureBanner,
  formMessage,
  textField,
  type FormState,
} from "../common/form.ts";
import { breakableName, formatAgo, formatBytes, formatIndexingSaved } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";
import { listCount, listPager, listSearch, type PagedList } from "../common/paged-list.ts";

/** Messages after an action, by the key in the address. */
const DONE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    added: "The repository was added. Its next clone fills the cache.",
    saved: "The change was saved and is in effect.",
    enabled: "Caching is on again for the repository.",
    disabled: "Caching is off for the repository; requests go to the code host.",
    purged: "The cached data is being removed.",
    warmed: "New commits of the code host are being fetched ahead.",
    deleted: "The repository was removed from the list.",
  }),
);

export interface RepositoriesPageOptions {
  /** All that are listed. */
  readonly repositories: readonly RepositoryState[];
  readonly summed: SummedFigures;
  /** Those of them that the page shows. */
  readonly shown: PagedList<RepositoryState>;
  readonly baseUrl: string;
  /** Whether `cache.enabled` is set. */
  readonly cacheEnabled: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Key of {@link DONE}. */
  readonly done?: string | undefined;
  /** Reason why an action was refused. */
  readonly failure?: string;
  readonly addForm?: FormState;
  /** The record whose row is a form. */
  readonly editing?: { readonly id: string; readonly form: FormState } | undefined;
}

export function repositoriesPage(options: RepositoriesPageOptions): Page {
  const { repositories, cacheEnabled, shown } = options;
  const done = DONE.get(options.done ?? "");
  return {
    title: "Cached Repositories",
    section: "/admin/repositories",
    lead: html`Clones and fetches of these repositories are answered from here, once the code host has
    authorized them.`,
    content: html`${
        cacheEnabled
          ? ""
          : html`<p class="banner warn">
              The cache is off, so everything passes through to the code host. Set
              <code>SVC_CACHE_ENABLED=true</code>
              to turn it on.
            </p>`
      }
      ${doneBanner(done)} ${failureBanner(options.failure)} ${cacheFigures(repositories)}
      <p class="small muted">${sourceOf(options.summed)}</p>
      ${addCard(options.addForm ?? EMPTY_FORM)}
      ${listCard({
        id: "list-heading",
        title: "Repositories",
        aside: html`<div class="cluster">
          ${listSearch(shown, { path: "/admin/repositories", by: "owner or name" })} ${listCount(shown)}
        </div>`,
        content: html`${
            shown.items.length > 0
              ? table(shown.items, options)
              : shown.search === ""
                ? emptyList()
                : html`<p class="empty">No repository on the list has this in its name.</p>`
          }
          ${listPager(shown, "Pages of the list", (page) => {
            const query = { ...(shown.search === "" ? {} : { search: shown.search }), page: String(page) };
            return `/admin/repositories?${new URLSearchParams(query).toString()}`;
          })}
          <p class="clone small muted">
            Clone through this service: <code>git clone ${options.baseUrl}/OWNER/NAME.git</code>
          </p>`,
      })}`,
  };
}

/** Whose figures the page shows. */
function sourceOf({ count, oldestMs }: SummedFigures): string {
  if (count === 1) return "Figures of this instance since its start.";
  const age = Math.ceil(oldestMs / 60_000);
  return (
    `Figures of ${count} instances since their starts, those of the others up to ${age} min old. ` +
    "Uploads that wait, seeds and errors are of this instance."
  );
}

function addCard(form: FormState): Html {
  return html`<section class="card stack" aria-labelledby="add-heading">
    <h2 id="add-heading">Add a repository</h2>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/repositories">
      <div class="fields">
        ${textField({ id: "add-owner", name: "owner", label: "Owner", required: true, form })}
        ${textField({ id: "add-name", name: "name", label: "Name", required: true, form })}
        ${limitFields("add", form)}
      </div>
      <div class="form-actions"><button class="primary">Add repository</button></div>
    </form>
  </section>`;
}

function limitFields(prefix: "add" | "edit", form: FormState): Html {
  return html`${textField({
    id: `${prefix}-timeout`,
    name: "timeout_seconds",
    label: "Timeout",
    unit: "(seconds)",
    inputMode: "numeric",
    placeholder: String(DEFAULT_TIMEOUT_SECONDS),
    hint: "Optional, 1 to 3600",
    autofocus: prefix === "edit",
    form,
  })}
  ${textField({
    id: `${prefix}-limit`,
    name: "max_cache_size_mb",
    label: "Cache Size Limit (MB)",
    inputMode: "numeric",
    placeholder: "no limit",
    hint: "Optional",
    form,
  })}`;
}

function table(repositories: readonly RepositoryState[], options: RepositoriesPageOptions): Html {
  return dataTable({
    caption: "Cached repositories with their settings and figures",
    columns: ["Repository", "State", "Limits", "On disk", "Hits"],
    actions: true,
    rows: repositories.map((each) =>
      each.id === options.editing?.id ? editRow(each, options.editing.form) : showRow(each, options),
    ),
  });
}

function showRow(record: RepositoryState, { now }: RepositoriesPageOptions): Html {
  const { stats } = record;
  const name = `${record.owner}/${record.name}`;
  const at = `/admin/repositories/${record.id}`;
  return html`<tr id="repo-${record.id}">
    <th scope="row" class="name">
      ${breakableName(name)}
      ${stats.lastError === undefined ? "" : html`<div class="error small">Last error: ${stats.lastError}</div>`}
    </th>
    <td data-label="State">
      ${record.enabled ? html`<span class="status good">Enabled</span>` : html`<span class="status idle">Disabled</span>`}
    </td>
    <td data-label="Limits" class="nowrap">
      <div>
        ${record.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS} s <span class="small muted">timeout</span>
        <div class="small muted">
          ${record.maxCacheSizeMb === undefined ? "no size limit" : `maximum ${record.maxCacheSizeMb} MB`}${record.seed ? "" : ", no seeds"}${record.bundles === true ? ", bundles" : ""}
        </div>
      </div>
    </td>
    <td data-label="On disk" class="nowrap">
      <div>
        ${formatBytes(stats.sizeBytes)}
        <div class="small muted">
          ${stats.responseFiles} ${stats.responseFiles === 1 ? "file" : "files"}${showReferences(stats)}
        </div>
        ${showSeed(stats, now)} ${showBucket(stats.bucket)}
      </div>
    </td>
    <td data-label="Hits" class="nowrap">
      <div>
        ${stats.hits} <span class="small muted">of ${stats.hits + stats.misses}</span>
        <div class="small muted">
          ${formatBytes(stats.bytesSaved)} ${formatIndexingSaved(stats.secondsSaved)} saved
        </div>
        <div class="small muted">
          ${stats.lastFetchAt === undefined ? "no fetch yet" : `last fetch ${formatAgo(stats.lastFetchAt, now)}`}
        </div>
      </div>
    </td>
    <td class="buttons">
      <div class="actions">
        <form method="get" action="/admin/repositories#repo-${record.id}">
          <input type="hidden" name="edit" value="${record.id}" />
          <button class="small" aria-label="Edit ${name}">Edit</button>
        </form>
        <form method="post" action="${at}/${record.enabled ? "disable" : "enable"}">
          <button class="small" aria-label="${record.enabled ? "Disable" : "Enable"} ${name}">
            ${record.enabled ? "Disable" : "Enable"}
          </button>
        </form>
        <form method="post" action="${at}/warm">
          <button class="small" aria-label="Warm ${name}" title="Fetch ahead what the code host has new">
            Warm
          </button>
        </form>
        <form method="post" action="${at}/purge">
          <button class="small" aria-label="Purge ${name}" title="Remove the cached data, keep the record">
            Purge
          </button>
        </form>
        <a class="button small danger" href="${at}/delete" aria-label="Delete ${name}">Delete</a>
      </div>
    </td>
  </tr>`;
}

function editRow(record: RepositoryState, form: FormState): Html {
  const name = `${record.owner}/${record.name}`;
  return html`<tr id="repo-${record.id}" class="editing">
    <td colspan="6">
      <form class="stack" method="post" action="/admin/repositories/${record.id}" aria-label="Edit ${name}">
        <h3 class="wrap">${name}</h3>
        ${formMessage(form)}
        <input type="hidden" name="version" value="${form.values["version"] ?? String(record.version)}" />
        <div class="fields">${limitFields("edit", form)}</div>
        <label class="check">
          <input type="hidden" name="seed_before" value="${form.values["seed_before"] ?? ""}" />
          <input type="checkbox" name="seed" value="on" ${form.values["seed"] === "on" ? "checked" : ""} />
          Make and send seeds
        </label>
        <label class="check">
          <input type="hidden" name="bundles_shown" value="on" />
          <input
            type="checkbox"
            name="bundles"
            value="on"
            ${form.values["bundles"] === "on" ? "checked" : ""}
          />
          Offer seeds to git as bundles
        </label>
        <div class="form-actions">
          <button class="primary">Save</button>
          <a class="button" href="/admin/repositories">Cancel</a>
        </div>
      </form>
    </td>
  </tr>`;
}

function emptyList(): Html {
  return html`<p class="empty">
    Nothing is cached yet. Add a repository above, then clone it twice: the second comes from here.
  </p>`;
}

/** The values of a record as its edit form shows them. */
export function editFormOf(record: RepositoryState): FormState {
  const seed = record.seed ? "on" : "off";
  return {
    values: {
      timeout_seconds: record.timeoutSeconds === undefined ? "" : String(record.timeoutSeconds),
      max_cache_size_mb: record.maxCacheSizeMb === undefined ? "" : String(record.maxCacheSizeMb),
      seed,
      seed_before: seed,
      bundles: record.bundles === true ? "on" : "",
      version: String(record.version),
    },
    faults: {},
  };
}

/** Asks before a repository is taken off the list. */
export function deletePage(record: RepositoryState): Page {
  const name = `${record.owner}/${record.name}`;
  return {
    title: `Delete ${name}`,
    section: "/admin/repositories",
    narrow: true,
    content: html`<div class="card stack">
      <h1 class="wrap">Delete ${name}?</h1>
      <p>
        It is taken off the list, and its cached data (${formatBytes(record.stats.sizeBytes)}) is removed.
        Clones through this service go on working: they pass through to the code host.
      </p>
      <form method="post" action="/admin/repositories/${record.id}/delete">
        <div class="form-actions">
          <button class="danger">Delete</button>
          <a class="button" href="/admin/repositories">Cancel</a>
        </div>
      </form>
    </div>`,
  };
}

/** Responses that refer to a pack, so that they take no space. */
function showReferences({ references }: CacheStats): string {
  if (references === 0) return "";
  return ` (${references} ${references === 1 ? "reference" : "references"})`;
}

/** Space and age of the seeds. */
function showSeed({ seed }: CacheStats, now: number): Html | "" {
  if (seed === undefined) return "";
  return html`<div class="small muted">
    seed: ${formatBytes(seed.bytes)}, ${formatAgo(seed.madeAt, now)}
  </div>`;
}

/** Data of a repository in the bucket, and on its way there. */
function showBucket(bucket: BucketFigures | undefined): Html | "" {
  if (bucket === undefined) return "";
  const { sizeBytes, waiting, waitingBytes } = bucket;
  // The column is narrow. The manifest of the repository was not read since the start.
  const size = sizeBytes === undefined ? "unknown" : formatBytes(sizeBytes);
  return html`<div class="small muted">bucket: ${size}</div>
    ${waiting === 0 ? "" : html`<div class="small muted">to upload: ${formatBytes(waitingBytes)}</div>`}`;
}
