import type { BucketFigures } from "../cache/policy.ts";
import { z } from "zod";
import {
  DEFAULT_BUNDLES,
  DEFAULT_TIMEOUT_SECONDS,
} from "../administration/repositories/cached-repositories.ts";
import type {
  Repositories,
  RepositoryState,
  SummedFigures,
} from "../administration/repositories/repositories.ts";
import {
  newRepositorySchema,
  repositoryChangeSchema,
} from "../administration/repositories/repository-input.ts";
import { pagingQuery } from "../administration/paging.ts";
import type { OwnAddress } from "../own-address.ts";
import { entityTag, expectedVersions } from "./entity-tag.ts";
import { created, isoTime, operation, type OperationResponse, type Operation } from "./operation.ts";
import { pageOf } from "./paging.ts";

const PATH = "/api/cached-repos";

const time = z.iso.datetime();
export const repositorySchema = z
  .strictObject({
    id: z.string().meta({ description: "UUIDv7" }),
    owner: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    timeout_seconds: z.int().meta({ description: "The effective value" }),
    max_cache_size_mb: z.int().nullable().meta({ description: "null: no limit" }),
    seed: z.boolean().meta({ description: "Whether seeds are made and sent: the effective value" }),
    bundles: z.boolean().meta({ description: "Whether git is offered bundles: the effective value" }),
    created_at: time,
    updated_at: time,
    stats: z.strictObject({
      size_bytes: z.int().meta({ description: "Bytes on disk of the stored responses and packs" }),
      bucket: z
        .strictObject({
          size_bytes: z
            .int()
            .nullable()
            .meta({ description: "Bytes of all its objects; null: the store does not answer" }),
          responses: z.int(),
          packs: z.int(),
          waiting: z.int().meta({ description: "Uploads that wait or run" }),
          waiting_bytes: z.int(),
        })
        .nullable()
        .meta({ description: "Data in the bucket; null: none is configured" }),
      response_files: z.int().meta({ description: "Stored responses, in both forms" }),
      response_forms: z
        .strictObject({
          framed: z.int().meta({ description: "Responses that are kept as they are sent" }),
          framed_bytes: z.int().meta({ description: "Their bytes on disk" }),
          references: z.int().meta({ description: "Responses that refer to a pack of the mirror" }),
          reference_bytes: z.int().meta({
            description:
              "Length of these responses, which counts for the size limit; on disk they take next to nothing",
          }),
        })
        .meta({ description: "Forms in which the responses are stored" }),
      packs: z.int(),
      seed: z
        .strictObject({
          made_at: time.meta({ description: "When the newest one was made" }),
          bytes: z.int().meta({
            description:
              "Bytes on disk of the last two seeds. A file that is also a pack of the mirror takes none. They are not in size_bytes",
          }),
        })
        .nullable()
        .meta({ description: "Seeds on the instance that answers; null: it has none" }),
      instances: z.int().meta({
        description:
          "Instances whose figures are added up here. The bucket is one for all; uploads that wait are those of the instance " +
          "that answers, and so is last_error",
      }),
      figures_age_seconds: z.int().meta({ description: "Age of the oldest of these figures" }),
      hits: z.int(),
      misses: z.int(),
      bytes_saved: z.int().meta({ description: "Bytes served that the code host did not have to send" }),
      seconds_saved: z.number().meta({
        description: "CPU seconds that clients did not spend on indexing, because of seeds: an estimate",
      }),
      last_fetch_at: time.nullable(),
      last_error: z.string().nullable(),
    }),
  })
  .meta({ id: "CachedRepository" });

const unknown = { 404: "No cached repository has this id" };

/** The administration of cached repositories. */
export function cachedRepositoryOperations(repositories: Repositories, address: OwnAddress): Operation[] {
  const response = (state: RepositoryState): OperationResponse => ({
    headers: { ETag: entityTag(state.version) },
    body: repositoryView(state, repositories.summed),
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
      async handle({ actor, query }) {
        await repositories.look(actor);
        const { items, headers } = pageOf(repositories.list(actor), query, {
          url: `${address.baseUrl}${PATH}`,
          key: ({ owner, name }) => `${owner}/${name}`.toLowerCase(),
        });
        return { headers, body: items.map((each) => repositoryView(each, repositories.summed)) };
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
        check: z.enum(["true", "false"]).optional().meta({
          description: "true: ask the code host first whether you can read it",
        }),
      }),
      result: repositorySchema,
      successStatus: 201,
      refusals: { 409: "It is listed already", 502: "The code host could not be asked (?check=true)" },
      async handle({ actor, body, query }) {
        const state = await repositories.add(actor, body, query.check === "true");
        return created(`${address.baseUrl}${PATH}/${state.id}`, response(state));
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getCachedRepository",
      summary: "Show one cached repository",
      result: repositorySchema,
      refusals: unknown,
      async handle({ actor, id }) {
        await repositories.look(actor, id);
        return response(repositories.get(actor, id));
      },
    }),
    operation({
      ...common,
      method: "PATCH",
      path: `${PATH}/{id}`,
      id: "changeCachedRepository",
      summary: "Enable or disable caching, change the timeout, set or clear the size limit",
      body: repositoryChangeSchema,
      result: repositorySchema,
      conditional: true,
      refusals: unknown,
      handle: async ({ actor, id, body, ifMatch }) =>
        response(await repositories.change(actor, id, body, expectedVersions(ifMatch))),
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "removeCachedRepository",
      summary: "Remove a repository from the cache list, and its data in the background",
      conditional: true,
      refusals: unknown,
      handle: async ({ actor, id, ifMatch }) => repositories.remove(actor, id, expectedVersions(ifMatch)),
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/purge`,
      id: "purgeCachedRepository",
      summary: "Remove the cached data and keep the record",
      description:
        "The data is not served any more when the response comes: by this instance, and within two seconds by others on this " +
        "database. It is removed in the background.",
      query: z.strictObject({
        wait: z
          .string()
          .regex(/^(?:[1-5]?\d|60)$/, "must be a number of seconds from 0 to 60")
          .default("0")
          .meta({ description: "Maximum seconds to wait for the removal, 0 to 60" }),
      }),
      result: z.strictObject({
        state: z.enum(["purged", "purging"]).meta({
          description: "purged: the data is removed on this instance and in the bucket; purging: not yet",
        }),
      }),
      successStatus: 202,
      refusals: unknown,
      async handle({ actor, id, query }) {
        const isPurged = await repositories.purge(actor, id, Number(query.wait) * 1000);
        return { body: { state: isPurged ? "purged" : "purging" } };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/warm`,
      id: "warmCachedRepository",
      summary: "Fetch ahead what the code host has new",
      successStatus: 202,
      refusals: { ...unknown, 409: "It is disabled, or no token for warming is configured" },
      handle: async ({ actor, id }) => repositories.warm(actor, id),
    }),
  ];
}

/** A cached repository as the API gives it. */
function repositoryView(
  { stats, ...record }: RepositoryState,
  summed: SummedFigures,
): z.output<typeof repositorySchema> {
  return {
    id: record.id,
    owner: record.owner,
    name: record.name,
    enabled: record.enabled,
    timeout_seconds: record.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
    max_cache_size_mb: record.maxCacheSizeMb ?? null,
    seed: record.seed,
    bundles: record.bundles ?? DEFAULT_BUNDLES,
    created_at: isoTime(record.createdAt),
    updated_at: isoTime(record.updatedAt),
    stats: {
      size_bytes: stats.sizeBytes,
      bucket: bucketView(stats.bucket),
      response_files: stats.responseFiles,
      response_forms: {
        framed: stats.responseFiles - stats.references,
        framed_bytes: stats.framedBytes,
        references: stats.references,
        reference_bytes: stats.referredBytes,
      },
      packs: stats.packs,
      seed:
        stats.seed === undefined ? null : { made_at: isoTime(stats.seed.madeAt), bytes: stats.seed.bytes },
      instances: summed.count,
      figures_age_seconds: Math.floor(summed.oldestMs / 1000),
      hits: stats.hits,
      misses: stats.misses,
      bytes_saved: stats.bytesSaved,
      seconds_saved: Math.round(stats.secondsSaved * 10) / 10,
      last_fetch_at: isoTime(stats.lastFetchAt),
      last_error: stats.lastError ?? null,
    },
  };
}

function bucketView(bucket: BucketFigures | undefined): z.output<typeof repositorySchema>["stats"]["bucket"] {
  if (bucket === undefined) return null;
  const { sizeBytes, responses, packs, waiting, waitingBytes } = bucket;
  return { size_bytes: sizeBytes ?? null, responses, packs, waiting, waiting_bytes: waitingBytes };
}
