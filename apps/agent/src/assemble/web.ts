import type { Clock } from "@devplat/base";
import { Assets, CsrfTokens, EventStreams, addCommonAssets } from "@devplat/web-kit";
import type { PortGuard } from "../surfaces/web/access/port-guard.ts";
import { Sessions } from "../surfaces/web/access/sessions.ts";
import { WebKey } from "../surfaces/web/access/web-key.ts";
import { Connections } from "../surfaces/web/connections.ts";
import { addPageAssets } from "../surfaces/web/pages/layout.ts";
import { LiveUpdates } from "../surfaces/web/routes/live-updates.ts";
import type { SiteParts } from "../surfaces/web/routes/route-parts.ts";
import { WebServer, type WebServerOptions } from "../surfaces/web/server.ts";

export interface WebParts extends SiteParts {
  readonly guard: PortGuard;
  /** Folder for the web key, with mode 0700. */
  readonly runtimeFolder: string;
  readonly clock: Clock;
}

/** Builds the web port with its sessions, event streams, connections and assets. */
export function assembleWeb(parts: WebParts, options: WebServerOptions): WebServer {
  const { signIn, runtimeFolder, clock, openStreams } = parts;
  const streams = new EventStreams();
  openStreams.add(streams);
  const assets = new Assets();
  addCommonAssets(assets);
  addPageAssets(assets);
  return new WebServer(
    {
      ...parts,
      streams,
      assets,
      live: new LiveUpdates({ ...parts, token: () => signIn.token(), streams }),
      sessions: new Sessions((session) => streams.closeOwned(session), clock),
      csrf: new CsrfTokens(clock),
      connections: new Connections(),
      webKey: new WebKey(runtimeFolder),
    },
    options,
  );
}
