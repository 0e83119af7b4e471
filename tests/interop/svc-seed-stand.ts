import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { git, type Finished } from "@devplat/testkit";
import type { Answer, Stand } from "./svc-git-stand.ts";

export const FILES = ["pack", "idx", "rev", "commit_graph"] as const;
export type FileKey = (typeof FILES)[number];

interface SeedFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

/** A manifest as a client reads it. */
export interface Manifest extends Readonly<Record<FileKey, SeedFile>> {
  readonly object_format: "sha1" | "sha256";
  readonly head: string | null;
  readonly made_at: string;
  readonly pack: SeedFile & { readonly objects: number };
  readonly refs: Readonly<Record<string, string>>;
  readonly tips: readonly string[];
}

type Headers = Record<string, string>;

export const askSeed = (stand: Stand, repository: string, headers: Headers = {}): Promise<Answer> =>
  stand.ask(`/${repository}.git/svc/seed`, { headers });

export const askFile = (
  stand: Stand,
  repository: string,
  name: string,
  headers: Headers = {},
): Promise<Answer> => stand.ask(`/${repository}.git/svc/seed/${name}`, { headers });

export function manifestOf(answer: Answer): Manifest {
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text) as Manifest;
}

/** Options with which git sends the credential of these headers. */
function credentialOf({ Authorization: credential }: Headers): string[] {
  return credential === undefined ? [] : ["-c", `http.extraHeader=Authorization: ${credential}`];
}

/** Fills the mirror by a clone and asks for the seed until there is one. */
export async function makeSeed(stand: Stand, repository: string, headers: Headers = {}): Promise<Manifest> {
  const first = await askSeed(stand, repository, headers);
  assert.equal(first.status, 404, first.text);
  assert.ok(Number(first.headers["retry-after"]) > 0);
  const folder = stand.folder(`filler-${performance.now()}`);
  const filled = await stand.git([
    ...credentialOf(headers),
    "clone",
    "-q",
    "--bare",
    `${stand.url}/${repository}`,
    folder,
  ]);
  assert.equal(filled.code, 0, filled.stderr);
  // The end of the fill makes the seed.
  await stand.cache.settled();
  return manifestOf(await askSeed(stand, repository, headers));
}

/** Makes a repository from a seed, as a client does, and fetches the rest with stock git. */
export async function cloneBySeed(
  stand: Stand,
  repository: string,
  manifest: Manifest,
  headers: Headers = {},
): Promise<{ readonly folder: string; readonly fetched: Finished }> {
  const folder = stand.folder(`by-seed-${performance.now()}`);
  const { object_format: format, head, refs } = manifest;
  await git(["init", "-q", "--bare", `--object-format=${format}`, folder]);
  await mkdir(join(folder, "objects", "info"), { recursive: true });
  for (const key of FILES) {
    const { name, size, sha256 } = manifest[key];
    const { status, body } = await askFile(stand, repository, name, headers);
    assert.equal(status, 200);
    assert.equal(body.length, size);
    assert.equal(hash("sha256", body), sha256);
    const target = key === "commit_graph" ? join("info", "commit-graph") : join("pack", name);
    await writeFile(join(folder, "objects", target), body);
  }
  if (head !== null) await git(["-C", folder, "symbolic-ref", "HEAD", head]);
  for (const [name, oid] of Object.entries(refs)) await git(["-C", folder, "update-ref", name, oid]);
  const fetched = await stand.git(
    [
      ...credentialOf(headers),
      "-C",
      folder,
      "fetch",
      "-q",
      "--tags",
      `${stand.url}/${repository}`,
      "+refs/heads/*:refs/heads/*",
    ],
    { GIT_TRACE_PACKET: "1" },
  );
  assert.equal(fetched.code, 0, fetched.stderr);
  return { folder, fetched };
}
