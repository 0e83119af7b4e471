import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freePort, run, startPeer, startSvc, tempFolder, type CodeHost, type Svc } from "@devplat/testkit";

export const ACCEL_SECRET = "planted-accel-secret-of-more-than-32-characters";
const GUIDE = new URL("../../docs/svc/web-server-in-front.md", import.meta.url);
/** A user without rights on Debian. A web server that is started by root becomes it. */
const WEB_USER = "www-data";

export type AccelKind = "nginx" | "caddy";

/** The service behind a web server with TLS, both configured as the guide says. */
export interface AccelStand {
  readonly svc: Svc;
  /** Address of the web server. */
  readonly url: string;
  readonly certificate: string;
  readonly storagePath: string;
  /** Log of the web server. */
  readonly webLog: () => Promise<string>;
  stop(): Promise<void>;
}

/** @param env further environment of the service */
export async function startAccelStand(
  kind: AccelKind,
  codeHost: CodeHost,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<AccelStand> {
  const folder = await tempFolder(`svc-accel-${kind}`);
  await chmod(folder.path, 0o755);
  const storagePath = join(folder.path, "cache");
  const isRoot = process.getuid?.() === 0;
  const group = isRoot ? WEB_USER : String(process.getgid?.());
  const [cert, key] = [join(folder.path, "cert.pem"), join(folder.path, "cert.key")];
  await makeCertificate(cert, key);
  const gid = isRoot ? Number((await run("id", ["-g", WEB_USER])).stdout) : undefined;
  if (gid !== undefined) {
    await chown(key, 0, gid);
    await chmod(key, 0o640);
  }
  const svcPort = await freePort();
  const work = join(folder.path, "web");
  await mkdir(work);
  if (gid !== undefined) await chown(work, Number((await run("id", ["-u", WEB_USER])).stdout), gid);
  let url = "";
  const errorLog = join(work, "error.log");
  const web = await startPeer(kind, async () => {
    const port = await freePort();
    url = `https://localhost:${port}`;
    const text = (await fromGuide(kind === "nginx" ? "nginx" : "caddyfile"))
      .replaceAll("/etc/ssl/git-proxy.pem", cert)
      .replaceAll("/etc/ssl/git-proxy.key", key)
      .replaceAll("/var/cache/svc", storagePath)
      .replaceAll("127.0.0.1:8080", `127.0.0.1:${svcPort}`)
      .replaceAll("THE-SECRET", ACCEL_SECRET);
    const config = join(work, "config");
    if (kind === "nginx") {
      await writeFile(config, nginxText(work, text, port, isRoot));
      return {
        command: "nginx",
        args: ["-c", config, "-p", work, "-e", errorLog, "-g", "daemon off;"],
        isReady: async () => isReady(url, cert),
      };
    }
    await writeFile(config, caddyText(work, text, port));
    const args = ["run", "--adapter", "caddyfile", "--config", config];
    const user = ["--reuid", WEB_USER, "--regid", WEB_USER, "--clear-groups", "caddy"];
    return {
      command: isRoot ? "setpriv" : "caddy",
      args: isRoot ? [...user, ...args] : args,
      options: { env: { PATH: process.env["PATH"], HOME: work, XDG_DATA_HOME: work, XDG_CONFIG_HOME: work } },
      isReady: async () => isReady(url, cert),
    };
  });
  const svc = await startSvc({
    codeHost,
    port: svcPort,
    dataDir: join(folder.path, "data"),
    env: {
      SVC_SERVER_BASE_URL: url,
      SVC_SERVER_TRUSTED_PROXIES: "127.0.0.1",
      SVC_SERVER_ACCEL: kind,
      SVC_SERVER_ACCEL_SECRET: ACCEL_SECRET,
      SVC_CACHE_STORAGE_PATH: storagePath,
      SVC_CACHE_ACCEL_GROUP: group,
      ...env,
    },
  }).catch(async (error: unknown) => {
    await web.stop();
    throw error;
  });
  return {
    svc,
    url,
    certificate: cert,
    storagePath,
    webLog: async () => (await readFile(errorLog, "utf8").catch(() => "")) + web.output(),
    stop: async () => {
      await svc.stop();
      await web.stop();
      await folder.remove();
    },
  };
}

/** The one block of the guide in this language. */
async function fromGuide(language: string): Promise<string> {
  const blocks = (await readFile(GUIDE, "utf8")).split("```");
  const found = blocks.filter((block) => block.startsWith(`${language}\n`));
  const [block] = found;
  if (block === undefined || found.length > 1)
    throw new Error(`the guide has ${found.length} blocks of ${language}`);
  return block.slice(language.length + 1);
}

function nginxText(work: string, server: string, port: number, isRoot: boolean): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `${isRoot ? `user ${WEB_USER};` : ""}
worker_processes 1;
pid ${work}/nginx.pid;
events { worker_connections 512; }
http {
  access_log off;
  sendfile on;
  gzip on;
  gzip_types *;
  default_type text/html;
  ${temporary.map((name) => `${name}_temp_path ${work}/${name};`).join("\n  ")}
  ${server.replace("listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`).replace("git-proxy.example.com", "localhost")}
}
`;
}

function caddyText(work: string, site: string, port: number): string {
  return `{
  admin off
  auto_https disable_redirects
  storage file_system ${join(work, "storage")}
  skip_install_trust
}
${site.replace("git-proxy.example.com", `https://localhost:${port}`)}`;
}

/** Any answer, also 502: the service is started later. */
async function isReady(url: string, cert: string): Promise<boolean> {
  const { code } = await run("curl", ["-sS", "--cacert", cert, "-o", "/dev/null", `${url}/healthz`]);
  return code === 0;
}

async function makeCertificate(cert: string, key: string): Promise<void> {
  const made = await run(
    "openssl",
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"].concat([
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=DNS:localhost",
      "-keyout",
      key,
      "-out",
      cert,
    ]),
    { cwd: dirname(cert) },
  );
  if (made.code !== 0) throw new Error(made.stderr);
}
