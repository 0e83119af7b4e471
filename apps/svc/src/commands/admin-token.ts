import type { z } from "zod";
import type { adminTokenSchema, newAdminTokenSchema } from "../admin-api/admin-tokens.ts";
import { callApi } from "./api-client.ts";
import { printTable } from "./table.ts";

const PATH = "/api/admin-tokens";

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export async function createAdminToken(
  name: string,
  options: { readonly duration: string; readonly json?: boolean },
): Promise<void> {
  const made = (await callApi("POST", PATH, { name, duration: options.duration })) as z.output<
    typeof newAdminTokenSchema
  >;
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify(made, null, 2)}\n`);
    return;
  }
  process.stderr.write(`administration token ${made.id}, good until ${made.expires_at}\n`);
  process.stdout.write(`${made.token}\n`);
}

export async function listAdminTokens(json: boolean): Promise<void> {
  const found = (await callApi("GET", PATH)) as z.output<typeof adminTokenSchema>[];
  if (json) {
    process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
    return;
  }
  printTable(
    ["ID", "TOKEN", "NAME", "EXPIRES", "LAST USED"],
    found.map((each) => [
      each.id,
      `${each.token_start}…`,
      each.name,
      each.expires_at,
      each.last_used_at ?? "never",
    ]),
  );
}

/** @param withTokens whether the tokens that were made with it end, too */
export async function revokeAdminToken(id: string, withTokens: boolean): Promise<void> {
  await callApi("DELETE", `${PATH}/${encodeURIComponent(id)}${withTokens ? "?tokens=revoke" : ""}`);
  process.stdout.write(`revoked ${id}${withTokens ? ", and the tokens made with it" : ""}\n`);
}
