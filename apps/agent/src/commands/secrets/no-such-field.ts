import { nameList } from "@devplat/base/name-list";
import { visible } from "@devplat/base/terminal";
import type { Fields } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";

/**
 * The error for a field that a secret does not have. It names the fields that are there, and no value.
 * @param field undefined if the word that was typed could be a value
 */
export function noSuchField(path: string, fields: Fields, field?: string): AgentError {
  const message =
    field === undefined ? `the secret ${path} has no such field` : `${path} has no field ${field}`;
  const hint =
    fields.size === 0 ? "It has no fields." : `Its fields are: ${visible(nameList(fields.keys()))}.`;
  return new AgentError("secret_missing", message, { hint });
}
