import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cpuSecondsOf, freePort, run, startPeer } from "@devplat/testkit";

/** nginx with one worker that serves a folder: the cost of sending bytes without other work. */
export interface Nginx {
  readonly url: string;
  readonly cpuSeconds: () => number;
  stop(): Promise<void>;
}

/**
 * @param folder is served under `/`; nginx's own files go to `work`
 * @param proxied address that everything is passed on to, in the place of the folder
 */
export async function startNginx(folder: string, work: string, proxied?: string): Promise<Nginx> {
  return await start(work, "http", (port) => plainServer(folder, port, proxied));
}

/** Ways to send bytes over TLS. */
export interface TlsPlaces {
  /** Is served under `/static/`. */
  readonly folder: string;
  /** Address of svc. Everything else is passed on to it, and below `/accel/` with its secret. */
  readonly behind: string;
  /** `server.accel_secret`, and the folder with what is handed over. */
  readonly secret: string;
  readonly handed: string;
}

/** nginx that ends TLS with a certificate of its own. */
export async function startTlsNginx(places: TlsPlaces, work: string): Promise<Nginx> {
  await mkdir(work, { recursive: true });
  const [cert, key] = [join(work, "cert.pem"), join(work, "key.pem")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  const made = await run(
    "openssl",
    [
      "req",
      "-x509",
      ...curve,
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
      "-keyout",
      key,
      "-out",
      cert,
    ],
    {},
  );
  if (made.code !== 0) throw new Error(`openssl: ${made.stderr}`);
  return await start(work, "https", (port) => tlsServer(places, port, cert, key));
}

async function start(work: string, scheme: string, server: (port: number) => string): Promise<Nginx> {
  await mkdir(work, { recursive: true });
  const config = join(work, "nginx.conf");
  const pidFile = join(work, "nginx.pid");
  let url = "";
  const peer = await startPeer("nginx", async () => {
    const port = await freePort();
    url = `${scheme}://127.0.0.1:${port}`;
    await writeFile(config, configuration(work, pidFile, server(port)));
    return {
      command: "nginx",
      args: ["-c", config, "-p", work, "-g", "daemon off;"],
      isReady: async () => (await run("curl", ["-sk", "-o", "/dev/null", `${url}/`], {})).code === 0,
    };
  });
  const master = Number(readFileSync(pidFile, "utf8"));
  const workers = readFileSync(`/proc/${master}/task/${master}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number);
  return {
    url,
    cpuSeconds: () => workers.reduce((sum, pid) => sum + cpuSecondsOf(pid).own, cpuSecondsOf(master).own),
    stop: async () => void (await peer.stop()),
  };
}

function plainServer(folder: string, port: number, proxied: string | undefined): string {
  const place =
    proxied === undefined
      ? `root ${folder}; autoindex on;`
      : `location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }`;
  const behind =
    proxied === undefined ? "" : `upstream behind { server ${new URL(proxied).host}; keepalive 64; }`;
  return `${behind}
  server { listen 127.0.0.1:${port}; ${place} }`;
}

function tlsServer(
  { folder, behind, secret, handed }: TlsPlaces,
  port: number,
  cert: string,
  key: string,
): string {
  const proxy = `proxy_pass http://behind/; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host ${new URL(behind).host}; proxy_buffering off;`;
  return `upstream behind { server ${new URL(behind).host}; keepalive 64; }
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    location /static/ { alias ${folder}/; output_buffers 2 512k; }
    location / { ${proxy} }
    location /accel/ { ${proxy} proxy_set_header X-Svc-Accel "${secret}"; }
    location /_svc_accel/ { internal; alias ${handed}/; output_buffers 2 512k; }
  }`;
}

function configuration(work: string, pidFile: string, server: string): string {
  return `user root;
worker_processes 1;
pid ${pidFile};
error_log ${join(work, "error.log")};
events { worker_connections 512; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path ${join(work, "body")};
  proxy_temp_path ${join(work, "proxy")};
  fastcgi_temp_path ${join(work, "fastcgi")};
  uwsgi_temp_path ${join(work, "uwsgi")};
  scgi_temp_path ${join(work, "scgi")};
  default_type application/json;
  keepalive_requests 1000000;
  ${server}
}
`;
}
