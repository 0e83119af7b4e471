import assert from "node:assert/strict";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  git,
  repositories,
  run,
  startCodeHost,
  startDockerd,
  tempFolder,
  until,
  type CodeHost,
  type Dockerd,
  type TempFolder,
} from "@devplat/testkit";
import { buildImageContext } from "../../tools/build/image.ts";

/** Libraries of a base: those that Node is linked with, except the one that the image brings. */
const LIBRARIES = /(?:=> )?(\/\S*\/(?:ld-linux|lib(?:c|m|dl|pthread|stdc\+\+|gcc_s)\.)\S*)/g;
const MAX_BYTES = 150e6;

describe("deploy/image", { timeout: 300_000 }, () => {
  let folder: TempFolder;
  let docker: Dockerd;
  let codeHost: CodeHost;
  before(async () => {
    folder = await tempFolder("image");
    codeHost = await startCodeHost();
    await codeHost.addRepository("org", "r", { build: repositories.merges });
    docker = await startDockerd();
    await docker.ok("import", await baseArchive(folder.path), "base");
    const context = join(folder.path, "context");
    await buildImageContext(context);
    await docker.ok("build", "--network", "none", "--build-arg", "BASE=base", "--tag", "svc", context);
  });
  after(async () => {
    await docker.stop();
    await codeHost.stop();
    await folder.remove();
  });

  it("has at most 150 MB on a small base, and a user that is not root", async () => {
    const size = async (image: string): Promise<number> =>
      Number(await docker.ok("image", "inspect", "--format", "{{.Size}}", image));
    assert.ok((await size("svc")) <= MAX_BYTES, `${await size("svc")} bytes`);
    assert.equal(await docker.ok("image", "inspect", "--format", "{{.Config.User}}", "svc"), "65532:65532");
  });

  it("serves a clone without more rights, and ends at SIGTERM", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const settings = {
      SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
      SVC_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
      SVC_HOST_URL: codeHost.url,
      SVC_HOST_API_URL: codeHost.apiUrl,
      SVC_ENCRYPTION_KEY: "0".repeat(64),
      HEALTHCHECK_URL: `${url}/healthz`,
    };
    const hardening = "--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges";
    const container = await docker.ok(
      "run",
      ...hardening.split(" "),
      ..."--detach --network host --health-interval 1s --volume svc-data:/var/lib/svc".split(" "),
      ...Object.entries(settings).flatMap(([key, value]) => ["--env", `${key}=${value}`]),
      "svc",
      "serve",
      "--migrate",
    );
    const inspect = async (format: string): Promise<string> =>
      docker.ok("inspect", "--format", format, container);
    const logs = async (): Promise<string> => (await docker.run("logs", container)).stderr;
    try {
      await until(async () => (await inspect("{{.State.Health.Status}}")) === "healthy");
    } catch (error) {
      assert.fail(`${String(error)}\n${await logs()}`);
    }
    assert.match(
      await docker.ok("exec", container, "/opt/svc/bin/node", "-p", "process.getuid()"),
      /^65532$/,
    );
    const target = join(folder.path, "clone");
    await git(["clone", "-q", `${url}/org/r.git`, target]);
    await docker.ok("stop", "--time", "30", container);
    assert.equal(await inspect("{{.State.ExitCode}}"), "0", await logs());
    assert.match(await logs(), /"stopped"/);
  });
});

/** An archive of an image that has what small images have: a C library and libraries of the compiler. */
async function baseArchive(folder: string): Promise<string> {
  const root = join(folder, "base");
  const { stdout } = await run("ldd", [process.execPath]);
  for (const [, library = ""] of stdout.matchAll(LIBRARIES)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
  }
  await mkdir(join(root, "etc/ssl/certs"), { recursive: true });
  await copyFile("/etc/ssl/certs/ca-certificates.crt", join(root, "etc/ssl/certs/ca-certificates.crt"));
  const archive = join(folder, "base.tar");
  const made = await run("tar", ["-C", root, "-cf", archive, "."]);
  assert.equal(made.code, 0, made.stderr);
  await rm(root, { recursive: true });
  return archive;
}
