import { z } from "zod";
import {
  MAX_NAME_LENGTH,
  NAME_FORM,
  NAME_FORM_FAULT,
  ownerFault,
  repositoryNameFault,
} from "../../repository-name.ts";
import {
  DEFAULT_TIMEOUT_SECONDS,
  MAX_CACHE_SIZE_MB,
  MAX_TIMEOUT_SECONDS,
  type CachedRepositoryChange,
  type NewCachedRepository,
} from "./cached-repositories.ts";
import { validateBody } from "../../http/request/validation.ts";

const timeout = z.int().min(1).max(MAX_TIMEOUT_SECONDS).nullable();

/** A repository to be listed. `null` is the same as a field that is not there. */
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
    seed: z.boolean().nullable().optional().meta({
      description: "Whether seeds are made and sent. Default: `cache.seeds`",
    }),
    bundles: z.boolean().nullable().optional().meta({
      description: "Whether git is offered seeds as bundles. Default false",
    }),
  })
  .meta({ id: "NewCachedRepository" });

/** A change of a listed repository. */
export const repositoryChangeSchema = z
  .strictObject({
    enabled: z.boolean().optional().meta({ description: "false keeps the record and stops caching" }),
    timeout_seconds: timeout.optional().meta({ description: "null resets it to the default" }),
    max_cache_size_mb: z.int().min(0).max(MAX_CACHE_SIZE_MB).nullable().optional().meta({
      description: "0 or null clears the limit",
    }),
    seed: z.boolean().nullable().optional().meta({ description: "null resets it to the default" }),
    bundles: z.boolean().nullable().optional().meta({ description: "null resets it to the default" }),
  })
  .meta({ id: "CachedRepositoryChange" });

/** @throws FieldError, ProblemError */
export function readNewRepository(input: unknown): NewCachedRepository {
  const { owner, name, enabled, timeout_seconds, max_cache_size_mb, seed, bundles } = validateBody(
    newRepositorySchema,
    input,
  );
  return {
    owner,
    name,
    enabled: enabled ?? true,
    timeoutSeconds: timeout_seconds ?? undefined,
    maxCacheSizeMb: max_cache_size_mb ?? undefined,
    seed: seed ?? undefined,
    bundles: bundles ?? undefined,
  };
}

/** 0 and null reset a value to its default. @throws FieldError, ProblemError */
export function readRepositoryChange(input: unknown): CachedRepositoryChange {
  const body = validateBody(repositoryChangeSchema, input);
  const { enabled, timeout_seconds: timeoutSeconds, max_cache_size_mb: maxCacheSizeMb, seed, bundles } = body;
  return {
    ...(enabled === undefined ? {} : { enabled }),
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds: timeoutSeconds ?? undefined }),
    ...(maxCacheSizeMb === undefined ? {} : { maxCacheSizeMb: maxCacheSizeMb || undefined }),
    ...(seed === undefined ? {} : { seed: seed ?? undefined }),
    ...(bundles === undefined ? {} : { bundles: bundles ?? undefined }),
  };
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
