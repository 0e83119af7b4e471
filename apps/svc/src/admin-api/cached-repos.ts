import type { Identity } from "../identity/principal.ts";
import type { Logger } from "@devplat/base";
import { z } from "zod";
import type { HostAccounts } from "../code-host/host-account.ts";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditAction, AuditEvent, AuditTrail } from "../audit/audit-event.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import {
  DEFAULT_TIMEOUT_SECONDS,
  MAX_CACHE_SIZE_MB,
  MAX_TIMEOUT_SECONDS,
  type CachedRepositories,
} from "../administration/cached-repositories.ts";
import { FieldError, SvcError } from "../errors.ts";
import type { Client } from "../identity/client.ts";
import type { OwnAddress } from "../own-address.ts";
import {
  MAX_NAME_LENGTH,
  NAME_FORM,
  NAME_FORM_FAULT,
  ownerFault,
  repositoryNameFault,
} from "../repository-name.ts";
import type { CachedRepositoryRecord } from "../storage/store.ts";
import type { RepositoryProbe } from "../administration/repository-probe.ts";
import { entityTag, expectedVersion } from "./entity-tag.ts";
import { operation, type Operation } from "./operation.ts";
import { pageOf, pagingQuery } from "./paging.ts";

const PATH = "/api/cached-repos";

const timeout = z.int().min(1).max(MAX_TIMEOUT_SECONDS).nullable();

/** Body of POST. `null` is the same as a field that is not there. */
export const newRepositorySchema = z
  .strictObject({
    owner: checked(ownerFault).meta({ description: "Repository owner", example: "acme" }),
    name: checked(repositoryNameFault).meta({
      description: "Repository name, without .git",
      example: "widgets",
    }),
    enabled: z.boolean().optional().meta({ description: "Default true" }),
    timeout_seconds: timeout.optional().meta({
      description: `How long to wait for the code host, in seconds. Default ${DEFAULT_TIMEOUT_SECONDS}`,
    }),
    max_cache_size_mb: z.int().min(1).max(MAX_CACHE_SIZE_MB).nullable().optional().meta({
      description: "Cap on the size of the cached responses, in MB. Default: no limit",
    }),
  })
  .meta({ id: "NewCachedRepository" });

/** Body of PATCH. */
export const repositoryChangeSchema = z
  .strictObject({
    enabled: z.boolean().optional().meta({ description: "false keeps the record and stops caching" }),
    timeout_seconds: timeout.optional().meta({ description: "null resets it to the default" }),
    max_cache_size_mb: z.int().min(0).max(MAX_CACHE_SIZE_MB).nullable().optional().meta({
      description: "0 or null clears the limit",
    }),
  })
  .meta({ id: "CachedRepositoryChange" });

const time = z.iso.datetime();
export const repositorySchema = z
  .strictObject({
    id: z.string().meta({ description: "UUIDv7" }),
    owner: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    timeout_seconds: z.int().meta({ description: "The effective value" }),
    max_cache_size_mb: z.int().nullable().meta({ description: "null: no limit" }),
    created_at: time,
    updated_at: time,
    stats: z.strictObject({
      size_bytes: z.int().meta({ description: "Total size of the cached response files" }),
      response_files: z.int(),
      packs: z.int(),
      hits: z.int(),
      misses: z.int(),
      bytes_saved: z.int().meta({ description: "Bytes served that the code host did not have to send" }),
      last_fetch_at: time.nullable(),
      last_error: z.string().nullable(),
    }),
  })
  .meta({ id: "CachedRepository" });

const flag = z.enum(["true", "false"]).optional();

export interface CachedRepositoryOperations {
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly accounts: Pick<HostAccounts, "accessToken">;
  readonly probe: RepositoryProbe;
  readonly audit: AuditTrail;
  readonly address: OwnAddress;
  readonly logger: Logger;
}

/** The administration of cached repositories. */
export function cachedRepositoryOperations(parts: CachedRepositoryOperations): Operation[] {
  const { repositories, maintenance, audit, address } = parts;
  const shown = (record: CachedRepositoryRecord): z.output<typeof repositorySchema> =>
    repositoryView(record, maintenance);
  const answer = (
    status: number,
    record: CachedRepositoryRecord,
  ): { status: number; headers: Record<string, string>; body: unknown } => ({
    status,
    headers: { ETag: entityTag(record.version) },
    body: shown(record),
  });
  const common = { tag: "Cached repositories", access: "admin" } as const;
  return [
    operation({
      ...common,
      method: "GET",
      path: PATH,
      id: "listCachedRepositories",
      summary: "List cached repositories",
      description: "Ordered by owner and name. With `limit`, a `Link` header leads to the next page.",
      query: z.strictObject(pagingQuery),
      result: z.array(repositorySchema),
      successStatus: 200,
      async handle({ query }) {
        const { items, headers } = pageOf(repositories.list(), query, {
          url: `${address.baseUrl}${PATH}`,
          key: (record) => `${record.owner}/${record.name}`.toLowerCase(),
        });
        return { status: 200, headers, body: items.map(shown) };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: PATH,
      id: "addCachedRepository",
      summary: "Add a repository to the cache list",
      body: newRepositorySchema,
      query: z.strictObject({
        check: flag.meta({ description: "true: ask the code host first whether you can read it" }),
      }),
      result: repositorySchema,
      successStatus: 201,
      refusals: { 409: "It is listed already", 502: "The code host could not be asked (?check=true)" },
      async handle({ body, query, identity, client }) {
        if (query.check === "true") {
          const credential = identity && (await parts.accounts.accessToken(identity.userId));
          const found = await parts.probe.ask(body.owner, body.name, credential);
          if (found !== "readable") {
            const message =
              found === "moved"
                ? "has moved at the code host: use its present name"
                : "is not readable at the code host with your stored credential";
            throw new FieldError([{ pointer: "/name", message }]);
          }
        }
        const record = await repositories.add({
          owner: body.owner,
          name: body.name,
          enabled: body.enabled ?? true,
          timeoutSeconds: body.timeout_seconds ?? undefined,
          maxCacheSizeMb: body.max_cache_size_mb ?? undefined,
        });
        audit.record(repositoryEvent("cached_repository.added", record, identity, client));
        const created = answer(201, record);
        return {
          ...created,
          headers: { ...created.headers, Location: `${address.baseUrl}${PATH}/${record.id}` },
        };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getCachedRepository",
      summary: "Show one cached repository",
      result: repositorySchema,
      successStatus: 200,
      refusals: { 404: "No cached repository has this id" },
      handle: async ({ parameters }) => answer(200, repositories.get(idOf(parameters))),
    }),
    operation({
      ...common,
      method: "PATCH",
      path: `${PATH}/{id}`,
      id: "changeCachedRepository",
      summary: "Enable or disable caching, change the timeout, set or clear the size limit",
      body: repositoryChangeSchema,
      result: repositorySchema,
      successStatus: 200,
      conditional: true,
      refusals: { 404: "No cached repository has this id" },
      async handle({ parameters, body, ifMatch, identity, client }) {
        const id = idOf(parameters);
        const { version } = repositories.get(id);
        const record = await repositories.change(id, changeOf(body), expectedVersion(ifMatch, version));
        audit.record(repositoryEvent("cached_repository.updated", record, identity, client));
        return answer(200, record);
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "removeCachedRepository",
      summary: "Remove a repository from the cache list, and its data in the background",
      successStatus: 204,
      conditional: true,
      refusals: { 404: "No cached repository has this id" },
      async handle({ parameters, ifMatch, identity, client }) {
        const record = repositories.get(idOf(parameters));
        await removeRepository(parts, record.id, expectedVersion(ifMatch, record.version));
        audit.record(repositoryEvent("cached_repository.removed", record, identity, client));
        return { status: 204 };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/purge`,
      id: "purgeCachedRepository",
      summary: "Remove the cached data and keep the record",
      successStatus: 202,
      refusals: { 404: "No cached repository has this id" },
      async handle({ parameters, identity, client }) {
        const record = repositories.get(idOf(parameters));
        purgeRepository(parts, record);
        audit.record(repositoryEvent("cached_repository.purged", record, identity, client));
        return { status: 202 };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/warm`,
      id: "warmCachedRepository",
      summary: "Fetch ahead what the code host has new",
      successStatus: 202,
      refusals: {
        404: "No cached repository has this id",
        409: "It is disabled, or no token for warming is configured",
      },
      async handle({ parameters, identity, client }) {
        const record = repositories.get(idOf(parameters));
        await warmRepository(parts, record);
        audit.record(repositoryEvent("cached_repository.warmed", record, identity, client));
        return { status: 202 };
      },
    }),
  ];
}

/** A deed on a cached repository, as it is written down. */
export function repositoryEvent(
  action: Extract<AuditAction, `cached_repository.${string}`>,
  record: CachedRepositoryRecord,
  identity: Identity | undefined,
  client: Client,
): AuditEvent {
  const { owner, name, enabled, timeoutSeconds, maxCacheSizeMb } = record;
  return {
    action,
    outcome: "allowed",
    target: `${owner}/${name}`,
    ...managementSource(identity, client),
    ...(action === "cached_repository.added" || action === "cached_repository.updated"
      ? {
          details: {
            enabled,
            timeout_seconds: timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
            max_cache_size_mb: maxCacheSizeMb ?? "none",
          },
        }
      : {}),
  };
}

type Purging = Pick<CachedRepositoryOperations, "repositories" | "maintenance" | "logger">;

/** Takes the repository off the list and removes its data in the background. */
export async function removeRepository(parts: Purging, id: string, version?: number): Promise<void> {
  purgeRepository(parts, await parts.repositories.remove(id, version));
}

/** Removes the cached data in the background. */
export function purgeRepository(parts: Purging, { owner, name }: CachedRepositoryRecord): void {
  parts.maintenance.purge(owner, name).catch((error: unknown) => {
    parts.logger.error({ err: error, cache_repo: `${owner}/${name}` }, "cached data could not be removed");
  });
}

/** Begins to fetch ahead. @throws SvcError `cannot_warm` */
export async function warmRepository(
  { maintenance }: Pick<CachedRepositoryOperations, "maintenance">,
  { owner, name }: CachedRepositoryRecord,
): Promise<void> {
  const start = await maintenance.warm(owner, name);
  if (start === "not_cached") {
    throw new SvcError("cannot_warm", `${owner}/${name} is not cached now`, {
      hint: "Enable the repository, and see that cache.enabled is true.",
    });
  }
  if (start === "no_credential") {
    throw new SvcError("cannot_warm", `No token of the service's own is configured for ${owner}/${name}`, {
      hint: "Set cache.service_token (SVC_CACHE_SERVICE_TOKEN) to a token that can read it, and restart.",
    });
  }
}

/** A checked PATCH body as the change that it asks for: 0 and null reset. */
export function changeOf(
  body: z.output<typeof repositoryChangeSchema>,
): Parameters<CachedRepositories["change"]>[1] {
  return {
    ...(body.enabled === undefined ? {} : { enabled: body.enabled }),
    ...(body.timeout_seconds === undefined ? {} : { timeoutSeconds: body.timeout_seconds ?? undefined }),
    ...(body.max_cache_size_mb === undefined
      ? {}
      : { maxCacheSizeMb: body.max_cache_size_mb === 0 ? undefined : (body.max_cache_size_mb ?? undefined) }),
  };
}

/** A record as the API gives it. */
function repositoryView(
  record: CachedRepositoryRecord,
  maintenance: CacheMaintenance,
): z.output<typeof repositorySchema> {
  const stats = maintenance.stats(record.owner, record.name);
  return {
    id: record.id,
    owner: record.owner,
    name: record.name,
    enabled: record.enabled,
    timeout_seconds: record.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
    max_cache_size_mb: record.maxCacheSizeMb ?? null,
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
    stats: {
      size_bytes: stats.sizeBytes,
      response_files: stats.responseFiles,
      packs: stats.packs,
      hits: stats.hits,
      misses: stats.misses,
      bytes_saved: stats.bytesSaved,
      last_fetch_at: stats.lastFetchAt === undefined ? null : new Date(stats.lastFetchAt).toISOString(),
      last_error: stats.lastError ?? null,
    },
  };
}

function idOf(parameters: Readonly<Record<string, string>>): string {
  const id = parameters["id"];
  if (id === undefined) throw new SvcError("not_found", "No cached repository has this id");
  return id;
}

function checked(fault: (text: string) => string | undefined): z.ZodString {
  return z
    .string()
    .min(1)
    .max(MAX_NAME_LENGTH)
    .regex(NAME_FORM, NAME_FORM_FAULT)
    .superRefine((text, context) => {
      const message = fault(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    });
}
