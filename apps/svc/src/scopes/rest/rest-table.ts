import { z } from "zod";
import { RESOURCES } from "../scopes.ts";

const level = z.enum(["read", "write"]);
const needs = z
  .array(
    z.strictObject({ resource: z.enum(RESOURCES), or: z.enum(RESOURCES).exactOptional(), level }).readonly(),
  )
  .nonempty()
  .readonly();

const access = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("repository"), needs }).readonly(),
  z.strictObject({ kind: z.literal("every_repository"), needs }).readonly(),
  z.strictObject({ kind: z.literal("issue_or_pull_request"), level }).readonly(),
  z
    .strictObject({ kind: z.literal("search"), what: z.enum(["code", "commits", "issues", "labels"]) })
    .readonly(),
  z.strictObject({ kind: z.literal("open") }).readonly(),
  z.strictObject({ kind: z.literal("refused"), reason: z.string().min(1) }).readonly(),
]);

/**
 * Form of `generated/rest.json` and `generated/gitea.json`: every documented operation, by path template and method. A test
 * checks the files against it; the program does not.
 */
export const restTableSchema = z.record(
  z.string().startsWith("/"),
  z.partialRecord(z.enum(["GET", "PUT", "POST", "PATCH", "DELETE"]), access),
);

/**
 * The access that an operation needs with a limited token.
 * - `repository`: all of `needs`, for the repository in the path.
 * - `every_repository`: all of `needs`, and a token for every repository, because the operation concerns an account.
 * - `issue_or_pull_request`: `issues`, or `pull_requests` where `{issue_number}` is the number of a pull request.
 * - `search`: depends on the query, which must name repositories.
 * - `open`: none, because the response has nothing of any repository.
 * - `refused`: no limited token may do it.
 */
export type RestAccess = z.infer<typeof access>;
export type RestTable = z.infer<typeof restTableSchema>;
