/** A configuration with every section, for tests of what must carry all of it. */
export const EVERY_SECTION = `
bypass_system_config: true
store:
  address: https://vault.example:8200
  namespace: team
  proxy: http://proxy.example:3128
  ca_cert: 'C:\\certs\\"ca".pem'
  tls_skip_verify: false
  kv_mount: kv
  user_prefix: ""
  username: ada
  auth_method: token
  oidc_callback_port: 8251
  policies: [one, two]
  no_default_policy: true
  token_socket: []
  mtls: {pki_role: laptop, key_bits: 384, seal_to_pcrs: [0, 7], reissue_before: 72h, pkcs11: {module: /usr/lib/x.so, token: t, pin_file: ~/pin}}
sync: {interval: 5m, allowed_targets: ["~", /opt/x]}
web: {enabled: true, listen: "127.0.0.1:8201", login_text: "two\\nlines", editable_paths: [a/, b/], require_unlock: true}
api: {enabled: false, unix: {path: ~/api.sock}, peer: {enabled: false, offers: [notify], lend: own, policies: [reader], policies_strict: true, token_ttl: 1h, ask: first}}
fuse: {enabled: false, mountpoint: ~/m, read_write: true, layout: both, cache_ttl: 1m}
docker: {enabled: true, socket: /run/x.sock, volume_dir: ~/volumes, cache_ttl: 2m, paths: [demo/, team], on_change: true}
agent:
  enabled: false
  unix: {path: ~/ssh-agent.sock}
  confirm: forwarded
  key_lifetime: 8h
  keys:
    - {source: kv, name: team, path_prefix: ssh/team, hosts: ["*.example.com", "deploy@web", "!db.example.com"], via: [jump.example.com]}
    - {source: ca, name: prod, mount: ssh-prod, role: login, principals: ["{{ username }}", root], ttl: 5m, extensions: {permit-pty: ""}, key_type: ecdsa, confirm: always}
    - {source: enrolments, name: mine, namespaces: [git]}
  relay: [SSH_AUTH_SOCK, /run/other-agent.sock]
  sockets: [{path: ~/git-agent.sock, keys: [mine, team]}]
ssh: {use_ssh_config: false, command: ~/bin/ssh, certificate_authorities: ["@cert-authority *.example.com,!db.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7WlK1yxWcAhWi0iPQ6bLbSwxSJ1YF1zQ0bXkQbY0Zb ca@example"], insecure_ignore_host_key: true}
observability: {enabled: false, endpoint: "https://otel.example:4318", protocol: http/json, headers: {x-key: v}, service_name: laptop, interval: 30s}
git_credentials: [{host: git.example, key: tools/git, username_field: u, password_field: p}]
rules:
  - name: first
    keys: {a: x/y, b: z}
    target: {path: ~/f.yaml, format: yaml, template: "a: {{ .a.b }}\\n# é ☃ 𝄞\\n", lists: {contexts: name}, mode: "0640"}
    run: {command: [systemctl, reload, "with space"], timeout: 5s}
  - {name: mounted, key: k, target: {mount: app/.kube, base: ~/.kube/config, allow: [/usr/bin/kubectl], format: yaml}}
  - {name: second, key: k, paused: true, target: {path: ~/g.ini, format: ini, dialect: pip, merge: replace}}
enrolments:
  flat: {engine: copy, from: shared/x, fields: {user: "{{ .u }}"}}
  tools/asked: {engine: prompt, fields: [{name: token, help: "line\\nline", secret: false, optional: true}, {name: b}]}
  tools/key: {engine: ssh, passphrase: unsafe}
  hub: {engine: github, host: "https://git.example", client_id: abc, scopes: [repo, "read:org"]}
  proxy: {engine: svc, url: "https://proxy.example", client_id: agent, scopes: [contents]}
  device: {engine: oauth-device, device_url: "https://x.example/d", token_url: "https://x.example/t", client_id: c, audience: a}
  browser: {engine: oauth-pkce, authorize_url: "https://x.example/a", token_url: "https://x.example/t", client_id: c, callback_port: 8300}
  bricks: {engine: databricks, host: "https://dbx.example", scopes: [all-apis]}
  frog: {engine: jfrog, url: "https://frog.example"}
remote_config: {url: "https://x.example/c", headers: {x-a: b}, refresh_interval: 1h}
`;
