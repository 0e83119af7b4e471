import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type CodeHost,
  freePort,
  makeCertificate,
  type Peer,
  run,
  startPeer,
  startSvc,
  type Svc,
  SVC_LAUNCHER,
  tempFolder,
} from "@devplat/testkit";

export const ACCEL_SECRET = "planted-accel-secret-of-more-than-32-characters";
const GUIDE = new URL("../../docs/svc/web-server-in-front.md", import.meta.url);
/** A user without rights on Debian. A web server that is started by root becomes it. */
const WEB_USER = "www-data";

export type AccelKind = "nginx" | "caddy";

export interface WebChange {
  /** Changes the text of the guide, with the values of the stand in it. Default: nothing. */
  readonly edit?: (text: string) => string;
  /** Group of its processes, if the test is run by root. Default: the group that may read. */
  readonly group?: string;
}

export interface Finding {
  readonly state: string;
  readonly detail: string;
}

/** The service behind a web server with TLS, both configured as the guide says. */
export interface AccelStand {
  readonly svc: Svc;
  /** Address of the web server. */
  readonly url: string;
  readonly certificate: string;
  readonly storagePath: string;
  /** Log of the web server. */
  readonly webLog: () => Promise<string>;
  /** The finding of `svc doctor` about the web server. @param env further environment. @param user who runs it */
  doctor(
    args?: readonly string[],
    env?: Readonly<Record<string, string | undefined>>,
    user?: string,
  ): Promise<Finding>;
  /** Starts the web server again, with its configuration changed. */
  restartWeb(change: WebChange): Promise<void>;
  stopWeb(): Promise<void>;
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
  const { certFile: cert, keyFile: key } = await makeCertificate(folder.path, ["DNS:localhost"]);
  const [uid, gid] = isRoot ? await Promise.all([idOf("-u"), idOf("-g")]) : [undefined, undefined];
  if (uid !== undefined && gid !== undefined) {
    await chown(key, uid, gid);
    await chmod(key, 0o640);
  }
  const svcPort = await freePort();
  const work = join(folder.path, "web");
  await mkdir(work);
  if (uid !== undefined && gid !== undefined) await chown(work, uid, gid);
  let url = "";
  let port: number | undefined;
  const errorLog = join(work, "error.log");
  const startWeb = async ({ edit = (text) => text, group: webGroup = WEB_USER }: WebChange): Promise<Peer> =>
    startPeer(kind, async () => {
      const own = port ?? (await freePort());
      url = `https://localhost:${own}`;
      const guide = (await fromGuide(kind === "nginx" ? "nginx" : "caddyfile"))
        .replaceAll("/etc/ssl/git-proxy.pem", cert)
        .replaceAll("/etc/ssl/git-proxy.key", key)
        .replaceAll("/var/cache/svc", storagePath)
        .replaceAll("127.0.0.1:8080", `127.0.0.1:${svcPort}`)
        .replaceAll("THE-SECRET", ACCEL_SECRET);
      const text = edit(guide);
      const config = join(work, "config");
      if (kind === "nginx") {
        await writeFile(config, nginxText(work, text, own, isRoot ? `user ${WEB_USER} ${webGroup};` : ""));
        return {
          command: "nginx",
          args: ["-c", config, "-p", work, "-e", errorLog, "-g", "daemon off;"],
          isReady: async () => isReady(url, cert),
        };
      }
      await writeFile(config, caddyText(work, text, own));
      const args = ["run", "--adapter", "caddyfile", "--config", config];
      const user = ["--reuid", WEB_USER, "--regid", webGroup, "--clear-groups", "caddy"];
      return {
        command: isRoot ? "setpriv" : "caddy",
        args: isRoot ? [...user, ...args] : args,
        options: {
          env: { PATH: process.env["PATH"], HOME: work, XDG_DATA_HOME: work, XDG_CONFIG_HOME: work },
        },
        isReady: async () => isReady(url, cert),
      };
    });
  let web = await startWeb({});
  port = Number(new URL(url).port);
  const dataDir = join(folder.path, "data");
  const settings = {
    SVC_SERVER_BASE_URL: url,
    SVC_SERVER_TRUSTED_PROXIES: "127.0.0.1",
    SVC_SERVER_ACCEL: kind,
    SVC_SERVER_ACCEL_SECRET: ACCEL_SECRET,
    SVC_CACHE_STORAGE_PATH: storagePath,
    SVC_CACHE_ACCEL_GROUP: group,
    ...env,
  };
  const svc = await startSvc({
    codeHost,
    port: svcPort,
    dataDir,
    env: settings,
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
    doctor: async (args = [], more = {}, user) => {
      const environment = {
        PATH: process.env["PATH"],
        SVC_DEV_MODE: "true",
        SVC_DATA_DIR: dataDir,
        SVC_CACHE_ENABLED: "true",
        SVC_HOST_URL: codeHost.url,
        SVC_HOST_API_URL: codeHost.apiUrl,
        SVC_SERVER_LISTEN: `127.0.0.1:${svcPort}`,
        ...settings,
        ...more,
      };
      const command = [SVC_LAUNCHER, "doctor", "--json", ...args];
      const asUser =
        user === undefined ? [] : ["setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups"];
      const [program = "", ...rest] = [...asUser, ...command];
      const { stdout } = await run(program, rest, { cwd: folder.path, env: environment });
      const { findings } = JSON.parse(stdout) as { findings: (Finding & { check: string })[] };
      const found = findings.find(({ check }) => check === "web server in front");
      if (found === undefined) throw new Error(stdout);
      return found;
    },
    restartWeb: async (change) => {
      await web.stop();
      web = await startWeb(change);
    },
    stopWeb: async () => void (await web.stop()),
    stop: async () => {
      await svc.stop();
      await web.stop();
      await folder.remove();
    },
  };
}

/** @param which option of id(1) */
async function idOf(which: "-u" | "-g"): Promise<number> {
  return Number((await run("id", [which, WEB_USER])).stdout);
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

function nginxText(work: string, server: string, port: number, user: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `${user}
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
