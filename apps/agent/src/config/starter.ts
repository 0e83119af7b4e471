const MOUNT = `fuse:
  # Your secrets as files below this folder, which are on no disk. Linux only.
  enabled: true
  mountpoint: ~/.daemon
  # The mount is read-only. With this line, programs may also change secrets on it:
  # read_write: true

`;
/** Example of a secret on the mount. */
export const MOUNTED_EXAMPLE = "~/.daemon/example.json";
const RULES = "# Each rule brings";

/** The same with the filesystem mount. */
export function starterConfigWithMount(): string {
  return STARTER_CONFIG.replace(RULES, `${MOUNT}${RULES}`);
}

/** The file that `agent init` writes. It works unchanged, and shows the usual settings by example. */
export const STARTER_CONFIG = `# Configuration of the credential-sync daemon. 'agent config check' tells faults by line.

store:
  # 'embedded' keeps the secrets encrypted in a file on this host. For a central store:
  #   driver: vault
  #   address: https://vault.example.com:8200
  driver: embedded

sync:
  # How often the store is asked for new versions (at least 10s). Changes in an embedded store are seen at once.
  interval: 15m
  # Rules may write below these folders only.
  allowed_targets: ["~"]

web:
  enabled: true
  # Loopback only.
  listen: 127.0.0.1:8200

# Each rule brings one secret (or several) into one file. Only the keys that a rule sets are changed; comments, order
# and everything else in the file stay as they are. Try it:
#   agent secrets put example token=s3cret user=me
#   agent sync
#   cat ~/agent-example.yaml
rules:
  - name: example
    description: A YAML file with the credentials of an example service
    key: example
    target:
      path: ~/agent-example.yaml
      format: yaml
      template: |
        service:
          user: {{ .user | default "me" }}
          token: {{ .token | quote }}
    # A command that is run after the file has changed:
    # run:
    #   command: [systemctl, --user, reload, example]
`;
