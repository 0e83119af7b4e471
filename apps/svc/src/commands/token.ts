import type { z } from "zod";
import type { mintedTokenSchema, tokenSchema } from "../admin-api/tokens.ts";
import { callApi } from "./api-client.ts";
import { printTable } from "./table.ts";

const PATH = "/api/tokens";

export interface CreateOptions {
  readonly scopes: string;
  readonly duration: string;
  readonly description?: string;
  /** False with `--no-check`. */
  readonly check: boolean;
  readonly json?: boolean;
}

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export async function createToken(repositories: readonly string[], options: CreateOptions): Promise<void> {
  const minted = (await callApi("POST", options.check ? PATH : `${PATH}?check=false`, {
    repositories,
    scopes: options.scopes,
    duration: options.duration,
    ...(options.description === undefined ? {} : { description: options.description }),
  })) as z.output<typeof mintedTokenSchema>;
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify(minted, null, 2)}\n`);
    return;
  }
  process.stderr.write(`token ${minted.id}, good until ${minted.expires_at ?? "it is revoked"}\n`);
  process.stdout.write(`${minted.token}\n`);
}

export async function listTokens(json: boolean): Promise<void> {
  const found = (await callApi("GET", PATH)) as z.output<typeof tokenSchema>[];
  if (json) {
    process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
    return;
  }
  printTable(
    ["ID", "TOKEN", "REPOSITORIES", "SCOPES", "EXPIRES", "USES"],
    found.map((each) => [
      each.id,
      `${each.token_start}…`,
      each.repositories.join(","),
      Object.entries(each.scopes)
        .map(([resource, level]) => `${resource}:${level}`)
        .join(","),
      each.expires_at ?? "never",
      String(each.use_count),
    ]),
  );
}

export async function revokeToken(id: string): Promise<void> {
  await callApi("DELETE", `${PATH}/${encodeURIComponent(id)}`);
  process.stdout.write(`revoked ${id}\n`);
}
