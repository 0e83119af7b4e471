import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { postgresFolder, run, s3Program, TestkitError, type Dockerd } from "@devplat/testkit";
import { buildImageContext } from "../../../tools/release/image.ts";
import { baseArchive, layOutImage, type ImageFiles } from "../../interop/local-images.ts";

/** Names of the images, as the variables of `.env` name them. */
export const IMAGES = {
  SVC_IMAGE: "svc",
  NGINX_IMAGE: "local-nginx",
  POSTGRES_IMAGE: "local-postgres",
  S3_IMAGE: "local-versitygw",
} as const;

const BOX = ["sh", "cat", "wget", "mkdir", "chmod", "id", "rm", "head"];
/** User of Postgres's public image. */
const POSTGRES_USER = 999;
const ACCOUNTS = {
  "etc/passwd": `root:x:0:0::/:/bin/sh\npostgres:x:${POSTGRES_USER}:${POSTGRES_USER}::/var/lib/postgresql:/bin/sh\n`,
  "etc/group": `root:x:0:\npostgres:x:${POSTGRES_USER}:\n`,
};

/** Entry of the image for Postgres. It reads the variables of the public image that compose.yaml sets, and nothing else. */
const POSTGRES_ENTRY = `#!/bin/sh
set -eu
export PGDATA=/var/lib/postgresql/data PGTZ=UTC TZ=UTC
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  chmod 700 "$PGDATA"
  initdb -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --locale=C --encoding=UTF8 >/dev/null
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  echo "create database $POSTGRES_DB" | postgres --single -j postgres >/dev/null
fi
exec postgres -c listen_addresses='*'
`;

/**
 * Makes the images that compose.yaml names: that of svc as it is released, and the others of programs of this machine, with
 * paths, users and variables of the public images.
 *
 * @param folder for files that do not stay
 */
export async function makeImages(docker: Dockerd, folder: string): Promise<void> {
  await docker.ok("import", await baseArchive(folder), "base");
  const context = join(folder, "svc");
  await buildImageContext(context);
  const build = ["build", "--network", "none"];
  await docker.ok(...build, "--build-arg", "BASE=base", "--tag", IMAGES.SVC_IMAGE, context);
  const make = async (tag: string, files: ImageFiles, lines: readonly string[]): Promise<void> => {
    const root = join(folder, tag);
    await layOutImage(join(root, "root"), { ...files, box: BOX, texts: ACCOUNTS });
    await writeFile(join(root, "Dockerfile"), ["FROM scratch", "COPY root /", ...lines, ""].join("\n"));
    await docker.ok(...build, "--tag", tag, root);
  };
  await make(IMAGES.NGINX_IMAGE, { copies: { "usr/sbin/nginx": "/usr/sbin/nginx" } }, []);
  await make(IMAGES.S3_IMAGE, { copies: { "usr/local/bin/versitygw": s3Program("versitygw") } }, []);
  await makePostgres();

  async function makePostgres(): Promise<void> {
    const programs = postgresFolder();
    const share = await pgConfig(programs, "--sharedir");
    const libraries = await pgConfig(programs, "--pkglibdir");
    const copies = Object.fromEntries(
      ["postgres", "initdb", "pg_isready"].map((name) => [join(programs, name), join(programs, name)]),
    );
    const path = `ENV PATH=${programs}:/bin`;
    const data = [
      `COPY --chown=${POSTGRES_USER}:${POSTGRES_USER} data /var/lib/postgresql/data`,
      'ENTRYPOINT ["/entry.sh"]',
    ];
    await layOutImage(join(folder, IMAGES.POSTGRES_IMAGE), { folders: ["data"] });
    await make(
      IMAGES.POSTGRES_IMAGE,
      {
        copies: {
          ...copies,
          [share]: share,
          [libraries]: libraries,
          "usr/share/zoneinfo/UTC": "/usr/share/zoneinfo/UTC",
        },
        scripts: { "entry.sh": POSTGRES_ENTRY },
      },
      [path, ...data],
    );
  }
}

async function pgConfig(programs: string, option: string): Promise<string> {
  const { code, stdout, stderr } = await run(join(programs, "pg_config"), [option]);
  if (code !== 0) throw TestkitError.failed("pg_config", stderr);
  return stdout.trim();
}
