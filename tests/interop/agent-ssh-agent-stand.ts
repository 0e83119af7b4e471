import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Vault } from "@devplat/testkit";

/** Sets the SSH engine of a Vault up, with a role that signs for every user. @returns the authority's public key */
export async function startSshEngine(vault: Vault, role: string): Promise<string> {
  await vault.request("POST", "sys/mounts/ssh", { type: "ssh" });
  await vault.request("POST", "ssh/config/ca", { generate_signing_key: true });
  await vault.request("POST", `ssh/roles/${role}`, {
    key_type: "ca",
    allow_user_certificates: true,
    allowed_users: "*",
    default_extensions: { "permit-pty": "" },
    ttl: "15m",
    max_ttl: "1h",
  });
  const { body } = await vault.request("GET", "ssh/config/ca");
  return (body["data"] as { public_key: string }).public_key;
}

/** The content of all files below a folder. */
export async function filesBelow(path: string): Promise<string> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  assert.ok(files.length > 0, path);
  return (await Promise.all(files.map((file) => readFile(file, "latin1")))).join("\n");
}
