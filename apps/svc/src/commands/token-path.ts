import { holdsTokenPrefix } from "../credentials/token-format.ts";
import { SvcError } from "../errors.ts";

/**
 * The API path of one token. A token's value in its place is refused before it is sent: it would stand in access logs.
 *
 * @param collection `/api/tokens` or `/api/admin-tokens`
 * @throws SvcError `usage`, without the value
 */
export function tokenPath(collection: string, id: string, hint = "Give its id."): string {
  if (holdsTokenPrefix(id))
    throw new SvcError("usage", "The argument is a token's value, not its id", { hint });
  return `${collection}/${encodeURIComponent(id)}`;
}
