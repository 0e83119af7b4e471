/**
 * - `text`, `number`: one value.
 * - `list`: words with commas between them.
 * - `flag`: on, or not given.
 */
type SettingKind = "text" | "number" | "list" | "flag";

/**
 * The settings of a remote that can be changed, with the option of the command line that sets each. The command line, the
 * form of the web UI and the API take these. `enabled` is not here: `--enable`, `--disable` and the buttons of the pages set it.
 */
export const REMOTE_SETTINGS = {
  port: { option: "port", kind: "number" },
  remote_socket: { option: "socket", kind: "text" },
  user: { option: "user", kind: "text" },
  proxy_jump: { option: "proxy-jump", kind: "text" },
  offers: { option: "offers", kind: "list" },
  policies: { option: "policies", kind: "list" },
  policies_strict: { option: "policies-strict", kind: "flag" },
  token_ttl: { option: "token-ttl", kind: "text" },
  ask: { option: "ask", kind: "text" },
  lend: { option: "lend", kind: "text" },
} as const satisfies Readonly<Record<string, { readonly option: string; readonly kind: SettingKind }>>;

export type RemoteSetting = keyof typeof REMOTE_SETTINGS;
/** Option of the command line that sets a {@link RemoteSetting}. */
export type RemoteOption = (typeof REMOTE_SETTINGS)[RemoteSetting]["option"];

export const REMOTE_SETTING_NAMES = Object.keys(REMOTE_SETTINGS) as readonly RemoteSetting[];
